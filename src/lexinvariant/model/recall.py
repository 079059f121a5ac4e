"""Scoring a symbol by what the model made of it where it occurred.

A drawn row says which symbol it is and nothing of what the symbol does, so a model that expects an "e" has to find out
which row that is and copy it into its state. Here each symbol seen has a second row, in terms of its own occurrences:
the weighted mean of what the model knew when it read them. Expecting an "e" is then enough. Symbols are only compared
for equality, so a lexinvariant model stays one.

R ranks of symbols (the k-th distinct one), C the recall's own width; the other axes are those of transformer.py.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lexinvariant.model.logits import float32_einsum, weighted_sum
from lexinvariant.model.params import Recall

CHUNK = 128  # positions that are compared with each other at once
MAX_LOG_WEIGHT = 8.0  # weights are exponentials: bounded, their sums are exact enough in float32


class Memory(NamedTuple):
    """What is remembered of each symbol's occurrences: their weighted sum, and the sum of their weights."""

    sum_BRC: jax.Array
    weight_BR: jax.Array


def empty_memory(batch: int, ranks: int, width: int) -> Memory:
    return Memory(jnp.zeros((batch, ranks, width)), jnp.zeros((batch, ranks)))


def _notes_and_weights(recall: Recall, h_BTD: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(note_BTC, weight_BT): a vector for every occurrence, and its weight in the mean over occurrences."""
    note_BTC = jnp.einsum("btd,dc->btc", h_BTD, recall.note_DC.astype(h_BTD.dtype))
    gate_BT = weighted_sum(h_BTD, recall.gate_D) / MAX_LOG_WEIGHT
    return note_BTC, jnp.exp(MAX_LOG_WEIGHT * jnp.tanh(gate_BT))


def _queries(recall: Recall, h_BTD: jax.Array) -> jax.Array:
    """query_BTC: what each state expects, to be compared with the notes."""
    query_BTC = jnp.einsum("btd,dc->btc", h_BTD, recall.ask_DC.astype(h_BTD.dtype))
    return query_BTC * query_BTC.shape[2] ** -0.5


def _weighted_mean(sum_: jax.Array, weight: jax.Array) -> jax.Array:
    """The weighted mean; 0 where nothing was noted."""
    return jnp.where(weight > 0, sum_ / jnp.where(weight > 0, weight, 1.0), 0.0)


def recall_logits(
    recall: Recall, predictor_BTD: jax.Array, h_BTD: jax.Array, rank_BT: jax.Array, n_ranks: int
) -> jax.Array:
    """logits_BTR: the predictor of each position against every symbol that occurred before it.

    The positions of one chunk are compared with each other, and all before them with the memory of what they left.
    So nothing is as large as every position against every other. X chunks of T positions (S, those remembered).
    """
    batch, length = predictor_BTD.shape[:2]  # which may have one more, of the symbol to come
    size = min(CHUNK, length)
    n_chunks = -(-length // size)

    def split(x: jax.Array) -> jax.Array:
        padded = jnp.pad(x, [(0, 0), (0, n_chunks * size - x.shape[1]), *[(0, 0)] * (x.ndim - 2)])
        return padded.reshape(batch, n_chunks, size, *x.shape[2:])

    note_BTC, weight_BT = _notes_and_weights(recall, h_BTD)
    dtype = note_BTC.dtype
    query_BXTC = split(_queries(recall, predictor_BTD))
    # Rounded as in the sum, so that what it is divided by is the same.
    weight_BT = weight_BT.astype(dtype).astype(jnp.float32)
    weight_BXS, onehot_BXSR = split(weight_BT), jax.nn.one_hot(split(rank_BT), n_ranks, dtype=dtype)
    weighted_BXSC = weight_BXS[..., None].astype(dtype) * split(note_BTC)
    before_TS = jnp.tril(jnp.ones((size, size), jnp.float32), -1)

    def all_before(x_BXR: jax.Array) -> jax.Array:
        """The sum over earlier chunks, of which there are few: a product with a triangle, its gradient one too."""
        earlier_XY = jnp.tril(jnp.ones((n_chunks, n_chunks), x_BXR.dtype), -1)
        return jnp.einsum("xy,by...->bx...", earlier_XY, x_BXR, precision="highest")

    left_BXRC = float32_einsum("bxsr,bxsc->bxrc", onehot_BXSR, weighted_BXSC)
    memory_BXRC = all_before(left_BXRC).astype(dtype)
    score_BXTS = float32_einsum("bxtc,bxsc->bxts", query_BXTC, weighted_BXSC) * before_TS
    sum_BXTR = float32_einsum("bxtc,bxrc->bxtr", query_BXTC, memory_BXRC)
    sum_BXTR += float32_einsum("bxts,bxsr->bxtr", score_BXTS.astype(dtype), onehot_BXSR)
    weight_BXSR = weight_BXS[..., None] * onehot_BXSR.astype(jnp.float32)
    total_BXTR = jnp.einsum("ts,bxsr->bxtr", before_TS, weight_BXSR)
    total_BXTR += all_before(jnp.sum(weight_BXSR, axis=2))[:, :, None]
    mean_BXTR = _weighted_mean(sum_BXTR, total_BXTR)
    return mean_BXTR.reshape(batch, n_chunks * size, n_ranks)[:, :length]


def update_memory(recall: Recall, memory: Memory, h_B1D: jax.Array, rank_B: jax.Array) -> Memory:
    """The memory after one more symbol of each sequence."""
    note_B1C, weight_B1 = _notes_and_weights(recall, h_B1D)
    row = (jnp.arange(len(rank_B)), rank_B)
    weighted_BC = weight_B1 * note_B1C[:, 0].astype(jnp.float32)
    return Memory(memory.sum_BRC.at[row].add(weighted_BC), memory.weight_BR.at[row].add(weight_B1[:, 0]))


def build_memory(
    recall: Recall, h_BTD: jax.Array, rank_BT: jax.Array, read_BT: jax.Array, n_ranks: int
) -> Memory:
    """The memory after all the positions of `read_BT`."""
    note_BTC, weight_BT = _notes_and_weights(recall, h_BTD)
    weight_BTR = jnp.where(read_BT, weight_BT, 0.0)[:, :, None] * jax.nn.one_hot(rank_BT, n_ranks)
    sum_BRC = jnp.einsum("btr,btc->brc", weight_BTR, note_BTC.astype(jnp.float32))
    return Memory(sum_BRC, jnp.sum(weight_BTR, axis=1))


def next_recall_logits(recall: Recall, memory: Memory, predictor_B1D: jax.Array) -> jax.Array:
    """logits_BR of the next symbol."""
    query_BC = _queries(recall, predictor_B1D)[:, 0].astype(jnp.float32)
    return _weighted_mean(jnp.einsum("bc,brc->br", query_BC, memory.sum_BRC), memory.weight_BR)
