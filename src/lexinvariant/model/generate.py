"""Sampling a text after a prompt, under one lexicon that is drawn at the start and stays."""

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.continuation import (
    State,
    check_prompt,
    ranks_of,
    read_one,
    read_prompts,
    symbols_by_row,
)
from lexinvariant.model.params import Params
from lexinvariant.model.readout import IMPOSSIBLE
from lexinvariant.rng import Stream, key_at


def _rounded(n: int) -> int:
    """Prompts and requests are lengthened a little: few shapes to compile."""
    return -(-n // 64) * 64


def _only_top(logp_BR: jax.Array, top_k: int) -> jax.Array:
    kth_B1 = jax.lax.top_k(logp_BR, top_k)[0][:, -1:]
    return jnp.where(logp_BR >= kth_B1, logp_BR, IMPOSSIBLE)


@jit_fast_compile(static_argnames=("config", "n_tokens", "top_k"))
def sample(
    params: Params,
    config: ModelConfig,
    state: State,
    n_tokens: int,
    key: jax.Array,
    temperature: jax.Array,
    top_k: int | None = None,
) -> jax.Array:
    """rank_BN: what is drawn after each prompt, one token after the other."""

    def one(state: State, i: jax.Array) -> tuple[State, jax.Array]:
        wanted_BR = state.logp_BR if top_k is None else _only_top(state.logp_BR, top_k)
        rank_B = jax.random.categorical(jax.random.fold_in(key, i), wanted_BR / temperature)
        return read_one(params, config, state, rank_B), rank_B

    return jax.lax.scan(one, state, jnp.arange(n_tokens))[1].T


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
    check_prompt(config, prompt_T)
    room = _rounded(n_tokens)
    rank_1T = np.zeros((1, _rounded(len(prompt_T))), np.int32)
    rank_1T[0, : len(prompt_T)] = ranks_of(config, prompt_T)
    state = read_prompts(
        params,
        config,
        key_at(seed, Stream.SAMPLE, 0)[None],
        np.arange(config.vocab_size)[None],  # whatever may be drawn has a rank
        rank_1T,
        np.array([len(prompt_T)], np.int32),
        room=room,
    )
    key = key_at(seed, Stream.SAMPLE, 1)
    rank_1N = sample(params, config, state, room, key, jnp.float32(temperature), top_k)
    return symbols_by_row(config, prompt_T, seed)[np.asarray(rank_1N)[0, :n_tokens]]
