"""A figure as data: panels, axes, and what is marked in them. `report/draw.py` draws it, in light and dark.

Series are told apart by name: a name has one colour, dash and marker in all panels of a figure, given in the order in
which names first appear, unless a mark asks for another with `series`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Axis:
    """One axis of a panel."""

    label: str = ""
    scale: Literal["linear", "log", "log2"] = "linear"
    ticks: Sequence[float] | Mapping[float, str] | None = None
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
    across: bool = False
    """They lie, `x` is their place on the vertical axis, and they have neither intervals nor labels."""


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
    labels: Sequence[Sequence[str]] = ()
    """What stands in each cell."""


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
    """One figure: a name for its files, a caption, and its panels row by row."""

    name: str
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
    row_titles: Sequence[str] = ()
    """Stands before the label of the vertical axis, one a row of panels."""

    @property
    def alt(self) -> str:
        """What a reader who cannot see the figure should know."""
        return " ".join(_panel_in_words(panel) for panel in self.panels if panel.marks)


def _panel_in_words(panel: Panel) -> str:
    axes = " by ".join(axis.label for axis in (panel.y, panel.x) if axis.label)
    told = [_mark_in_words(mark, panel) for mark in panel.marks]
    curves = [] if panel.y.names else [mark for mark in panel.marks if isinstance(mark, Line)]
    ends = {mark.name: y[-1] for mark in curves if len(y := _finite(mark)[1])}
    if len(ends) > 1:
        lowest = min(ends, key=ends.__getitem__)
        told.append(f"{lowest} ends lowest, at {_short(ends[lowest])}")
    return " ".join(f"{panel.title}{f' ({axes})' if axes else ''}: {'; '.join(told)}.".split())


def _mark_in_words(mark: Mark, panel: Panel) -> str:
    """The ends of a curve, every bar and dot that has a name, and where a heat map is strongest."""
    names = panel.y.names or panel.x.names
    match mark:
        case Reference():
            return mark.name if mark.at is None else f"{mark.name} at {_short(mark.at)}"
        case BlankRows():
            return f"{len(mark.rows)} of {len(names)} {mark.name}"
        case Marks() if names:
            return f"{len(mark.x)} of {len(names)} {mark.name}"
        case HeatMap():
            return _labels_in_words(mark, panel) if mark.labels else _cells_in_words(mark, panel.x.names)
    x, y = _finite(mark)
    if isinstance(mark, Line) and not names and len(y):
        return f"{mark.name} from {_short(y[0])} to {_short(y[-1])}".strip()
    places, values = (y, x) if panel.y.names else (x, y)
    told = [_short(value) for value in values]
    if names:
        told = [f"{names[round(at)]} {value}" for at, value in zip(places, told, strict=True)]
    return f"{mark.name}: {', '.join(told) or 'nothing'}"


def _cells_in_words(mark: HeatMap, columns: Sequence[str]) -> str:
    cells = np.asarray(mark.cells, float)[:, : mark.divider]
    cells = np.nan_to_num(cells[~np.isnan(cells).all(axis=1)])
    if not len(cells):
        return "nothing"
    first, last = (f"{columns[row.argmax()]} {row.max():.2f}" for row in (cells[0], cells[-1]))
    mean = f"{cells.max(axis=1).mean():.2f}"
    told = f"strongest in the first row {first}, in the last {last}, on average {mean}"
    if mark.framed is None:
        return told
    return f"{told}; framed {columns[mark.framed]} from {cells[0, mark.framed]:.2f} to {cells[-1, mark.framed]:.2f}"


def _labels_in_words(mark: HeatMap, panel: Panel) -> str:
    """Each row's last cell before the divider, or after it the first."""
    column = mark.divider if mark.divider is not None else -1
    cells = np.asarray(mark.cells, float)[:, column]
    rows = zip(panel.y.names, mark.labels, cells, strict=True)
    told = [f"{name} {labels[column]} {_short(value)}" for name, labels, value in rows if np.isfinite(value)]
    return f"{panel.x.names[column]}: {', '.join(told) or 'nothing'}"


def _finite(mark: Line | Bars | Marks) -> tuple[np.ndarray, np.ndarray]:
    """Places and values that are there."""
    points = np.array([mark.x, mark.height if isinstance(mark, Bars) else mark.y], float)
    if isinstance(mark, Bars) and mark.across:
        points = points[::-1]
    x, y = points[:, np.isfinite(points).all(axis=0)]
    return x, y


def _short(value: float) -> str:
    """Three digits: 0.0877, 2.72, 7,120."""
    return f"{float(f'{value:.3g}'):,g}"


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
