"""What the solver says of ciphers of every kind, and whether it holds: verdicts, and confidence against truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lexinvariant.results.figure import Axis, Bars, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import wilson
from lexinvariant.results.rows import Row
from lexinvariant.results.section import Column, Table, make_table

CERTAIN = 0.9
"""Confidence from which on a symbol is called certain."""
FEWEST = 20
"""Symbols of a bin below which a share says nothing."""


@dataclass(frozen=True, kw_only=True)
class KindVerdicts(Row, experiment="decipher", kind="verdicts"):
    """The solver on texts of one cipher, of several lengths, in words, in one row and in groups of five."""

    cipher: str
    n: int
    lengths: list[int]
    read: int
    """Texts that were said to be read..."""
    doubtful: int
    unread: int
    """... not to be..."""
    named: int
    """... and texts of which it was said rightly what they are."""
    unread_readable: int
    """Texts that were said not to be read, of which nine symbols in ten were right all the same."""
    claimed: float
    """The share of symbols that the solver expects to be right, mean over texts..."""
    right: float
    """... and that is right."""
    edges: list[float]
    symbols: list[float]
    """By bin of confidence: symbols, each as often as it stands in its text..."""
    symbols_right: list[float]
    """... those that are right..."""
    sure: list[float]
    """... and their summed confidence."""
    median_seconds: float

    def certain(self) -> tuple[float, float]:
        """Symbols given 90% or more, and how many of them are right."""
        high = [i for i, edge in enumerate(self.edges[:-1]) if edge >= CERTAIN]
        return sum(self.symbols[i] for i in high), sum(self.symbols_right[i] for i in high)

    @property
    def certain_right(self) -> float | None:
        certain, right = self.certain()
        return right / certain if certain else None


@dataclass(frozen=True, kw_only=True)
class KindSolver(Row, experiment="decipher", kind="kind-solver"):
    """Ours or another solver on the same texts of a cipher that is no simple substitution."""

    cipher: str
    solver: str
    right: list[float]
    """Of each text: the share of its letters that is right."""
    median_seconds: float

    @property
    def n(self) -> int:
        return len(self.right)

    @property
    def mean_right(self) -> float:
        return float(np.mean(self.right))

    @property
    def read(self) -> int:
        return sum(share >= CERTAIN for share in self.right)


def kind_solvers_table(rows: list[KindSolver]) -> Table:
    columns = [
        Column[KindSolver]("Cipher", "cipher"),
        Column("Solver", "solver"),
        Column("Texts", "n"),
        Column("Nine letters in ten right", "read"),
        Column("Letters right", "mean_right", ".1%"),
        Column("Seconds", "median_seconds", ".2f"),
    ]
    return make_table("Other ciphers: solvers on the same texts", rows, columns)


def kinds_table(rows: list[KindVerdicts]) -> Table:
    columns = [
        Column[KindVerdicts]("Cipher", "cipher"),
        Column("Texts", "n"),
        Column("Read", "read"),
        Column("Doubtful", "doubtful"),
        Column("Not read", "unread"),
        Column("Named correctly", lambda row: row.named / row.n, ".0%"),
        Column("Expected right", "claimed", ".1%"),
        Column("Right", "right", ".1%"),
        Column("Symbols given 90% or more", lambda row: row.certain()[0], ",.0f"),
        Column("Of these, right", "certain_right", ".1%", missing="none given"),
        Column("Seconds", "median_seconds", ".2f"),
    ]
    lengths = sorted({length for row in rows for length in row.lengths})
    shown = ", ".join(map(str, lengths[:-1])) + f" and {lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
    return make_table(f"Ciphers of every kind, texts of {shown} letters", rows, columns)


def kinds_figure(rows: list[KindVerdicts], caption: str) -> Figure:
    n, right, sure = np.sum([(row.symbols, row.symbols_right, row.sure) for row in rows], axis=0)
    some = n >= FEWEST
    share = right[some] / n[some]
    low, high = np.array([wilson(*pair) for pair in zip(share, n[some], strict=True)]).reshape(-1, 2).T
    line = Line("all kinds", sure[some] / n[some], share, low, high, interval="bars", every_marker=True)
    perfect = Reference("perfectly calibrated", x=[0, 1], y=[0, 1], dash="solid")
    places = np.arange(len(rows))
    bars: list[Mark] = [
        Bars("expected right", places - 0.2, [row.claimed for row in rows], 0.38, across=True),
        Bars("right", places + 0.2, [row.right for row in rows], 0.38, across=True),
    ]
    confidence = Axis("confidence given to a symbol", limits=(0, 1.02))
    kinds = Axis(names=[row.cipher for row in rows])
    panels = [
        Panel(
            "Confidence and truth", [perfect, line], confidence, Axis("share that is right", limits=(0, 1.02))
        ),
        Panel("By cipher", bars, Axis("share of symbols", limits=(0, 1.02)), kinds),
    ]
    return Figure("decipher-kinds", caption, panels, size=(9.5, 5.2))
