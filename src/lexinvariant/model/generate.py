"""Sampling a text after a prompt, under one lexicon that is drawn at the start and stays."""

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.model.attention import MASKED
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.continuation import DecodeState, decode_step, prefill
from lexinvariant.model.params import Params
from lexinvariant.model.ranks import check_prompt, check_sampling, symbols_by_rank, to_ranks
from lexinvariant.rng import Stream, key_at


def _round_up(n: int) -> int:
    """Prompts and continuations are lengthened a little: few shapes to compile."""
    return -(-n // 64) * 64


def _mask_all_but_top(logp_BR: jax.Array, top_k: int) -> jax.Array:
    kth_B1 = jax.lax.top_k(logp_BR, top_k)[0][:, -1:]
    return jnp.where(logp_BR >= kth_B1, logp_BR, MASKED)


@jit_fast_compile(static_argnames=("config", "n_tokens", "top_k"))
def sample(
    params: Params,
    config: ModelConfig,
    state: DecodeState,
    n_tokens: int,
    key: jax.Array,
    temperature: jax.Array,
    top_k: int | None = None,
) -> jax.Array:
    """rank_BN: what is drawn after each prompt, one token after the other."""

    def step(state: DecodeState, i: jax.Array) -> tuple[DecodeState, jax.Array]:
        allowed_BR = state.logp_BR if top_k is None else _mask_all_but_top(state.logp_BR, top_k)
        rank_B = jax.random.categorical(jax.random.fold_in(key, i), allowed_BR / temperature)
        return decode_step(params, config, state, rank_B), rank_B

    return jax.lax.scan(step, state, jnp.arange(n_tokens))[1].T


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
    n_sampled = _round_up(n_tokens)
    rank_1T = np.zeros((1, _round_up(len(prompt_T))), np.int32)
    rank_1T[0, : len(prompt_T)] = to_ranks(config, prompt_T)
    state = prefill(
        params,
        config,
        key_at(seed, Stream.SAMPLE, 0)[None],
        rank_1T,
        np.array([len(prompt_T)], np.int32),
        n_ranks=config.vocab_size,  # whatever may be drawn has a rank
        max_new_tokens=n_sampled,
    )
    key = key_at(seed, Stream.SAMPLE, 1)
    rank_1N = sample(params, config, state, n_sampled, key, jnp.float32(temperature), top_k)
    return symbols_by_rank(config, prompt_T, seed)[np.asarray(rank_1N)[0, :n_tokens]]
