"""What a trained model says of a text: log p(x) token by token, all next-token distributions, final states."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.checks import seed_of_32_bits, whole_number
from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.embedding import embed
from lexinvariant.model.lexicon import draw_by_rank
from lexinvariant.model.padding import (
    CPU_TOKENS_PER_BATCH,
    TOKENS_PER_BATCH,
    batches_by_length,
    check_tokens,
    mixture,
    mixture_of_next,
    n_draws,
    padded,
)
from lexinvariant.model.params import Params
from lexinvariant.model.ranks import n_ranks, symbols_by_rank, to_ranks
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
    return np.uint32(seed_of_32_bits(seed))


def _tokens_per_batch() -> int:
    """A CPU takes as long for padding as for text, and a GPU as long for one short text as for many."""
    return CPU_TOKENS_PER_BATCH if jax.default_backend() == "cpu" else TOKENS_PER_BATCH


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
    for members, tok_BT in batches_by_length(config, tokens, _tokens_per_batch()):
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
    if whole_number(draw, "draw", least=0) >= 1 << 31:
        raise UserError(f"draw is {draw}: give a number of at most 31 bits.")
    h_1TD = _hidden_states(params, config, padded(tok_T), _seed_32(seed), draw)
    return np.array(h_1TD[0])[: len(tok_T)]  # jax's own memory can only be read


def _next_log_probs(
    params: Params,
    config: ModelConfig,
    rank_BT: jax.Array,
    seed: jax.Array,
    draw: jax.Array,
    n_ranks: int,
    dtype: str = "float32",
) -> jax.Array:
    """logp_BSR by ranks, after each of the first 0..T tokens (S = T + 1); every sequence under the same draw."""
    key_B = jnp.broadcast_to(key_at(seed, Stream.EVAL, 0, draw), rank_BT.shape[:1])
    lexicon, row_BR = draw_by_rank(config, params.embedding, key_B, rank_BT, n_ranks, jnp.dtype(dtype))
    h_BTD = trunk(params, config, embed(params.embedding, lexicon, jnp.dtype(dtype)))
    predictor_BSD = after_start(params, h_BTD)
    n_BTR = jnp.cumsum(jax.nn.one_hot(rank_BT, n_ranks, dtype=jnp.int32), axis=1)
    seen_BSR = jnp.pad(n_BTR > 0, ((0, 0), (1, 0), (0, 0)))
    recall_BSR = None
    if params.recall is not None:
        recall_BSR = recall_logits(params.recall, predictor_BSD, h_BTD, rank_BT, n_ranks)
    return next_log_probs(params, config, lexicon.table, row_BR, predictor_BSD, seen_BSR, recall_BSR)


_next_of_one = jit_fast_compile(static_argnames=("config", "n_ranks"))(_next_log_probs)


@jit_fast_compile(static_argnames=("config", "n_ranks", "dtype"))
def _next_with_draw(
    params: Params,
    config: ModelConfig,
    rank_BT: jax.Array,
    seed: jax.Array,
    draw: jax.Array,
    total_BTR: jax.Array | None,
    n_ranks: int,
    dtype: str,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(logp_BT, total_BTR, is_likeliest_BT): the tokens' own log-probabilities under one draw; the log of the sum over
    draws of the probability that the text so far goes on with each rank; and whether the token is the likeliest by it.
    """
    logp_BTR = _next_log_probs(params, config, rank_BT, seed, draw, n_ranks, dtype)[:, :-1]
    logp_BT = _at(logp_BTR, rank_BT)
    joint_BTR = logp_BTR + (jnp.cumsum(logp_BT, axis=1) - logp_BT)[:, :, None]
    total_BTR = joint_BTR if total_BTR is None else jnp.logaddexp(total_BTR, joint_BTR)
    return logp_BT, total_BTR, _at(total_BTR, rank_BT) >= jnp.max(total_BTR, axis=2)


def _at(value_BTR: jax.Array, rank_BT: jax.Array) -> jax.Array:
    return jnp.take_along_axis(value_BTR, rank_BT[:, :, None], axis=2)[:, :, 0]


def score_and_compare(
    params: Params,
    config: ModelConfig,
    tokens: Sequence[np.ndarray],
    *,
    draws: int = 1,
    seed: int = 0,
    dtype: str = "float32",
    tokens_per_batch: int = TOKENS_PER_BATCH,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each token sequence, its score and whether each token was the likeliest to come.

    To a lexinvariant model all symbols that have not occurred are alike, so that no new one is the likeliest.
    """
    draws = n_draws(config, draws)
    ranks = [to_ranks(config, tok_T) for tok_T in tokens]
    found: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0), np.empty(0, bool))] * len(tokens)
    for members, rank_BT in batches_by_length(config, ranks, tokens_per_batch):
        size = n_ranks(config, rank_BT.shape[1])
        logp, total_BTR = [], None
        for k in range(draws):
            logp_BT, total_BTR, likeliest_BT = _next_with_draw(
                params, config, rank_BT, _seed_32(seed), k, total_BTR, size, dtype
            )
            logp.append(np.asarray(logp_BT))
        for row, i in enumerate(members):
            n = len(ranks[i])
            likeliest_T = np.asarray(likeliest_BT)[row, :n]
            if config.lexicon.is_lexinvariant:
                new_T = np.diff(np.maximum.accumulate(ranks[i]), prepend=-1) > 0
                likeliest_T = likeliest_T & ~new_T
            found[i] = mixture(np.stack(logp)[:, row, :n]), likeliest_T
    return found


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
            np.asarray(
                _next_of_one(params, config, padded(rank_T), _seed_32(seed), k, config.vocab_size), np.float64
            )[0, : n + 1]
            for k in range(draws)
        ]
    )
    logp_SV = np.empty(logp_KSV.shape[1:])
    logp_SV[:, symbols_by_rank(config, tok_T)] = mixture_of_next(logp_KSV, rank_T)
    return logp_SV
