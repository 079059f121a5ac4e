"""A figure as data: panels, axes, and what is marked in them. `report/draw.py` draws it, in light and dark.

Series are told apart by name: a name has one colour, dash and marker in all panels of a figure, given in the order in
which names first appear, unless a mark asks for another with `series`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Ticks = Sequence[float] | Mapping[float, str]


@dataclass(frozen=True)
class Axis:
    """One axis of a panel."""

    label: str = ""
    scale: Literal["linear", "log", "log2"] = "linear"
    ticks: Ticks | None = None
    """Places, or places with what stands there. A log axis without any gets round numbers."""
    limits: tuple[float | None, float | None] = (None, None)
    names: Sequence[str] = ()
    """Categories, at 0, 1, 2, ...; for a vertical axis from top to bottom."""


@dataclass(frozen=True)
class Line:
    """A curve, or points with `line=False`; `low` and `high` are its interval: a band, or bars at each point."""

    name: str
    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    interval: Literal["band", "bars"] = "band"
    across: bool = False
    """The interval is one of x and not of y."""
    line: bool = True
    every_marker: bool = False
    """A marker at every point, where there are few."""
    labels: Sequence[str] = ()
    """What stands beside each point."""
    series: int | None = None


@dataclass(frozen=True)
class Reference:
    """A grey line that is no measurement: a bound, chance, or the paper's number. A constant has one `at`."""

    name: str
    at: float | None = None
    axis: Literal["x", "y"] = "y"
    x: ArrayLike = ()
    y: ArrayLike = ()
    dash: Literal["long", "short", "dotted", "solid"] = "long"


@dataclass(frozen=True)
class Bars:
    """Bars of one series; `hatched` for numbers that are not ours."""

    name: str
    x: ArrayLike
    height: ArrayLike
    width: float
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    labels: Sequence[str] = ()
    hatched: bool = False
    series: int | None = None


@dataclass(frozen=True)
class Marks:
    """Single places of a grid: `right` in ink, `wrong` in a colour that warns, or grey rows where nothing is known."""

    name: str
    look: Literal["right", "wrong", "target"]
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class BlankRows:
    """Rows of a grid in which nothing was measured, in grey."""

    name: str
    rows: Sequence[int]


@dataclass(frozen=True)
class HeatMap:
    """Probabilities from 0 to 1, one a cell; NaN is grey. The panel's axes name rows and columns."""

    cells: ArrayLike
    divider: int | None = None
    """A line before this column: what follows is no candidate like the others."""
    framed: int | None = None
    """The column to look at: the truth."""


Mark = Line | Reference | Bars | Marks | BlankRows | HeatMap


@dataclass(frozen=True)
class Panel:
    """One pair of axes; without marks, an empty place."""

    title: str
    marks: Sequence[Mark]
    x: Axis = Axis()
    y: Axis = Axis()
    square: bool = False
    """Cells of a grid are squares."""
    monospace: float | None = None
    """Size of tick labels that are symbols, in a fixed-width font."""


@dataclass(frozen=True)
class Figure:
    """One figure: a name for its files, what it shows in words, and its panels row by row."""

    name: str
    alt: str
    """What a reader who cannot see the figure should know."""
    caption: str
    panels: Sequence[Panel]
    columns: int = 0
    """Panels in a row; 0: all."""
    size: tuple[float, float] = (8.0, 4.6)
    legend: Literal["below", "panels", "right", "under", "none"] = "below"
    """One for all panels below them, or one in each panel, at the right of each or under each."""
    share_y: bool = False
    widths: Sequence[float] = ()
    colour_bar: str = ""
    """What the colours of heat maps mean, where there are any."""
    row_titles: Sequence[str] = field(default=())
    """Stands before the label of the vertical axis, one a row of panels."""


def log_ticks(low: float, high: float, most: int = 10) -> list[float]:
    """Round numbers for a log axis, as fine as `most` allows."""
    if high / low < 2:
        step = 10 ** np.floor(np.log10(high - low))
        ticks = [float(step * n) for n in np.arange(np.ceil(low / step), np.floor(high / step) + 1)]
        return ticks[:: -(-len(ticks) // most)]
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,)):
        ticks = [step * 10.0**power for power in powers for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= most:
            break
    return ticks
