"""Randomness by address: every draw is named by (seed, stream, numbers), never by what was drawn before it.

The step number alone resumes a run, and no result depends on the batch size or on the number of hosts.
"""

from enum import IntEnum

import jax

from lexinvariant.checks import seed_of_32_bits


class Stream(IntEnum):
    """What a key is for. The numbers are part of every saved result: never renumber."""

    INIT = 0  # address: parameter name
    LEXICON = 1  # address: step, global row
    DROPOUT = 2  # address: step, global row, layer, place in the layer
    EVAL = 3  # address: document, draw
    SAMPLE = 4  # address: sample, position
    PROBE = 5  # address: step, global row
    HINDSIGHT = 6  # address: step, global row
    SHARED_LEXICON = 7  # address: step


def key_at(seed: int | jax.Array, stream: Stream, *address: int | jax.Array) -> jax.Array:
    """The key at an address; its parts may be traced scalars."""
    start = seed_of_32_bits(seed) if isinstance(seed, int) else seed
    key = jax.random.fold_in(jax.random.key(start), int(stream))
    for part in address:
        key = jax.random.fold_in(key, part)
    return key


def keys_for_rows(key: jax.Array, row_B: jax.Array) -> jax.Array:
    """One key a row, from the row's number in the global batch."""
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, row_B)


def fold_in_rows(key_B: jax.Array, part: int | jax.Array) -> jax.Array:
    """Every row's key, with the same part added to its address."""
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(key_B, part)


def evaluation_keys(seed: int | jax.Array, piece_B: jax.Array, draw: int = 0) -> jax.Array:
    """One key a held-out piece, from the piece's own number: no result depends on the batches."""
    return fold_in_rows(keys_for_rows(key_at(seed, Stream.EVAL), piece_B), draw)
