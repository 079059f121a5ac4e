"""Sampling a text after a prompt, under one lexicon that is drawn at the start and stays."""

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.continuation import DecodeState, decode_step, prefill
from lexinvariant.model.params import Params
from lexinvariant.model.ranks import check_prompt, check_sampling, symbols_by_rank, to_ranks
from lexinvariant.rng import Stream, key_at


def _round_up(n: int) -> int:
    """Prompts and the room for continuations are lengthened a little: few shapes to compile."""
    return -(-n // 64) * 64


def _mask_all_but_top(logp_BR: jax.Array, top_k: jax.Array) -> jax.Array:
    kth_B1 = jax.lax.dynamic_slice_in_dim(jnp.sort(logp_BR, axis=1, descending=True), top_k - 1, 1, axis=1)
    return jnp.where(logp_BR >= kth_B1, logp_BR, -jnp.inf)


@jit_fast_compile(static_argnames=("config",))
def sample(
    params: Params,
    config: ModelConfig,
    state: DecodeState,
    n_tokens: jax.Array,
    key: jax.Array,
    temperature: jax.Array,
    top_k: jax.Array | None = None,
) -> jax.Array:
    """rank_BS: its first n are what is drawn after each prompt, one token after the other; S is the cache's length.

    How many are asked for is no part of the program, which is the same for all numbers that the cache has room for.
    """

    def step(i: jax.Array, drawn: tuple[DecodeState, jax.Array]) -> tuple[DecodeState, jax.Array]:
        state, rank_BS = drawn
        allowed_BR = state.logp_BR if top_k is None else _mask_all_but_top(state.logp_BR, top_k)
        rank_B = jax.random.categorical(jax.random.fold_in(key, i), allowed_BR / temperature)
        return decode_step(params, config, state, rank_B), rank_BS.at[:, i].set(rank_B)

    rank_BS = jnp.zeros(state.cache.k_BSNK.shape[1:3], jnp.int32)
    return jax.lax.fori_loop(0, n_tokens, step, (state, rank_BS))[1]


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
    check_sampling(config, n_tokens, temperature, top_k, seed)
    check_prompt(config, prompt_T, n_tokens)
    rank_1T = np.zeros((1, _round_up(len(prompt_T))), np.int32)
    rank_1T[0, : len(prompt_T)] = to_ranks(config, prompt_T)
    state = prefill(
        params,
        config,
        key_at(seed, Stream.SAMPLE, 0)[None],
        rank_1T,
        np.array([len(prompt_T)], np.int32),
        n_ranks=config.vocab_size,  # whatever may be drawn has a rank
        max_new_tokens=_round_up(n_tokens),
    )
    key, k = key_at(seed, Stream.SAMPLE, 1), None if top_k is None else jnp.int32(top_k)
    rank_1S = sample(params, config, state, jnp.int32(n_tokens), key, jnp.float32(temperature), k)
    return symbols_by_rank(config, prompt_T, seed)[np.asarray(rank_1S)[0, :n_tokens]]
