"""Convergence to a standard language model: the newest run of every corpus (label)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.perplexity import AVERAGINGS, Averaging, Band
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table

CONTEXT = "context length (symbols)"
PANELS_IN_A_ROW = 3
PAPER_END = {"lexinvariant": paper.PERPLEXITY, "standard": paper.STANDARD_PERPLEXITY}
PAPER_GAP_START, PAPER_GAP_END = f"{paper.GAP_START:.0f}", f"under {paper.GAP_END:.0f}"
PAPER_RATIO = paper.PERPLEXITY / paper.STANDARD_PERPLEXITY


@dataclass(frozen=True, kw_only=True)
class Measured(Row):
    """What both kinds of row have in common: curves over the context, and what was measured on."""

    label: str
    """The corpus."""
    split: str
    sequences: int
    window: int
    context: int
    vocab_size: int
    curves: dict[Averaging, Band]

    def start(self, averaging: Averaging = "geometric") -> float:
        return self.curves[averaging].mean[0]

    def end(self, averaging: Averaging = "geometric") -> float:
        return self.curves[averaging].mean[-1]


@dataclass(frozen=True, kw_only=True)
class Curve(Measured, experiment="convergence", kind="curve"):
    """Perplexity by context length of one model."""

    role: Literal["lexinvariant", "standard"]
    name: str
    name_hash: str
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
    shown = {row.origin.run for row in curves}
    gaps = [row for row in rows.latest_of_each(Gap, lambda row: row.label) if row.origin.run in shown]
    ours = [row for row in curves if row.role == "lexinvariant"]
    figures = [_panels(curves)]
    figures += [_corpora(ours)] if len(ours) > 1 else []
    figures += [_gaps(gaps)] if gaps else []
    return Section(
        "Convergence to standard language models",
        _paragraphs(curves),
        figures,
        [_table(curves), *([_gap_table(gaps)] if gaps else [])],
        _findings(ours, gaps),
    )


def _findings(ours: list[Curve], gaps: list[Gap]) -> list[Finding]:
    at_end = [
        Finding(
            f"Perplexity at the end of the context ({row.label})",
            paper.PERPLEXITY,
            row.end(),
            ".2f",
            at_least=False,
            low=row.curves["geometric"].low[-1],
            high=row.curves["geometric"].high[-1],
            curve=row.curves["geometric"].mean,
            note="characters, other text than the paper's" if row.vocab_size == 128 else "another vocabulary",
        )
        for row in ours
    ]
    ratios = [
        Finding(
            f"Times the standard model's ({row.label})",
            PAPER_RATIO,
            row.end() + 1,
            ".2f",
            at_least=False,
            low=row.curves["geometric"].low[-1] + 1,
            high=row.curves["geometric"].high[-1] + 1,
            curve=[value + 1 for value in row.curves["geometric"].mean],
        )
        for row in gaps
    ]
    return at_end + ratios


def _paragraphs(curves: list[Curve]) -> list[str]:
    draws = sorted({row.origin.draws or 1 for row in curves})
    return [
        "A lexinvariant model begins every text without knowing a single symbol, and should predict ever more like a "
        "standard model as it reads. At each context length i the curves show the perplexity of the symbols that "
        "follow, P(x_(i+1) .. x_(i+k) | x_1 .. x_i)^(-1/k): the paper's moving average inside each sequence (its "
        "formula lacks the minus sign). The last point is so the mean over the last k symbols of the context.",
        "Two averages over sequences are given. The geometric mean is the exponential of the mean loss. The mean of "
        "perplexities weighs hard sequences more; the paper does not say which it used. Bands are 95% confidence "
        "intervals by bootstrap over sequences, the same sequences for both models. Lexicons averaged over for the "
        f"lexinvariant model: {' or '.join(map(str, draws))}.",
    ]


def _window(rows: list[Curve]) -> str:
    return " or ".join(map(str, sorted({row.window for row in rows})))


def _line(row: Measured, name: str) -> Line:
    """A geometric mean with its band."""
    band = row.curves["geometric"]
    return Line(name, np.arange(len(band.mean)), band.mean, band.low, band.high)


def _perplexity(label: str, curves: list[Curve]) -> Axis:
    """A log axis that holds all of the curves."""
    bands = [row.curves["geometric"] for row in curves]
    limits = min(min(band.low) for band in bands) / 1.15, max(max(band.high) for band in bands) * 1.15
    return Axis(label, "log", limits=limits)


def _panels(curves: list[Curve]) -> Figure:
    """One panel a corpus, lexinvariant against standard."""
    groups = group_by(curves, lambda row: row.label)
    columns = min(PANELS_IN_A_ROW, len(groups))
    comparable = len({row.vocab_size for row in curves}) == 1
    panels = [
        Panel(
            name,
            [_line(row, row.role) for row in members],
            Axis(CONTEXT),
            _perplexity("" if i % columns else "perplexity", curves if comparable else members),
        )
        for i, (name, members) in enumerate(groups.items())
    ]
    each = ", ".join(f"{name}: {members[0].sequences}" for name, members in groups.items())
    ends = "; ".join(f"{row.label}, {row.role}: from {row.start():.1f} to {row.end():.2f}" for row in curves)
    return Figure(
        "convergence",
        f"Perplexity by context length on a log axis, one panel a corpus. {ends}.",
        f"Perplexity of the next {_window(curves)} symbols by context length: geometric mean over sequences ({each}) "
        "with its 95% bootstrap band. Log scale.",
        panels,
        columns,
        (4.2 * columns + 1.4 if columns > 1 else 7.0, 3.9 * math.ceil(len(groups) / columns) + 0.5),
    )


def _corpora(ours: list[Curve]) -> Figure:
    """The lexinvariant curves of all corpora together, as in the paper's appendix."""
    ends = ", ".join(f"{row.label} at {row.end():.2f}" for row in ours)
    y = _perplexity(f"perplexity of the next {_window(ours)} symbols", ours)
    return Figure(
        "convergence-corpora",
        f"The lexinvariant perplexity curves of all corpora on one log axis; they end with {ends}.",
        "The lexinvariant curves of all corpora on one axis. The paper finds that code (GitHub) converges "
        "significantly faster than English (Wiki-40B).",
        [Panel("Lexinvariant models", [_line(row, row.label) for row in ours], Axis(CONTEXT), y)],
        size=(7.5, 4.6),
    )


def _gaps(gaps: list[Gap]) -> Figure:
    ends = "; ".join(f"{row.label} from {row.start():.2f} to {row.end():.2f}" for row in gaps)
    lowest = min(min(row.curves["geometric"].low) for row in gaps)
    y = Axis("(lexinvariant - standard) / standard", limits=(min(0.0, 1.1 * lowest), None))
    marks: list[Mark] = [*(_line(row, row.label) for row in gaps), Reference("twice the standard", at=1.0)]
    return Figure(
        "convergence-gap",
        f"The perplexity gap as a multiple of the standard model's perplexity, by context length: {ends}.",
        "The gap in perplexity as a multiple of the standard model's: geometric means, and their 95% bootstrap band. "
        f"The paper's falls from {PAPER_GAP_START} to {PAPER_GAP_END} (characters, the Pile).",
        [Panel("Gap to the standard model", marks, Axis(CONTEXT), y)],
        size=(7.5, 4.6),
    )


def _both(value: dict[Averaging, float]) -> str:
    return " / ".join(f"{value[averaging]:.2f}" for averaging in AVERAGINGS)


def _starts(row: Measured) -> str:
    return _both({averaging: row.start(averaging) for averaging in AVERAGINGS})


def _ends(row: Measured, plus: float = 0.0) -> str:
    return _both({averaging: row.end(averaging) + plus for averaging in AVERAGINGS})


def _table(curves: list[Curve]) -> Table:
    caption = (
        "Perplexity, geometric mean / mean of perplexities over sequences. The last symbol stands alone, unsmoothed "
        "(geometric mean). The paper: 150M parameters, characters, the Pile, 100 sequences; other corpora and sizes "
        "stand beside it for orientation."
    )
    columns: list[Column[Curve]] = [
        Column("Corpus", "label"),
        Column("Model", lambda row: f"{row.role}: {row.name}"),
        Column("Sequences", "sequences"),
        Column("Window", "window"),
        Column("First window", _starts),
        Column("Last window", _ends),
        Column("Last symbol (context)", lambda row: f"{row.last_symbol_perplexity:.2f} ({row.context - 1})"),
        Column("Paper (context)", lambda row: f"{PAPER_END[row.role]:.2f} ({paper.CONTEXT})"),
    ]
    return make_table(caption, curves, columns)


def _gap_table(gaps: list[Gap]) -> Table:
    caption = (
        "The gap (lexinvariant - standard) / standard, and the ratio lexinvariant / standard at the end: of "
        "geometric means / of means of perplexities."
    )
    columns: list[Column[Gap]] = [
        Column("Corpus", "label"),
        Column("Gap, first window", _starts),
        Column("Paper", lambda row: PAPER_GAP_START),
        Column("Gap, last window", _ends),
        Column("Paper", lambda row: PAPER_GAP_END),
        Column("Ratio at the end", lambda row: _ends(row, plus=1.0)),
        Column(
            f"Paper ({paper.PERPLEXITY:.2f} / {paper.STANDARD_PERPLEXITY:.2f})",
            lambda row: f"{PAPER_RATIO:.2f}",
        ),
    ]
    return make_table(caption, gaps, columns)
