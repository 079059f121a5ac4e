"""Convergence to a standard language model: the newest run of every corpus (label) and context."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.measured_model import ROLES, MeasuredModel
from lexinvariant.results.perplexity import AVERAGINGS, NEW_MATTERS, Averaging, Band, PartBand
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows, beside, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, present
from lexinvariant.text.frequency import advice, still_counting

CONTEXT = Axis("context length (symbols)")
PANELS_IN_A_ROW = 3
CHARACTERS = 128
"""Symbols of the vocabulary for which the paper gives perplexities."""
PAPER_END = {"lexinvariant": paper.PERPLEXITY, "standard": paper.STANDARD_PERPLEXITY}
PAPER_GAP_START, PAPER_GAP_END = f"{paper.GAP_START:.0f}", f"under {paper.GAP_END:.0f}"
PAPER_RATIO = paper.PERPLEXITY / paper.STANDARD_PERPLEXITY
FLOOR = "floor of lexinvariant models"
words = Prose("convergence")


@dataclass(frozen=True, kw_only=True)
class OnText(Row):
    """What all kinds of row have in common: what was measured on."""

    label: str
    """The corpus."""
    split: str
    sequences: int
    window: int
    context: int


@dataclass(frozen=True, kw_only=True)
class Measured(OnText):
    """Curves over the context."""

    curves: dict[Averaging, Band]

    @property
    def geometric(self) -> Band:
        return self.curves["geometric"]

    def start(self, averaging: Averaging = "geometric") -> float:
        return self.curves[averaging].mean[0]

    def end(self, averaging: Averaging = "geometric") -> float:
        return self.curves[averaging].mean[-1]

    def line(self, name: str) -> Line:
        band = self.geometric
        return Line(name, np.arange(len(band.mean)), band.mean, band.low, band.high)


@dataclass(frozen=True, kw_only=True)
class Curve(Measured, experiment="convergence", kind="curve"):
    """Perplexity by context length of one model."""

    model: MeasuredModel
    last_symbol_perplexity: float
    nats: list[float]
    """Mean loss at every position: means of logs can be taken in any order, so any other window can be drawn."""
    nats_deviation: list[float]
    counting_perplexity: float | None = None
    """Of a lexinvariant model: over the last window, that of one who only counts the symbols so far."""

    @property
    def still_counting(self) -> str | None:
        """What the model has not learned yet, in words; None where it has left the plateau that learning begins at."""
        if self.counting_perplexity is None:
            return None
        return still_counting(math.log(self.end()), math.log(self.counting_perplexity))


@dataclass(frozen=True, kw_only=True)
class Gap(Measured, experiment="convergence", kind="gap"):
    """(lexinvariant - standard) / standard by context length."""

    names: list[str]


@dataclass(frozen=True)
class PartLosses:
    """A model's loss in nats per token by context length, on tokens seen before in the context and on new ones."""

    model: MeasuredModel
    seen: PartBand
    new: PartBand


@dataclass(frozen=True, kw_only=True)
class SeenAndNew(OnText, experiment="convergence", kind="seen-and-new"):
    """New tokens by context length, and what they and the others cost; smoothed as the perplexity is."""

    new_share: list[float]
    floor: list[float]
    """The perplexity of a model to which new tokens are alike, and which knows everything else."""
    unseen_nats: list[float]
    """The log of the number of symbols that have not occurred: what a new token costs such a model at least."""
    losses: list[PartLosses]
    seen_difference: PartBand | None
    """Nats that a seen token costs more than with the standard model; its exponential is a ratio of perplexities."""

    @property
    def matters(self) -> bool:
        return self.new_share[-1] >= NEW_MATTERS

    @property
    def seen_ratio(self) -> float | None:
        return None if self.seen_difference is None else _exp(self.seen_difference.mean[-1])

    @property
    def about_seen(self) -> str:
        new = f"{self.new_share[-1]:.0%} are new, and no lexinvariant model can tell those apart"
        return new if self.seen_ratio is None else f"{self.seen_ratio:.2f} on tokens seen before; {new}"

    @property
    def summary(self) -> str:
        ratio = (
            ""
            if self.seen_ratio is None
            else f", where perplexity is {self.seen_ratio:.2f} times the standard model's"
        )
        seen = self.losses[0].seen.mean[-1]
        return (
            f"{self.new_share[-1]:.1%} of the last {self.window} tokens are new, so no lexinvariant model has a "
            f"perplexity below {self.floor[-1]:.2f} there; "
            + ("none were seen before" if seen is None else f"{seen:.3f} nats on those seen before{ratio}")
        )


def _exp(nats: float | None) -> float | None:
    return None if nats is None else math.exp(nats)


ROWS = (Curve, Gap, SeenAndNew)
OnTextT = TypeVar("OnTextT", bound=OnText)


def section(rows: Rows) -> Section | None:
    """Convergence to standard language models, where its rows are there."""
    curves = _told_apart(rows.latest_of_each(Curve, _corpus))
    if not curves:
        return None
    # A gap belongs to the curves beside it: a newer run without a baseline has none.
    gaps = beside(_told_apart(rows.latest_of_each(Gap, _corpus)), curves)
    parts = beside(_told_apart(rows.latest_of_each(SeenAndNew, _corpus)), curves)
    parts = [row for row in parts if row.matters]
    ours = [row for row in curves if row.model.role == "lexinvariant"]
    floor = {row.label: row.floor for row in parts}
    return Section(
        "Convergence to standard language models",
        words.paragraphs(
            draws=listed(row.origin.draws or 1 for row in curves),
            new_matters=bool(parts),
            stuck=[row for row in ours if row.still_counting],
            advice=advice,
        ),
        present(
            _panels(curves, floor),
            _corpora(ours) if len(ours) > 1 else None,
            _gaps(gaps) if gaps else None,
            _parts(parts) if parts else None,
        ),
        present(_table(curves), _gap_table(gaps) if gaps else None, _part_table(parts) if parts else None),
        _findings(ours, gaps, parts),
    )


def _corpus(row: OnText) -> tuple[str, int]:
    return row.label, row.context


def _told_apart(rows: Iterable[OnTextT]) -> list[OnTextT]:
    """Corpora that were read in contexts of several lengths have the length in their names."""
    contexts = {
        label: {row.context for row in group} for label, group in group_by(rows, lambda r: r.label).items()
    }
    return [
        replace(row, label=f"{row.label}, context {row.context:,}") if len(contexts[row.label]) > 1 else row
        for row in rows
    ]


def _findings(ours: list[Curve], gaps: list[Gap], parts: list[SeenAndNew]) -> list[Finding]:
    """The paper's numbers are of characters: of other vocabularies it shows curves."""
    symbols = {row.label: row.model.symbols for row in ours if row.model.vocab_size != CHARACTERS}
    seen = {row.label: row.about_seen for row in parts}
    stuck = {row.label for row in ours if row.still_counting}
    findings = [_at_end(row) for row in ours if row.label not in symbols]
    for row in gaps:
        unlike = f"another vocabulary: {symbols[row.label]}" if row.label in symbols else ""
        if row.label in stuck:  # beside a standard model that has learned as little, a ratio says nothing
            unlike = "has not learned to infer what symbols mean"
        findings.append(replace(_ratio(row), unlike=unlike, about=seen.get(row.label, "")))
    return findings


def _at_end(row: Curve) -> Finding:
    """How low a perplexity can be is a matter of the text, so its verdict is left to the ratio on the same text."""
    band, about = row.geometric, ""
    if row.still_counting:
        about = f"has not learned to infer what symbols mean: just counting them reaches {row.counting_perplexity:.2f}"
    measure = f"Perplexity at the end of the context ({row.label})"
    ends = band.mean[-1], ".2f", band.low[-1], band.high[-1]
    unlike = "not the paper's text"
    return Finding(
        measure, paper.PERPLEXITY, *ends, at_least=False, curve=band.mean, about=about, unlike=unlike
    )


def _ratio(row: Gap) -> Finding:
    measure, band = f"Ratio to the standard model's perplexity there ({row.label})", row.geometric
    ends = band.mean[-1] + 1, ".2f", band.low[-1] + 1, band.high[-1] + 1
    return Finding(measure, PAPER_RATIO, *ends, at_least=False, curve=[value + 1 for value in band.mean])


def _perplexity(label: str, curves: list[Curve], floors: Iterable[list[float]] = ()) -> Axis:
    """A log axis that holds all of the curves."""
    bands = [row.geometric for row in curves]
    lowest = min(map(min, [*(band.low for band in bands), *floors]))
    return Axis(label, "log", limits=(lowest / 1.15, max(max(band.high) for band in bands) * 1.15))


def _panels(curves: list[Curve], floor: dict[str, list[float]]) -> Figure:
    """One panel a corpus, lexinvariant against standard."""
    groups = group_by(curves, lambda row: row.label)
    columns = min(PANELS_IN_A_ROW, len(groups))
    comparable = len({row.model.vocab_size for row in curves}) == 1
    panels = []
    for i, (name, members) in enumerate(groups.items()):
        floors = floor.values() if comparable else [floor[name]] if name in floor else []
        y = _perplexity("" if i % columns else "perplexity", curves if comparable else members, floors)
        marks: list[Mark] = [row.line(row.model.role) for row in members]
        if name in floor:
            marks.append(Reference(FLOOR, x=range(len(floor[name])), y=floor[name]))
        panels.append(Panel(name, marks, CONTEXT, y))
    each = ", ".join(f"{name}: {members[0].sequences}" for name, members in groups.items())
    size = (4.2 * columns + 1.4 if columns > 1 else 7.0, 3.9 * math.ceil(len(groups) / columns) + 0.5)
    return Figure("convergence", words("panels", curves=curves, sequences=each), panels, columns, size)


def _corpora(ours: list[Curve]) -> Figure:
    """The lexinvariant curves of all corpora together, as in the paper's appendix."""
    y = _perplexity(f"perplexity of the next {listed(row.window for row in ours)} symbols", ours)
    panel = Panel("Lexinvariant models", [row.line(row.label) for row in ours], CONTEXT, y)
    return Figure("convergence-corpora", words("corpora"), [panel], size=(7.5, 4.6))


def _gaps(gaps: list[Gap]) -> Figure:
    lowest = min(min(row.geometric.low) for row in gaps)
    y = Axis("(lexinvariant - standard) / standard", limits=(min(0.0, 1.1 * lowest), None))
    marks: list[Mark] = [*(row.line(row.label) for row in gaps), Reference("twice the standard", at=1.0)]
    panel = Panel("Gap to the standard model", marks, CONTEXT, y)
    caption = words("gaps", start=PAPER_GAP_START, end=PAPER_GAP_END)
    return Figure("convergence-gap", caption, [panel], size=(7.5, 4.6))


def _parts(parts: list[SeenAndNew]) -> Figure:
    """Losses on seen and new tokens, one panel a corpus, and the share of new tokens in all of them."""
    panels = []
    for i, row in enumerate(parts):
        at = range(len(row.new_share))
        lines: list[Mark] = []
        for part in ("seen", "new"):
            for losses in row.losses:
                band: PartBand = getattr(losses, part)
                mean, low, high = (np.array(values, float) for values in (band.mean, band.low, band.high))
                lines.append(Line(f"{losses.model.role}, {part}", at, mean, low, high))
        lines.append(Reference("log of the number of unseen symbols", x=at, y=row.unseen_nats))
        y = Axis("" if i else "loss (nats per token)", limits=(0.0, None))
        panels.append(Panel(row.label, lines, CONTEXT, y))
    shares: list[Mark] = [
        Line(f"share, {row.label}", range(len(row.new_share)), row.new_share, series=4 + i)
        for i, row in enumerate(parts)
    ]
    panels.append(Panel("New tokens", shares, CONTEXT, Axis("share of tokens", limits=(0.0, None))))
    columns = min(PANELS_IN_A_ROW, len(panels))
    size = (4.2 * columns + 1.4, 3.9 * math.ceil(len(panels) / columns) + 0.7)
    return Figure("convergence-seen", words("parts"), panels, columns, size)


def _starts(row: Measured) -> str:
    return " / ".join(f"{row.start(averaging):.2f}" for averaging in AVERAGINGS)


def _ends(row: Measured, plus: float = 0.0) -> str:
    return " / ".join(f"{row.end(averaging) + plus:.2f}" for averaging in AVERAGINGS)


def _table(curves: list[Curve]) -> Table:
    columns: list[Column[Curve]] = [
        Column("Corpus", "label"),
        Column("Model", lambda row: str(row.model)),
        Column("Sequences", "sequences"),
        Column("Window", "window"),
        Column("First window", _starts),
        Column("Last window", _ends),
        Column("Last symbol (context)", lambda row: f"{row.last_symbol_perplexity:.2f} ({row.context - 1})"),
        Column("Paper (context)", lambda row: f"{PAPER_END[row.model.role]:.2f} ({paper.CONTEXT})"),
    ]
    return make_table(words("table"), curves, columns)


def _gap_table(gaps: list[Gap]) -> Table:
    both = f"Paper ({paper.PERPLEXITY:.2f} / {paper.STANDARD_PERPLEXITY:.2f})"
    columns: list[Column[Gap]] = [
        Column("Corpus", "label"),
        Column("Gap, first window", _starts),
        Column("Paper", lambda row: PAPER_GAP_START),
        Column("Gap, last window", _ends),
        Column("Paper", lambda row: PAPER_GAP_END),
        Column("Ratio at the end", lambda row: _ends(row, plus=1.0)),
        Column(both, lambda row: PAPER_RATIO, ".2f"),
    ]
    return make_table(words("gap_table"), gaps, columns)


def _part_table(parts: list[SeenAndNew]) -> Table:
    def loss(part: str, role: str) -> Column[SeenAndNew]:
        def at_end(row: SeenAndNew) -> float | None:
            bands = [getattr(losses, part) for losses in row.losses if losses.model.role == role]
            return bands[0].mean[-1] if bands else None

        return Column(f"{part.capitalize()}, {role}", at_end, ".3f", missing="none")

    columns: list[Column[SeenAndNew]] = [
        Column("Corpus", "label"),
        Column("Context", "context", ","),
        Column("New tokens", lambda row: row.new_share[-1], ".1%"),
        Column("Floor of the perplexity", lambda row: row.floor[-1], ".2f"),
        *(loss("seen", role) for role in ROLES),
        Column("Ratio of perplexities, seen", "seen_ratio", ".2f", missing="no standard model"),
        *(loss("new", role) for role in ROLES),
        Column("Log of unseen symbols", lambda row: row.unseen_nats[-1], ".3f"),
    ]
    return make_table(words("part_table"), parts, columns)
