"""What a trained model says of a text: log p(x) token by token, all next-token distributions, final states."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.embedding import embed
from lexinvariant.model.lexicon import draw_by_rank
from lexinvariant.model.padding import (
    batches_by_length,
    check_tokens,
    mixture,
    mixture_of_next,
    n_draws,
    padded,
)
from lexinvariant.model.params import Params
from lexinvariant.model.ranks import symbols_by_rank, to_ranks
from lexinvariant.model.readout import after_start, next_log_probs
from lexinvariant.model.recall import recall_logits
from lexinvariant.model.transformer import forward, trunk
from lexinvariant.rng import Stream, key_at


@jit_fast_compile(static_argnames=("config", "dtype"))
def _log_likelihood(
    params: Params, config: ModelConfig, tok_BT: jax.Array, seed: jax.Array, draw: jax.Array, dtype: str
) -> jax.Array:
    """Every sequence under the same draw, so that a text's numbers do not depend on its neighbours."""
    key_B = jnp.broadcast_to(key_at(seed, Stream.EVAL, 0, draw), tok_BT.shape[:1])
    return forward(params, config, tok_BT, key_B, dtype=jnp.dtype(dtype)).logp_BT


def _seed_32(seed: int) -> np.uint32:
    """All that a key takes of a seed, in a type that is compiled once."""
    return np.uint32(seed & 0xFFFFFFFF)


def score_tokens(
    params: Params,
    config: ModelConfig,
    tokens: Sequence[np.ndarray],
    *,
    draws: int = 1,
    seed: int = 0,
    dtype: str = "float32",
) -> list[np.ndarray]:
    """For each token sequence the array of log p(x_t | x_<t) in nats, of the mixture over `draws` lexicons.

    Draw k is the same for all texts: equal texts, and texts that a permutation of symbols makes equal, get
    equal numbers, wherever they stand in the list.
    """
    draws = n_draws(config, draws)
    scores: list[np.ndarray] = [np.empty(0)] * len(tokens)
    for members, tok_BT in batches_by_length(config, tokens):
        logp_KBT = np.stack(
            [
                np.asarray(_log_likelihood(params, config, tok_BT, _seed_32(seed), k, dtype))
                for k in range(draws)
            ]
        )
        for row, i in enumerate(members):
            scores[i] = mixture(logp_KBT[:, row, : len(tokens[i])])
    return scores


@jit_fast_compile(static_argnames=("config",))
def _hidden_states(
    params: Params, config: ModelConfig, tok_1T: jax.Array, seed: jax.Array, draw: jax.Array
) -> jax.Array:
    return forward(params, config, tok_1T, key_at(seed, Stream.EVAL, 0, draw)[None]).h_BTD


def hidden_states(
    params: Params, config: ModelConfig, tok_T: np.ndarray, *, seed: int = 0, draw: int = 0
) -> np.ndarray:
    """h_TD: the final state at every token, having read it, under the lexicon with which scoring has its draw k."""
    check_tokens(config, tok_T, "The text")
    h_1TD = _hidden_states(params, config, padded(tok_T), _seed_32(seed), draw)
    return np.asarray(h_1TD)[0, : len(tok_T)]


@jit_fast_compile(static_argnames=("config",))
def _next_log_probs(
    params: Params, config: ModelConfig, rank_1T: jax.Array, seed: jax.Array, draw: jax.Array
) -> jax.Array:
    """logp_1SV by ranks, after each of the first 0..T tokens (S = T + 1)."""
    key_1, size = key_at(seed, Stream.EVAL, 0, draw)[None], config.vocab_size
    lexicon, row_1V = draw_by_rank(config, params.embedding, key_1, rank_1T, size, jnp.dtype("float32"))
    h_1TD = trunk(params, config, embed(params.embedding, lexicon, jnp.dtype("float32")))
    predictor_1SD = after_start(params, h_1TD)
    n_1TV = jnp.cumsum(jax.nn.one_hot(rank_1T, size, dtype=jnp.int32), axis=1)
    seen_1SV = jnp.pad(n_1TV > 0, ((0, 0), (1, 0), (0, 0)))
    recall_1SV = None
    if params.recall is not None:
        recall_1SV = recall_logits(params.recall, predictor_1SD, h_1TD, rank_1T, size)
    return next_log_probs(params, config, lexicon.table, row_1V, predictor_1SD, seen_1SV, recall_1SV)


def next_token_log_probs(
    params: Params, config: ModelConfig, tok_T: np.ndarray, *, draws: int = 1, seed: int = 0
) -> np.ndarray:
    """logp_SV (S = T + 1): row t is over the token that follows the first t, of the mixture over `draws` lexicons.

    At the tokens of the text it is their score. To a lexinvariant model tokens that have not occurred are alike: the
    readout `seen` gives them equal shares, `full` under one draw a random row each.
    """
    check_tokens(config, tok_T, "The text")
    draws = n_draws(config, draws)
    rank_T, n = to_ranks(config, tok_T), len(tok_T)
    logp_KSV = np.stack(
        [
            np.asarray(_next_log_probs(params, config, padded(rank_T), _seed_32(seed), k), np.float64)[
                0, : n + 1
            ]
            for k in range(draws)
        ]
    )
    logp_SV = np.empty(logp_KSV.shape[1:])
    logp_SV[:, symbols_by_rank(config, tok_T)] = mixture_of_next(logp_KSV, rank_T)
    return logp_SV
