"""Classical ciphers beside the simple substitution (cipher.py): what else people paste into a solver.

All work on an alphabet's letters and keep everything else; what has a key that repeats goes on with it at the next
letter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.cipher import LOWERCASE
from lexinvariant.errors import UserError

Tableau = Literal["vigenere", "beaufort", "porta"]
"""How a letter and a key's letter make a cipher letter. (Gronsfeld is a Vigenere cipher whose key is of digits.)"""
Ids = NDArray[np.int64]


def _on_letters(text: str, alphabet: str, change: Callable[[Ids], Ids]) -> str:
    """A text whose letters, as numbers in a row, are changed."""
    place = {letter: v for v, letter in enumerate(alphabet)}
    changed = iter(change(np.array([place[c] for c in text if c in place], np.int64)))
    return "".join(alphabet[next(changed)] if c in place else c for c in text)


def affine(text: str, a: int, b: int, alphabet: str = LOWERCASE) -> str:
    """Letter number v is written as number a v + b: a shift by b (Caesar) where a is 1, Atbash where both are -1."""
    if math.gcd(a, len(alphabet)) != 1:
        raise UserError(
            f"Multiplying by {a} writes several letters as one: give a factor without common divisor."
        )
    return _on_letters(text, alphabet, lambda v_T: (a * v_T + b) % len(alphabet))


def polyalphabetic(text: str, key: Sequence[int], tableau: Tableau, alphabet: str = LOWERCASE) -> str:
    """Each letter under the next number of the key, which is used again and again."""
    size = len(alphabet)

    def change(v_T: Ids) -> Ids:
        k_T = np.resize(np.asarray(key, np.int64), len(v_T))
        if tableau == "vigenere":
            return (v_T + k_T) % size
        if tableau == "beaufort":
            return (k_T - v_T) % size
        half = size // 2
        return np.where(v_T < half, half + (v_T + k_T // 2) % half, (v_T - half - k_T // 2) % half)

    return _on_letters(text, alphabet, change)


def undo_polyalphabetic(text: str, key: Sequence[int], tableau: Tableau, alphabet: str = LOWERCASE) -> str:
    """Beaufort's and Porta's tableaus undo themselves."""
    back = [-k for k in key] if tableau == "vigenere" else key
    return polyalphabetic(text, back, tableau, alphabet)


def columnar(text: str, order: Sequence[int]) -> str:
    """Written in rows as wide as the order is long, read by columns in that order."""
    return "".join(text[column :: len(order)] for column in order)


def homophones(frequency: Sequence[float], n_symbols: int) -> list[int]:
    """How many of `n_symbols` each letter gets: at least one, and more the more frequent it is."""
    share = np.asarray(frequency, np.float64)
    count = np.ones(len(share), np.int64)
    for _ in range(n_symbols - len(share)):
        count[int(np.argmax(share / count))] += 1
    return count.tolist()


def homophonic(
    text: str, frequency: Sequence[float], n_symbols: int, rng: np.random.Generator, alphabet: str = LOWERCASE
) -> tuple[list[int], dict[int, str]]:
    """(symbols, key): every letter as one of its symbols, chosen at random; what is no letter is left out."""
    count = homophones(frequency, n_symbols)
    shuffled = rng.permutation(n_symbols)
    ends = np.cumsum(count)
    of_letter = {
        letter: shuffled[end - n : end] for letter, end, n in zip(alphabet, ends, count, strict=True)
    }
    key = {int(s): letter for letter, symbols in of_letter.items() for s in symbols}
    return [int(rng.choice(of_letter[c])) for c in text if c in of_letter], key
