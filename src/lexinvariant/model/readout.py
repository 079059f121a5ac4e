"""Hidden states to log-probabilities, through the same table that embedded the symbols.

`full` is the paper's softmax over rows. A symbol that has not occurred is given the next free row, so under one draw
its probability is an unbiased estimate: unseen symbols sum to the right mass on average over draws. `seen` is
normalised under every draw, and may score symbols by their occurrences too (recall.py).
"""

import jax
import jax.numpy as jnp

from lexinvariant.config import ModelConfig
from lexinvariant.model.attention import MASKED
from lexinvariant.model.lexicon import (
    Lexicon,
    MixedTable,
    Table,
    distinct,
    first_occurrence,
    is_new,
    rows_at,
)
from lexinvariant.model.logits import at_symbol, float32_einsum, log_softmax_at, weighted_sum
from lexinvariant.model.params import Params
from lexinvariant.model.recall import recall_logits


def after_start(params: Params, h_BTD: jax.Array) -> jax.Array:
    """The states with a learned one before them: [:, t] predicts the symbol at t, and the last the one to come."""
    start_B1D = jnp.broadcast_to(params.start_D.astype(h_BTD.dtype), (h_BTD.shape[0], 1, h_BTD.shape[2]))
    return jnp.concatenate([start_B1D, h_BTD], axis=1)


def predictors(params: Params, h_BTD: jax.Array) -> jax.Array:
    """The state that predicts each position: the one before it, and a learned one for the first."""
    return after_start(params, h_BTD[:, :-1])


def logit_scale(config: ModelConfig) -> float:
    return (config.width if config.logit_scale == "width" else config.vocab_size) ** -0.5


def logits(config: ModelConfig, table: Table, h_BTD: jax.Array) -> jax.Array:
    """One logit a row, in float32."""
    if isinstance(table, MixedTable):
        # Turning the signs of a row's channels or those of the state's gives the same product.
        random_BTV = logits(config, table.random_VD, h_BTD * table.sign_BD[:, None].astype(h_BTD.dtype))
        return jnp.where(table.is_random_BV[:, None], random_BTV, logits(config, table.learned_VD, h_BTD))
    equation = "btd,vd->btv" if table.ndim == 2 else "btd,bvd->btv"
    return float32_einsum(equation, h_BTD, table.astype(h_BTD.dtype)) * logit_scale(config)


def log_likelihood(params: Params, config: ModelConfig, lexicon: Lexicon, h_BTD: jax.Array) -> jax.Array:
    """logp_BT: the log-probability (nats) of every target given what stands before it."""
    if config.readout == "seen":
        return _seen_log_likelihood(params, config, lexicon, h_BTD)
    logits_BTV = logits(config, lexicon.table, predictors(params, h_BTD))
    return log_softmax_at(logits_BTV, lexicon.target_BT)


def _seen_log_likelihood(
    params: Params, config: ModelConfig, lexicon: Lexicon, h_BTD: jax.Array
) -> jax.Array:
    """Logits for the distinct symbols seen so far, one more for "another", shared among the unseen."""
    predictor_BTD = predictors(params, h_BTD)
    n_distinct = min(config.vocab_size, h_BTD.shape[1])
    rank_BT = first_occurrence(lexicon.target_BT)
    is_new_BT = is_new(lexicon.target_BT)
    new_BT = is_new_BT.astype(jnp.int32)
    n_seen_BT = jnp.cumsum(new_BT, axis=1) - new_BT  # before the target, which is being predicted
    row_BR = distinct(lexicon.target_BT, n_distinct)
    logits_BTR = logits(config, rows_at(lexicon.table, row_BR), predictor_BTD)
    if params.recall is not None:
        logits_BTR += recall_logits(params.recall, predictor_BTD, h_BTD, rank_BT, n_distinct)
    unseen_BT = weighted_sum(predictor_BTD, params.unseen_D) * logit_scale(config)
    return combine_seen(logits_BTR, unseen_BT, rank_BT, is_new_BT, n_seen_BT, config.vocab_size)


def combine_seen(
    logits_BTR: jax.Array,
    unseen_BT: jax.Array,
    rank_BT: jax.Array,
    is_new_BT: jax.Array,
    n_seen_BT: jax.Array,
    vocab_size: int,
) -> jax.Array:
    """Log p(target) when ranks below n_seen have a logit each and the other symbols share one."""
    n_unseen_BT = vocab_size - n_seen_BT
    seen_BTR = jnp.arange(logits_BTR.shape[2]) < n_seen_BT[:, :, None]
    logits_BTR = jnp.where(seen_BTR, logits_BTR, MASKED)
    unseen_BT = jnp.where(n_unseen_BT > 0, unseen_BT, MASKED)
    total_BT = jnp.logaddexp(jax.nn.logsumexp(logits_BTR, axis=2), unseen_BT)
    old_BT = at_symbol(logits_BTR, rank_BT)
    new_BT = unseen_BT - jnp.log(jnp.maximum(n_unseen_BT, 1).astype(jnp.float32))
    return jnp.where(is_new_BT, new_BT, old_BT) - total_BT


def next_log_probs(
    params: Params,
    config: ModelConfig,
    table: Table,
    row_BR: jax.Array,
    predictor_BTD: jax.Array,
    seen_BTR: jax.Array,
    recall_BTR: jax.Array | None,
) -> jax.Array:
    """logp_BTR: by each predictor, the log-probability that rank r comes next; `seen_BTR` are those that have come."""
    # One logit a row of the table, then in the order of ranks: a shared table is not copied for each sequence.
    logits_BTR = jnp.take_along_axis(logits(config, table, predictor_BTD), row_BR[:, None], axis=2)
    if config.readout == "full":
        return jax.nn.log_softmax(logits_BTR)
    if recall_BTR is not None:
        logits_BTR += recall_BTR
    n_unseen_BT1 = config.vocab_size - jnp.sum(seen_BTR, axis=2, keepdims=True)
    unseen_BT1 = weighted_sum(predictor_BTD, params.unseen_D)[:, :, None] * logit_scale(config)
    unseen_BT1 = jnp.where(n_unseen_BT1 > 0, unseen_BT1, MASKED)
    seen_logits_BTR = jnp.where(seen_BTR, logits_BTR, MASKED)
    total_BT1 = jnp.logaddexp(jax.nn.logsumexp(seen_logits_BTR, axis=2, keepdims=True), unseen_BT1)
    each_BT1 = unseen_BT1 - jnp.log(jnp.maximum(n_unseen_BT1, 1).astype(jnp.float32))
    return jnp.where(seen_BTR, logits_BTR, each_BT1) - total_BT1
