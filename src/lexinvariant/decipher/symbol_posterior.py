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

from lexinvariant.checks import whole_number
from lexinvariant.config import ModelConfig
from lexinvariant.decipher.votes import (
    MAX_WINDOWS,
    Floats,
    Window,
    check_head,
    mean_by_symbol,
    read_in_windows,
)
from lexinvariant.interruption import stop_if_given_up
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from lexinvariant.model.weights import Weights
from lexinvariant.rng import Stream, key_at, keys_for_rows


@partial(jax.jit, static_argnames=("config",))
def _logp_at_positions(
    params: Params, config: ModelConfig, tok_T: jax.Array, n_read: int, draw: int
) -> jax.Array:
    """logp_TV of what each symbol is: in hindsight of the first `n_read` symbols, where the model has that."""
    tok_BT = tok_T[None]
    key_B = keys_for_rows(key_at(0, Stream.EVAL, 0), jnp.broadcast_to(draw, tok_BT.shape[:1]))
    h_BTD = forward(params, config, tok_BT, key_B).h_BTD
    read_BT = jnp.broadcast_to(jnp.arange(tok_BT.shape[1]) < n_read, tok_BT.shape)
    return jax.nn.log_softmax(decipher_logits(params, config, h_BTD, read_BT)[0], axis=1)


def read_windows(
    model: Weights, symbol_T: NDArray[np.integer], draws: int = 1, most: int | None = MAX_WINDOWS
) -> Iterator[tuple[Window, jax.Array]]:
    """The head's word on a text, window by window and draw by draw: logp_TV of what each symbol of the window is.

    All of them, also where it does not count: cutting an array on the device compiles a program for every length.
    """
    for window in read_in_windows(model.config, symbol_T, most):
        tok_T = jnp.asarray(window.symbol_T)
        for draw in range(draws):
            stop_if_given_up()
            yield window, _logp_at_positions(model.params, model.config, tok_T, window.n_read, draw)


def symbol_posterior(
    model: Weights, symbol_T: NDArray[np.integer], n_symbols: int, characters: str, draws: int = 1
) -> Floats:
    """logp_SC: which character each symbol is, as a mean over its occurrences and over draws of the lexicon."""
    check_head(model)
    whole_number(draws, "draws", least=1)
    votes = (
        (window.symbol_T[window.counted], np.asarray(logp_TV)[window.counted])
        for window, logp_TV in read_windows(model, symbol_T, draws)
    )
    return mean_by_symbol(model, votes, n_symbols, characters)
