"""Random numbers and permutations from integers alone: the same in NumPy, PyTorch and JAX, bit for bit.

Everything is 32-bit signed integers that wrap around, because that is what all three libraries can do. A random number
is a hash of its address (a seed, a step, a row, ...), so nothing is drawn in sequence and there is no state to save.
The functions use operators and little else, and so serve arrays of any of the three; `x *= y` works in place where the
library can, on arrays that were made here.

A permutation is a swap-or-not shuffle (Hoang, Morris and Rogaway, 2012), as in `model/permutation.py`: it finds the
image of a token without an array of the vocabulary's size.
"""

import sys
from enum import IntEnum
from typing import Any

import numpy as np

# The distance of a token's image from uniform, as a variance, starts at n and is halved by every round.
ROUNDS = 48
# A probability is a threshold for this many of a hash's bits.
_PROBABILITY_BITS = 24
_GOLDEN = 0x1E3779B9  # added so that an address of zeros does not stay zero

# A NumPy array, a PyTorch tensor or a JAX array. A suffix says its shape: B sequences, T positions.
Array = Any


class Stream(IntEnum):
    """What a random number is for. The numbers are part of every result: never renumber."""

    CHOICE = 1  # which tokens move
    PIVOT = 2  # which tokens are partners in a round of the shuffle
    COIN = 3  # which partners change places


def namespace(array: Array) -> Any:
    """The module whose functions take this array: torch, jax.numpy or numpy. None is imported that is not in use."""
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        return sys.modules["torch"]
    if root in ("jax", "jaxlib"):
        return sys.modules["jax.numpy"]
    return np


def like(array: Array, values: np.ndarray) -> Array:
    """These values as an array of the same library, on the same device."""
    xp = namespace(array)
    if xp.__name__ == "torch":
        return xp.tensor(values, device=array.device)
    return xp.asarray(values)


def scramble(x: Array) -> Array:
    """A bijection of 32-bit integers; every input bit reaches every output bit (MurmurHash3's finaliser)."""
    x = _mix(x)
    x ^= (x >> 16) & 0xFFFF
    return x


def _mix(x: Array) -> Array:
    """The finaliser without its last line: the sign depends on every input bit already."""
    x = x ^ ((x >> 16) & 0xFFFF)  # a mask turns the arithmetic shift of signed integers into a logical one
    x *= -2048144789  # 0x85EBCA6B
    x ^= (x >> 13) & 0x7FFFF
    x *= -1028477387  # 0xC2B2AE35
    return x


def hashed(start: Array, *address: int | Array) -> Array:
    """32 random bits at each address, which is some integers; those that are no arrays are taken modulo 2^32."""
    state = scramble(start + _GOLDEN)
    for part in address:
        state = scramble(state ^ (_signed(part) if isinstance(part, int) else part))
        state += _GOLDEN
    return state


def _signed(number: int) -> int:
    """The low 32 bits of an integer, as a signed one."""
    return ((number + 2**31) & 0xFFFFFFFF) - 2**31


def happens(random: Array, p: Array | float) -> Array:
    """For each number of 32 random bits whether an event of probability p happens; exact at 0 and at 1."""
    threshold = p * 2**_PROBABILITY_BITS
    if isinstance(threshold, (int, float)):
        threshold = round(threshold)
    else:
        threshold = namespace(threshold).round(threshold).astype(np.int32)
    return ((random >> (32 - _PROBABILITY_BITS)) & (2**_PROBABILITY_BITS - 1)) < threshold


def shuffle(x_BT: Array, n: int, *address: int | Array) -> Array:
    """Where these numbers of range(n) land in the shuffle at each row's address, of integers and of columns (B, 1)."""
    maximum = namespace(x_BT).maximum
    round_1R = like(x_BT, np.arange(ROUNDS, dtype=np.int32)[None, :])
    pivot_BR = ((hashed(round_1R, Stream.PIVOT, *address) >> 1) & 0x7FFFFFFF) % n
    coin_BR = hashed(round_1R, Stream.COIN, *address)
    for r in range(ROUNDS):
        partner_BT = pivot_BR[:, r : r + 1] - x_BT
        partner_BT += (partner_BT >> 31) & n  # the shift is -1 where it is negative and 0 elsewhere
        pair_BT = maximum(x_BT, partner_BT)  # the same for both, and so is its coin
        pair_BT ^= coin_BR[:, r : r + 1]
        x_BT = x_BT ^ ((x_BT ^ partner_BT) & (_mix(pair_BT) >> 31))
    return x_BT
