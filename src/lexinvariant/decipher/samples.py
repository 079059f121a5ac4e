"""Held-out texts of a given length, enciphered: what solvers are measured and calibrated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.classical import homophonic
from lexinvariant.decipher.language import Language
from lexinvariant.errors import UserError
from lexinvariant.text.hashing import key_of
from lexinvariant.text.sources import read_documents

Setting = Literal["spaced", "unspaced", "ascii", "homophonic"]
"""spaced: small letters and single spaces, letters permuted. unspaced: letters alone. ascii: the text as it is (white
space as single spaces), every character of the language permuted. homophonic: letters alone, common ones in several
symbols."""
PERMUTED: tuple[Setting, ...] = ("spaced", "unspaced", "ascii")
"""Settings in which every symbol has its own character."""
HOMOPHONIC_SYMBOLS = 50
_GLYPHS = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True)
class Sample:
    """A plaintext and its ciphertext."""

    plain: str
    cipher: str


def cipher_alphabet(setting: Setting, language: Language) -> str:
    """The characters that are permuted."""
    return language.characters.replace("\n", "") if setting == "ascii" else language.letters


def solver_options(setting: Setting) -> dict[str, Any]:
    """The options of `Solver.read` for texts of a setting."""
    if setting == "homophonic":
        return {}
    return {"alphabet": "ascii" if setting == "ascii" else "letters", "unspaced": setting == "unspaced"}


def enciphered_pairs(plain: str, deciphered: str, setting: Setting) -> list[tuple[str, str]]:
    """(true, deciphered) characters wherever a symbol was enciphered: spaces only where they were."""
    return [(a, b) for a, b in zip(plain, deciphered, strict=True) if a != " " or setting == "ascii"]


def plain_text(text: str, setting: Setting, language: Language) -> str:
    """A text as the setting writes it."""
    if setting == "spaced":
        return language.letters_only(text)
    if setting in ("unspaced", "homophonic"):
        return language.unspaced(text)
    known = set(cipher_alphabet(setting, language))
    return "".join(character for character in " ".join(text.split()) if character in known)


def joined_text(documents: Sequence[str], setting: Setting, language: Language) -> str:
    """All documents as one text, as the setting writes it: samples of any length can be drawn of it."""
    parts = (plain_text(text, setting, language) for text in documents)
    return ("" if setting in ("unspaced", "homophonic") else " ").join(parts)


def plain_documents(source: str, setting: Setting, language: Language) -> list[str]:
    """The documents of a source as the setting writes them."""
    return [plain_text(document.text, setting, language) for document in read_documents(source)]


def draw_samples(
    documents: list[str], setting: Setting, language: Language, length: int, n: int, seed: int
) -> list[Sample]:
    """Texts of exactly `length` characters, from places spread evenly over all text, each under its own key.

    With spaces, a text begins and ends with a whole word, as messages do.
    """
    room_D = np.array([max(0, len(text) - length - 1) for text in documents], np.float64)
    if not room_D.any():
        raise UserError(f"No text is as long as {length} characters: give longer ones, or smaller --lengths.")
    rng = np.random.default_rng(key_of(seed, setting, length) % 2**63)
    out: list[Sample] = []
    for _ in range(1000 * n):
        text = documents[int(rng.choice(len(documents), p=room_D / room_D.sum()))]
        start = int(rng.integers(0, len(text) - length))
        end = start + length
        before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
        cut = before != " " or after != " " or text[start] == " " or text[end - 1] == " "
        if setting in ("spaced", "ascii") and cut:
            continue
        plain = text[start:end]
        out.append(Sample(plain, _encipher(plain, setting, language, (seed, len(out)))))
        if len(out) == n:
            return out
    raise UserError(f"Only {len(out)} texts of {length} characters were found: give more text.")


def n_homophones(language: Language) -> int:
    """Symbols of a homophonic cipher: more than the language has letters."""
    return max(HOMOPHONIC_SYMBOLS, len(language.letters) + 10)


def _encipher(plain: str, setting: Setting, language: Language, address: tuple[int, int]) -> str:
    """Under the key of an address."""
    if setting != "homophonic":
        return random_cipher(*address, cipher_alphabet(setting, language)).encipher(plain)
    frequency = language.letter_frequencies.tolist()
    rng = np.random.default_rng(key_of(*address, "homophonic") % 2**63)
    symbols, _ = homophonic(plain, frequency, n_homophones(language), rng, language.letters)
    return "".join(_GLYPHS[symbol] for symbol in symbols)
