"""Vigenere ciphers and their kin: keys found, named, and claimed only where there is one."""

import numpy as np
import pytest

from lexinvariant.decipher import classical
from lexinvariant.decipher.alphabet import make_puzzle
from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.polyalphabetic import looks_polyalphabetic, read_polyalphabetic

ENGLISH = load_language()
PLAIN = (
    "When the old keeper of the lighthouse heard the storm coming over the water, he climbed the stairs with his lamp "
    "and his book, and sat down to wait for the ships that would need him before the morning."
)
LOWER = PLAIN.lower()
LETTERS = "".join(c for c in LOWER if c.isalpha())


def numbers(word: str) -> list[int]:
    return [ENGLISH.letters.index(c) for c in word]


def enciphered(text: str, word: str, tableau: classical.Tableau) -> str:
    return classical.polyalphabetic(text, numbers(word), tableau)


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        (enciphered(LOWER, "lemon", "vigenere"), "vigenere", "lemon"),
        (enciphered(LETTERS, "constellation", "vigenere"), "vigenere", "constellation"),
        (enciphered(LOWER, "harbour", "beaufort"), "beaufort", "harbour"),
        (enciphered(LOWER, "fortress", "porta"), "porta", "fortress"),
        (classical.polyalphabetic(LOWER, [3, 1, 4, 1, 5, 9], "vigenere"), "gronsfeld", "314159"),
        (classical.undo_polyalphabetic(LOWER, numbers("anchor"), "vigenere"), "variant-beaufort", "anchor"),
        (enciphered(LOWER, "facade", "vigenere"), "vigenere", "facade"),  # digits would do too
    ],
)
def test_the_key_is_found_and_named(text: str, kind: str, key: str) -> None:
    puzzle = make_puzzle(text, ENGLISH)
    found = read_polyalphabetic(puzzle)
    assert found is not None
    assert (found.kind, found.parameters) == (kind, {"period": len(key), "key": key})
    told = found.decipherment(top=3)
    assert told.plaintext == (LOWER if " " in text else LETTERS)
    assert told.verdict.status == "read"
    assert f"period {len(key)}" in told.verdict.sentence
    assert len(told.letter_confidence) == len(LETTERS)
    assert min(told.letter_confidence) > 0.9
    assert looks_polyalphabetic(puzzle)


def test_blanks_that_use_up_the_key() -> None:
    key = np.resize(numbers("garden"), len(LOWER))
    text = "".join(enciphered(c, ENGLISH.letters[k], "vigenere") for c, k in zip(LOWER, key, strict=True))
    found = read_polyalphabetic(make_puzzle(text, ENGLISH))
    assert found is not None
    assert found.parameters == {"period": 6, "key": "garden"}
    assert found.plaintext == LOWER


def test_letters_keep_their_case_and_numbers_are_letters_too() -> None:
    text = enciphered(LOWER, "lemon", "vigenere")
    mixed = "".join(c.upper() if plain.isupper() else c for c, plain in zip(text, PLAIN, strict=True))
    found = read_polyalphabetic(make_puzzle(mixed, ENGLISH))
    assert found is not None
    assert found.plaintext == PLAIN
    counted = " ".join(str(1 + ENGLISH.letters.index(c)) for c in text if c.isalpha())
    found = read_polyalphabetic(make_puzzle(counted, ENGLISH))
    assert found is not None
    told = found.decipherment(top=0)
    assert told.spaced is not None
    assert told.spaced.startswith("when the old keeper")


@pytest.mark.parametrize("length", [40, 200])
def test_what_has_no_such_key_is_not_claimed_to(length: int) -> None:
    rng = np.random.default_rng(3)
    drawn = "".join(ENGLISH.letters[v] for v in rng.integers(0, 26, length))
    for text in (drawn, random_cipher(1).encipher(LETTERS * 2)[:length]):
        found = read_polyalphabetic(make_puzzle(text, ENGLISH))
        assert found is not None
        assert found.reading().probability < 0.1
    assert read_polyalphabetic(make_puzzle("qxvzk", ENGLISH)) is None
    assert read_polyalphabetic(make_puzzle("☃☂☁☄★☀☆☇☈☉☊" * 9, ENGLISH)) is None
