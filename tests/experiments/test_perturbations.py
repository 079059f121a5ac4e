"""Texts written differently: what changes, what stays, and that the same chance writes the same."""

import random
from collections import defaultdict

import pytest

from lexinvariant.experiments import perturbations
from lexinvariant.experiments.naming_passage import PASSAGE
from lexinvariant.experiments.perturbations import (
    Perturb,
    declared_names,
    looks_like_code,
    looks_like_prose,
    make_up_words,
    rename_identifiers,
    replace_by_rare_words,
    swap_characters,
)

JAVA = """package org.example;

import java.util.List;

/** Adds numbers up: total is the sum. */
public class Adder extends Base {
    private int total = 0;
    private final List<String> names;

    public void add(int amount) {
        total = total + amount; // total grows
        log("total " + amount);
    }

    public int get() {
        return total;
    }
}
"""
PYTHON = """def longest(words: list[str], least=3):
    best = ""
    for word in words:
        if len(word) > len(best):
            best = word
    return best if len(best) > least else None
"""
RARE = ["zephyr", "quixotic", "obelisk", *(f"rare{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
KNOWN = {"me", "lent", "bat"}
ALL: dict[str, tuple[Perturb, str]] = {
    "swapped": (swap_characters, PASSAGE),
    "rare": (replace_by_rare_words(RARE), PASSAGE),
    "made up": (make_up_words(KNOWN), PASSAGE),
    "renamed": (rename_identifiers(KNOWN), JAVA),
}


@pytest.mark.parametrize("name", ALL)
def test_pieces_make_up_the_clean_text_and_only_marked_ones_differ(name: str) -> None:
    perturb, text = ALL[name]
    pieces = perturb(text, random.Random(0))
    assert "".join(piece.clean for piece in pieces) == text
    changed = [piece for piece in pieces if piece.word is not None]
    assert len(changed) >= 5
    assert all((piece.clean == piece.written) == (piece.word is None) for piece in pieces)
    assert pieces == perturb(text, random.Random(0)) != perturb(text, random.Random(1))


@pytest.mark.parametrize("name", ["rare", "made up", "renamed"])
def test_a_word_is_replaced_wherever_it_stands_and_by_one_of_its_own(name: str) -> None:
    perturb, text = ALL[name]
    pieces = perturb(text, random.Random(0))
    written = defaultdict(set)
    for piece in pieces:
        if piece.word is not None:
            written[piece.word].add(piece.written.lower())
            assert piece.clean[0].isupper() == piece.written[0].isupper()
    assert {len(forms) for forms in written.values()} == {1}
    assert len({form for forms in written.values() for form in forms}) == len(written)
    rest = "".join(piece.clean for piece in pieces if piece.word is None)
    if name != "renamed":  # comments and strings may keep a name
        assert not written.keys() & {word.lower() for _, _, word in perturbations._words(rest)}


def test_swapped_words_keep_their_letters_and_their_ends() -> None:
    pieces = swap_characters(PASSAGE, random.Random(0))
    changed = [piece for piece in pieces if piece.word is not None]
    for piece in changed:
        assert sorted(piece.clean) == sorted(piece.written)
        assert (piece.clean[0], piece.clean[-1]) == (piece.written[0], piece.written[-1])
    share = len(changed) / len(perturbations._words(PASSAGE))
    assert 0.1 < share < 0.25


def test_made_up_words_are_none_that_are_known() -> None:
    """Every word that would be made up is known already, so others are found."""
    first = {p.written.lower() for p in make_up_words(set())(PASSAGE, random.Random(0)) if p.word}
    second = {p.written.lower() for p in make_up_words(first)(PASSAGE, random.Random(0)) if p.word}
    assert first and second and not first & second


def test_too_few_rare_words_leave_some_as_they_are() -> None:
    pieces = replace_by_rare_words(["zephyr"])(PASSAGE, random.Random(0))
    assert {piece.written.lower() for piece in pieces if piece.word is not None} == {"zephyr"}


def test_names_that_code_declares_are_found_and_others_are_not() -> None:
    assert declared_names(JAVA) == {"Adder", "total", "names", "add", "amount", "get"}
    assert declared_names(PYTHON) == {"longest", "words", "least", "best", "word"}


def test_renaming_leaves_comments_strings_and_the_library_alone() -> None:
    pieces = rename_identifiers(KNOWN)(JAVA, random.Random(0))
    assert {piece.word for piece in pieces} == {None, "total", "amount"}, "the others are used once"
    written = "".join(piece.written for piece in pieces)
    assert "total is the sum" in written and '"total "' in written and "// total grows" in written
    assert "List<String>" in written and "int total" not in written


@pytest.mark.parametrize(
    ("text", "is_code", "is_prose"),
    [
        (JAVA, True, False),
        (PYTHON, True, False),
        (PASSAGE, False, True),
        ("name,age\nann,3\nbob,4\ncid,5\n" * 5, False, False),
        ("", False, False),
    ],
    ids=["Java", "Python", "prose", "a table", "nothing"],
)
def test_code_and_prose_are_told_apart(text: str, is_code: bool, is_prose: bool) -> None:
    assert (looks_like_code(text), looks_like_prose(text)) == (is_code, is_prose)
