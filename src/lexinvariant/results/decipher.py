"""Solvers of substitution ciphers: symbol error rate by length beside peers, and whether confidence can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lexinvariant.results.cipher_kinds import (
    KindSolver,
    KindVerdicts,
    kind_solvers_table,
    kinds_figure,
    kinds_table,
)
from lexinvariant.results.figure import Axis, Bars, Figure, Line, Mark, Marks, Panel, Reference
from lexinvariant.results.intervals import wilson
from lexinvariant.results.prose import Prose
from lexinvariant.results.rows import Row, Rows, RowT, group_by
from lexinvariant.results.section import Column, Section, Table, make_table, present

Setting = Literal["spaced", "unspaced", "ascii", "homophonic"]
OURS, ANNEALER = "lexinvariant", "annealer"
SOLVERS = {
    OURS: "lexinvariant (ours)",
    ANNEALER: "plain annealer, same n-gram",
    "subbreaker": "subbreaker",
    "cipher_solver": "cipher_solver",
}
TITLES = {
    "spaced": "spaces kept",
    "unspaced": "without spaces",
    "ascii": "all of ASCII permuted",
    "homophonic": "homophonic, without spaces",
}
BARS = {("spaced", 32): 0.12, ("spaced", 64): 0.015, ("spaced", 100): 0.001, ("spaced", 200): 0.0014}
BARS |= {("spaced", 400): 0.0001, ("ascii", 200): 0.02, ("ascii", 480): 0.01, ("homophonic", 400): 0.02}
"""Symbol error rates to reach."""
FLOOR = 1e-4
"""Error rates below this are drawn on the lowest line: a text of 100 symbols cannot show them."""
CERTAIN = 0.9
"""Confidence from which on a symbol is called certain."""
FEWEST = 5
"""Symbols of a bin below which a share says nothing."""
words = Prose("decipher")


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


@dataclass(frozen=True, kw_only=True)
class PublishedCipher(Row, experiment="decipher", kind="published"):
    """A cipher that was published with its solution."""

    file: str
    solver: str
    symbols: int
    letters: int
    """Letters that count..."""
    right: float
    """... and the share of them that was read rightly."""
    wall_seconds: float


ROWS = (SolverErrors, Reliability, Batch, Fresh, PublishedCipher, KindVerdicts, KindSolver)


def section(rows: Rows) -> Section | None:
    """Our solver beside others: the newest run of each setting."""
    groups = _in_order(rows.latest_groups(SolverErrors, lambda row: row.setting))
    kinds = rows.latest_of_each(KindVerdicts, lambda row: row.cipher)
    kind_solvers = rows.latest_of_each(KindSolver, lambda row: (row.cipher, row.solver))
    published = rows.latest_of_each(PublishedCipher, lambda row: (row.file, row.solver))
    if not groups and not kinds and not published:
        return None
    sure = _in_order(rows.latest_groups(Reliability, lambda row: row.setting))
    certain, right = _certain([row for members in sure.values() for row in members])
    values = {"sure": sure, "certain": certain, "right": right, "kinds": kinds}
    values |= {name: sum(getattr(row, name) for row in kinds) for name in ("unread", "unread_readable")}
    lettered = {setting: members for setting, members in groups.items() if setting in ("spaced", "unspaced")}
    return Section(
        "Substitution ciphers: our solver beside others",
        words.paragraphs(**values, batches=rows.latest(Batch), fresh=rows.latest(Fresh)),
        present(
            _errors(lettered) if lettered else None,
            _reliability(sure) if sure else None,
            kinds_figure(kinds, words("kinds")) if kinds else None,
        ),
        [_table(setting, members) for setting, members in groups.items()]
        + ([_published_table(published)] if published else [])
        + ([kinds_table(kinds)] if kinds else [])
        + ([kind_solvers_table(kind_solvers)] if kind_solvers else []),
    )


def _in_order(groups: dict[str, list[RowT]]) -> dict[str, list[RowT]]:
    return {setting: groups[setting] for setting in TITLES if setting in groups}


def _certain(rows: list[Reliability]) -> tuple[float, float]:
    """How many symbols of keys were given 90% or more, and how many of those are right."""
    high = [(row, i) for row in rows for i, edge in enumerate(row.edges[:-1]) if edge >= CERTAIN]
    return sum(row.symbols[i] for row, i in high), sum(row.symbols_right[i] for row, i in high)


def _errors(groups: dict[str, list[SolverErrors]]) -> Figure:
    tried = {row.solver for rows in groups.values() for row in rows}
    solvers = [name for name in SOLVERS if name in tried]
    ticks = {1: "100%", 0.1: "10%", 0.01: "1%", 0.001: "0.1%", FLOOR: "0.01% or less"}
    panels = []
    for i, (setting, members) in enumerate(groups.items()):
        by_solver = group_by(sorted(members, key=lambda row: row.length), lambda row: row.solver)
        here = [(index, name) for index, name in enumerate(solvers) if name in by_solver]
        marks: list[Mark] = [_error_line(name, index, by_solver[name]) for index, name in here]
        bars = {row.length: max(row.bar, FLOOR) for row in members if row.bar is not None}
        if bars:
            marks.append(Marks("our target", "target", list(bars), list(bars.values())))
        x = Axis("length of the text (characters)", "log", sorted({row.length for row in members}))
        y = Axis("" if i else "symbol error rate", "log", ticks, (FLOOR * 0.7, 1.3))
        panels.append(Panel(TITLES[setting], marks, x, y))
    return Figure("decipher-errors", words("errors"), panels, size=(9.5, 4.6), share_y=True)


def _error_line(solver: str, index: int, rows: list[SolverErrors]) -> Line:
    beside = 1 + 0.015 * (index - 1)  # so that no interval hides another
    y, low, high = np.maximum([(row.error, *row.error_interval) for row in rows], FLOOR).T
    return Line(SOLVERS[solver], [row.length * beside for row in rows], y, low, high, interval="bars")


def _reliability(groups: dict[str, list[Reliability]]) -> Figure:
    lines: list[Mark] = [Reference("perfectly calibrated", x=[0, 1], y=[0, 1], dash="solid")]
    bars: list[Mark] = []
    for index, (setting, members) in enumerate(groups.items()):
        n, right, sure = np.sum([(row.symbols, row.symbols_right, row.sure) for row in members], axis=0)
        some = n >= FEWEST
        share = right[some] / n[some]
        low, high = np.array([wilson(*pair) for pair in zip(share, n[some], strict=True)]).reshape(-1, 2).T
        lines.append(Line(TITLES[setting], sure[some] / n[some], share, low, high, interval="bars"))
        places = np.arange(len(n)) + 0.27 * (index - (len(groups) - 1) / 2)
        bars.append(Bars(TITLES[setting], places, n / n.sum(), 0.25))
    between = {i - 0.5: f"{edge:g}" for i, edge in enumerate(members[0].edges)}
    confidence = Axis("confidence given to a symbol of the key", limits=(0, 1.02))
    panels = [
        Panel("Confidence and truth", lines, confidence, Axis("share that is right", limits=(0, 1.02))),
        Panel(
            "How often each confidence is given",
            bars,
            Axis("confidence", ticks=between),
            Axis("share of symbols"),
        ),
    ]
    return Figure("decipher-reliability", words("reliability"), panels, size=(9.5, 4.4), widths=(3, 2))


def _table(setting: str, rows: list[SolverErrors]) -> Table:
    ours = {row.length: row.errors for row in rows if row.solver == OURS}

    def ours_on_the_same(row: SolverErrors) -> float | None:
        errors = ours.get(row.length)
        return None if errors is None else float(np.mean(errors[: row.n]))

    columns = [
        Column[SolverErrors]("Length", "length"),
        Column("Solver", lambda row: " ".join(filter(None, (SOLVERS[row.solver], row.solver_version)))),
        Column("Symbol error rate", "error", ".2%"),
        Column("Ours, same texts", ours_on_the_same, ".2%"),
        Column("95% interval", lambda row: "{:.2%} to {:.2%}".format(*row.error_interval)),
        Column("Target", lambda row: row.bar if row.solver == OURS else None, ".2%"),
        Column("Key accuracy", "key_accuracy", ".3f"),
        Column("Solved", "solved", ".0%"),
        Column("Seconds", "median_seconds", ".2f"),
        Column("Texts", "n"),
    ]
    order = sorted(rows, key=lambda row: (row.length, list(SOLVERS).index(row.solver)))
    caption = f"Solvers, {TITLES[setting]}: seconds are the median per text, one at a time, already warm"
    return make_table(caption, order, columns)


def _published_table(rows: list[PublishedCipher]) -> Table:
    columns = [
        Column[PublishedCipher]("Cipher", "file"),
        Column("Solver", lambda row: SOLVERS[row.solver]),
        Column("Symbols", "symbols"),
        Column("Letters", "letters"),
        Column("Letters right", "right", ".1%"),
        Column("Seconds", "wall_seconds", ".1f"),
    ]
    return make_table("Published ciphers", rows, columns)
