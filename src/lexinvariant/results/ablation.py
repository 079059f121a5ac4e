"""What each part of a recipe is worth: variants side by side, and how they learned."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lexinvariant.results.figure import Axis, Figure, Line, Panel, Reference
from lexinvariant.results.perplexity import NEW_MATTERS
from lexinvariant.results.prose import Prose
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Section, Table, make_table, slug
from lexinvariant.results.training import LearningCurve


@dataclass(frozen=True)
class HeldOutMetrics:
    """Losses in nats per token, and shares of symbols named rightly: over the context, and at its end (`tail`)."""

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

    @property
    def new_matters(self) -> bool:
        return (self.held_out.tail_new_share or 0.0) >= NEW_MATTERS

    @property
    def loss(self) -> float:
        """What variants are compared by: where many tokens are new, which cost all of them alike, the others."""
        seen = self.held_out.tail_seen_loss
        return seen if self.new_matters and seen is not None else self.held_out.tail_loss

    @property
    def summary(self) -> str:
        held_out = self.held_out
        told = f"{held_out.tail_loss:.3f} nats at the end of the context"
        told += f" (perplexity {math.exp(held_out.tail_loss):.2f})"
        if self.new_matters:
            told += f", {self.loss:.3f} on tokens seen before"
        if held_out.tail_deciphered is not None:
            told += f", {held_out.tail_deciphered:.1%} named"
        return ", ".join([told, *(f"{task} {share:.1%}" for task, share in self.tasks.items())])


ROWS = (TrainedVariant,)
words = Prose("ablation")


def section(rows: Rows) -> Section | None:
    """The newest run of every variant and seed; variants may have been run apart."""
    newest = rows.latest_of_each(TrainedVariant, lambda row: (row.group, row.name, row.origin.seed))
    if not newest:
        return None
    groups = {
        group: sorted(_with_seeds(variants), key=lambda row: row.loss)
        for group, variants in group_by(newest, lambda row: row.group).items()
    }
    figures = [_dots(group, variants) for group, variants in groups.items()]
    return Section("Ablations", words.paragraphs(), figures, [_table(*group) for group in groups.items()])


def _with_seeds(rows: list[TrainedVariant]) -> list[TrainedVariant]:
    """With the seed in the name, where there are several."""
    if len({row.origin.seed for row in rows}) == 1:
        return rows
    return [replace(row, name=f"{row.name}, seed {row.origin.seed}") for row in rows]


def _recipe_losses(rows: list[TrainedVariant]) -> dict[int, float]:
    """By seed, of those with nothing changed."""
    return {row.origin.seed: row.loss for row in rows if not row.settings}


def _dots(group: str, rows: list[TrainedVariant]) -> Figure:
    losses, recipes = [row.loss for row in rows], list(_recipe_losses(rows).values())
    margin = 0.12 * (losses[-1] - losses[0]) or 0.1
    limits = losses[0] - margin, losses[-1] + margin
    seen = " on tokens seen before" if rows[0].new_matters else ""
    x = Axis(f"loss{seen} at the end of the context (nats per token)", limits=limits)
    dots = Line("variants", losses, range(len(rows)), line=False, labels=[f"{loss:.3f}" for loss in losses])
    references = [Reference("the recipe", at=loss, axis="x") for loss in recipes]
    panel = Panel(group, [*references, dots], x, Axis(names=[row.name for row in rows]))
    size = (8.0, 1.2 + 0.32 * len(rows))
    return Figure(f"ablation-{slug(group)}", words("dots"), [panel], size=size, legend="none")


def _table(group: str, rows: list[TrainedVariant]) -> Table:
    recipes = _recipe_losses(rows)

    def difference(row: TrainedVariant) -> float | None:
        recipe = recipes.get(row.origin.seed)
        return None if recipe is None else row.loss - recipe

    def settings(row: TrainedVariant) -> str:
        return ", ".join(f"{name} {value}" for name, value in row.settings.items()) or "none"

    def accuracy(task: str) -> Column[TrainedVariant]:
        return Column(task, lambda row: row.tasks.get(task), ".1%")

    seen: list[Column[TrainedVariant]] = [
        Column("New tokens there", "held_out.tail_new_share", ".1%"),
        Column("Loss there, seen before", "held_out.tail_seen_loss", ".3f"),
    ]
    hindsight: list[Column[TrainedVariant]] = [
        Column("In hindsight", "held_out.tail_hindsight_deciphered", ".1%")
    ]
    columns = [
        Column("Variant", "name"),
        Column("Settings changed", settings),
        Column("Parameters", lambda row: f"{row.curve.parameters / 1e6:.1f}M"),
        Column("Loss", "held_out.loss", ".3f"),
        Column("Loss, end of context", "held_out.tail_loss", ".3f"),
        *(seen if any(row.new_matters for row in rows) else []),
        Column("Against the recipe", difference, "+.3f"),
        Column("Perplexity there", lambda row: math.exp(row.held_out.tail_loss), ".2f"),
        Column("Deciphered there", "held_out.tail_deciphered", ".1%"),
        *(hindsight if any(row.held_out.tail_hindsight_deciphered is not None for row in rows) else []),
        *(accuracy(task) for task in sorted({task for row in rows for task in row.tasks})),
    ]
    return make_table(f"Ablations: {group} (held-out text, nats per token)", rows, columns)
