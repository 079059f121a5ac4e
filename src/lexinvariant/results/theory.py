"""The theory, executed: how fast p' converges to p, the bounds on that, and the limit for English."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.prose import Prose
from lexinvariant.results.rows import Row, Rows, beside, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, present
from lexinvariant.results.theory_limit import EnglishLimit, Limit, ModelCurve

CONTEXT = "context length T (symbols)"
BoundKind = Literal["printed", "repaired", "sharp"]
Kernel = Literal["enumeration", "particles"]
Family = Literal["markov", "ngram", "near", "symmetric"]
FAMILIES: dict[Family, str] = {
    "markov": "Random Markov chains",
    "ngram": "Character bigram of real text",
    "near": "Near-unidentifiable (odds 1.2 : 0.8)",
    "symmetric": "Interchangeable pairs of symbols",
}
BOUND_NAMES = {"printed": "Paper, as printed", "repaired": "Paper, repaired", "sharp": "Direct"}
NO_ERROR = 1e-6
"""Below this p' is p, which has no place on a log axis."""
words = Prose("theory")


@dataclass(frozen=True, kw_only=True)
class Convergence(Row, experiment="theory", kind="convergence"):
    """Exact p' beside p, for one family of languages and one size of the alphabet; lists are by `context`."""

    language: Family
    d: int
    texts: int
    context: list[int]
    l1_mean: list[float]
    """Average L1 distance over the first T symbols: mean over texts, and in l1_max the largest."""
    l1_max: list[float]
    kl_sum_mean: list[float]
    hellinger_sum_max: list[float]
    regret_max: list[float]
    entropy_mean: list[float]
    key_surprise_mean: list[float]
    delta: float
    bound_sharp: list[float]
    bound_expected: list[float]

    @property
    def log_factorial(self) -> float:
        return math.lgamma(self.d + 1)


@dataclass(frozen=True, kw_only=True)
class Exponents(Row, experiment="theory", kind="exponents"):
    """Fitted exponents of the average L1 distance: in T for each alphabet size, and in d at the last T."""

    language: Family | Literal["worst"]
    in_T: dict[int, float]
    in_d: float | None
    fitted_from: int

    @property
    def title(self) -> str:
        hardest = "Hardest near-uniform language at each T"
        return hardest if self.language == "worst" else FAMILIES[self.language]


@dataclass(frozen=True, kw_only=True)
class Worst(Row, experiment="theory", kind="worst"):
    """The largest mean error over near-uniform languages, at each T."""

    d: int
    texts: int
    context: list[int]
    l1_mean: list[float]
    bound_expected: list[float]


@dataclass(frozen=True, kw_only=True)
class Bound(Row, experiment="theory", kind="bound"):
    """What each theorem guarantees."""

    d: int
    delta: float
    context: list[int]
    epsilon: dict[BoundKind, list[float]]
    context_for_tenth: dict[BoundKind, int]
    """The context that guarantees 0.1."""


@dataclass(frozen=True, kw_only=True)
class Bench(Row, experiment="theory", kind="bench"):
    """Time of one of the two kernels."""

    what: Kernel
    d: int
    length: int
    keys: int
    wall_seconds: float
    cpu_seconds: float
    bar_seconds: float


ROWS = (Convergence, Exponents, Worst, Bound, Limit, ModelCurve, Bench)
MarksOf = Callable[[list[Convergence]], list[Mark]]


def section(rows: Rows) -> Section | None:
    """The theory, where its rows are there."""
    if not any(isinstance(row, ROWS) for row in rows):
        return None
    convergence, exponents, worst = rows.latest(Convergence), rows.latest(Exponents), rows.latest(Worst)
    bounds, limits, bench = rows.latest(Bound), rows.latest(Limit), rows.latest(Bench)
    hardest = next((row for row in exponents if row.language == "worst"), None)
    # A model belongs to the limit beside it: a newer run without one has none.
    limit = EnglishLimit(limits, beside(rows.of(ModelCurve), limits)) if limits else None
    figures = [
        _convergence(convergence) if convergence else None,
        _entropy(convergence) if convergence else None,
        _worst(worst, hardest) if worst else None,
        _bounds(bounds) if bounds else None,
        limit.figure if limit else None,
    ]
    tables = [
        _exponent_table(exponents) if exponents else None,
        _bound_table(bounds) if bounds else None,
        *((limit.perplexity_table, limit.price_table) if limit else ()),
        _bench_table(bench) if bench else None,
    ]
    findings = [_decay(hardest)] if hardest else []
    return Section("The theory, executed", words.paragraphs(), present(*figures), present(*tables), findings)


def _decay(hardest: Exponents) -> Finding:
    slopes = list(hardest.in_T.values())
    ours = float(np.mean(slopes)), ".2f", min(slopes), max(slopes)
    about = "measured on the hardest language; the paper's is of an upper bound, which promises less"
    measure = "Exponent in T with which the error falls"
    return Finding(measure, paper.EXPONENT_T, *ours, at_least=False, about=about)


def _families(rows: list[Convergence], marks: MarksOf, y: Axis) -> list[Panel]:
    """A panel each, two in a row, with labels on the outer edges alone."""
    groups = group_by(rows, lambda row: row.language)
    panels = []
    for i, (name, members) in enumerate(groups.items()):
        x = Axis(CONTEXT if i + 2 >= len(groups) else "", "log")
        panels.append(Panel(FAMILIES[name], marks(members), x, replace(y, label="" if i % 2 else y.label)))
    return panels


def _convergence(rows: list[Convergence]) -> Figure:
    def marks(members: list[Convergence]) -> list[Mark]:
        top, lines = members[-1], []
        for row in members:
            l1 = np.array(row.l1_mean)
            if l1.max() > NO_ERROR:
                lines.append(Line(f"d = {row.d}", row.context, np.where(l1 > NO_ERROR, l1, np.nan)))
        sure = Reference(f"bound, d = {top.d}", x=top.context, y=top.bound_sharp)
        mean = Reference(f"bound on the mean, d = {top.d}", x=top.context, y=top.bound_expected, dash="short")
        return [*lines, sure, mean]

    y = Axis("average L1 of p and p'", "log", (0.01, 0.1, 1), (3e-3, 2.4))
    caption, panels = words("convergence", last=rows[-1]), _families(rows, marks, y)
    return Figure("theory-convergence", caption, panels, columns=2, size=(9.0, 6.4), share_y=True)


def _entropy(rows: list[Convergence]) -> Figure:
    def marks(members: list[Convergence]) -> list[Mark]:
        return [Line(f"d = {row.d}", row.context, row.entropy_mean) for row in members]

    panels = _families(rows, marks, Axis("entropy of the key (nats)", limits=(0, None)))
    return Figure("theory-entropy", words("entropy"), panels, columns=2, size=(9.0, 6.0), share_y=True)


def _worst(rows: list[Worst], hardest: Exponents | None) -> Figure:
    def slope(row: Worst) -> str:
        return f" (slope {hardest.in_T[row.d]:.2f})" if hardest else ""

    top = rows[-1]
    x = np.array(top.context, float)
    quarter = top.l1_mean[0] * (x / x[0]) ** paper.EXPONENT_T
    marks: list[Mark] = [
        *(Line(f"d = {row.d}{slope(row)}", row.context, row.l1_mean) for row in rows),
        Reference(f"bound on the mean, d = {top.d}", x=x, y=top.bound_expected),
        Reference("slope -1/4, the paper's (shape only)", x=x, y=quarter, dash="dotted"),
    ]
    y = Axis("average L1 distance (mean over texts)", "log")
    panel = Panel("The hardest near-uniform language at each T", marks, Axis(CONTEXT, "log"), y)
    return Figure("theory-worst", words("worst"), [panel], legend="right")


def _bounds(rows: list[Bound]) -> Figure:
    ticks = {1: "1"} | {10.0**power: f"$10^{{{power}}}$" for power in (4, 8, 12)}
    panels = []
    for i, row in enumerate(rows):
        lines = [Line(BOUND_NAMES[kind].lower(), row.context, values) for kind, values in row.epsilon.items()]
        y = Axis("" if i else "guaranteed average L1 distance", "log")
        panels.append(Panel(f"d = {row.d}", lines, Axis(CONTEXT, "log", ticks), y))
    caption = words("bounds", delta=rows[0].delta)
    return Figure("theory-bounds", caption, panels, size=(9.5, 4.2), share_y=True)


def _exponent_table(rows: list[Exponents]) -> Table:
    def in_T(row: Exponents) -> str:
        return ", ".join(f"{value:.2f} (d={d})" for d, value in row.in_T.items())

    columns = [
        Column[Exponents]("Language", "title"),
        Column("Exponent in T, ours", in_T),
        Column("Paper (bound)", lambda row: paper.EXPONENT_T),
        Column("Exponent in d, ours", "in_d", ".2f", "none"),
        Column("Paper (bound)", lambda row: paper.EXPONENT_D),
    ]
    table = make_table("Fitted exponents of the average L1 distance, beside the paper's bound", rows, columns)
    direct = ("Direct bound, any language", "-0.50", f"{paper.EXPONENT_T}", "0.50", f"{paper.EXPONENT_D}")
    return replace(table, rows=[*table.rows, direct])


def _bound_table(rows: list[Bound]) -> Table:
    def needed(kind: BoundKind) -> Column[Bound]:
        return Column(BOUND_NAMES[kind], lambda row: row.context_for_tenth[kind], ",")

    caption = f"Context that guarantees 0.1 with probability {1 - rows[0].delta:.0%}"
    return make_table(caption, rows, [Column("Alphabet size d", "d"), *map(needed, get_args(BoundKind))])


def _bench_table(rows: list[Bench]) -> Table:
    def kernel(row: Bench) -> str:
        return f"{row.what}: {row.d} symbols, {row.keys:,} keys, text of {row.length}"

    columns = [
        Column("Kernel", kernel),
        Column("Measured", lambda row: f"{row.wall_seconds:.1f} s"),
        Column("Target", lambda row: f"{row.bar_seconds:.0f} s"),
    ]
    return make_table("Time of the two kernels", rows, columns)
