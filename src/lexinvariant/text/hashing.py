"""Randomness by address: integer hashing and a keyed permutation that needs no memory.

NumPy's generators may change their streams between releases and carry a state. Here every random choice is
a pure function of integers, so a batch can be recomputed from its step number alone, on any host and version.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
_ROUNDS = 6


def key_of(*parts: int | str) -> int:
    """One 64-bit key for an address such as (seed, "epoch", 3)."""
    address = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(address.encode(), digest_size=8).digest(), "little")


def scramble(values: U64) -> U64:
    """A bijection of 64-bit integers; every input bit reaches every output bit (splitmix64's finaliser)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def permute(indices: NDArray[np.int64], n: int, key: int) -> NDArray[np.int64]:
    """Where each index lands under the pseudo-random permutation of range(n) that `key` names.

    A Feistel network permutes the smallest square power of two that holds n; indices that land outside of
    range(n) walk on along their cycle until they return to it, which keeps the map a bijection of range(n).
    """
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    shift, low = np.uint64(half), np.uint64((1 << half) - 1)
    round_keys = np.array([key_of(key, "round", r) for r in range(_ROUNDS)], np.uint64)

    def once(x: U64) -> U64:
        left, right = x >> shift, x & low
        for round_key in round_keys:
            left, right = right, left ^ (scramble(right ^ round_key) & low)
        return (left << shift) | right

    x = once(np.atleast_1d(indices).astype(np.uint64))
    outside = x >= n
    while outside.any():
        x[outside] = once(x[outside])
        outside = x >= n
    return x.astype(np.int64)
