"""Going on after prompts: `prefill` reads each prompt in one pass, `decode_step` one more token of each, with a cache.

What goes on are ranks (ranks.py). What a rank that has not occurred stands for is a fair draw among the unused symbols.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lexinvariant.config import ModelConfig
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.embedding import embed, occurrence_statistics
from lexinvariant.model.lexicon import Lexicon, Table, draw_by_rank
from lexinvariant.model.params import Layer, Params
from lexinvariant.model.readout import after_start, log_likelihood, next_log_probs
from lexinvariant.model.recall import Memory, build_memory, empty_memory, next_recall_logits, update_memory
from lexinvariant.model.transformer import KeyValues, block, final_norm


class DecodeState(NamedTuple):
    """What one draw of the lexicons has made of the sequences so far."""

    row_BR: jax.Array  # the row of the table that each rank uses
    table: Table
    cache: KeyValues
    n_B: jax.Array  # tokens read
    read_BS: jax.Array  # their ranks, where the model counts occurrences; else empty
    seen_BR: jax.Array
    memory: Memory  # of recall; empty where the model has none
    logp_BR: jax.Array  # log-probability of each rank as the next one
    prompt_logp_B: jax.Array  # log-probability of the prompt, where it was asked for; else 0


@jit_fast_compile(static_argnames=("config", "n_ranks", "max_new_tokens", "score_prompts", "dtype"))
def prefill(
    params: Params,
    config: ModelConfig,
    key_B: jax.Array,
    rank_BT: jax.Array,
    n_B: jax.Array,
    *,
    n_ranks: int,
    max_new_tokens: int,
    score_prompts: bool = False,
    dtype: str = "float32",
) -> DecodeState:
    """Draw a lexicon of n_ranks symbols for each prompt and read the prompt, which is its first n ranks."""
    batch, length = rank_BT.shape
    lexicon, row_BR = draw_by_rank(config, params.embedding, key_B, rank_BT, n_ranks, jnp.dtype(dtype))
    x_BTD = embed(params.embedding, lexicon, jnp.dtype(dtype))
    cache = _empty_cache(config, batch, max_new_tokens, x_BTD.dtype)
    if length > 0:  # a text that starts from nothing has nothing to compile here

        def read(x_BTD: jax.Array, layer: Layer) -> tuple[jax.Array, KeyValues]:
            x_BTD, own = block(layer, config, x_BTD)
            zero_B1NK = jnp.zeros_like(own.k_BSNK[:, :1])
            upto_BSNK = jnp.concatenate([zero_B1NK, own.unsmeared_k_BSNK], axis=1)
            last_B1NK = jnp.take_along_axis(upto_BSNK, n_B[:, None, None, None], axis=1)
            return x_BTD, own._replace(unsmeared_k_BSNK=last_B1NK)

        x_BTD, prompt = jax.lax.scan(read, x_BTD, params.layers)
        cache = KeyValues(
            k_BSNK=jnp.concatenate([prompt.k_BSNK, cache.k_BSNK], axis=2),
            v_BSNK=jnp.concatenate([prompt.v_BSNK, cache.v_BSNK], axis=2),
            unsmeared_k_BSNK=prompt.unsmeared_k_BSNK,
        )
    h_BTD = final_norm(params, config, x_BTD)

    in_prompt_BT = jnp.arange(length) < n_B[:, None]
    seen_BR = jnp.zeros(row_BR.shape, bool).at[jnp.arange(batch)[:, None], rank_BT].max(in_prompt_BT)
    prompt_logp_B = jnp.zeros(batch)
    if score_prompts and length > 0:
        prompt_logp_B = jnp.sum(log_likelihood(params, config, lexicon, h_BTD), axis=1, where=in_prompt_BT)
    h_B1D = jnp.take_along_axis(after_start(params, h_BTD), n_B[:, None, None], axis=1)
    memory = empty_memory(batch, n_ranks, config.recall_width)
    if params.recall is not None:
        memory = build_memory(params.recall, h_BTD, rank_BT, in_prompt_BT, n_ranks)
    logp_BR = _next_log_probs(params, config, lexicon.table, row_BR, h_B1D, seen_BR, memory)
    read_BS = jnp.zeros((batch, 0), jnp.int32)
    if config.count_occurrences:
        read_BS = jnp.pad(rank_BT, ((0, 0), (0, max_new_tokens)))
    return DecodeState(row_BR, lexicon.table, cache, n_B, read_BS, seen_BR, memory, logp_BR, prompt_logp_B)


def _empty_cache(config: ModelConfig, batch: int, length: int, dtype: jnp.dtype) -> KeyValues:
    shape = (config.n_layers, batch, length, config.n_heads, config.head_dim)
    return KeyValues(
        jnp.zeros(shape, dtype), jnp.zeros(shape, dtype), jnp.zeros((*shape[:2], 1, *shape[3:]), dtype)
    )


def _next_log_probs(
    params: Params,
    config: ModelConfig,
    table: Table,
    row_BR: jax.Array,
    h_B1D: jax.Array,
    seen_BR: jax.Array,
    memory: Memory,
) -> jax.Array:
    recall_BTR = None
    if params.recall is not None:
        recall_BTR = next_recall_logits(params.recall, memory, h_B1D)[:, None]
    return next_log_probs(params, config, table, row_BR, h_B1D, seen_BR[:, None], recall_BTR)[:, 0]


@partial(jax.jit, static_argnames="config")
def decode_step(params: Params, config: ModelConfig, state: DecodeState, rank_B: jax.Array) -> DecodeState:
    """Read one more rank of each sequence, each at its own position.

    The layers are scanned, since unrolled they take many times as long to compile. The scan only reads the cache: what
    the layers add to it is written when all of them are done, in place.
    """
    batch_B, dtype = jnp.arange(len(rank_B)), state.cache.k_BSNK.dtype
    row_B1 = jnp.take_along_axis(state.row_BR, rank_B[:, None], axis=1)
    read_BS, statistic_B1Q = state.read_BS, None
    if config.count_occurrences:
        read_BS = read_BS.at[batch_B, state.n_B].set(rank_B)
        statistic_BSQ = occurrence_statistics(read_BS)
        statistic_B1Q = jnp.take_along_axis(statistic_BSQ, state.n_B[:, None, None], axis=1)
    x_B1D = embed(params.embedding, Lexicon(row_B1, row_B1, state.table), dtype, statistic_B1Q)

    def read(x_B1D: jax.Array, each: tuple[Layer, KeyValues]) -> tuple[jax.Array, KeyValues]:
        layer, cache = each
        return block(layer, config, x_B1D, cache=cache, n_cached_B=state.n_B)

    x_B1D, own = jax.lax.scan(read, x_B1D, (params.layers, state.cache))
    cache = KeyValues(
        k_BSNK=state.cache.k_BSNK.at[:, batch_B, state.n_B].set(own.k_BSNK[:, :, 0]),
        v_BSNK=state.cache.v_BSNK.at[:, batch_B, state.n_B].set(own.v_BSNK[:, :, 0]),
        unsmeared_k_BSNK=own.unsmeared_k_BSNK,
    )
    h_B1D, memory = final_norm(params, config, x_B1D), state.memory
    if params.recall is not None:
        memory = update_memory(params.recall, memory, h_B1D, rank_B)
    seen_BR = state.seen_BR.at[batch_B, rank_B].set(True)
    logp_BR = _next_log_probs(params, config, state.table, state.row_BR, h_B1D, seen_BR, memory)
    return state._replace(
        cache=cache, n_B=state.n_B + 1, read_BS=read_BS, seen_BR=seen_BR, memory=memory, logp_BR=logp_BR
    )
