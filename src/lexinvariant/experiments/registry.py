"""All experiments, in the order of the report. One line here and two modules make an experiment:

experiments/NAME.py   `Options`, a frozen dataclass that the command line is made from, and `run(options, recorder)`
results/NAME.py       its kinds of row (`ROWS`) and `section(rows)`, what of them the report shows
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from lexinvariant.errors import UserError, suggestion
from lexinvariant.experiments.options import check_counts, flag
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.files import check_can_fill
from lexinvariant.progress import Log
from lexinvariant.results.rows import Provenance, Row, Rows, read_rows
from lexinvariant.results.section import Section
from lexinvariant.text import CharVocab, HuggingFaceVocab, Vocab

if TYPE_CHECKING:
    from lexinvariant.experiments.evaluated_model import EvaluatedModel


@dataclass(frozen=True)
class Pair:
    """What `lexinvariant reproduce` runs the experiments on; options of these names are set from it."""

    model: str
    data: str
    out: Path
    baseline: str | None = None
    quick: bool = False
    """Sizes for minutes on a CPU, in place of the paper's."""
    runs: tuple[Path, ...] = ()
    """Training runs whose curves are to be shown."""
    data_text: str | None = None
    """Simple English for the semantic experiment."""
    seed: int = 0
    batch_size: int = 16
    dtype: Literal["float32", "bfloat16"] = "float32"

    @cached_property
    def evaluated(self) -> EvaluatedModel:
        from lexinvariant.experiments.evaluated_model import (
            open_model,  # loads jax, which a report does not need
        )

        return open_model(self.model)

    @property
    def vocab(self) -> Vocab:
        return self.evaluated.model.vocab


@dataclass(frozen=True)
class Experiment:
    """An experiment: its name, a line about it, and its part in `lexinvariant reproduce`."""

    name: str
    about: str
    suits: Callable[[Pair], bool] = lambda pair: False
    """Whether `reproduce` runs it on this pair."""
    full: Mapping[str, Any] = field(default_factory=dict)
    """Options that `reproduce` sets, where the defaults are smaller than the paper's sizes."""
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Options that `reproduce --quick` sets."""
    not_from_pair: tuple[str, ...] = ()
    """Options that have the name of something in `Pair` and mean something else."""

    def _module(self, room: str) -> ModuleType:
        # Imported when it is needed: experiments load jax, and reports and --help must not.
        return importlib.import_module(f"lexinvariant.{room}.{self.name.replace('-', '_')}")

    @property
    def Options(self) -> type[Any]:
        return self._module("experiments").Options

    @property
    def row_kinds(self) -> tuple[type[Row], ...]:
        return self._module("results").ROWS

    def run(self, options: Any, command: str = "", log: Log = lambda line: None) -> list[Row]:
        """Measure, append the rows to NAME.jsonl in the output folder, and return them."""
        check_counts(options)
        check_can_fill(options.out)
        provenance = Provenance(
            self.name,
            seed=getattr(options, "seed", 0),
            command=command or self.command(options),
            draws=getattr(options, "draws", None),
        )
        with Recorder(self.rows_in(options.out), provenance, log) as recorder:
            self._module("experiments").run(options, recorder)
        return recorder.rows

    def rows_in(self, folder: Path) -> Path:
        return folder / f"{self.name}.jsonl"

    def section(self, rows: Rows) -> Section | None:
        return self._module("results").section(rows)

    def options_for(self, pair: Pair) -> Any:
        """The options with which `reproduce` runs it."""
        known = {f.name for f in fields(self.Options)} - set(self.not_from_pair)
        given = {name: getattr(pair, name) for name in known if hasattr(pair, name)}
        return self.Options(**given | dict(self.quick if pair.quick else self.full))

    def command(self, options: Any) -> str:
        """The command line that runs it with these options."""
        words = ["lexinvariant", "experiment", self.name]
        default = {f.name: f.default for f in fields(options)}
        for name, value in asdict(options).items():
            if value == default[name] or value is None:
                continue
            if name == "runs":  # a positional
                words += map(str, value)
            elif isinstance(value, bool):
                words.append(flag(name) if value else flag(f"no_{name}"))
            elif isinstance(value, tuple):
                words += [flag(name), *map(str, value)]
            else:
                words += [flag(name), str(value)]
        return shlex.join(words)


def _always(pair: Pair) -> bool:
    return True


def _characters_with_head(pair: Pair) -> bool:
    return isinstance(pair.vocab, CharVocab) and pair.evaluated.model.config.decipher_head


def _tokens_with_head(pair: Pair) -> bool:
    return isinstance(pair.vocab, HuggingFaceVocab) and pair.evaluated.model.config.decipher_head


def _text(pair: Pair) -> bool:
    return isinstance(pair.vocab, CharVocab | HuggingFaceVocab)


def _tokens_or_time(pair: Pair) -> bool:
    """The paper's setting is tokens; spelling answers out takes its time."""
    return _text(pair) and not (pair.quick and isinstance(pair.vocab, CharVocab))


EXPERIMENTS = (
    Experiment(
        "training", "learning curves of training runs, at equal compute", suits=lambda pair: bool(pair.runs)
    ),
    Experiment("ablation", "what each part of a recipe is worth, in short runs"),
    Experiment(
        "convergence",
        "perplexity by context length, lexinvariant beside standard",
        suits=_always,
        quick={"sequences": 20},
    ),
    Experiment(
        "cipher-key",
        "the key of a substitution cipher, read from a model's states",
        suits=_characters_with_head,
        full={"namer": "both"},
        quick={"sequences": 20},
    ),
    Experiment("decipher", "cipher solvers side by side: errors, seconds, calibration"),
    Experiment(
        "uncertainty",
        "what a model thinks one symbol of a text stands for, at each occurrence",
        suits=_characters_with_head,
        quick={"draws": 2},
    ),
    Experiment(
        "naming",
        "what a model thinks the tokens of a text stand for, and how much a text reveals",
        suits=_tokens_with_head,
        quick={"sequences": 20},
    ),
    Experiment(
        "synthetic",
        "LookUp and Permutation: reasoning over symbols that mean nothing",
        suits=_text,
        full={"sweep": True},
        quick={"examples": 50, "draws": 4, "demonstrations": 4},
    ),
    Experiment(
        "semantic",
        "which word of a passage is a drink? multiple choice over words known from context alone",
        suits=_tokens_or_time,
        quick={"prompts": 40},
    ),
    Experiment("bigbench", "BIG-bench tasks: which improve and which are harmed from one model to another"),
    Experiment(
        "regulariser",
        "standard models trained with random lexicons: loss, symbol tasks, robustness, rare words",
    ),
    Experiment(
        "theory",
        "convergence of the lexinvariant mixture, bounds on it, and the limit for English",
        suits=_always,
        quick={"quick": True},
        not_from_pair=("model", "quick"),
    ),
)


def find_experiment(name: str) -> Experiment:
    by_name = {experiment.name: experiment for experiment in EXPERIMENTS}
    if name not in by_name:
        raise UserError(f"There is no experiment called {name!r}: {suggestion(name, by_name)}")
    return by_name[name]


def read_all_rows(folder: Path) -> Rows:
    """The rows of every experiment in a folder."""
    return read_rows(folder, (kind for experiment in EXPERIMENTS for kind in experiment.row_kinds))
