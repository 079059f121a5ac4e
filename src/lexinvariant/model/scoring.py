"""log p(x), as an array of one number a token."""

from collections import defaultdict
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.compiling import jit_fast_compile
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from lexinvariant.rng import Stream, key_at

SHORTEST, LONGEST = 16, 16384
TOKENS_PER_BATCH = 512  # short texts share a batch, and one text alone wastes little


@jit_fast_compile(static_argnames=("config", "dtype"))
def _log_likelihood(
    params: Params, config: ModelConfig, tok_BT: jax.Array, seed: jax.Array, draw: jax.Array, dtype: str
) -> jax.Array:
    """Every sequence under the same draw, so that a text's numbers do not depend on its neighbours."""
    key_B = jnp.broadcast_to(key_at(seed, Stream.EVAL, 0, draw), tok_BT.shape[:1])
    return forward(params, config, tok_BT, key_B, dtype=jnp.dtype(dtype)).logp_BT


def mixture(logp_KT: np.ndarray) -> np.ndarray:
    """Per-token log-probabilities of the average, over K draws, of the probability of the whole sequence.

    log p(x_t | x_<t) = log mean_k p_k(x_1..x_t) - log mean_k p_k(x_1..x_(t-1)): each draw's vote is weighted
    by how well it predicted so far (Bayes), and the array sums to the log of the average.
    """
    upto_KT = np.cumsum(logp_KT, axis=1, dtype=np.float64)
    average_T = np.logaddexp.reduce(upto_KT, axis=0) - np.log(len(logp_KT))
    return np.diff(average_T, prepend=0.0)


def bucket(length: int) -> int:
    """Texts are padded to powers of two: few shapes to compile, and a text's shape depends on it alone."""
    return max(SHORTEST, 1 << (length - 1).bit_length())


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
    if draws < 1:
        raise UserError(f"Scoring needs at least one draw of the lexicon, not {draws}: give draws=1 or more.")
    if config.lexicon.at_evaluation.kind == "learned":
        draws = 1  # nothing is drawn
    seed_32 = np.uint32(seed & 0xFFFFFFFF)  # all that a key takes of a seed, in a type that is compiled once
    by_length: dict[int, list[int]] = defaultdict(list)
    for i, tok_T in enumerate(tokens):
        if len(tok_T) == 0:
            raise UserError(f"Text {i} is empty, so it has no tokens to score: remove it.")
        if len(tok_T) > LONGEST:
            raise UserError(
                f"Text {i} has {len(tok_T)} tokens and the most is {LONGEST}: cut it into pieces."
            )
        if tok_T.min() < 0 or tok_T.max() >= config.vocab_size:
            raise UserError(
                f"Text {i} has a token outside 0..{config.vocab_size - 1}, the model's vocabulary."
            )
        by_length[bucket(len(tok_T))].append(i)

    scores: list[np.ndarray] = [np.empty(0)] * len(tokens)
    for length, members in by_length.items():
        rows = max(1, TOKENS_PER_BATCH // length)  # always full batches: one shape a length
        for start in range(0, len(members), rows):
            part = members[start : start + rows]
            tok_BT = np.zeros((rows, length), np.int32)
            for row, i in enumerate(part):
                tok_BT[row, : len(tokens[i])] = tokens[i]
            logp_KBT = np.stack(
                [np.asarray(_log_likelihood(params, config, tok_BT, seed_32, k, dtype)) for k in range(draws)]
            )
            for row, i in enumerate(part):
                scores[i] = mixture(logp_KBT[:, row, : len(tokens[i])])
    return scores
