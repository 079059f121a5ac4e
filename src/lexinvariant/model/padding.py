"""Token sequences in batches of few shapes, and the average over draws: what scoring is but for the network itself."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from lexinvariant.checks import whole_number
from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError

SHORTEST_BUCKET, MAX_TOKENS = 16, 16384
TOKENS_PER_BATCH = 512  # short texts share a batch
CPU_TOKENS_PER_BATCH = 128  # fewer, so that one text alone wastes little; many take hardly longer


def check_tokens(config: ModelConfig, tok_T: np.ndarray, name: str) -> None:
    if len(tok_T) == 0:
        raise UserError(f"{name} is empty: give one that has symbols of the model in it.")
    if len(tok_T) > MAX_TOKENS:
        raise UserError(f"{name} has {len(tok_T)} tokens and the most is {MAX_TOKENS}: cut it into pieces.")
    if tok_T.min() < 0 or tok_T.max() >= config.vocab_size:
        raise UserError(f"{name} has a token outside 0..{config.vocab_size - 1}, the model's vocabulary.")


def n_draws(config: ModelConfig, draws: int) -> int:
    if whole_number(draws, "draws") < 1:
        raise UserError(f"Scoring needs at least one draw of the lexicon, not {draws}: give draws=1 or more.")
    return draws if config.lexicon.is_random else 1


def bucket(length: int) -> int:
    """Texts are padded to powers of two: few shapes to compile, and a text's shape depends on it alone."""
    return max(SHORTEST_BUCKET, 1 << (length - 1).bit_length())


def padded(tok_T: np.ndarray) -> np.ndarray:
    tok_1T = np.zeros((1, bucket(len(tok_T))), np.int32)
    tok_1T[0, : len(tok_T)] = tok_T
    return tok_1T


def batches_by_length(
    config: ModelConfig, tokens: Sequence[np.ndarray], tokens_per_batch: int = TOKENS_PER_BATCH
) -> Iterator[tuple[list[int], np.ndarray]]:
    """(members, tok_BT): which sequences, and they padded with zeros, in full batches: one shape a length."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for i, tok_T in enumerate(tokens):
        check_tokens(config, tok_T, f"Text {i}")
        by_length[bucket(len(tok_T))].append(i)
    for length, members in by_length.items():
        rows = max(1, tokens_per_batch // length)
        for start in range(0, len(members), rows):
            part = members[start : start + rows]
            tok_BT = np.zeros((rows, length), np.int32)
            for row, i in enumerate(part):
                tok_BT[row, : len(tokens[i])] = tokens[i]
            yield part, tok_BT


def mixture(logp_KT: np.ndarray) -> np.ndarray:
    """Per-token log-probabilities of the average, over K draws, of the probability of the whole sequence.

    log p(x_t | x_<t) = log mean_k p_k(x_1..x_t) - log mean_k p_k(x_1..x_(t-1)): each draw's vote is weighted
    by how well it predicted so far (Bayes), and the array sums to the log of the average.
    """
    upto_KT = np.cumsum(logp_KT, axis=1, dtype=np.float64)
    average_T = np.logaddexp.reduce(upto_KT, axis=0) - np.log(len(logp_KT))
    return np.diff(average_T, prepend=0.0)


def mixture_of_next(logp_KSV: np.ndarray, tok_T: np.ndarray) -> np.ndarray:
    """logp_SV (S = T + 1): the same of whole distributions, of which row t is over what follows the first t tokens."""
    upto_KT = np.cumsum(logp_KSV[:, np.arange(len(tok_T)), tok_T], axis=1)
    weight_KS = np.pad(upto_KT, ((0, 0), (1, 0)))
    weight_KS = weight_KS - np.logaddexp.reduce(weight_KS, axis=0)
    return np.logaddexp.reduce(logp_KSV + weight_KS[:, :, None], axis=0)
