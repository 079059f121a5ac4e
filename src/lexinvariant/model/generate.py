"""Sampling with a key-value cache, under one lexicon that is drawn at the start and stays.

A lexinvariant model knows symbols by the order in which they came, so it generates ranks: rank k is the k-th
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
from lexinvariant.model.params import Layer, Params
from lexinvariant.model.readout import IMPOSSIBLE, logit_scale, logits
from lexinvariant.model.recall import Memory, empty_memory, recalled_next, remember
from lexinvariant.model.transformer import mlp, position_bias, project, rms_norm, smear
from lexinvariant.rng import Stream, key_at


class Cache(NamedTuple):
    """What the layers remember of the positions read, stacked as their parameters are."""

    k_LBTNK: jax.Array
    v_LBTNK: jax.Array
    last_k_LB1NK: jax.Array  # not smeared: the next key may want it


def _empty_cache(config: ModelConfig, batch: int, length: int) -> Cache:
    k_LBTNK = jnp.zeros((config.n_layers, batch, length, config.n_heads, config.head_dim), jnp.float32)
    return Cache(k_LBTNK, k_LBTNK, k_LBTNK[:, :, :1])


def read_next(
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


def _next_logits(
    params: Params,
    config: ModelConfig,
    table: jax.Array,
    seen_BV: jax.Array,
    memory: Memory,
    h_B1D: jax.Array,
) -> jax.Array:
    """logits_BV over rows; under the `seen` readout every row not seen yet has an even part of "another"."""
    logits_BV = logits(config, table, h_B1D)[:, 0]
    if config.readout == "full":
        return logits_BV
    if params.recall is not None:
        logits_BV += recalled_next(params.recall, memory, h_B1D)
    n_unseen_B1 = jnp.sum(~seen_BV, axis=1, keepdims=True)
    unseen_B1 = h_B1D[:, 0] @ params.unseen_D[:, None] * logit_scale(config)
    return jnp.where(seen_BV, logits_BV, unseen_B1 - jnp.log(jnp.maximum(n_unseen_B1, 1)))


def _only_top(logits_BV: jax.Array, top_k: int) -> jax.Array:
    kth_B1 = jax.lax.top_k(logits_BV, top_k)[0][:, -1:]
    return jnp.where(logits_BV >= kth_B1, logits_BV, IMPOSSIBLE)


@partial(jax.jit, static_argnames=("config", "top_k"))
def sample_rows(
    params: Params,
    config: ModelConfig,
    table: jax.Array,
    forced_BT: jax.Array,
    key: jax.Array,
    temperature: jax.Array,
    top_k: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """(row_BT, logp_BT): rows where forced_BT is not -1, samples elsewhere, and the model's log-probabilities.

    With everything forced this is a slow and independent way to score: the cache's test.
    """
    batch, length = forced_BT.shape

    def one(carry: tuple, t: jax.Array) -> tuple:
        cache, seen_BV, memory, h_B1D = carry
        logits_BV = _next_logits(params, config, table, seen_BV, memory, h_B1D)
        wanted_BV = logits_BV / temperature if top_k is None else _only_top(logits_BV, top_k) / temperature
        sampled_B = jax.random.categorical(jax.random.fold_in(key, t), wanted_BV)
        row_B = jnp.where(forced_BT[:, t] >= 0, forced_BT[:, t], sampled_B)
        logp_B = jnp.take_along_axis(jax.nn.log_softmax(logits_BV), row_B[:, None], axis=1)[:, 0]

        row_lexicon = lexica.Lexicon(row_B[:, None], row_B[:, None], table)
        x_B1D = lexica.embed(params.lexicals, row_lexicon, jnp.float32)
        x_B1D, cache = read_next(params, config, x_B1D, cache, jnp.full(batch, t))
        h_B1D = rms_norm(x_B1D, config.norm_eps) * params.final_norm_D
        seen_BV = seen_BV | jax.nn.one_hot(row_B, seen_BV.shape[1], dtype=bool)
        if params.recall is not None:
            memory = remember(params.recall, memory, h_B1D, row_B)
        return (cache, seen_BV, memory, h_B1D), (row_B, logp_B)

    start = (
        _empty_cache(config, batch, length),
        jnp.zeros((batch, config.vocab_size), bool),
        empty_memory(batch, config.vocab_size, config.recall_width),
        jnp.broadcast_to(params.start_D, (batch, 1, config.width)),
    )
    chosen: tuple[jax.Array, jax.Array] = jax.lax.scan(one, start, jnp.arange(length))[1]
    return chosen[0].T, chosen[1].T


@partial(jax.jit, static_argnames="config")
def _lexicon_rows(params: Params, config: ModelConfig, key: jax.Array) -> jax.Array:
    """The table in the order of ranks (of symbols, for a standard LM): table_VD, or table_1VD if drawn."""
    symbols_1V = jnp.arange(config.vocab_size)[None]
    drawn = lexica.draw(
        config.lexicon.at_evaluation,
        params.lexicals,
        key[None],
        symbols_1V,
        rows=config.vocab_size,
        width=config.width,
        dtype=jnp.dtype("float32"),
    )
    return lexica.rows_at(drawn.table, drawn.input_BT)


def symbols_by_row(config: ModelConfig, prompt_T: np.ndarray, seed: int) -> np.ndarray:
    """The symbol that each rank stands for after a prompt; ranks that it has not used are named by a fair draw."""
    symbol_V = np.arange(config.vocab_size)
    if not config.lexicon.is_lexinvariant:
        return symbol_V
    used, first = np.unique(prompt_T, return_index=True)
    unused = np.setdiff1d(symbol_V, used)
    shuffled = np.random.default_rng([seed, int(Stream.SAMPLE)]).permutation(unused)
    return np.concatenate([used[np.argsort(first)], shuffled]).astype(np.int64)


def generate_tokens(
    params: Params,
    config: ModelConfig,
    prompt_T: np.ndarray,
    n_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Continue a prompt (it may be empty) by n_tokens tokens; returns the continuation."""
    if n_tokens < 1 or temperature <= 0 or (top_k is not None and not 1 <= top_k <= config.vocab_size):
        raise UserError(
            f"Generation needs n_tokens >= 1, temperature > 0 and 1 <= top_k <= {config.vocab_size}: got "
            f"{n_tokens}, {temperature} and {top_k}."
        )
    if len(prompt_T) and not 0 <= prompt_T.min() <= prompt_T.max() < config.vocab_size:
        raise UserError(
            f"The prompt has a token outside 0..{config.vocab_size - 1}, the model's vocabulary: give another."
        )
    length = len(prompt_T) + n_tokens
    symbol_of_row_V = symbols_by_row(config, prompt_T, seed)
    row_of_symbol_V = np.argsort(symbol_of_row_V)

    padded = -(-length // 64) * 64  # few shapes to compile
    forced_1T = np.full((1, padded), -1, np.int32)
    forced_1T[0, : len(prompt_T)] = row_of_symbol_V[prompt_T]
    row_1T, _ = sample_rows(
        params,
        config,
        _lexicon_rows(params, config, key_at(seed, Stream.SAMPLE, 0)),
        jnp.asarray(forced_1T),
        key_at(seed, Stream.SAMPLE, 1),
        jnp.float32(temperature),
        top_k,
    )
    return symbol_of_row_V[np.asarray(row_1T)[0, len(prompt_T) : length]]
