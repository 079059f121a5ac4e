"""Going on after prompts: each prompt is read in one pass, and what follows it token by token, with a cache.

A lexinvariant model knows symbols by the order in which they came, so what goes on are ranks: rank k is the k-th
distinct symbol. What a rank that has not occurred stands for is a fair draw among the unused symbols.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model import lexicon as lexica
from lexinvariant.model.attention import causal_attention, choose_implementation, toeplitz
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.params import Layer, Params
from lexinvariant.model.readout import IMPOSSIBLE, log_likelihood, logit_scale, logits
from lexinvariant.model.recall import Memory, empty_memory, memory_of, recalled_next, remember
from lexinvariant.model.transformer import mlp, position_bias, project, rms_norm, smear
from lexinvariant.rng import Stream


class Cache(NamedTuple):
    """What the layers remember of the positions read, stacked as their parameters are."""

    k_LBTNK: jax.Array
    v_LBTNK: jax.Array
    last_k_LB1NK: jax.Array  # not smeared: the next key may want it


class State(NamedTuple):
    """What one draw of the lexicons has made of the prompts so far."""

    row_BR: jax.Array  # the row of the table that each rank uses (each symbol, for a standard LM)
    table: jax.Array
    cache: Cache
    n_B: jax.Array  # tokens read
    seen_BR: jax.Array
    memory: Memory  # of its recall; empty where the model has none
    logp_BR: jax.Array  # log-probability of each rank as the next one
    read_B: jax.Array  # log-probability of all that was read, where draws are to be weighed by it


@jit_fast_compile(static_argnames=("config", "room", "weighed", "dtype"))
def read_prompts(
    params: Params,
    config: ModelConfig,
    key_B: jax.Array,
    rank_1R: jax.Array,
    rank_BT: jax.Array,
    n_B: jax.Array,
    *,
    room: int,
    weighed: bool = False,
    dtype: str = "float32",
) -> State:
    """Draw a lexicon for each prompt and read its first n ranks, with room for as many tokens after all prompts."""
    used, (batch, length) = config.lexicon.at_evaluation, rank_BT.shape
    drawn = lexica.draw(
        used,
        params.embedding,
        key_B,
        rank_1R,
        rows=lexica.n_rows(used.kind, config.readout, config.vocab_size, rank_1R.shape[1]),
        width=config.width,
        dtype=jnp.dtype(dtype),
    )
    row_BR = jnp.broadcast_to(drawn.target_BT, (batch, rank_1R.shape[1]))
    row_BT = jnp.take_along_axis(row_BR, rank_BT, axis=1)
    lexicon = lexica.Lexicon(row_BT, row_BT, drawn.table)
    x_BTD = lexica.embed(params.embedding, lexicon, jnp.dtype(dtype))
    cache = _empty_cache(config, batch, room, x_BTD.dtype)
    if length > 0:  # a text that starts from nothing has nothing to compile here
        x_BTD, read = jax.lax.scan(lambda x, layer: _block(layer, config, x, n_B), x_BTD, params.layers)
        cache = Cache(
            k_LBTNK=jnp.concatenate([read.k_LBTNK, cache.k_LBTNK], axis=2),
            v_LBTNK=jnp.concatenate([read.v_LBTNK, cache.v_LBTNK], axis=2),
            last_k_LB1NK=read.last_k_LB1NK,
        )
    h_BTD = _final(params, config, x_BTD)

    in_prompt_BT = jnp.arange(length) < n_B[:, None]
    seen_BR = jnp.zeros(row_BR.shape, bool).at[jnp.arange(batch)[:, None], rank_BT].max(in_prompt_BT)
    read_B = jnp.zeros(batch)
    if weighed and length > 0:
        read_B = jnp.sum(log_likelihood(params, config, lexicon, h_BTD), axis=1, where=in_prompt_BT)
    start_B1D = jnp.broadcast_to(params.start_D.astype(h_BTD.dtype), (batch, 1, config.width))
    after_BTD = jnp.concatenate([start_B1D, h_BTD], axis=1)
    h_B1D = jnp.take_along_axis(after_BTD, n_B[:, None, None], axis=1)
    memory = empty_memory(batch, row_BR.shape[1], config.recall_width)
    if params.recall is not None:
        memory = memory_of(params.recall, h_BTD, rank_BT, in_prompt_BT, row_BR.shape[1])
    state = State(row_BR, drawn.table, cache, n_B, seen_BR, memory, read_B, read_B)
    return state._replace(logp_BR=_next_logp(params, config, state, h_B1D))


def _empty_cache(config: ModelConfig, batch: int, length: int, dtype: jnp.dtype) -> Cache:
    shape = (config.n_layers, batch, length, config.n_heads, config.head_dim)
    return Cache(
        jnp.zeros(shape, dtype), jnp.zeros(shape, dtype), jnp.zeros((*shape[:2], 1, *shape[3:]), dtype)
    )


def _final(params: Params, config: ModelConfig, x_BTD: jax.Array) -> jax.Array:
    n_BTD = rms_norm(x_BTD, config.norm_eps).astype(jnp.float32)
    return (n_BTD * params.final_norm_D).astype(x_BTD.dtype)


def _block(layer: Layer, config: ModelConfig, x_BTD: jax.Array, n_B: jax.Array) -> tuple[jax.Array, Cache]:
    """`transformer.block`, and what is to be remembered of its first n positions."""
    q_BTNK, k_BTNK, v_BTNK = project(layer, config, rms_norm(x_BTD, config.norm_eps))
    zero_B1NK = jnp.zeros_like(k_BTNK[:, :1])
    last_B1NK = jnp.take_along_axis(
        jnp.concatenate([zero_B1NK, k_BTNK], axis=1), n_B[:, None, None, None], axis=1
    )
    if config.smeared_keys:
        k_BTNK = smear(k_BTNK, zero_B1NK, layer.smear_N)
    mixed_BTNK = causal_attention(
        q_BTNK,
        k_BTNK,
        v_BTNK,
        toeplitz(position_bias(layer, config, layer.position_WN, x_BTD.shape[1])),
        choose_implementation(config.attention, x_BTD.dtype),
        0.0,
        None,
    )
    x_BTD = x_BTD + mixed_BTNK.reshape(x_BTD.shape) @ layer.out_ED.astype(x_BTD.dtype)
    return x_BTD + mlp(layer, config, x_BTD), Cache(k_BTNK, v_BTNK, last_B1NK)


@partial(jax.jit, static_argnames="config")
def read_one(params: Params, config: ModelConfig, state: State, rank_B: jax.Array) -> State:
    """Read one more rank after each prompt, each at its own position."""
    batch_B, dtype = jnp.arange(len(rank_B)), state.cache.k_LBTNK.dtype
    row_B1 = jnp.take_along_axis(state.row_BR, rank_B[:, None], axis=1)
    x_B1D = lexica.embed(params.embedding, lexica.Lexicon(row_B1, row_B1, state.table), dtype)
    x_B1D, cache = _through_layers(params, config, x_B1D, state.cache, state.n_B)
    h_B1D, memory = _final(params, config, x_B1D), state.memory
    if params.recall is not None:
        memory = remember(params.recall, memory, h_B1D, rank_B)
    seen_BR = state.seen_BR.at[batch_B, rank_B].set(True)
    state = state._replace(cache=cache, n_B=state.n_B + 1, seen_BR=seen_BR, memory=memory)
    return state._replace(logp_BR=_next_logp(params, config, state, h_B1D))


def _next_logp(params: Params, config: ModelConfig, state: State, h_B1D: jax.Array) -> jax.Array:
    """logp_BR: the log-probability of each rank as the next one."""
    # One logit a row of the table, then in the order of ranks: a shared table is not copied for each sequence.
    logits_BR = jnp.take_along_axis(logits(config, state.table, h_B1D)[:, 0], state.row_BR, axis=1)
    if config.readout == "full":
        return jax.nn.log_softmax(logits_BR)
    seen_BR = state.seen_BR
    if params.recall is not None:
        logits_BR += recalled_next(params.recall, state.memory, h_B1D)
    n_unseen_B1 = config.vocab_size - jnp.sum(seen_BR, axis=1, keepdims=True)
    another_B1 = h_B1D[:, 0].astype(jnp.float32) @ params.unseen_D[:, None] * logit_scale(config)
    another_B1 = jnp.where(n_unseen_B1 > 0, another_B1, IMPOSSIBLE)
    seen_logits_BR = jnp.where(seen_BR, logits_BR, IMPOSSIBLE)
    total_B1 = jnp.logaddexp(jax.nn.logsumexp(seen_logits_BR, axis=1, keepdims=True), another_B1)
    each_B1 = another_B1 - jnp.log(jnp.maximum(n_unseen_B1, 1).astype(jnp.float32))
    return jnp.where(seen_BR, logits_BR, each_B1) - total_B1


def _through_layers(
    params: Params, config: ModelConfig, x_B1D: jax.Array, cache: Cache, n_B: jax.Array
) -> tuple[jax.Array, Cache]:
    """One position through all layers, after the n that each sequence has read; the same parts as
    `transformer.block`, with the cache for the past.

    A scan, since unrolled layers take many times as long to compile. It only reads the cache: what the layers add to
    it is written when all of them are done, in place.
    """
    batch_B, length = jnp.arange(len(n_B)), cache.k_LBTNK.shape[2]
    distance_BT = n_B[:, None] - jnp.arange(length)

    def through_one(x_B1D: jax.Array, each: tuple[Layer, Cache]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        layer, (k_BTNK, v_BTNK, last_k_B1NK) = each
        q_B1NK, k_B1NK, v_B1NK = project(layer, config, rms_norm(x_B1D, config.norm_eps))
        smeared_B1NK = smear(k_B1NK, last_k_B1NK, layer.smear_N) if config.smeared_keys else k_B1NK
        bias_NT = position_bias(layer, config, layer.position_WN, length).astype(jnp.float32)
        past_BNT = jnp.einsum("bnk,btnk->bnt", q_B1NK[:, 0], k_BTNK, preferred_element_type=jnp.float32)
        past_BNT += bias_NT[:, jnp.maximum(distance_BT, 0)].swapaxes(0, 1)
        now_BN1 = jnp.einsum("bonk,bonk->bno", q_B1NK, smeared_B1NK, preferred_element_type=jnp.float32)
        now_BN1 += bias_NT[:, :1]
        logits_BNT = jnp.where(distance_BT[:, None] > 0, past_BNT, IMPOSSIBLE)
        weight = jax.nn.softmax(jnp.concatenate([logits_BNT, now_BN1], axis=2)).astype(v_BTNK.dtype)
        mixed_BNK = jnp.einsum("bnt,btnk->bnk", weight[:, :, :-1], v_BTNK) + weight[:, :, -1:] * v_B1NK[:, 0]
        x_B1D = x_B1D + mixed_BNK.reshape(x_B1D.shape) @ layer.out_ED.astype(x_B1D.dtype)
        return x_B1D + mlp(layer, config, x_B1D), (smeared_B1NK[:, 0], v_B1NK[:, 0], k_B1NK)

    x_B1D, (k_LBNK, v_LBNK, last_k_LB1NK) = jax.lax.scan(through_one, x_B1D, (params.layers, cache))
    k_LBTNK = cache.k_LBTNK.at[:, batch_B, n_B].set(k_LBNK)
    v_LBTNK = cache.v_LBTNK.at[:, batch_B, n_B].set(v_LBNK)
    return x_B1D, Cache(k_LBTNK, v_LBTNK, last_k_LB1NK)


def symbols_by_row(config: ModelConfig, prompt_T: np.ndarray, seed: int) -> np.ndarray:
    """The symbol that each rank stands for after a prompt; ranks that it has not used are named by a fair draw."""
    symbol_V = np.arange(config.vocab_size)
    if not config.lexicon.is_lexinvariant:
        return symbol_V
    used, first = np.unique(prompt_T, return_index=True)
    unused = np.setdiff1d(symbol_V, used)
    shuffled = np.random.default_rng([seed, int(Stream.SAMPLE)]).permutation(unused)
    return np.concatenate([used[np.argsort(first)], shuffled]).astype(np.int64)


def check_prompt(config: ModelConfig, prompt_T: np.ndarray) -> None:
    if len(prompt_T) and not 0 <= prompt_T.min() <= prompt_T.max() < config.vocab_size:
        raise UserError(
            f"The prompt has a token outside 0..{config.vocab_size - 1}, the model's vocabulary: give another."
        )


def ranks_of(config: ModelConfig, prompt_T: np.ndarray) -> np.ndarray:
    """What stands for each token of a prompt: its rank by first occurrence, or itself for a standard LM."""
    if not config.lexicon.is_lexinvariant:
        return prompt_T
    _, first, which_T = np.unique(prompt_T, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which_T]
