"""Convergence to a standard language model: the newest run of every corpus (label)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.perplexity import AVERAGINGS, Averaging, Band
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows, beside, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, present

CONTEXT = Axis("context length (symbols)")
PANELS_IN_A_ROW = 3
PAPER_END = {"lexinvariant": paper.PERPLEXITY, "standard": paper.STANDARD_PERPLEXITY}
PAPER_GAP_START, PAPER_GAP_END = f"{paper.GAP_START:.0f}", f"under {paper.GAP_END:.0f}"
PAPER_RATIO = paper.PERPLEXITY / paper.STANDARD_PERPLEXITY
words = Prose("convergence")


@dataclass(frozen=True, kw_only=True)
class Measured(Row):
    """What both kinds of row have in common: curves over the context, and what was measured on."""

    label: str
    """The corpus."""
    split: str
    sequences: int
    window: int
    context: int
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


@dataclass(frozen=True, kw_only=True)
class Gap(Measured, experiment="convergence", kind="gap"):
    """(lexinvariant - standard) / standard by context length."""

    names: list[str]


ROWS = (Curve, Gap)


def section(rows: Rows) -> Section | None:
    """Convergence to standard language models, where its rows are there."""
    curves = rows.latest_of_each(Curve, lambda row: row.label)
    if not curves:
        return None
    # A gap belongs to the curves beside it: a newer run without a baseline has none.
    gaps = beside(rows.latest_of_each(Gap, lambda row: row.label), curves)
    ours = [row for row in curves if row.model.role == "lexinvariant"]
    return Section(
        "Convergence to standard language models",
        words.paragraphs(draws=listed(row.origin.draws or 1 for row in curves)),
        present(_panels(curves), _corpora(ours) if len(ours) > 1 else None, _gaps(gaps) if gaps else None),
        present(_table(curves), _gap_table(gaps) if gaps else None),
        [*map(_at_end, ours), *map(_ratio, gaps)],
    )


def _at_end(row: Curve) -> Finding:
    measure, band = f"Perplexity at the end of the context ({row.label})", row.geometric
    ends = band.mean[-1], ".2f", band.low[-1], band.high[-1]
    same = row.model.vocab_size == 128
    note = "characters, other text than the paper's" if same else "another vocabulary"
    return Finding(measure, paper.PERPLEXITY, *ends, at_least=False, curve=band.mean, note=note)


def _ratio(row: Gap) -> Finding:
    measure, band = f"Times the standard model's ({row.label})", row.geometric
    ends = band.mean[-1] + 1, ".2f", band.low[-1] + 1, band.high[-1] + 1
    return Finding(measure, PAPER_RATIO, *ends, at_least=False, curve=[value + 1 for value in band.mean])


def _perplexity(label: str, curves: list[Curve]) -> Axis:
    """A log axis that holds all of the curves."""
    bands = [row.geometric for row in curves]
    limits = min(min(band.low) for band in bands) / 1.15, max(max(band.high) for band in bands) * 1.15
    return Axis(label, "log", limits=limits)


def _panels(curves: list[Curve]) -> Figure:
    """One panel a corpus, lexinvariant against standard."""
    groups = group_by(curves, lambda row: row.label)
    columns = min(PANELS_IN_A_ROW, len(groups))
    comparable = len({row.model.vocab_size for row in curves}) == 1
    panels = []
    for i, (name, members) in enumerate(groups.items()):
        y = _perplexity("" if i % columns else "perplexity", curves if comparable else members)
        panels.append(Panel(name, [row.line(row.model.role) for row in members], CONTEXT, y))
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


def _starts(row: Measured) -> str:
    return " / ".join(f"{row.start(averaging):.2f}" for averaging in AVERAGINGS)


def _ends(row: Measured, plus: float = 0.0) -> str:
    return " / ".join(f"{row.end(averaging) + plus:.2f}" for averaging in AVERAGINGS)


def _table(curves: list[Curve]) -> Table:
    columns: list[Column[Curve]] = [
        Column("Corpus", "label"),
        Column("Model", lambda row: f"{row.model.role}: {row.model.name}"),
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
