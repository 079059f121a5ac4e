"""What each part of a recipe is worth: variants side by side, and how they learned."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lexinvariant.results.figure import Axis, Figure, Line, Panel, Reference
from lexinvariant.results.prose import Prose
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Section, Table, make_table, slug
from lexinvariant.results.training import LearningCurve


@dataclass(frozen=True)
class HeldOutMetrics:
    """Losses in nats a token, and shares of symbols named rightly: over the context, and at its end (`tail`)."""

    loss: float
    tail_loss: float
    decipher_loss: float | None = None
    tail_decipher_loss: float | None = None
    deciphered: float | None = None
    tail_deciphered: float | None = None
    hindsight_loss: float | None = None
    tail_hindsight_loss: float | None = None
    hindsight_deciphered: float | None = None
    tail_hindsight_deciphered: float | None = None
    decipher_next_loss: float | None = None
    tail_decipher_next_loss: float | None = None
    next_deciphered: float | None = None
    tail_next_deciphered: float | None = None
    seen_loss: float | None = None
    tail_seen_loss: float | None = None
    new_loss: float | None = None
    tail_new_loss: float | None = None
    new_share: float | None = None
    tail_new_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class TrainedVariant(Row, experiment="ablation", kind="variant"):
    """A short run of a recipe with one thing changed."""

    preset: str
    steps: int
    name: str
    question: str
    """What it tells."""
    settings: dict[str, str | int | float | bool]
    """Those that differ from the recipe's."""
    sequences: int
    held_out: HeldOutMetrics
    examples: int
    tasks: dict[str, float]
    """Accuracy in LookUp and Permutation, where the vocabulary can write them."""
    curve: LearningCurve

    @property
    def group(self) -> str:
        return f"{self.preset}, {self.steps:,} steps"


ROWS = (TrainedVariant,)
words = Prose("ablation")


def section(rows: Rows) -> Section | None:
    """The newest run of every variant; variants may have been run apart."""
    newest = rows.latest_of_each(TrainedVariant, lambda row: (row.group, row.name))
    if not newest:
        return None
    groups = group_by(newest, lambda row: row.group)
    for variants in groups.values():
        variants.sort(key=lambda row: row.held_out.tail_loss)
    figures = [_dots(group, variants) for group, variants in groups.items()]
    return Section("Ablations", words.paragraphs(), figures, [_table(*group) for group in groups.items()])


def _recipe_loss(rows: list[TrainedVariant]) -> float | None:
    """Of the one with nothing changed."""
    return next((row.held_out.tail_loss for row in rows if not row.settings), None)


def _dots(group: str, rows: list[TrainedVariant]) -> Figure:
    losses, recipe = [row.held_out.tail_loss for row in rows], _recipe_loss(rows)
    margin = 0.12 * (losses[-1] - losses[0]) or 0.1
    limits = losses[0] - margin, losses[-1] + margin
    x = Axis("loss at the end of the context (nats a token)", limits=limits)
    dots = Line("variants", losses, range(len(rows)), line=False, labels=[f"{loss:.3f}" for loss in losses])
    reference = [] if recipe is None else [Reference("the recipe", at=recipe, axis="x")]
    panel = Panel(group, [*reference, dots], x, Axis(names=[row.name for row in rows]))
    size = (8.0, 1.2 + 0.32 * len(rows))
    return Figure(f"ablation-{slug(group)}", words("dots"), [panel], size=size, legend="none")


def _table(group: str, rows: list[TrainedVariant]) -> Table:
    recipe = _recipe_loss(rows)

    def difference(row: TrainedVariant) -> float | None:
        return None if recipe is None else row.held_out.tail_loss - recipe

    def settings(row: TrainedVariant) -> str:
        return ", ".join(f"{name} {value}" for name, value in row.settings.items()) or "none"

    def accuracy(task: str) -> Column[TrainedVariant]:
        return Column(task, lambda row: row.tasks.get(task), ".1%")

    columns = [
        Column("Variant", "name"),
        Column("Settings changed", settings),
        Column("Parameters", lambda row: f"{row.curve.parameters / 1e6:.1f}M"),
        Column("Loss", "held_out.loss", ".3f"),
        Column("Loss, end of context", "held_out.tail_loss", ".3f"),
        Column("Against the recipe", difference, "+.3f"),
        Column("Perplexity there", lambda row: math.exp(row.held_out.tail_loss), ".2f"),
        Column("Deciphered there", "held_out.tail_deciphered", ".1%"),
        *(accuracy(task) for task in sorted({task for row in rows for task in row.tasks})),
    ]
    return make_table(f"Ablations: {group} (held-out text, nats a token)", rows, columns)
