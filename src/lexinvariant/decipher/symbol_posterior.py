"""What a lexinvariant model's deciphering head makes of a ciphertext: log-probabilities of every symbol's meaning.

What the head says at the occurrences of one symbol is averaged; a text that is too long for the context is read in
windows, which vote.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.params import Params
from lexinvariant.model.scoring import bucket
from lexinvariant.model.transformer import forward
from lexinvariant.model.weights import Weights
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.text import HuggingFaceVocab

MAX_WINDOWS = 4

Floats = NDArray[np.float64]


@partial(jax.jit, static_argnames=("config",))
def _logp_at_positions(
    params: Params, config: ModelConfig, tok_BT: jax.Array, n_read: int, draw: int
) -> jax.Array:
    """logp_BTV of what each symbol is: in hindsight of the first `n_read` symbols, where the model has that."""
    key_B = keys_for_rows(key_at(0, Stream.EVAL, 0), jnp.broadcast_to(draw, tok_BT.shape[:1]))
    h_BTD = forward(params, config, tok_BT, key_B).h_BTD
    read_BT = jnp.broadcast_to(jnp.arange(tok_BT.shape[1]) < n_read, tok_BT.shape)
    return jax.nn.log_softmax(decipher_logits(params, config, h_BTD, read_BT), axis=2)


def check_head(model: Weights) -> None:
    if (
        model.params.decipher is None
        or isinstance(model.vocab, HuggingFaceVocab)
        or not model.config.lexicon.is_lexinvariant
    ):
        raise UserError(
            "This model cannot name symbols: give a lexinvariant model of characters that has a deciphering head "
            "(--model.decipher-head)."
        )


def n_copies(config: ModelConfig) -> int:
    """A causal model has seen nothing when it names the first symbols of a text, so it reads the text twice, and what
    it says the second time counts."""
    return 1 if config.has_hindsight else 2


def longest_window(config: ModelConfig) -> int:
    return config.context // n_copies(config)


def windows(n: int, longest: int, most: int | None = MAX_WINDOWS) -> list[slice]:
    """Evenly spread windows that cover a text, as far as `most` of them can."""
    if n <= longest:
        return [slice(0, n)]
    needed = -(-n // longest)
    starts = np.linspace(0, n - longest, min(most or needed, needed)).round().astype(int)
    return [slice(start, start + longest) for start in starts.tolist()]


def read_windows(
    model: Weights, symbol_T: NDArray[np.integer], draws: int = 1, most: int | None = MAX_WINDOWS
) -> Iterator[tuple[NDArray[np.integer], jax.Array]]:
    """The head's word on a text, window by window and draw by draw: symbols, and logp_NV of what each of them is."""
    copies, longest = n_copies(model.config), longest_window(model.config)
    length = copies * min(longest, bucket(min(len(symbol_T), longest)))
    for window in windows(len(symbol_T), longest, most):
        part = symbol_T[window]
        row = np.resize(part, length)  # repeated, to fill a power of two
        counted = slice(len(part)) if copies == 1 else slice(len(part), None)
        tok_BT = jnp.asarray(row[None].astype(np.int32))
        for draw in range(draws):
            logp_BTV = _logp_at_positions(model.params, model.config, tok_BT, len(part), draw)
            yield row[counted], logp_BTV[0, counted]


def symbol_posterior(
    model: Weights, symbol_T: NDArray[np.integer], n_symbols: int, characters: str, draws: int = 1
) -> Floats:
    """logp_SC: which character each symbol is, as a mean over its occurrences and over draws of the lexicon.

    A character that the model does not know is as likely as any.
    """
    check_head(model)
    total_SV, n_S = np.zeros((n_symbols, model.config.vocab_size)), np.zeros(n_symbols)
    for symbol_N, logp_NV in read_windows(model, symbol_T, draws):
        np.add.at(total_SV, symbol_N, np.asarray(logp_NV, np.float64))
        n_S += np.bincount(symbol_N, minlength=n_symbols)
    unknown = -np.log(model.config.vocab_size)
    mean_SV = np.where(n_S[:, None] > 0, total_SV / np.maximum(n_S, 1)[:, None], unknown)
    mean_SV = np.column_stack([mean_SV, np.full(n_symbols, unknown)])
    token_of = {
        character: token for token, character in enumerate(model.vocab.decode(range(model.vocab.size)))
    }
    return mean_SV[:, [token_of.get(character, -1) for character in characters]]
