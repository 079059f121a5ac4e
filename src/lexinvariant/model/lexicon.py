"""The idea: a token table that is drawn for each sequence, and used to embed and to read out.

A drawn `Lexicon` says which row every symbol of every sequence uses, and what the rows are. A standard LM is
the case where the row is the symbol and the table is learned; everything else in the model is the same.
Two facts do the work:

- What a lexinvariant model sees of a sequence is only which positions hold equal symbols. Numbering symbols by
  first occurrence (`first_occurrence`) keeps exactly that, so p(x) = p(pi(x)) bit for bit, not in expectation.
- The distribution of a Gaussian table, or of a randomly permuted one, does not change under renumbering, so
  giving the k-th distinct symbol the k-th drawn row changes nothing else.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import LEXICON_KINDS, LexiconConfig, LexiconKind, ModelConfig, check_every_kind
from lexinvariant.model import permutation
from lexinvariant.model.params import EmbeddingParams
from lexinvariant.rng import fold_in_rows

# Folded into a sequence's key for its Gaussian rows, so that they have other random bits than its permutation, which
# is drawn from the key itself.
_GAUSSIAN_SHARE = 2


class MixedTable(NamedTuple):
    """A learned table in which each sequence has random rows for some symbols; never written out for a sequence."""

    learned_VD: jax.Array
    random_VD: jax.Array
    sign_BD: jax.Array  # +1 or -1: a sequence's random rows are random_VD with the channels' signs turned
    is_random_BV: jax.Array


Table = jax.Array | MixedTable


class Lexicon(NamedTuple):
    """A table drawn for each sequence of a batch, and the rows that its symbols use."""

    input_BT: jax.Array  # the row of each symbol that is read
    target_BT: jax.Array  # the row of each symbol that is to be predicted
    table: Table  # rows: one table_RD for all sequences, a table_BRD with one each, or a mixture


class Curriculum(NamedTuple):
    """What training sets anew at every step; the defaults are what holds without."""

    anneal_hi: jax.Array | float = jnp.inf
    """annealed: the upper end of the share of permuted symbols; infinity permutes them all."""
    p: jax.Array | float | None = None
    """mixed and token-permuted: the share of randomised tokens; None is the configuration's."""
    shared_key: jax.Array | None = None
    """mixed: the key of the random rows, which all sequences of a step choose from."""


NO_CURRICULUM = Curriculum()


def first_occurrence(tok_BT: jax.Array) -> jax.Array:
    """Number the symbols of each sequence 0, 1, 2, ... in the order in which they first occur."""
    rank_of_new_BT = jnp.cumsum(is_new(tok_BT), axis=1, dtype=jnp.int32) - 1
    return jnp.take_along_axis(rank_of_new_BT, first_position(tok_BT), axis=1)


def first_position(tok_BT: jax.Array) -> jax.Array:
    """The position at which each position's symbol occurs for the first time."""
    return jnp.argmax(tok_BT[:, :, None] == tok_BT[:, None, :], axis=2).astype(jnp.int32)


def is_new(tok_BT: jax.Array) -> jax.Array:
    """Whether each position's symbol occurs there for the first time."""
    return first_position(tok_BT) == jnp.arange(tok_BT.shape[1])


def distinct(tok_BT: jax.Array, n: int) -> jax.Array:
    """tok_BR: the first n distinct symbols of each sequence as they come; of no meaning where there are fewer."""
    rank_BT = jnp.where(is_new(tok_BT), first_occurrence(tok_BT), n)
    # A masked sum with one term each, where a sort would take its time on a GPU.
    return jnp.sum(tok_BT[:, :, None], axis=1, where=rank_BT[:, :, None] == jnp.arange(n))


class DrawInputs(NamedTuple):
    """What a kind of lexicon may draw from."""

    lexicon: LexiconConfig
    model: ModelConfig
    table_VD: jax.Array  # the learned table; None for a kind that has none
    key_B: jax.Array
    tok_BT: jax.Array
    dtype: jnp.dtype
    curriculum: Curriculum
    tokens_are_ranks: bool

    def p(self) -> jax.Array | float:
        return self.lexicon.p if self.curriculum.p is None else self.curriculum.p

    def rank_BT(self) -> jax.Array:
        """The symbols, numbered by first occurrence: all that a lexinvariant kind may look at."""
        return self.tok_BT if self.tokens_are_ranks else first_occurrence(self.tok_BT)

    def n_rows(self, kind: LexiconKind | None = None) -> int:
        """Rows of a sequence's table, of this kind of lexicon or of another."""
        facts = LEXICON_KINDS[kind or self.lexicon.kind]
        return facts.n_rows(self.model.vocab_size, self.tok_BT.shape[1], self.model.readout)


Draw = Callable[[DrawInputs], Lexicon]
_DRAW: dict[LexiconKind, Draw] = {}


def _draws(kind: LexiconKind) -> Callable[[Draw], Draw]:
    """Makes a function the one that draws this kind."""

    def register(function: Draw) -> Draw:
        _DRAW[kind] = function
        return function

    return register


def draw_lexicon(
    lexicon: LexiconConfig,
    model: ModelConfig,
    embedding: EmbeddingParams,
    key_B: jax.Array,
    tok_BT: jax.Array,
    *,
    dtype: jnp.dtype,
    curriculum: Curriculum = NO_CURRICULUM,
    tokens_are_ranks: bool = False,
) -> Lexicon:
    """Draw each sequence's lexicon from its key.

    `tokens_are_ranks` says that symbols are numbered by first occurrence already.
    """
    return _DRAW[lexicon.kind](
        DrawInputs(lexicon, model, embedding.table_VD, key_B, tok_BT, dtype, curriculum, tokens_are_ranks)
    )


@_draws("learned")
def _draw_learned(inputs: DrawInputs) -> Lexicon:
    return Lexicon(inputs.tok_BT, inputs.tok_BT, inputs.table_VD)


@_draws("gaussian")
def _draw_gaussian(inputs: DrawInputs) -> Lexicon:
    rank_BT, shape = inputs.rank_BT(), (inputs.n_rows(), inputs.model.width)
    table_BRD = jax.vmap(lambda key: jax.random.normal(key, shape, inputs.dtype))(inputs.key_B)
    return Lexicon(rank_BT, rank_BT, table_BRD)


@_draws("permuted")
def _draw_permuted(inputs: DrawInputs) -> Lexicon:
    def permute(key: jax.Array, rank_T: jax.Array) -> jax.Array:
        return permutation.permute(key, inputs.n_rows(), rank_T)

    row_BT = jax.vmap(permute)(inputs.key_B, inputs.rank_BT())
    return _with_gaussian_share(inputs, row_BT)


@_draws("annealed")
def _draw_annealed(inputs: DrawInputs) -> Lexicon:
    def permute(key: jax.Array, tok_T: jax.Array) -> jax.Array:
        key_share, key_permutation = jax.random.split(key)
        hi = inputs.curriculum.anneal_hi
        share = jnp.where(jnp.isinf(hi), 1.0, hi * jax.random.uniform(key_share))
        return permutation.permute_share(key_permutation, share, inputs.n_rows(), tok_T)

    row_BT = jax.vmap(permute)(inputs.key_B, inputs.tok_BT)
    return _with_gaussian_share(inputs, row_BT)


@_draws("mixed")
def _draw_mixed(inputs: DrawInputs) -> Lexicon:
    """Each sequence by itself is as if it had drawn a Gaussian table of its own: no model sees two sequences at once.
    But the rows are drawn once a step, so that nothing as large as B x V x D is made, and the readout of a batch is
    two products of matrices (`readout.logits`). What sequences do not share is which rows are random, and the signs,
    which make the rows that two sequences have for one symbol uncorrelated.
    """
    assert inputs.curriculum.shared_key is not None, "a mixed lexicon needs the key of its random rows"
    table_VD, rows = inputs.table_VD, inputs.n_rows()
    may_change_V = jnp.asarray(~np.isin(np.arange(rows), inputs.lexicon.exempt))

    def choose(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        key_which, key_sign = jax.random.split(key)
        sign_D = jax.random.rademacher(key_sign, (inputs.model.width,), table_VD.dtype)
        return sign_D, jax.random.bernoulli(key_which, inputs.p(), (rows,)) & may_change_V

    random_VD = jax.random.normal(inputs.curriculum.shared_key, table_VD.shape, jnp.float32)
    # A random row gets the norm of the row it stands for, or the model would learn to tell them apart.
    norm_V = jax.lax.stop_gradient(jnp.linalg.norm(table_VD.astype(jnp.float32), axis=1))
    random_VD *= (norm_V / jnp.linalg.norm(random_VD, axis=1))[:, None]
    table = MixedTable(table_VD, random_VD.astype(table_VD.dtype), *jax.vmap(choose)(inputs.key_B))
    return Lexicon(inputs.tok_BT, inputs.tok_BT, table)


@_draws("token-permuted")
def _draw_token_permuted(inputs: DrawInputs) -> Lexicon:
    config, rows = inputs.lexicon, inputs.n_rows()
    # Only the others are permuted, among themselves: nothing turns into an exempt token either.
    other_N = np.setdiff1d(np.arange(rows), config.exempt)
    place_V = jnp.asarray(np.searchsorted(other_N, np.arange(rows)), jnp.int32)
    may_change_V = jnp.asarray(np.isin(np.arange(rows), other_N))

    def permute(key: jax.Array, tok_T: jax.Array) -> jax.Array:
        key_which, key_permutation = jax.random.split(key)
        place_T = permutation.permute(key_permutation, len(other_N), place_V[tok_T])
        permuted_T = jnp.asarray(other_N, jnp.int32)[place_T]
        if config.unit == "type":
            chosen_T = jax.random.bernoulli(key_which, inputs.p(), (rows,))[tok_T]
        else:
            chosen_T = jax.random.bernoulli(key_which, inputs.p(), tok_T.shape)
        return jnp.where(chosen_T & may_change_V[tok_T], permuted_T, tok_T)

    row_BT = jax.vmap(permute)(inputs.key_B, inputs.tok_BT)
    return Lexicon(row_BT, row_BT if config.permute_targets else inputs.tok_BT, inputs.table_VD)


check_every_kind(_DRAW, "The draw functions of model/lexicon.py")


def _with_gaussian_share(inputs: DrawInputs, row_BT: jax.Array) -> Lexicon:
    """The learned table at these rows; for a share of the sequences fresh N(0, I) rows in its place."""
    share, table_VD, rows = inputs.lexicon.gaussian_share, inputs.table_VD, inputs.n_rows("gaussian")
    if share == 0:
        return Lexicon(row_BT, row_BT, table_VD)
    table = table_VD
    if rows < len(table_VD):  # rows that no symbol of a sequence uses need not be drawn
        table = table_VD[distinct(row_BT, rows)]
        row_BT = first_occurrence(row_BT)

    def fresh(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        key_which, key_rows = jax.random.split(key)
        fresh_RD = jax.random.normal(key_rows, (rows, inputs.model.width), table_VD.dtype)
        return jax.random.bernoulli(key_which, share), fresh_RD

    is_fresh_B, fresh_BRD = jax.vmap(fresh)(fold_in_rows(inputs.key_B, _GAUSSIAN_SHARE))
    return Lexicon(row_BT, row_BT, jnp.where(is_fresh_B[:, None, None], fresh_BRD, table))


def rows_at(table: Table, row_BT: jax.Array) -> jax.Array:
    """Rows of a shared table_RD, of each sequence's own table_BRD, or of a mixture."""
    if isinstance(table, MixedTable):
        is_random_BT = jnp.take_along_axis(table.is_random_BV, row_BT, axis=1)
        random_BTD = table.random_VD[row_BT] * table.sign_BD[:, None]
        return jnp.where(is_random_BT[:, :, None], random_BTD, table.learned_VD[row_BT])
    if table.ndim == 2:
        return table[row_BT]
    return jnp.take_along_axis(table, row_BT[:, :, None], axis=1)


def draw_by_rank(
    config: ModelConfig,
    embedding: EmbeddingParams,
    key_B: jax.Array,
    rank_BT: jax.Array,
    n_ranks: int,
    dtype: jnp.dtype,
) -> tuple[Lexicon, jax.Array]:
    """(lexicon, row_BR): draw at evaluation for n_ranks symbols, of which only some are in the sequences.

    Rank k is the k-th distinct symbol of a sequence (of a standard LM, the symbol itself).
    """
    rank_BR = jnp.broadcast_to(jnp.arange(n_ranks), (len(rank_BT), n_ranks))
    used = config.lexicon.at_evaluation
    drawn = draw_lexicon(used, config, embedding, key_B, rank_BR, dtype=dtype, tokens_are_ranks=True)
    row_BT = jnp.take_along_axis(drawn.target_BT, rank_BT, axis=1)
    return Lexicon(row_BT, row_BT, drawn.table), drawn.target_BT
