"""Simple substitution ciphers: every symbol of an alphabet is written as another one, everything else is kept.

A key is known by its address (seed, number): the same on every machine, and any number of keys at once.
"""

import string
import unicodedata
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexinvariant.errors import UserError
from lexinvariant.text.hashing import key_of, scramble

LOWERCASE = string.ascii_lowercase
"""The paper's alphabet."""
PRINTABLE = "".join(map(chr, range(ord(" "), ord("~") + 1)))
"""Every printable ASCII character, the space among them."""

Ids = NDArray[np.int64]


def random_orders(seed: int, number_S: NDArray[np.integer], n: int) -> Ids:
    """order_SN: one uniformly random permutation of range(n) for each number."""
    stream_S = scramble(np.asarray(number_S).astype(np.uint64) ^ np.uint64(key_of(seed, "cipher")))
    place_N = scramble(np.arange(n, dtype=np.uint64) ^ np.uint64(key_of("cipher", "place")))
    return np.argsort(scramble(stream_S[:, None] ^ place_N), axis=1, kind="stable").astype(np.int64)


def random_keys(seed: int, number_S: NDArray[np.integer], symbols_A: NDArray[np.integer], size: int) -> Ids:
    """key_SV over a vocabulary of `size`: symbol v is written key_SV[s, v]; only `symbols_A` are permuted."""
    symbols_A = np.asarray(symbols_A, np.int64)
    key_SV = np.tile(np.arange(size, dtype=np.int64), (len(np.asarray(number_S)), 1))
    key_SV[:, symbols_A] = symbols_A[random_orders(seed, number_S, len(symbols_A))]
    return key_SV


def inverse(key_SV: NDArray[np.integer]) -> Ids:
    """What each cipher symbol stands for."""
    return np.argsort(key_SV, axis=-1, kind="stable").astype(np.int64)


def encipher(key_SV: NDArray[np.integer], tok_ST: NDArray[np.integer]) -> NDArray[np.int32]:
    """Each sequence under its own key; a single key_1V serves them all."""
    key_SV = np.broadcast_to(key_SV, (len(tok_ST), key_SV.shape[1]))
    return np.take_along_axis(key_SV, np.asarray(tok_ST, np.int64), axis=1).astype(np.int32)


def decipher(key_SV: NDArray[np.integer], cipher_ST: NDArray[np.integer]) -> NDArray[np.int32]:
    """Undo `encipher`."""
    return encipher(inverse(key_SV), cipher_ST)


@dataclass(frozen=True)
class Cipher:
    """A key over characters: each character of `alphabet` is written as the one at its place in `written`."""

    alphabet: str
    written: str

    def __post_init__(self) -> None:
        if len(set(self.alphabet)) < len(self.alphabet) or sorted(self.alphabet) != sorted(self.written):
            raise UserError(
                f"{self.written!r} does not rearrange {self.alphabet!r}: a substitution key has every character "
                "of its alphabet exactly once on both sides."
            )

    def encipher(self, text: str) -> str:
        return text.translate(str.maketrans(self.alphabet, self.written))

    def decipher(self, text: str) -> str:
        return text.translate(str.maketrans(self.written, self.alphabet))


def encipher_letters(seed: int, text: str) -> dict[str, str]:
    """How every letter of a text is written, in either case, small letters first: as another one of its script.

    Latin ones are written as a to z and what else the text has, since a letter that is kept would give words away.
    """
    scripts = {"LATIN": set(LOWERCASE)}
    for letter in sorted({_small(c) for c in set(text) if c.isalpha()}):
        scripts.setdefault(unicodedata.name(letter, "").partition(" ")[0], set()).add(letter)
    written: dict[str, str] = {}
    for number, letters in enumerate(scripts.values()):
        cipher = random_cipher(seed, number, "".join(sorted(letters)))
        written |= zip(cipher.alphabet, cipher.written, strict=True)
    capitals = [c for c in set(text) if c.isalpha() and c != _small(c)]
    return written | {c: _capital(written[_small(c)]) for c in sorted(capitals)}


def _small(letter: str) -> str:
    return letter.lower()[0]  # that of a dotted capital I is two characters


def _capital(letter: str) -> str:
    """The letter itself where it has no capital of its own, such as the German sharp s or the Greek final sigma."""
    capital = letter.upper()
    return capital if capital.lower() == letter else letter


def random_cipher(seed: int, number: int = 0, alphabet: str = LOWERCASE) -> Cipher:
    """The same key as `random_keys` draws at this address."""
    order_A = random_orders(seed, np.array([number]), len(alphabet))[0]
    return Cipher(alphabet, "".join(alphabet[i] for i in order_A))
