"""Solvers of substitution ciphers: symbol error rate by length beside peers, and whether confidence can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lexinvariant.results.figure import Axis, Bars, Figure, Line, Mark, Marks, Panel, Reference
from lexinvariant.results.intervals import wilson
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table

Setting = Literal["spaced", "unspaced", "ascii"]
OURS, ANNEALER = "lexinvariant", "annealer"
SOLVERS = {
    OURS: "lexinvariant (ours)",
    ANNEALER: "plain annealer, same n-gram",
    "subbreaker": "subbreaker",
    "cipher_solver": "cipher_solver",
}
TITLES: dict[Setting, str] = {
    "spaced": "spaces kept",
    "unspaced": "without spaces",
    "ascii": "all of ASCII permuted",
}
BARS = {("spaced", 32): 0.12, ("spaced", 64): 0.015, ("spaced", 100): 0.001, ("spaced", 200): 0.0014}
BARS |= {("spaced", 400): 0.0001, ("ascii", 480): 0.02}
"""Symbol error rates to reach."""
FLOOR = 1e-4
"""Error rates below this are drawn on the lowest line: a text of 100 symbols cannot show them."""
CERTAIN = 0.9
"""Confidence from which on a symbol is called certain."""
FEWEST = 5
"""Symbols of a bin below which a share says nothing."""


@dataclass(frozen=True, kw_only=True)
class SolverErrors(Row, experiment="decipher", kind="solver"):
    """One solver on the texts of one setting and length."""

    solver: str
    solver_version: str | None
    setting: Setting
    length: int
    errors: list[float]
    """Of each text: the share of its enciphered symbols that are read wrongly."""
    error_interval: tuple[float, float]
    key_accuracy: float
    key_interval: tuple[float, float]
    median_seconds: float

    @property
    def n(self) -> int:
        return len(self.errors)

    @property
    def error(self) -> float:
        return float(np.mean(self.errors))

    @property
    def solved(self) -> float:
        return self.errors.count(0.0) / self.n

    @property
    def bar(self) -> float | None:
        return BARS.get((self.setting, self.length))


@dataclass(frozen=True, kw_only=True)
class Reliability(Row, experiment="decipher", kind="reliability"):
    """How often our solver is right, by the confidence that it gives: sums over the symbols of each bin."""

    setting: Setting
    length: int
    edges: list[float]
    symbols: list[float]
    """Symbols of keys; `sure` is their summed confidence."""
    symbols_right: list[float]
    sure: list[float]
    occurrences: list[float]
    """The same, each symbol as often as it stands in its text."""
    occurrences_right: list[float]


@dataclass(frozen=True, kw_only=True)
class Batch(Row, experiment="decipher", kind="batch"):
    """Many texts at once."""

    n: int
    length: int
    wall_seconds: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Fresh(Row, experiment="decipher", kind="fresh"):
    """Commands in fresh processes, with nothing compiled before."""

    n: int
    length: int
    median_seconds: float


ROWS = (SolverErrors, Reliability, Batch, Fresh)


def section(rows: Rows) -> Section | None:
    """Our solver beside others: the newest run of each setting."""
    measured = rows.latest_of_each(SolverErrors, lambda row: row.setting)
    if not measured:
        return None
    sure = rows.latest_of_each(Reliability, lambda row: row.setting)
    lettered = [row for row in measured if row.setting != "ascii"]
    return Section(
        "Substitution ciphers: our solver beside others",
        [
            "In each setting every solver was given the same ciphertexts, enciphered held-out English, in one run. A "
            "text of length N has N characters: lower-case letters and single spaces where spaces are kept (only "
            "letters are enciphered, and only they count), letters alone where there are no spaces, and any printable "
            "characters where all of ASCII is permuted, the space too, which no other solver here can read.",
            *([_certain_line(sure)] if sure else []),
            *(
                f"{row.n:,} texts of {row.length} symbols at once took {row.wall_seconds:.1f} s, with a symbol error "
                f"rate of {row.error:.2%}."
                for row in rows.latest(Batch)
            ),
            *(
                f"A command in a fresh process, with nothing compiled before, took {row.median_seconds:.1f} s (median "
                f"of {row.n}, texts of {row.length} symbols)."
                for row in rows.latest(Fresh)
            ),
        ],
        [*([_errors(lettered)] if lettered else []), *([_reliability(sure)] if sure else [])],
        _tables(measured),
        _findings(measured, sure),
    )


def _certain(rows: list[Reliability]) -> tuple[float, float]:
    """How many symbols of keys were given 90% or more, and how many of those are right."""
    high = [i for i, edge in enumerate(rows[0].edges[:-1]) if edge >= CERTAIN]
    return (
        sum(row.symbols[i] for row in rows for i in high),
        sum(row.symbols_right[i] for row in rows for i in high),
    )


def _certain_line(rows: list[Reliability]) -> str:
    n, right = _certain(rows)
    share = f"{right / n:.1%}" if n else "none"
    return (
        f"Of the {n:,.0f} symbols of keys that our solver gave 90% or more, {share} are right (the bar: 90%)."
    )


def _findings(measured: list[SolverErrors], sure: list[Reliability]) -> list[Finding]:
    ours = sorted(
        (row for row in measured if (row.solver, row.setting) == (OURS, "spaced")), key=lambda row: row.length
    )
    findings = [
        Finding(
            "Symbol error rate of a cipher of 100 letters and spaces",
            None,
            row.error,
            ".2%",
            at_least=False,
            low=row.error_interval[0],
            high=row.error_interval[1],
            curve=[shorter.error for shorter in ours],
            note=f"{row.n} texts; the curve is over lengths {ours[0].length} to {ours[-1].length}",
        )
        for row in ours
        if row.length == 100
    ]
    n, right = _certain(sure) if sure else (0, 0)
    if n:
        low, high = wilson(right / n, round(n))
        measure = "Symbols of keys given 90% or more that are right"
        findings.append(
            Finding(measure, None, right / n, ".1%", low=low, high=high, note=f"{n:,.0f} symbols")
        )
    return findings


def _errors(rows: list[SolverErrors]) -> Figure:
    solvers = [name for name in SOLVERS if any(row.solver == name for row in rows)]
    groups = group_by(sorted(rows, key=lambda row: list(TITLES).index(row.setting)), lambda row: row.setting)
    ticks = {1: "100%", 0.1: "10%", 0.01: "1%", 0.001: "0.1%", FLOOR: "0.01% or less"}
    panels = []
    for i, (setting, members) in enumerate(groups.items()):
        marks: list[Mark] = [
            _error_line(name, index, line)
            for index, name in enumerate(solvers)
            if (line := [row for row in members if row.solver == name])
        ]
        bars = {row.length: row.bar for row in members if row.bar is not None}
        if bars:
            marks.append(Marks("bar", "target", list(bars), [max(bar, FLOOR) for bar in bars.values()]))
        x = Axis("length of the text (characters)", "log", sorted({row.length for row in members}))
        y = Axis("" if i else "symbol error rate", "log", ticks, (FLOOR * 0.7, 1.3))
        panels.append(Panel(TITLES[setting], marks, x, y))
    first, members = next(iter(groups.items()))
    numbers = ", ".join(f"{row.error:.2%} at {row.length}" for row in members if row.solver == OURS)
    return Figure(
        "decipher-errors",
        f"Symbol error rate by length of the text for {len(solvers)} solvers; ours, {TITLES[first]}: {numbers}.",
        "Share of the enciphered symbols that are read wrongly, mean over texts with 95% bootstrap intervals. Grey "
        "dashes are the bars that this project set itself. Slow solvers were given the first few of our texts only; "
        "the table tells how many, and how ours did on just those.",
        panels,
        size=(9.5, 4.6),
        share_y=True,
    )


def _error_line(solver: str, index: int, rows: list[SolverErrors]) -> Line:
    rows = sorted(rows, key=lambda row: row.length)
    beside = 1 + 0.015 * (index - 1)  # so that no interval hides another
    low, high = (np.maximum([row.error_interval[end] for row in rows], FLOOR) for end in (0, 1))
    return Line(
        SOLVERS[solver],
        [row.length * beside for row in rows],
        np.maximum([row.error for row in rows], FLOOR),
        low,
        high,
        interval="bars",
    )


def _reliability(rows: list[Reliability]) -> Figure:
    edges = rows[0].edges
    lines: list[Mark] = [Reference("perfectly calibrated", x=[0, 1], y=[0, 1], dash="solid")]
    bars: list[Mark] = []
    groups = group_by(sorted(rows, key=lambda row: list(TITLES).index(row.setting)), lambda row: row.setting)
    for index, (setting, members) in enumerate(groups.items()):
        n, right, sure = (
            np.sum([getattr(row, name) for row in members], axis=0)
            for name in ("symbols", "symbols_right", "sure")
        )
        some = n >= FEWEST
        share = right[some] / n[some]
        low, high = np.array([wilson(*pair) for pair in zip(share, n[some], strict=True)]).reshape(-1, 2).T
        lines.append(Line(TITLES[setting], sure[some] / n[some], share, low, high, interval="bars"))
        places = np.arange(len(n)) + 0.27 * (index - (len(groups) - 1) / 2)
        bars.append(Bars(TITLES[setting], places, n / n.sum(), 0.25))
    between = {i - 0.5: f"{edge:g}" for i, edge in enumerate(edges)}
    confidence = Axis("confidence given to a symbol of the key", limits=(0, 1.02))
    return Figure(
        "decipher-reliability",
        "Share of symbols that are right against the confidence given to them, beside the diagonal of perfect "
        "calibration.",
        "Every symbol of every key counts once, over all lengths. Intervals are Wilson's of 95%; bins of fewer than "
        "five symbols are left out. Bars stand in the order of the legend.",
        [
            Panel("Confidence and truth", lines, confidence, Axis("share that is right", limits=(0, 1.02))),
            Panel(
                "How often each is given", bars, Axis("confidence", ticks=between), Axis("share of symbols")
            ),
        ],
        size=(9.5, 4.4),
        widths=(3, 2),
    )


def _tables(rows: list[SolverErrors]) -> list[Table]:
    ours = {(row.setting, row.length): row.errors for row in rows if row.solver == OURS}

    def ours_on_the_same(row: SolverErrors) -> float | None:
        errors = ours.get((row.setting, row.length))
        return None if errors is None else float(np.mean(errors[: row.n]))

    columns = [
        Column[SolverErrors]("Length", "length"),
        Column("Solver", lambda row: " ".join(filter(None, (SOLVERS[row.solver], row.solver_version)))),
        Column("Symbol error rate", "error", ".2%"),
        Column("Ours, same texts", ours_on_the_same, ".2%"),
        Column("95% interval", lambda row: "{:.2%} to {:.2%}".format(*row.error_interval)),
        Column("Bar", lambda row: row.bar if row.solver == OURS else None, ".2%"),
        Column("Key accuracy", "key_accuracy", ".3f"),
        Column("Solved", "solved", ".0%"),
        Column("Seconds", "median_seconds", ".2f"),
        Column("Texts", "n"),
    ]
    order = sorted(rows, key=lambda row: (row.length, list(SOLVERS).index(row.solver)))
    groups = {setting: [row for row in order if row.setting == setting] for setting in TITLES}
    return [
        make_table(
            f"Solvers, {TITLES[setting]}: seconds are the median of a text, one at a time, warm",
            members,
            columns,
        )
        for setting, members in groups.items()
        if members
    ]
