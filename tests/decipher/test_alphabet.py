"""Texts taken apart into symbols."""

import pytest

from lexinvariant.decipher.alphabet import check_cribs, make_puzzle, split_symbols
from lexinvariant.decipher.language import load_language
from lexinvariant.errors import UserError

FLAG, FAMILY, HEART, THUMB = "🇪🇺", "👩‍👩‍👧", "❤️", "👍🏽"


def test_what_is_seen_as_one_sign_is_one_symbol() -> None:
    assert split_symbols(f"{FLAG}{FLAG}{FAMILY} {HEART}\n{THUMB}x") == [
        *(FLAG, FLAG, FAMILY, " ", HEART, "\n", THUMB, "x")
    ]
    assert split_symbols("e\u0301a 1\ufe0f\u20e3") == ["e\u0301", "a", " ", "1\ufe0f\u20e3"]


def test_a_plain_text_is_its_own_symbols_whatever_its_size() -> None:
    text = "plain text, 🐶 too"
    assert split_symbols(text) is text


def test_tokens_are_parted_by_any_white_space() -> None:
    assert split_symbols(" 12  7\n12\t300 ", tokens=True) == ["12", "7", "12", "300"]


def test_marks_without_a_character_are_symbols_and_nothing_is_lost() -> None:
    for text in ("\ufe0f", "\u200d", "🇪", "🇪🇺🇪", "a\u200d", "\u200d\u200da\u0301"):
        assert "".join(split_symbols(text)) == text


def test_tokens_that_are_letters_keep_their_case() -> None:
    puzzle = make_puzzle(["A", "b", " ", "a"], load_language(), "letters")
    assert puzzle.plaintext({"a": "t", "b": "o"}) == "To t"


@pytest.mark.parametrize(
    ("text", "crib_text", "sentence"),
    [
        (["12", "7"], "a b", "it has ' ' where 7 stands for a letter"),
        ("ab cd", "a bc", "it has ' ' where b stands for a letter"),
        ("ab cd", "toxic", "it has x where the ciphertext keeps ' '"),
    ],
)
def test_a_known_beginning_that_does_not_fit(text: str | list[str], crib_text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_cribs(make_puzzle(text, load_language()), {}, crib_text)
