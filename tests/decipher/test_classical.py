"""Classical ciphers: known examples, and every one can be undone."""

import numpy as np
import pytest

from lexinvariant.decipher import classical
from lexinvariant.decipher.kind_samples import CIPHERS, draw_kind_samples, folded, kind_of
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.verdict import KINDS
from lexinvariant.errors import UserError

PLAIN = "attack at dawn, and bring the maps"


def undo_affine(text: str, a: int, b: int) -> str:
    inverse = pow(a, -1, 26)
    return classical.affine(text, inverse, -inverse * b)


def undo_columnar(text: str, order: list[int]) -> str:
    places = [place for column in order for place in range(len(text))[column :: len(order)]]
    return "".join(text[i] for i in np.argsort(places))


def test_affine_keys_are_shifts_and_the_alphabet_turned_round() -> None:
    assert classical.affine("hello world", 1, 3) == "khoor zruog"
    assert classical.affine("hello", -1, -1) == "svool"
    for a, b in ((1, 3), (-1, -1), (5, 8), (25, 0)):
        assert undo_affine(classical.affine(PLAIN, a, b), a, b) == PLAIN
    with pytest.raises(UserError, match="several letters as one"):
        classical.affine(PLAIN, 13, 0)


@pytest.mark.parametrize(
    ("tableau", "key", "plain", "cipher"),
    [
        ("vigenere", "lemon", "attackatdawn", "lxfopvefrnhr"),
        ("beaufort", "lemon", "attack", "lltolb"),
        ("porta", "fortification", "defend the east wall", "synnjs cvr nrla hutu"),
    ],
)
def test_alphabets_in_turn(tableau: classical.Tableau, key: str, plain: str, cipher: str) -> None:
    numbers = [ord(c) - 97 for c in key]
    assert classical.polyalphabetic(plain, numbers, tableau) == cipher
    assert classical.undo_polyalphabetic(cipher, numbers, tableau) == plain


def test_columns() -> None:
    for order in ([0], [2, 0, 1], [3, 1, 0, 2, 4]):
        cipher = classical.columnar("wearediscoveredflee", order)
        assert undo_columnar(cipher, order) == "wearediscoveredflee"
    assert classical.columnar("abcdef", [1, 0]) == "bdface"


def test_homophones_are_dealt_out_by_frequency() -> None:
    assert classical.homophones([0.6, 0.3, 0.1], 6) == [3, 2, 1]
    symbols, key = classical.homophonic("abacab", [0.6, 0.3, 0.1], 6, np.random.default_rng(0), "abc")
    assert "".join(key[s] for s in symbols) == "abacab"
    assert sorted(key) == list(range(6))


def test_samples_of_every_cipher_keep_their_plaintext() -> None:
    language = load_language()
    documents = [folded("Ein Café: " + PLAIN * 20, language)]
    assert documents[0].startswith("ein cafe attack at dawn")
    for cipher in CIPHERS:
        first, second = draw_kind_samples(documents, cipher, language, 40, 2, seed=1)
        assert kind_of(cipher) in KINDS
        assert len(first.symbols) == len(first.plain) == len(second.plain) == 40
        assert first.plain.isalpha()
        assert first == draw_kind_samples(documents, cipher, language, 40, 1, seed=1)[0]
        if cipher == "columnar":
            assert sorted(first.symbols) == sorted(first.plain)
        if cipher == "plain":
            assert "".join(first.symbols) == first.plain
        if cipher in ("substitution", "caesar", "atbash", "affine", "homophonic", "other-language"):
            read = dict(zip(first.symbols, first.plain, strict=True))
            assert "".join(read[s] for s in first.symbols) == first.plain
