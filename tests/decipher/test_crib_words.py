"""Words known to stand somewhere: tried wherever they fit."""

import pytest

from lexinvariant.decipher.alphabet import make_puzzle
from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.crib_words import pinned_by_words, places
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError

ENGLISH = load_language()
PLAIN = "the quartz wizard of the lighthouse vexed the duke by waltzing"
CIPHER = random_cipher(9).encipher(PLAIN)


def test_a_word_fits_where_its_pattern_does() -> None:
    puzzle = make_puzzle("abc abba xyx deed", ENGLISH)
    number = puzzle.symbols.index
    assert places(puzzle, {}, "noon") == [
        {number("a"): "n", number("b"): "o"},
        {number("d"): "n", number("e"): "o"},
    ]
    assert places(puzzle, {number("c"): "n"}, "noon") == []  # n is taken
    assert places(puzzle, {}, "oo") == [
        {number("b"): "o"},
        {number("e"): "o"},
    ]  # no whole word, but inside of two


def test_a_word_is_found_and_the_rest_follows() -> None:
    solver = Solver(language=ENGLISH, use_judge=False)
    unspaced = CIPHER.replace(" ", "")
    puzzle = make_puzzle(unspaced, ENGLISH)
    pinned = pinned_by_words(puzzle, {}, ["Lighthouse"])
    truth = dict(zip(unspaced, PLAIN.replace(" ", ""), strict=True))
    assert {puzzle.symbols[s]: plain for s, plain in pinned.items()} == {
        c: p for c, p in truth.items() if p in "lighthouse"
    }
    found = solver.read([CIPHER], crib_words=["lighthouse", "quartz"])[0]
    assert "lighthouse" in found.plaintext
    assert "quartz" in found.plaintext
    assert max(found.confidence.values()) < 1.0  # where it stands is not known for certain


def test_words_that_cannot_be_placed() -> None:
    puzzle = make_puzzle(CIPHER, ENGLISH)
    with pytest.raises(UserError, match="fits nowhere"):
        pinned_by_words(puzzle, {}, ["mississippi"])
    with pytest.raises(UserError, match="'lighthouse' contradicts the cribs"):
        pinned_by_words(puzzle, {puzzle.symbols.index(CIPHER[0]): "w"}, ["lighthouse"])
    with pytest.raises(UserError, match="no letters"):
        pinned_by_words(puzzle, {}, ["42"])
    with pytest.raises(UserError, match="symbol by symbol"):
        pinned_by_words(make_puzzle("q#Q# 7x#q", ENGLISH, "ascii"), {}, ["word"])


def test_the_word_that_is_in_the_way_of_another_is_named() -> None:
    puzzle = make_puzzle("Wkh nhbv duh xqghu wkh vwrqh.", ENGLISH)
    assert pinned_by_words(puzzle, {}, ["stone", "keys"])
    with pytest.raises(UserError, match=r"'keys' no longer fits once 'ston' has its place: .* whole words"):
        pinned_by_words(puzzle, {}, ["ston", "keys"])


@pytest.mark.parametrize("word", ["cat", "sat", "mat"])
def test_a_reading_that_has_the_word_by_itself_is_taken_as_it_is(word: str) -> None:
    found = Solver().read(["gur png fng ba gur zng"], crib_words=[word])[0]
    assert found.plaintext == "the cat sat on the mat"
    assert found.verdict.kind == "caesar"


def test_a_word_is_placed_among_letters_alone_where_more_may_have_been_enciphered() -> None:
    text = "be at gate 7, 9:30 or 10:45; bring 12 eggs, 3 cakes, 2 tents!"
    solver = Solver()
    assert solver.read([random_cipher(5).encipher(text)], crib_words=["cakes"])[0].plaintext == text
    many_signs = "3 cakes, 2 tents (15 cups, 8 plates)! call #555-0134. this is the end of it, my friend"
    for plain in (text, many_signs):
        with pytest.raises(UserError, match="'mississippi' fits nowhere"):
            solver.read([random_cipher(5).encipher(plain)], crib_words=["mississippi"])
