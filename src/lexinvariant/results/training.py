"""Learning curves against compute."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lexinvariant.results.figure import Axis, Figure, Line, Panel
from lexinvariant.results.prose import Prose
from lexinvariant.results.rows import Row, Rows
from lexinvariant.results.section import Column, Section, Table, make_table, short, slug


@dataclass(frozen=True)
class LearningCurve:
    """What a run measured on held-out text, and what it had spent by then."""

    parameters: int
    lexicon: str
    optimizer: str
    seed: int
    flop_per_step: float
    step: list[int]
    loss: list[float]
    tail_loss: list[float]
    """At the end of the context."""
    tail_deciphered: list[float | None]

    @property
    def flop(self) -> list[float]:
        return [step * self.flop_per_step for step in self.step]

    @property
    def perplexity(self) -> list[float]:
        """At the end of the context."""
        return [math.exp(loss) for loss in self.tail_loss]


@dataclass(frozen=True, kw_only=True)
class Run(Row, experiment="training", kind="run"):
    """A training run."""

    group: str
    """What is compared: runs of one group share a figure."""
    name: str
    curve: LearningCurve


ROWS = (Run,)
words = Prose("training")


def section(rows: Rows) -> Section | None:
    """Every group of runs, in the order in which they were compared."""
    groups = rows.latest_groups(Run, lambda row: row.group)
    if not groups:
        return None
    figures = [_by_compute(group, runs) for group, runs in groups.items()]
    return Section("Training", words.paragraphs(), figures, [_table(*group) for group in groups.items()])


def _by_compute(group: str, runs: list[Run]) -> Figure:
    lines = [Line(run.name, run.curve.flop, run.curve.perplexity, every_marker=True) for run in runs]
    x, y = Axis("training compute (FLOP)", "log"), Axis("perplexity at the end of the context", "log")
    return Figure(f"training-{slug(group)}", words("compute"), [Panel(group, lines, x, y)])


def _table(group: str, runs: list[Run]) -> Table:
    columns = [
        Column[Run]("Run", "name"),
        Column("Parameters", lambda run: f"{short(run.curve.parameters / 1e6)}M"),
        Column("Optimiser", "curve.optimizer"),
        Column("Steps", lambda run: run.curve.step[-1], ","),
        Column("FLOP", lambda run: run.curve.flop[-1], ".2g"),
        Column("Loss", lambda run: run.curve.loss[-1], ".3f"),
        Column("Loss, end of context", lambda run: run.curve.tail_loss[-1], ".3f"),
        Column("Perplexity there", lambda run: run.curve.perplexity[-1], ".2f"),
        Column("Deciphered there", lambda run: run.curve.tail_deciphered[-1], ".1%"),
    ]
    return make_table(f"Runs compared: {group} (held-out text, nats per token)", runs, columns)
