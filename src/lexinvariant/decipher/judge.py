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
from lexinvariant.decipher import calibrate, search
from lexinvariant.decipher.ngram import SPACED
from lexinvariant.decipher.search import Found, Task
from lexinvariant.errors import UserError
from lexinvariant.model.api import Model, load
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from lexinvariant.model.weights import WEIGHTS
from lexinvariant.rng import Stream, key_at
from lexinvariant.text import CharVocab

READER = WEIGHTS / "reader"
ROWS = 16  # readings at a time: one shape for each length, so few programs to compile

JUDGED_TOKENS = 3500
"""Characters that the reader may read for one text: half a second on two cores."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


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


def judged(judge: Judge, task: Task, found: Found) -> Found:
    """The reader's cost and the n-gram's of the keys that matter, and of what is one swap away from the best."""
    row = task.pieces[0]
    fixed = np.where(row < 0, -1 - row, 0)
    letters = np.array(list(SPACED))
    share = calibrate.READER_SHARE

    def nats(key_NS: Ints) -> Floats:
        plain_NT = letters[np.where(row < 0, fixed, key_NS[:, np.maximum(row, 0)])]
        return judge.nats(["".join(plain_T) for plain_T in plain_NT])

    allowed = max(16, JUDGED_TOKENS // (len(row) + 8))
    asked = found.key_NS[: max(8, allowed // 2)]
    known: dict[bytes, tuple[Ints, float]] = {}
    while len(asked):
        cost_N = share * nats(asked) + (1 - share) * search.costs(task, asked)
        known |= {key_S.tobytes(): (key_S, cost) for key_S, cost in zip(asked, cost_N, strict=True)}
        if len(known) >= allowed:
            break
        # What the n-gram likes best of all that is one swap away from the two best so far.
        leaders = sorted(known.values(), key=lambda pair: pair[1])[:2]
        near = search.merged(task, [search.neighbours(task, key_S) for key_S, _ in leaders])
        asked = np.array(
            [key_S for key_S in near.key_NS if key_S.tobytes() not in known][: max(8, allowed // 4)]
        )
    ranked = sorted(known.values(), key=lambda pair: pair[1])
    return Found(np.stack([key_S for key_S, _ in ranked]), np.array([cost for _, cost in ranked]))
