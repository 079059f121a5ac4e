"""Held-out texts of a given length, enciphered: what solvers are measured and calibrated on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lexinvariant.decipher.cipher import LOWERCASE, PRINTABLE, random_cipher
from lexinvariant.errors import UserError
from lexinvariant.text.hashing import key_of
from lexinvariant.text.letters import letters_only, unspaced
from lexinvariant.text.sources import read_documents

Setting = Literal["spaced", "unspaced", "ascii"]
"""spaced: lower-case letters and single spaces, letters permuted. unspaced: letters alone. ascii: the text as it is
(white space as single spaces), every printable character permuted."""


@dataclass(frozen=True)
class Sample:
    """A plaintext and its ciphertext."""

    plain: str
    cipher: str


def plain_documents(source: str, setting: Setting) -> list[str]:
    """The documents of a source as the setting writes them."""
    folds = {"spaced": letters_only, "unspaced": unspaced, "ascii": lambda text: " ".join(text.split())}
    texts = [folds[setting](document.text) for document in read_documents(source)]
    if setting == "ascii":
        texts = ["".join(character for character in text if character in PRINTABLE) for text in texts]
    return texts


def draw_samples(documents: list[str], setting: Setting, length: int, n: int, seed: int) -> list[Sample]:
    """Texts of exactly `length` characters, from places spread evenly over all text, each under its own key.

    With spaces, a text begins and ends with a whole word, as messages do.
    """
    room_D = np.array([max(0, len(text) - length - 1) for text in documents], np.float64)
    if not room_D.any():
        raise UserError(f"No text is as long as {length} characters: give longer ones, or smaller --lengths.")
    rng = np.random.default_rng(key_of(seed, setting, length) % 2**63)
    alphabet = PRINTABLE if setting == "ascii" else LOWERCASE
    out: list[Sample] = []
    for _ in range(1000 * n):
        text = documents[int(rng.choice(len(documents), p=room_D / room_D.sum()))]
        start = int(rng.integers(0, len(text) - length))
        end = start + length
        before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
        cut = before != " " or after != " " or text[start] == " " or text[end - 1] == " "
        if setting != "unspaced" and cut:
            continue
        plain = text[start:end]
        out.append(Sample(plain, random_cipher(seed, len(out), alphabet).encipher(plain)))
        if len(out) == n:
            return out
    raise UserError(f"Only {len(out)} texts of {length} characters were found: give more text.")
