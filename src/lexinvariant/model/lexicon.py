"""The idea: a token table that is drawn for each sequence, and used to embed and to read out.

A drawn `Lexicon` says which row every symbol of every sequence uses, and what the rows are. A standard LM is
the case where the row is the symbol and the table is learned; everything else in the model is the same.
Two facts do the work:

- What a lexinvariant model sees of a sequence is only which positions hold equal symbols. Numbering symbols by
  first occurrence (`first_occurrence`) keeps exactly that, so p(x) = p(pi(x)) bit for bit, not in expectation.
- The distribution of a Gaussian table, or of a randomly permuted one, does not change under renumbering, so
  giving the k-th distinct symbol the k-th drawn row changes nothing else.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lexinvariant.config import LexiconConfig
from lexinvariant.model.params import EmbeddingParams

_AFTER_PERMUTING = 2  # an address that a split in two has not used


class Lexicon(NamedTuple):
    """A table drawn for each sequence of a batch, and the rows that its symbols use."""

    input_BT: jax.Array  # the row of each symbol that is read
    target_BT: jax.Array  # the row of each symbol that is to be predicted
    table: jax.Array  # rows: one table_RD for all sequences, or a table_BRD with one each


def first_occurrence(tok_BT: jax.Array) -> jax.Array:
    """Number the symbols of each sequence 0, 1, 2, ... in the order in which they first occur."""
    first_BT = first_position(tok_BT)
    is_new_BT = first_BT == jnp.arange(tok_BT.shape[1])
    rank_of_new_BT = jnp.cumsum(is_new_BT, axis=1, dtype=jnp.int32) - 1
    return jnp.take_along_axis(rank_of_new_BT, first_BT, axis=1)


def first_position(tok_BT: jax.Array) -> jax.Array:
    """The position at which each position's symbol occurs for the first time."""
    return jnp.argmax(tok_BT[:, :, None] == tok_BT[:, None, :], axis=2).astype(jnp.int32)


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


def n_rows(kind: str, readout: str, vocab_size: int, length: int) -> int:
    """Rows of a drawn Gaussian table: with the `seen` readout only symbols that occur need one."""
    return min(vocab_size, length) if readout == "seen" and kind == "gaussian" else vocab_size


def draw(
    config: LexiconConfig,
    embedding: EmbeddingParams,
    key_B: jax.Array,
    tok_BT: jax.Array,
    *,
    rows: int,
    width: int,
    dtype: jnp.dtype,
    anneal_hi: jax.Array | float = jnp.inf,
) -> Lexicon:
    """Draw each sequence's lexicon from its key.

    `anneal_hi` is the curriculum's upper end of the share of permuted symbols; infinity permutes them all.
    """
    kind, table_VD = config.kind, embedding.table_VD

    if kind == "learned":
        return Lexicon(tok_BT, tok_BT, table_VD)

    if kind == "gaussian":
        rank_BT = first_occurrence(tok_BT)
        table_BRD = jax.vmap(lambda key: jax.random.normal(key, (rows, width), dtype))(key_B)
        return Lexicon(rank_BT, rank_BT, table_BRD)

    if kind == "permuted":
        permutation_BV = jax.vmap(lambda key: jax.random.permutation(key, rows))(key_B)
        row_BT = jnp.take_along_axis(permutation_BV, first_occurrence(tok_BT), axis=1)
        return Lexicon(row_BT, row_BT, _some_gaussian(config.gaussian_share, key_B, table_VD))

    if kind == "annealed":

        def permute(key: jax.Array) -> jax.Array:
            key_share, key_permutation = jax.random.split(key)
            share = jnp.where(jnp.isinf(anneal_hi), 1.0, anneal_hi * jax.random.uniform(key_share))
            return partial_permutation(key_permutation, share, rows)

        row_BT = jnp.take_along_axis(jax.vmap(permute)(key_B), tok_BT, axis=1)
        return Lexicon(row_BT, row_BT, _some_gaussian(config.gaussian_share, key_B, table_VD))

    if kind == "mixed":

        def randomise(key: jax.Array) -> jax.Array:
            key_which, key_row = jax.random.split(key)
            random_V = jax.random.bernoulli(key_which, config.p, (rows,))
            row_VD = jax.random.normal(key_row, (rows, width), jnp.float32)
            # A random row gets the norm of the row it stands for, or the model would learn to tell them apart.
            norm_V = jax.lax.stop_gradient(jnp.linalg.norm(table_VD.astype(jnp.float32), axis=1))
            row_VD = row_VD * (norm_V / jnp.linalg.norm(row_VD, axis=1))[:, None]
            return jnp.where(random_V[:, None], row_VD.astype(table_VD.dtype), table_VD)

        return Lexicon(tok_BT, tok_BT, jax.vmap(randomise)(key_B))

    assert kind == "token-permuted", kind

    def permute_tokens(key: jax.Array, tok_T: jax.Array) -> jax.Array:
        key_which, key_permutation = jax.random.split(key)
        permuted_T = jax.random.permutation(key_permutation, rows)[tok_T]
        if config.unit == "type":
            chosen_T = jax.random.bernoulli(key_which, config.p, (rows,))[tok_T]
        else:
            chosen_T = jax.random.bernoulli(key_which, config.p, tok_T.shape)
        return jnp.where(chosen_T, permuted_T, tok_T)

    row_BT = jax.vmap(permute_tokens)(key_B, tok_BT)
    return Lexicon(row_BT, row_BT if config.permute_targets else tok_BT, table_VD)


def _some_gaussian(share: float, key_B: jax.Array, table_VD: jax.Array) -> jax.Array:
    """The table, or a table_BVD that is fresh N(0, I) rows for a share of the sequences."""
    if share == 0:
        return table_VD

    def table_of(key: jax.Array) -> jax.Array:
        key_which, key_rows = jax.random.split(jax.random.fold_in(key, _AFTER_PERMUTING))
        fresh_VD = jax.random.normal(key_rows, table_VD.shape, table_VD.dtype)
        return jnp.where(jax.random.bernoulli(key_which, share), fresh_VD, table_VD)

    return jax.vmap(table_of)(key_B)


def rows_at(table: jax.Array, row_BT: jax.Array) -> jax.Array:
    """Rows of a shared table_RD or of each sequence's own table_BRD."""
    if table.ndim == 2:
        return table[row_BT]
    return jnp.take_along_axis(table, row_BT[:, :, None], axis=1)


def embed(embedding: EmbeddingParams, lexicon: Lexicon, dtype: jnp.dtype) -> jax.Array:
    """x_BTD: the rows of the symbols read, through the learnable scale and bias."""
    row_BTD = rows_at(lexicon.table, lexicon.input_BT).astype(jnp.float32)
    return (row_BTD * embedding.scale + embedding.bias).astype(dtype)
