"""Named runs: `lexinvariant train NAME`. Each one's note says what it is for, on what, and what to expect."""

from dataclasses import dataclass, replace

from lexinvariant.config import (
    DataConfig,
    LexiconConfig,
    ModelConfig,
    OptimizerConfig,
    RunConfig,
    TrainConfig,
)
from lexinvariant.errors import UserError, suggestion


@dataclass(frozen=True)
class Preset:
    """A configuration and what to know of it."""

    config: TrainConfig
    note: str


# What makes a lexinvariant model learn fast, beside the paper's recipe: a learned table that is permuted (a share of
# it at first, then all), keys that know the symbol before them, sharper attention at the start, the exact readout
# for unseen symbols, seen ones scored by their occurrences too, and a head that is taught to decipher.
_FAST_LEARNING = ModelConfig(
    lexicon=LexiconConfig(kind="annealed"),
    readout="seen",
    recall_width=128,
    smeared_keys=True,
    qk_scale_init=8.0,
    decipher_head=True,
)

_TINY = TrainConfig(
    model=replace(
        _FAST_LEARNING,
        vocab_size=12,
        context=96,
        n_layers=2,
        width=64,
        n_heads=4,
        head_dim=16,
        hidden=256,
        recall_width=16,
        lexicon=LexiconConfig(kind="permuted"),
        decipher_head=False,
    ),
    optimizer=OptimizerConfig(name="adamw", rate=3e-3, schedule="linear", warmup_steps=20, clip_norm=1.0),
    data=DataConfig(path="markov12"),
    run=RunConfig(eval_every=100, save_every=100, eval_sequences=256),
    steps=300,
    batch_size=32,
    dtype="float32",
)

_CHAR_TINY = TrainConfig(
    model=replace(
        _FAST_LEARNING,
        context=128,
        n_layers=3,
        width=128,
        n_heads=4,
        head_dim=32,
        hidden=512,
        recall_width=64,
        decipher_hidden=128,
    ),
    optimizer=OptimizerConfig(name="adamw", rate=3e-3, schedule="linear", warmup_steps=20, clip_norm=1.0),
    run=RunConfig(eval_every=100, save_every=100, eval_sequences=64),
    steps=300,
    batch_size=16,
    dtype="float32",
)

_MUON = OptimizerConfig(
    name="muon",
    rate=4e-3,
    schedule="linear",
    final_rate_share=0.01,
    warmup_steps=100,
    weight_decay=0.05,
    clip_norm=1.0,
)

# On a small, closed language a model of this size learns to infer symbols within minutes (docs/training.md). The
# language is soon known, so the curriculum is short; and the head has most to teach.
_SUMS = replace(
    _CHAR_TINY,
    model=replace(_CHAR_TINY.model, lexicon=LexiconConfig(kind="annealed", anneal_share=0.15)),
    optimizer=replace(_MUON, rate=5e-3, warmup_steps=20),
    run=RunConfig(eval_every=200, save_every=200, eval_sequences=64),
    steps=1600,
    batch_size=8,
    decipher_weight=1.0,
)

_CHAR_SMALL = TrainConfig(
    # From as much text, many narrow layers learn more than few wide ones; a GPU reads it more slowly (docs/results.md).
    model=replace(
        _FAST_LEARNING,
        n_layers=32,
        width=256,
        n_heads=4,
        head_dim=64,
        hidden=1024,
        decipher_next=True,
        hindsight_layers=1,
        lexicon=LexiconConfig(kind="annealed", anneal_share=0.15, gaussian_share=0.05),
    ),
    optimizer=replace(_MUON, rate=5e-3),
    run=RunConfig(eval_every=2000, save_every=2000, log_every=20),
    steps=18_000,
)

# A deciphering head of 32,000 symbols costs as much as the layers, so it learns from one position in four. Layers of
# hindsight would name a point or two more, and cost prediction and reasoning more than that (docs/notebook.md).
_TOKENS_SMALL = replace(
    _CHAR_SMALL,
    model=replace(
        _CHAR_SMALL.model,
        vocab_size=32_000,
        n_layers=14,
        width=384,
        n_heads=6,
        hidden=1280,
        hindsight_layers=0,
        lexicon=LexiconConfig(kind="annealed", anneal_share=0.2),
    ),
    run=RunConfig(eval_every=1600, eval_sequences=128, save_every=1600, log_every=50),
    steps=8000,
    batch_size=32,
    decipher_every=4,
)

# Sizes and schedules are those that standard models of such sizes are trained with; nobody has yet trained these.
_TOKENS_1B = replace(
    _TOKENS_SMALL,
    model=replace(
        _TOKENS_SMALL.model,
        context=2048,
        n_layers=20,
        width=2048,
        n_heads=16,
        head_dim=128,
        hidden=8192,
        decipher_hidden=1024,
    ),
    optimizer=OptimizerConfig(name="adamw", rate=3e-4, warmup_steps=2000, weight_decay=0.1, clip_norm=1.0),
    run=RunConfig(eval_every=1000, eval_sequences=256, save_every=500, log_every=10),
    steps=40_000,
    batch_size=256,
    decipher_every=16,
)
_TOKENS_7B = replace(
    _TOKENS_1B,
    model=replace(_TOKENS_1B.model, n_layers=33, width=4096, n_heads=32, hidden=16_384),
    steps=134_000,
    batch_size=512,
)

_JUDGE = TrainConfig(
    model=ModelConfig(
        context=256,
        n_layers=4,
        width=384,
        n_heads=6,
        head_dim=64,
        hidden=1536,
        lexicon=LexiconConfig(kind="learned"),
        smeared_keys=True,
        qk_scale_init=8.0,
    ),
    optimizer=_MUON,
    run=RunConfig(eval_every=2000, save_every=2000, log_every=20),
    steps=24_000,
    batch_size=128,
)

# Few steps at a low rate: what the weights know is kept. The model's settings are those of the weights (--init).
_FINETUNE = replace(
    _CHAR_SMALL,
    model=replace(_CHAR_SMALL.model, lexicon=replace(_CHAR_SMALL.model.lexicon, kind="permuted")),
    optimizer=OptimizerConfig(name="adamw", rate=5e-4, schedule="linear", warmup_steps=10, clip_norm=1.0),
    run=RunConfig(eval_every=30, save_every=30, eval_sequences=32, log_every=5),
    init="bundled",
    steps=60,
    batch_size=8,
    dtype="float32",
)

_PAPER_CHAR = TrainConfig(run=RunConfig(eval_every=5000, save_every=2500, log_every=20))

# The paper's size with the fast-learning recipe. The largest singular value of Muon's updates grows with the root of
# the width, so the rate of `tokens-small` is divided by as much as that grows. Nobody has trained it yet.
_PAPER_FAST = replace(
    _CHAR_SMALL,
    model=replace(
        _CHAR_SMALL.model,
        n_layers=_PAPER_CHAR.model.n_layers,
        width=_PAPER_CHAR.model.width,
        n_heads=_PAPER_CHAR.model.n_heads,
        head_dim=_PAPER_CHAR.model.head_dim,
        hidden=_PAPER_CHAR.model.hidden,
    ),
    optimizer=replace(_MUON, rate=3e-3),
    steps=16_000,
)

PRESETS = {
    "tiny": Preset(
        _TINY,
        "lexinvariant, 0.1M parameters, on the built-in 12-symbol language: about a minute on 2 CPU cores",
    ),
    "char-tiny": Preset(
        _CHAR_TINY,
        "characters, 0.6M parameters, for trying things out on a CPU: about two minutes on 2 cores",
    ),
    "sums": Preset(
        _SUMS,
        "characters, 0.6M parameters, for sums in words (data prepare sums:8000): about five minutes on 2 cores",
    ),
    "char-small": Preset(
        _CHAR_SMALL,
        "characters, 26M parameters, the fast-learning recipe: 12 minutes on an H200, 23 if it trains the twin too",
    ),
    "finetune": Preset(
        _FINETUNE,
        "continues from the weights given with --init, or the bundled model's: about seven minutes on 2 cores",
    ),
    "tokens-small": Preset(
        _TOKENS_SMALL,
        "32,000 tokens of a tokenizer, 22M parameters without its tables: about 3 minutes on an H200",
    ),
    "tokens-1b": Preset(
        _TOKENS_1B,
        "32,000 tokens, 1.1B parameters, 21B tokens of text: see `lexinvariant plan tokens-1b --mesh 8x8`",
    ),
    "tokens-7b": Preset(
        _TOKENS_7B,
        "32,000 tokens, 6.8B parameters, 141B tokens of text: see `lexinvariant plan tokens-7b --mesh 32x8`",
    ),
    "judge": Preset(
        _JUDGE,
        "a standard model of lower-case letters, 7M parameters, to judge decipherments: about 3 minutes on an H200",
    ),
    "paper-char": Preset(
        _PAPER_CHAR,
        "the paper's model of characters, 151M parameters, 8.2B tokens: about 5 hours on an H200",
    ),
    "paper-fast": Preset(
        _PAPER_FAST,
        "the paper's size, the fast-learning recipe, 0.5B tokens: an estimated 25 minutes on an H200, not trained yet",
    ),
    "paper-32k": Preset(
        replace(_PAPER_CHAR, model=replace(_PAPER_CHAR.model, vocab_size=32_128)),
        "the paper's model with T5's vocabulary; prepare the data with --vocab t5-base",
    ),
}


def preset(name: str) -> TrainConfig:
    """The configuration of a named run, to be changed or trained as it is."""
    if name == "reader":
        raise UserError("The preset 'reader' is called 'judge' now: give that name.")
    if name.startswith("-"):
        raise UserError(
            f"{name} stands where a preset belongs: give one first, such as char-tiny (or --init MODEL)."
        )
    if name not in PRESETS:
        raise UserError(f"There is no preset {name!r}: {suggestion(name, PRESETS)}")
    return PRESETS[name].config


def as_standard(config: TrainConfig) -> TrainConfig:
    """The standard LM beside a lexinvariant one: the same but for its lexicon, its readout and its head. A lexicon that
    only regularises training is kept, since it makes a standard LM."""
    kept = config.model.lexicon
    lexicon = kept if kept.is_regulariser else replace(kept, kind="learned")
    return replace(config, model=replace(config.model, lexicon=lexicon, readout="full", decipher_head=False))
