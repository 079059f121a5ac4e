"""Named runs: `lexinvariant train NAME`. Each one's note says what it is for, on what, and what to expect."""

import difflib
from dataclasses import dataclass, replace

from lexinvariant.config import (
    DataConfig,
    LexiconConfig,
    ModelConfig,
    OptimizerConfig,
    RunConfig,
    TrainConfig,
)
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Preset:
    """A configuration and what to know of it."""

    config: TrainConfig
    note: str


def _tiny() -> TrainConfig:
    return TrainConfig(
        model=ModelConfig(
            vocab_size=12,
            context=96,
            n_layers=2,
            width=64,
            n_heads=4,
            head_dim=16,
            hidden=256,
            lexicon=LexiconConfig(kind="permuted"),
            readout="seen",
            smeared_keys=True,
        ),
        optimizer=OptimizerConfig(name="adamw", rate=3e-3, schedule="linear", warmup_steps=20, clip_norm=1.0),
        data=DataConfig(path="markov12"),
        run=RunConfig(eval_every=100, save_every=100, eval_sequences=64),
        steps=300,
        batch_size=32,
        dtype="float32",
    )


PAPER_CHAR = TrainConfig(run=RunConfig(eval_every=5000, save_every=2500))


PRESETS = {
    "tiny": Preset(_tiny(), "A lexinvariant LM of 0.1M parameters on the built-in 12-symbol language."),
    "paper-char": Preset(PAPER_CHAR, "The paper's lexinvariant LM."),
}


def preset(name: str) -> TrainConfig:
    if name not in PRESETS:
        close = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.0)
        raise UserError(f"There is no preset {name!r}: did you mean {close[0]!r}?")
    return PRESETS[name].config


def as_standard(config: TrainConfig) -> TrainConfig:
    """The standard LM beside a lexinvariant one: the same but for its lexicon, its readout and its head."""
    lexicon = replace(config.model.lexicon, kind="learned")
    return replace(config, model=replace(config.model, lexicon=lexicon, readout="full", decipher_head=False))
