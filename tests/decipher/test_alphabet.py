"""Texts taken apart into symbols."""

import pytest

from lexinvariant.decipher.alphabet import check_cribs, make_puzzle
from lexinvariant.decipher.language import load_language
from lexinvariant.errors import UserError


def test_lines_without_spaces_and_numbers_show_no_words() -> None:
    english = load_language()
    assert not make_puzzle("xqzwvutsrqponmlkjihgfedcbaxqzw\n" * 3, english).spaced
    assert not make_puzzle("20 8 5 18 5 9 19 14 15 15 14 5", english).spaced
    assert make_puzzle("20-8-5 18-5-9 19 14-15-15", english).spaced
    assert make_puzzle("xqzwv", english).spaced


def test_an_accented_letter_is_no_cipher_symbol() -> None:
    for text in ("Le café noir était là", "Le cafe\u0301 noir e\u0301tait la\u0300"):
        puzzle = make_puzzle(text, load_language())
        assert puzzle.kind == "letters"
        assert set(puzzle.symbols) <= set(load_language().letters)
        assert puzzle.plaintext({}) == "Le café noir était là"


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
