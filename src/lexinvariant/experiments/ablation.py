"""What each part of a recipe is worth: short runs of a preset, each with one thing changed.

Every variant reads as many tokens as the recipe itself, so batch and steps trade against each other. Runs are kept
beside the rows, and the same command continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from lexinvariant.config import TrainConfig
from lexinvariant.errors import UserError, suggestion
from lexinvariant.experiments import synthetic
from lexinvariant.experiments.evaluated_model import EvaluatedModel, open_model
from lexinvariant.experiments.options import AtLeast, Count, CountOrZero
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.symbol_tasks import alphabet_of
from lexinvariant.experiments.training import curve_of
from lexinvariant.presets import preset
from lexinvariant.results.ablation import HeldOutMetrics, TrainedVariant
from lexinvariant.results.synthetic import TaskResult
from lexinvariant.text import CharVocab, HuggingFaceVocab, Vocab, open_data
from lexinvariant.training.evaluate import evaluate
from lexinvariant.training.loop import train

Settings = Mapping[str, Any]
RECIPE = "the recipe"


@dataclass(frozen=True)
class Variant:
    """One thing changed: what it tells, and which settings it takes."""

    question: str
    change: Settings | Callable[[TrainConfig], Settings]

    def settings(self, recipe: TrainConfig) -> Settings:
        return self.change(recipe) if callable(self.change) else self.change


def _paper(config: TrainConfig) -> Settings:
    """The paper's choices at this size; its warm-up is the same share of training."""
    return {
        "model.lexicon.kind": "gaussian",
        "model.readout": "full",
        "model.smeared_keys": False,
        "model.qk_scale_init": 1.0,
        "model.decipher_head": False,
        "optimizer.name": "adafactor",
        "optimizer.rate": 0.01,
        "optimizer.schedule": "cosine",
        "optimizer.final_rate_share": 0.1,
        "optimizer.warmup_steps": max(1, config.steps // 250),
        "optimizer.weight_decay": 0.0,
        "optimizer.clip_norm": 0.0,
    }


def _annealing(config: TrainConfig, factor: float) -> Settings:
    """Over another share of the steps, at most all; nothing where nothing is annealed."""
    lexicon = config.model.lexicon
    return (
        {"model.lexicon.anneal_share": min(1.0, factor * lexicon.anneal_share)}
        if lexicon.kind == "annealed"
        else {}
    )


def _more_hindsight(config: TrainConfig) -> Settings:
    """Of a recipe that has a head; others have no use for it."""
    return {"model.hindsight_layers": config.model.hindsight_layers + 2} if config.model.decipher_head else {}


def _hindsight_apart(config: TrainConfig) -> Settings:
    return {"hindsight_apart": True} if config.model.has_hindsight else {}


def _fewer_named(config: TrainConfig) -> Settings:
    """Of a recipe that has a head; a vocabulary of 32,000 makes every position that it names dear."""
    return {"decipher_every": 4 * config.decipher_every} if config.model.decipher_head else {}


def _reshaped(config: TrainConfig, width_share: float) -> Settings:
    """Another width at about the same number of parameters, which go with depth times width squared. The hidden width
    stays a multiple of 8: a GPU is slow at matrices whose rows do not begin at 16 bytes.
    """
    heads = max(2, 2 * round(config.model.n_heads * width_share / 2))
    share = heads / config.model.n_heads
    return {
        "model.width": heads * config.model.head_dim,
        "model.n_heads": heads,
        "model.hidden": max(8, 8 * round(config.model.hidden * share / 8)),
        "model.n_layers": max(1, round(config.model.n_layers / share**2)),
    }


VARIANTS = {
    RECIPE: Variant("nothing changed", {}),
    "no annealing": Variant("every symbol permuted from the first step", {"model.lexicon.kind": "permuted"}),
    "longer annealing": Variant("over twice as many steps", lambda c: _annealing(c, 2.0)),
    "shorter annealing": Variant("over half as many steps", lambda c: _annealing(c, 0.5)),
    "fresh Gaussians": Variant(
        "the paper's lexicon in place of a permuted table", {"model.lexicon.kind": "gaussian"}
    ),
    "rotary positions": Variant(
        "queries and keys turned by their position in place of a learned bias", {"model.positions": "rotary"}
    ),
    "no smeared keys": Variant("a key knows its own symbol alone", {"model.smeared_keys": False}),
    "no deciphering head": Variant("no second loss that teaches to decipher", {"model.decipher_head": False}),
    "no hindsight": Variant(
        "a layer less: the head knows only what came before", {"model.hindsight_layers": 0}
    ),
    "more hindsight": Variant("two layers more by which the head knows what came later", _more_hindsight),
    "hindsight apart": Variant("the trunk learns nothing from what is named in hindsight", _hindsight_apart),
    "next symbol named": Variant(
        "the head also names the symbol to come",
        lambda c: {"model.decipher_next": True} if c.model.decipher_head else {},
    ),
    "next symbol not named": Variant("the head names what was read alone", {"model.decipher_next": False}),
    "every symbol named": Variant("the head learns from every position", {"decipher_every": 1}),
    "fewer symbols named": Variant("the head learns from a quarter of the positions", _fewer_named),
    "one lexicon": Variant(
        "permuted tables alone, never fresh Gaussians", {"model.lexicon.gaussian_share": 0.0}
    ),
    "counts": Variant("of a symbol's occurrences, added to its row", {"model.count_occurrences": True}),
    "no recall": Variant(
        "symbols scored by their drawn rows alone, not by their occurrences", {"model.recall_width": 0}
    ),
    "full readout": Variant(
        "a logit for every symbol, seen or not, and no recall", {"model.readout": "full"}
    ),
    "attention even at first": Variant(
        "queries and keys start at a scale of 1", {"model.qk_scale_init": 1.0}
    ),
    "AdamW": Variant(
        "at 1e-3, without weight decay",
        {"optimizer.name": "adamw", "optimizer.rate": 1e-3, "optimizer.weight_decay": 0.0},
    ),
    "twice the rate": Variant("a bolder optimiser", lambda c: {"optimizer.rate": 2 * c.optimizer.rate}),
    "half the batch": Variant(
        "twice the steps", lambda c: {"batch_size": c.batch_size // 2, "steps": 2 * c.steps}
    ),
    "twice the batch": Variant(
        "half the steps", lambda c: {"batch_size": 2 * c.batch_size, "steps": c.steps // 2}
    ),
    "twice the context": Variant(
        "half the batch", lambda c: {"model.context": 2 * c.model.context, "batch_size": c.batch_size // 2}
    ),
    "deeper": Variant("three quarters of the width", lambda c: _reshaped(c, 0.75)),
    "wider": Variant("one and a half times the width", lambda c: _reshaped(c, 1.5)),
    "the paper's recipe": Variant("all of the paper's choices, at this size", _paper),
}


@dataclass(frozen=True)
class Options:
    """Train short variants of a preset, each with one thing changed, and compare them on held-out text.

    Several commands, each with its own --variants, may write to the same --out at once. On one GPU give each its share
    of the memory: XLA_PYTHON_CLIENT_MEM_FRACTION=0.4 for two.

    example: lexinvariant experiment ablation --preset char-tiny --data data/stdlib --steps 200 --variants "the recipe"
    "no smeared keys"
    """

    data: str = ""
    """A folder written by `lexinvariant data prepare`; not needed for presets that come with data."""
    preset: str = "char-small"
    """The preset to vary."""
    steps: Annotated[int, AtLeast(2)] = 2000
    """Steps of every run; the schedules shrink with them."""
    variants: tuple[str, ...] = ()
    """Names of the variants to run. Default: all that change anything in the preset."""
    out: Path = Path("runs/report")
    """Folder for the rows (ablation.jsonl) and the runs (ablation/PRESET-STEPS/NAME, or PRESET-STEPS-seed-N for seeds
    other than 0)."""
    sequences: Count = 1000
    """Held-out contexts to compare the trained models on."""
    examples: CountOrZero = 500
    """Examples each of LookUp and Permutation; 0 skips both."""
    batch_size: Count = 64
    """Sequences per batch when comparing; results do not depend on it."""
    seed: int = 0
    """Seed of training and of comparing; runs of several seeds are shown side by side."""
    draws: ClassVar[int] = 1
    """Lexicons that a sequence is scored under."""


def run(options: Options, recorder: Recorder) -> None:
    """Train what is not trained yet; a row a variant."""
    for name in options.variants:
        if name not in VARIANTS:
            raise UserError(f"There is no variant {name!r}: {suggestion(name, VARIANTS)}")
    recipe = _recipe(options)
    fitting = variants_of(recipe)
    for name in options.variants:
        if name not in fitting:
            raise UserError(f"{name!r} changes nothing of {options.preset}: leave it out.")
    names = options.variants or fitting
    data = open_data(recipe.data.path)
    if options.examples and not _can_write_tasks(data.vocab):
        recorder.log(f"{data.vocab.name} cannot write LookUp and Permutation: they are left out.")
    recorder.measured_on(data_hash=data.fingerprint)
    for number, name in enumerate(names, start=1):
        recorder.log(f"[{number}/{len(names)}] {name}: {VARIANTS[name].question}")
        row = recorder.write(_measure(options, recipe, name, recorder))
        recorder.log(f"    {row.summary}")


def variants_of(recipe: TrainConfig) -> tuple[str, ...]:
    """Those that change something of it, and the recipe itself."""
    return tuple(
        name
        for name in VARIANTS
        if name == RECIPE or recipe.changed(VARIANTS[name].settings(recipe)) != recipe
    )


def _recipe(options: Options) -> TrainConfig:
    base = preset(options.preset)
    path = options.data or base.data.path
    if not path:
        raise UserError(f"{options.preset} needs data: give --data with a prepared folder.")
    every = max(1, options.steps // 4)
    return base.changed(
        {
            "data.path": path,
            "steps": options.steps,
            "seed": options.seed,
            "optimizer.warmup_steps": min(base.optimizer.warmup_steps, options.steps // 2),
            "run.eval_every": every,
            "run.save_every": every,
            "run.keep_last": 1,
            "run.keep_best": 0,
            "run.tensorboard": False,
        }
    )


def _measure(options: Options, recipe: TrainConfig, name: str, recorder: Recorder) -> TrainedVariant:
    settings = VARIANTS[name].settings(recipe)
    config = recipe.changed(settings)
    seed = f"-seed-{options.seed}" if options.seed else ""
    runs = options.out / "ablation" / f"{options.preset}-{options.steps}{seed}"
    folder = runs / name.replace(" ", "-").replace("'", "")
    outcome = train(config, folder, name)
    if not outcome.finished:
        raise UserError(
            f"Training the variant {name!r} was stopped at step {outcome.step}: give the same command to continue."
        )
    evaluated = open_model(str(outcome.model_folder))
    # All on the recipe's own context, whatever they were trained on.
    held_out = evaluate(
        evaluated.model.params,
        evaluated.model.config,
        open_data(config.data.path).split("valid", recipe.model.context),
        sequences=options.sequences,
        batch_size=options.batch_size,
        seed=options.seed,
        dtype=config.dtype,
    )
    curve = curve_of(folder)  # says so where no text reaches the end of the context
    return TrainedVariant(
        preset=options.preset,
        steps=options.steps,
        name=name,
        question=VARIANTS[name].question,
        settings=dict(settings),
        sequences=options.sequences,
        held_out=HeldOutMetrics(**held_out.metrics),
        tasks=_tasks(options, evaluated, config.dtype, recorder),
        examples=options.examples,
        curve=curve,
    )


def _can_write_tasks(vocab: Vocab) -> bool:
    return isinstance(vocab, CharVocab | HuggingFaceVocab)


def _tasks(
    options: Options, evaluated: EvaluatedModel, dtype: Literal["float32", "bfloat16"], recorder: Recorder
) -> dict[str, float]:
    """Accuracy in the paper's two tasks, where the vocabulary can write them."""
    if not options.examples or not _can_write_tasks(evaluated.model.vocab):
        return {}
    settings = synthetic.Options(
        batch_size=options.batch_size, seed=options.seed, dtype=dtype, draws=options.draws
    )
    alphabet = alphabet_of(evaluated.model.vocab)
    results = [
        synthetic.measure(TaskResult, settings, evaluated, task, alphabet, options.examples, recorder)
        for task in settings.tasks()
    ]
    return {result.task: result.accuracy.value for result in results}
