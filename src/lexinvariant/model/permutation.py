"""Random permutations of a vocabulary, of which only the images of a sequence's symbols are needed.

A small vocabulary is permuted whole, by sorting. Of a large one a sequence holds only a few symbols, and a
swap-or-not shuffle (Hoang, Morris and Rogaway, 2012) finds the image of each on its own: in a round, every number has
one partner, the two agree by a coin whether they change places, and some dozens of rounds are a random permutation.
It costs nothing that grows with the vocabulary, and as each round only swaps, no two symbols ever meet.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

# Decided by the vocabulary alone, and not by how much of it a sequence can hold: the same key has to give the same
# permutation to all texts.
LARGEST_SORTED = 2048
# The distance of a symbol's image from uniform, as a variance, starts at n and is halved by every round.
_ROUNDS = 48


def permute(key: jax.Array, n: int, symbol_T: jax.Array) -> jax.Array:
    """The images of some symbols under a random permutation of range(n)."""
    if n <= LARGEST_SORTED:
        return jax.random.permutation(key, n)[symbol_T]
    return shuffle(shuffle_rounds(key, n), n, symbol_T)


def permute_share(key: jax.Array, share: jax.Array | float, n: int, symbol_T: jax.Array) -> jax.Array:
    """The images of some symbols under a permutation of range(n) that moves a random share among themselves."""
    if n <= LARGEST_SORTED:
        return partial_permutation(key, share, n)[symbol_T]
    return shuffle_share(key, share, n, symbol_T)


def partial_permutation(key: jax.Array, share: jax.Array | float, n: int) -> jax.Array:
    """A permutation of range(n) that moves a random `share` of the symbols among themselves."""
    key_which, key_order = jax.random.split(key)
    moved_V = jax.random.uniform(key_which, (n,)) < share
    order_V = jax.random.uniform(key_order, (n,))
    home_V = jnp.arange(n) / n
    # Both orders list the moved symbols first; the unmoved follow in the same order in both, and stay at home.
    from_V = jnp.argsort(jnp.where(moved_V, home_V, 2 + home_V))
    to_V = jnp.argsort(jnp.where(moved_V, order_V, 2 + home_V))
    return jnp.zeros(n, jnp.int32).at[from_V].set(to_V.astype(jnp.int32))


def shuffle_share(key: jax.Array, share: jax.Array | float, n: int, symbol_T: jax.Array) -> jax.Array:
    """As `partial_permutation`, at some symbols alone.

    A first shuffle puts all symbols in line, and those at the head of the line are the ones to move; a second one
    shuffles the head; then each looks up whose place it has now.
    """
    key_line, key_head = jax.random.split(key)
    line = shuffle_rounds(key_line, n)
    n_moved = jnp.clip(jnp.round(share * n), 0, n).astype(jnp.int32)
    head_size = jnp.maximum(n_moved, 1)
    place_T = shuffle(line, n, symbol_T)
    is_moved_T = place_T < n_moved
    new_place_T = shuffle(shuffle_rounds(key_head, head_size), head_size, jnp.where(is_moved_T, place_T, 0))
    return jnp.where(is_moved_T, shuffle(line, n, new_place_T, inverse=True), symbol_T)


class ShuffleRounds(NamedTuple):
    """The random numbers of a swap-or-not shuffle, one of each a round (R)."""

    pivot_R: jax.Array  # x and pivot - x are partners
    coin_R: jax.Array  # names the round's coins


def shuffle_rounds(key: jax.Array, n: int | jax.Array) -> ShuffleRounds:
    """Draw a shuffle of range(n)."""
    key_pivot, key_coin = jax.random.split(key)
    return ShuffleRounds(
        jax.random.randint(key_pivot, (_ROUNDS,), 0, n, jnp.int32),
        jax.random.bits(key_coin, (_ROUNDS,), jnp.uint32),
    )


def shuffle(rounds: ShuffleRounds, n: int | jax.Array, x_T: jax.Array, *, inverse: bool = False) -> jax.Array:
    """Where these numbers of range(n) land; or, by the rounds in reverse, where they came from."""

    def one_round(x_T: jax.Array, this: ShuffleRounds) -> tuple[jax.Array, None]:
        difference_T = this.pivot_R - x_T
        partner_T = jnp.where(difference_T < 0, difference_T + n, difference_T)
        pair_T = jnp.maximum(x_T, partner_T).astype(jnp.uint32)  # the same for both, and so is its coin
        return jnp.where(_scramble(pair_T ^ this.coin_R) % 2 == 1, partner_T, x_T), None

    # Unrolled, a GPU computes all rounds in one kernel.
    unroll = 1 if jax.default_backend() == "cpu" else _ROUNDS
    return jax.lax.scan(one_round, x_T, rounds, reverse=inverse, unroll=unroll)[0]


def _scramble(x: jax.Array) -> jax.Array:
    """A bijection of 32-bit integers; every input bit reaches every output bit (MurmurHash3's finaliser)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
