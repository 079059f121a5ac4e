"""The likeliest continuation of many prompts at once: each prompt is read in one pass, and then token by token.

Like `generate.py` it works with ranks where the model is lexinvariant: rank k is the k-th distinct symbol of the
prompt, and what a rank that has not occurred stands for is a fair draw among the unused symbols. At one draw of the
lexicon it writes what `generate_tokens` writes as its temperature falls to nothing, many prompts at a time.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model import lexicon as lexica
from lexinvariant.model.attention import causal_attention, choose_implementation, toeplitz
from lexinvariant.model.generate import Cache, read_next, symbols_by_row
from lexinvariant.model.params import Layer, Params
from lexinvariant.model.readout import IMPOSSIBLE, log_likelihood, logit_scale, logits, predictors
from lexinvariant.model.recall import Memory, empty_memory, memory_of, recalled_next, remember
from lexinvariant.model.transformer import mlp, position_bias, project, rms_norm, smear
from lexinvariant.rng import evaluation_keys


class _State(NamedTuple):
    """What one draw of the lexicons has made of the prompts so far."""

    row_BR: jax.Array  # the row of the table that each rank uses (each symbol, for a standard LM)
    table: jax.Array
    cache: Cache
    n_B: jax.Array  # tokens read
    seen_BR: jax.Array
    memory: Memory  # of its recall; empty where the model has none
    logp_BR: jax.Array  # log-probability of each rank as the next one
    read_B: jax.Array  # log-probability of all that was read, where draws are to be weighed by it


def _n_ranks(config: ModelConfig, length: int) -> int:
    """With the `seen` readout a lexinvariant model needs a rank for each position at most."""
    only_seen = config.readout == "seen" and config.lexicon.is_lexinvariant
    return min(config.vocab_size, length) if only_seen else config.vocab_size


@partial(jax.jit, static_argnames=("config", "weighed", "dtype"))
def _read_prompts(
    params: Params,
    config: ModelConfig,
    key_B: jax.Array,
    rank_1R: jax.Array,
    rank_BT: jax.Array,
    n_B: jax.Array,
    weighed: bool,
    dtype: str,
) -> _State:
    """Draw a lexicon for each prompt and read its first n ranks."""
    used, (batch, length) = config.lexicon.at_evaluation, rank_BT.shape
    drawn = lexica.draw(
        used,
        params.lexicals,
        key_B,
        rank_1R,
        rows=lexica.n_rows(used.kind, config.readout, config.vocab_size, length),
        width=config.width,
        dtype=jnp.dtype(dtype),
    )
    row_BR = jnp.broadcast_to(drawn.target_BT, (batch, rank_1R.shape[1]))
    row_BT = jnp.take_along_axis(row_BR, rank_BT, axis=1)
    lexicon = lexica.Lexicon(row_BT, row_BT, drawn.table)
    x_BTD = lexica.embed(params.lexicals, lexicon, jnp.dtype(dtype))
    x_BTD, cache = jax.lax.scan(lambda x, layer: _block(layer, config, x, n_B), x_BTD, params.layers)
    h_BTD = _final(params, config, x_BTD)

    in_prompt_BT = jnp.arange(length) < n_B[:, None]
    seen_BR = jnp.zeros(row_BR.shape, bool).at[jnp.arange(batch)[:, None], rank_BT].max(in_prompt_BT)
    read_B = jnp.zeros(batch)
    if weighed:
        read_B = jnp.sum(log_likelihood(params, config, lexicon, h_BTD), axis=1, where=in_prompt_BT)
    h_B1D = jnp.take_along_axis(predictors(params, h_BTD), n_B[:, None, None], axis=1)
    memory = empty_memory(batch, row_BR.shape[1], config.recall_width)
    if params.recall is not None:
        memory = memory_of(params.recall, h_BTD, rank_BT, in_prompt_BT, row_BR.shape[1])
    state = _State(row_BR, drawn.table, cache, n_B, seen_BR, memory, read_B, read_B)
    return state._replace(logp_BR=_next_logp(params, config, state, h_B1D))


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
def _read_next(params: Params, config: ModelConfig, state: _State, rank_B: jax.Array) -> _State:
    """Read one more rank after each prompt, each at its own position."""
    batch_B, dtype = jnp.arange(len(rank_B)), state.cache.k_LBTNK.dtype
    row_B1 = jnp.take_along_axis(state.row_BR, rank_B[:, None], axis=1)
    x_B1D = lexica.embed(params.lexicals, lexica.Lexicon(row_B1, row_B1, state.table), dtype)
    x_B1D, cache = read_next(params, config, x_B1D, state.cache, state.n_B)
    h_B1D, memory = _final(params, config, x_B1D), state.memory
    if params.recall is not None:
        memory = remember(params.recall, memory, h_B1D, rank_B)
    seen_BR = state.seen_BR.at[batch_B, rank_B].set(True)
    state = state._replace(cache=cache, n_B=state.n_B + 1, seen_BR=seen_BR, memory=memory)
    return state._replace(logp_BR=_next_logp(params, config, state, h_B1D))


def _next_logp(params: Params, config: ModelConfig, state: _State, h_B1D: jax.Array) -> jax.Array:
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


@jax.jit
def _likeliest(logp: list[jax.Array], read: list[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
    """(rank_B, what each draw has now read), from logp_BR and read_B of each draw: the rank that is likeliest by the
    average over draws of the probability of the whole sequence, as in scoring. Each draw's vote is weighted by how
    well it has predicted what was read.
    """
    logp_KBR = jnp.stack(logp)
    weight_KB = jax.nn.log_softmax(jnp.stack(read), axis=0)
    rank_B = jnp.argmax(jax.nn.logsumexp(logp_KBR + weight_KB[:, :, None], axis=0), axis=1)
    chosen_KB = jnp.take_along_axis(logp_KBR, rank_B[None, :, None], axis=2)[:, :, 0]
    return rank_B, list(jnp.stack(read) + chosen_KB)


def _continue(params: Params, config: ModelConfig, states: list[_State], n_tokens: int) -> np.ndarray:
    """rank_BN: greedily, under all draws at once."""
    chosen = []
    for n in range(n_tokens):
        rank_B, read = _likeliest([state.logp_BR for state in states], [state.read_B for state in states])
        chosen.append(np.asarray(rank_B))
        if n + 1 < n_tokens:
            states = [
                _read_next(params, config, state._replace(read_B=read_B), rank_B)
                for state, read_B in zip(states, read, strict=True)
            ]
    return np.stack(chosen, axis=1)


def greedy_tokens(
    params: Params,
    config: ModelConfig,
    prompts: Sequence[np.ndarray],
    n_tokens: int,
    *,
    address_S: np.ndarray | None = None,
    seed: int = 0,
    draws: int = 1,
    batch_size: int = 16,
    dtype: str = "float32",
    key_at_draw: Callable[[np.ndarray, int], jax.Array] | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> np.ndarray:
    """tok_SN: the likeliest next token after each prompt, n_tokens times over.

    A prompt's lexicons come from its address (its number, unless told) and the number of the draw, so its
    continuation depends on no other prompt and on no batch size. `key_at_draw` draws them in another way, and
    `advance` is told how many more prompts are done.
    """
    if n_tokens < 1 or draws < 1 or batch_size < 1:
        raise UserError(
            f"Greedy continuation needs n_tokens, draws and batch_size of at least 1: got {n_tokens}, {draws} and "
            f"{batch_size}."
        )
    for prompt_T in prompts:
        if len(prompt_T) and not 0 <= prompt_T.min() <= prompt_T.max() < config.vocab_size:
            raise UserError(
                f"A prompt has a token outside 0..{config.vocab_size - 1}, the model's vocabulary: give another."
            )
    if config.lexicon.at_evaluation.kind == "learned":
        draws = 1  # nothing is drawn
    address_S = np.arange(len(prompts)) if address_S is None else address_S
    keys = key_at_draw or (lambda address_B, k: evaluation_keys(seed, jnp.asarray(address_B, jnp.uint32), k))
    length = max(map(len, prompts), default=0) + n_tokens
    length = -(-length // 8) * 8  # few shapes to compile, and ones that fused attention takes
    rank_1R = np.arange(_n_ranks(config, length))[None]

    tok_SN = np.zeros((len(prompts), n_tokens), np.int64)
    batch_size = min(batch_size, max(len(prompts), 1))
    for start in range(0, len(prompts), batch_size):
        # The last batch is filled up with repeats that are cut off again: one shape, one compilation.
        index_B = np.minimum(np.arange(start, start + batch_size), len(prompts) - 1)
        rank_BT = np.zeros((batch_size, length), np.int32)
        for b, i in enumerate(index_B):
            rank_BT[b, : len(prompts[i])] = _ranks(config, prompts[i])
        n_B = np.array([len(prompts[i]) for i in index_B], np.int32)
        states = [
            _read_prompts(
                params, config, keys(address_S[index_B], k), rank_1R, rank_BT, n_B, draws > 1, dtype
            )
            for k in range(draws)
        ]
        chosen_BN = _continue(params, config, states, n_tokens)
        for b, i in enumerate(index_B[: len(prompts) - start]):
            tok_SN[i] = symbols_by_row(config, prompts[i], seed)[chosen_BN[b]]
        advance(min(batch_size, len(prompts) - start))
    return tok_SN


def _ranks(config: ModelConfig, prompt_T: np.ndarray) -> np.ndarray:
    """What stands for each token of a prompt: its rank by first occurrence, or itself for a standard LM."""
    if not config.lexicon.is_lexinvariant:
        return prompt_T
    _, first, which_T = np.unique(prompt_T, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which_T]
