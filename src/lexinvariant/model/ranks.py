"""Symbols by the order in which they come: to a lexinvariant model the k-th distinct symbol of a text is rank k.

A standard LM knows symbols by name: its ranks are the symbols themselves.
"""

import numpy as np

from lexinvariant.checks import check_seed, finite_number, whole_number
from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.padding import MAX_TOKENS

LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-30, 1e30
"""Log-probabilities that are divided by one of these are still finite in float32, and not all alike."""


def to_ranks(config: ModelConfig, tok_T: np.ndarray) -> np.ndarray:
    """The rank of each token of a text."""
    if not config.lexicon.is_lexinvariant:
        return tok_T
    _, first, which_T = np.unique(tok_T, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which_T]


def symbols_by_rank(config: ModelConfig, tok_T: np.ndarray, seed: int | None = None) -> np.ndarray:
    """The symbol that each rank stands for after a text; ranks that it has not used stand for the other symbols, in
    their own order or, with a seed, in a random one.
    """
    symbol_V = np.arange(config.vocab_size)
    if not config.lexicon.is_lexinvariant:
        return symbol_V
    used, first = np.unique(tok_T, return_index=True)
    unused = np.setdiff1d(symbol_V, used)
    if seed is not None:
        from lexinvariant.rng import (
            Stream,  # not at the top: it loads jax, which numbering symbols does not need
        )

        unused = np.random.default_rng([seed % (1 << 64), int(Stream.SAMPLE)]).permutation(unused)
    return np.concatenate([used[np.argsort(first)], unused]).astype(np.int64)


def check_prompt(config: ModelConfig, prompt_T: np.ndarray, n_tokens: int) -> None:
    if len(prompt_T) + n_tokens > MAX_TOKENS:  # attention over far more takes all memory there is
        raise UserError(
            f"A prompt of {len(prompt_T)} tokens and {n_tokens} more are too many, the most is {MAX_TOKENS} together: "
            "shorten the prompt or ask for fewer."
        )
    if len(prompt_T) and not 0 <= prompt_T.min() <= prompt_T.max() < config.vocab_size:
        raise UserError(
            f"The prompt has a token outside 0..{config.vocab_size - 1}, the model's vocabulary: give another."
        )


def check_sampling(
    config: ModelConfig, n_tokens: int, temperature: float, top_k: int | None, seed: int
) -> None:
    whole_number(n_tokens, "n_tokens", least=1)
    if not LEAST_TEMPERATURE <= finite_number(temperature, "temperature") <= MOST_TEMPERATURE:
        raise UserError(
            f"temperature is {temperature}: give a number from {LEAST_TEMPERATURE:g} to {MOST_TEMPERATURE:g}, or "
            "top_k=1 for the likeliest symbol each time."
        )
    if top_k is not None and whole_number(top_k, "top_k", least=1) > config.vocab_size:
        raise UserError(
            f"top_k is {top_k}: give at most {config.vocab_size}, the number of the model's symbols."
        )
    check_seed(seed)


def n_ranks(config: ModelConfig, length: int) -> int:
    """With the `seen` readout a lexinvariant model needs a rank for each position at most."""
    only_seen = config.readout == "seen" and config.lexicon.is_lexinvariant
    return min(config.vocab_size, length) if only_seen else config.vocab_size
