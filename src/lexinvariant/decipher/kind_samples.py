"""Held-out texts enciphered in every way that the solver tells apart: what its verdict is fitted and measured on."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Literal, get_args

import numpy as np

from lexinvariant.decipher import classical
from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.language import Language
from lexinvariant.decipher.samples import n_homophones
from lexinvariant.decipher.verdict import Kind
from lexinvariant.errors import UserError
from lexinvariant.text.hashing import key_of

Shape = Literal["spaced", "unspaced", "fives"]
"""How the letters of a ciphertext are written: in words, in one row, in groups of five."""
Cipher = Literal[
    "substitution",
    "caesar",
    "atbash",
    "affine",
    "plain",
    "vigenere",
    "beaufort",
    "gronsfeld",
    "porta",
    "columnar",
    "homophonic",
    "other-language",
    "random",
]
CIPHERS: tuple[Cipher, ...] = get_args(Cipher)
POLYALPHABETIC: tuple[Cipher, ...] = ("vigenere", "beaufort", "gronsfeld", "porta")
PERIODS = range(3, 12)
COLUMNS = range(4, 13)


@dataclass(frozen=True)
class KindSample:
    """A ciphertext as somebody may paste it, and its plaintext, letter for letter where the cipher keeps places."""

    cipher: Cipher
    shape: Shape
    plain: str
    text: str
    symbols: tuple[str, ...]
    """The cipher symbols, one for each letter of `plain`."""


def kind_of(cipher: Cipher) -> Kind:
    """What a verdict calls it."""
    if cipher in POLYALPHABETIC:
        return "polyalphabetic"
    return "transposition" if cipher == "columnar" else cipher


def folded(text: str, language: Language) -> str:
    """A text in a language's letters and single spaces; other letters lose their accents, as puzzle makers do."""
    bare = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    kept = text if language.folds else "".join(c for c in bare if not unicodedata.combining(c))
    return language.letters_only(kept)


def draw_kind_samples(
    documents: Sequence[str], cipher: Cipher, language: Language, length: int, n: int, seed: int
) -> list[KindSample]:
    """Texts of `length` letters from places spread over all text, in all shapes in turn; whole words."""
    rng = np.random.default_rng(key_of(seed, "kind", cipher, length) % 2**63)
    room_D = np.array([max(0, len(text) - 2 * length - 40) for text in documents], np.float64)
    if not room_D.any():
        raise UserError(f"No text is as long as {length} letters: give longer ones, or smaller lengths.")
    shapes: tuple[Shape, ...] = ("unspaced", "fives") if cipher == "columnar" else get_args(Shape)
    out = []
    for number in range(n):
        text = documents[int(rng.choice(len(documents), p=room_D / room_D.sum()))]
        start = text.index(" ", int(rng.integers(0, len(text) - 2 * length - 40))) + 1
        plain, shape = _words(text[start:], length), shapes[number % len(shapes)]
        if cipher == "homophonic":
            out.append(_homophonic(plain.replace(" ", ""), language, rng))
        else:
            out.append(_enciphered(cipher, shape, plain, language.letters, (seed, number), rng))
    return out


def _words(text: str, length: int) -> str:
    """Words with `length` letters in all; the last one may be cut."""
    n_letters = 0
    for place, character in enumerate(text, start=1):
        n_letters += character != " "
        if n_letters == length:
            return text[:place]
    return text


def _homophonic(letters: str, language: Language, rng: np.random.Generator) -> KindSample:
    frequency = language.letter_frequencies.tolist()
    numbers, _ = classical.homophonic(letters, frequency, n_homophones(language), rng, language.letters)
    symbols = tuple(f"{number + 10}" for number in numbers)
    return KindSample("homophonic", "unspaced", letters, " ".join(symbols), symbols)


def _enciphered(
    cipher: Cipher,
    shape: Shape,
    plain: str,
    alphabet: str,
    address: tuple[int, int],
    rng: np.random.Generator,
) -> KindSample:
    letters = plain.replace(" ", "")
    written = _letter_ciphers(alphabet, address, rng)[cipher](letters if cipher == "columnar" else plain)
    symbols = tuple(written.replace(" ", ""))
    if shape != "spaced":
        written = "".join(symbols)
    if shape == "fives":
        written = " ".join(written[i : i + 5] for i in range(0, len(written), 5))
    return KindSample(cipher, shape, letters, written, symbols)


def _letter_ciphers(
    alphabet: str, address: tuple[int, int], rng: np.random.Generator
) -> dict[Cipher, Callable[[str], str]]:
    """Every cipher of letters with a random key."""
    size = len(alphabet)
    factor = int(rng.choice([a for a in range(2, size - 1) if gcd(a, size) == 1]))
    period = int(rng.choice(PERIODS))
    key, digits = rng.integers(0, size, period).tolist(), rng.integers(0, 10, period).tolist()
    for numbers in (key, digits):
        numbers[1] += 2 * (
            numbers[1] // 2 == numbers[0] // 2
        )  # so that it is no shift, in Porta's pairs neither
    order = rng.permutation(int(rng.choice(COLUMNS))).tolist()

    def random_letters(text: str) -> str:
        drawn = rng.integers(0, size, len(text))
        return "".join(c if c == " " else alphabet[v] for c, v in zip(text, drawn, strict=True))

    def affine(a: int, b: int) -> Callable[[str], str]:
        return partial(classical.affine, a=a, b=b, alphabet=alphabet)

    def polyalphabetic(key: list[int], tableau: classical.Tableau) -> Callable[[str], str]:
        return partial(classical.polyalphabetic, key=key, tableau=tableau, alphabet=alphabet)

    substituted = random_cipher(*address, alphabet).encipher
    return {
        "substitution": substituted,
        "other-language": substituted,
        "plain": str,
        "caesar": affine(1, int(rng.integers(1, size))),
        "atbash": affine(-1, -1),
        "affine": affine(factor, int(rng.integers(0, size))),
        "vigenere": polyalphabetic(key, "vigenere"),
        "beaufort": polyalphabetic(key, "beaufort"),
        "gronsfeld": polyalphabetic(digits, "vigenere"),
        "porta": polyalphabetic(key, "porta"),
        "columnar": partial(classical.columnar, order=order),
        "random": random_letters,
    }
