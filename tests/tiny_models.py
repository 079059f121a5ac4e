"""Models that were never trained, small enough to compile in a moment: what many tests are about to measure."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.api import Model
from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model.params import Params, is_spec, specs
from lexinvariant.model.weights import save_model
from lexinvariant.text import Vocab

# A shape alone: each test adds its own context, vocabulary, lexicon and readout.
TINY = ModelConfig(n_layers=1, width=16, n_heads=2, head_dim=8, hidden=32)


def random_params(config: ModelConfig, scale: float = 1.0) -> Params:
    """Random everywhere: the usual start has zeros, which hide what depends on them, and takes a compiler."""
    rng = np.random.default_rng(0)
    return jax.tree.map(
        lambda spec: jnp.asarray(scale * rng.normal(size=spec.shape), jnp.float32),
        specs(config),
        is_leaf=is_spec,
    )


def random_model(
    vocab: Vocab, kind: str, readout: str, *, context: int, decipher_head: bool = False
) -> Model:
    """A tiny model of these symbols with a lexicon of this kind."""
    shape = replace(TINY, vocab_size=vocab.size, context=context, decipher_head=decipher_head)
    config = replace(shape, lexicon=LexiconConfig(kind=kind), readout=readout)
    return Model(config, random_params(config), vocab)


def save_random_model(
    folder: Path,
    vocab: Vocab,
    kind: str,
    readout: str,
    *,
    context: int,
    notes: dict[str, Any] | None = None,
    decipher_head: bool = False,
) -> str:
    """The same on disk, and where: what experiments take for their --model."""
    model = random_model(vocab, kind, readout, context=context, decipher_head=decipher_head)
    save_model(folder, model.config, model.params, vocab, notes=notes)
    return str(folder)
