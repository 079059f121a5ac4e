"""A standard language model as the judge of readings: -log p of each, given that a text begins with a word."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.api import Model, load
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from lexinvariant.model.weights import WEIGHTS
from lexinvariant.rng import Stream, key_at
from lexinvariant.text import CharVocab

READER = WEIGHTS / "reader"
ROWS = 16  # readings at a time: one shape for each length, so few programs to compile

Floats = NDArray[np.float64]


@partial(jax.jit, static_argnames=("config",))
def _log_likelihood(params: Params, config: ModelConfig, tok_BT: jax.Array) -> jax.Array:
    key_B = jnp.broadcast_to(key_at(0, Stream.EVAL), tok_BT.shape[:1])
    return forward(params, config, tok_BT, key_B).logp_BT


class Judge:
    """Scores readings with a standard model of characters."""

    def __init__(self, model: Model) -> None:
        if model.config.lexicon.is_lexinvariant or not isinstance(model.vocab, CharVocab):
            raise UserError(
                "A judge of readings is a standard model of characters: give one trained with --standard."
            )
        self.model = model

    @property
    def longest(self) -> int:
        return self.model.config.context - 1

    def nats(self, texts: Sequence[str]) -> Floats:
        """Cost of each text (all of one length), of its first `longest` characters."""
        length = min(len(texts[0]), self.longest)
        padded = min(self.model.config.context, 8 + 32 * -(-max(0, length + 1 - 8) // 32))
        tok_NT = np.full((-(-len(texts) // ROWS) * ROWS, padded), ord(" "), np.int32)
        for n, text in enumerate(texts):
            tok_NT[n, 1 : length + 1] = np.frombuffer(text[:length].encode("ascii"), np.uint8)
        logp = [
            np.asarray(
                _log_likelihood(
                    self.model.params, self.model.config, jnp.asarray(tok_NT[start : start + ROWS])
                )
            )
            for start in range(0, len(texts), ROWS)
        ]
        logp_NT = np.concatenate(logp)[: len(texts), 1 : length + 1].astype(np.float64)
        return -logp_NT.sum(axis=1)


@cache
def bundled_judge(folder: Path = READER) -> Judge | None:
    """The reader that comes with the package, read once; None where it was left out."""
    return Judge(load(folder)) if (folder / "config.json").exists() else None
