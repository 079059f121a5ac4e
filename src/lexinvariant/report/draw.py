"""Draws figures: labelled, colour-blind safe, told apart in greyscale, in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter, NullLocator

from lexinvariant.results import figure as described
from lexinvariant.results.figure import Bars, BlankRows, Figure, HeatMap, Line, Marks, Panel, Reference

Theme = Literal["light", "dark"]

# Okabe and Ito's palette, each theme's in its own lightness; dash and marker tell series apart without colour.
COLOURS: dict[Theme, tuple[str, ...]] = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#4d4d4d"),
    "dark": ("#56b4e9", "#ff8c42", "#2fd6a4", "#f0a6cf", "#f0e442", "#d0d0d0"),
}
BREAKS = ((5, 1.5), (1, 1), (5, 1, 1, 1), (3, 1, 1, 1, 1, 1), (8, 3))
DASHES: tuple[Any, ...] = ("-", *((0, pattern) for pattern in BREAKS))
MARKERS = ("o", "s", "^", "D", "v", "P")
GREY: dict[Theme, str] = {"light": "#4d4d4d", "dark": "#d0d0d0"}
INK: dict[Theme, tuple[str, str]] = {"light": ("#1a1a1a", "#ffffff"), "dark": ("#e8e8e8", "#16181d")}
"""Ink and paper."""
STRONGEST: dict[Theme, str] = {"light": "#00182b", "dark": "#ffffff"}
"""Certainty in a heat map."""
LABEL_TURNS = 0.3
"""Above this probability what stands in a cell has the paper's colour."""
LONG, SHORT, DOTTED = (0, (8, 2)), (0, (2, 2)), (0, (1, 1.5))
REFERENCE_DASHES: dict[str, Any] = {"long": LONG, "short": SHORT, "dotted": DOTTED, "solid": "-"}
LOOKS: dict[str, dict[str, Any]] = {
    "right": {"marker": "s", "s": 34},
    "wrong": {"marker": "X", "s": 46},
    "target": {"marker": "_", "s": 260, "linewidth": 2},
}

STYLE: Any = {
    "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.15, "axes.spines.top": False, "axes.spines.right": False,
    "font.size": 10.5, "axes.titlesize": 11, "legend.fontsize": 9, "legend.frameon": False,
    "svg.hashsalt": "lexinvariant",  # the same rows give the same file
}  # fmt: skip
BESIDE, ABOVE = 0.12, 0.06
"""Inches around every panel: text is a little wider than the layout takes it for."""
MOST_POINTS = 200
"""Of a line, in a panel some 400 pixels wide."""
LARGE = 1e5
"""From here on numbers are written as powers of ten."""


@dataclass(frozen=True)
class Saved:
    """A figure on disk, and its two SVG texts for the page."""

    figure: Figure
    svg_light: bytes
    svg_dark: bytes
    png: Path


def save(figure: Figure, folder: Path) -> Saved:
    """Draw in both themes; write NAME.svg, NAME.png and NAME.dark.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    light, dark, png = (folder / (figure.name + suffix) for suffix in (".svg", ".dark.svg", ".png"))
    files: dict[Theme, Path] = {"light": light, "dark": dark}
    for theme, svg in files.items():
        canvas = draw(figure, theme)
        with _house_style(theme):
            canvas.savefig(svg, metadata={"Date": None})
            if theme == "light":
                canvas.set_layout_engine("none")  # laid out already
                canvas.savefig(png, dpi=150)
    return Saved(figure, light.read_bytes(), dark.read_bytes(), png)


def draw(figure: Figure, theme: Theme) -> Canvas:
    """A Matplotlib figure of it."""
    columns = figure.columns or len(figure.panels)
    rows = -(-len(figure.panels) // columns)
    with _house_style(theme):
        canvas = Canvas(figsize=figure.size, layout=ConstrainedLayoutEngine(w_pad=BESIDE, h_pad=ABOVE))
        widths = list(figure.widths) or None
        grid = canvas.subplots(rows, columns, squeeze=False, sharey=figure.share_y, width_ratios=widths)
        places: list[Axes] = list(grid.ravel())
        series = _series_of(figure)
        image: Any = None
        for axes, panel in zip_longest(places, figure.panels):
            if panel is not None and panel.marks:
                image = _panel(axes, panel, series, theme) or image
            else:
                axes.remove()
        for title, first in zip(figure.row_titles, grid[:, 0], strict=False):
            first.set_ylabel(f"{title}\n{first.get_ylabel()}")
        if figure.colour_bar and image is not None:
            bar = canvas.colorbar(image, ax=canvas.axes, label=figure.colour_bar, shrink=0.75, pad=0.01)
            bar.outline.set_linewidth(0.5)
        _legends(canvas, figure)
    return canvas


@contextmanager
def _house_style(theme: Theme) -> Iterator[None]:
    """Matplotlib settings of every figure in a theme, restored afterwards."""
    ink, paper = INK[theme]
    settings: Any = {f"{part}.facecolor": paper for part in ("figure", "axes", "savefig")}
    settings |= {f"axes.{part}color": ink for part in ("edge", "label", "title")}
    settings |= {f"{part}.color": ink for part in ("text", "xtick", "ytick", "grid")}
    with matplotlib.rc_context(settings | STYLE):
        yield


def series_style(index: int, theme: Theme) -> dict[str, Any]:
    """Colour, dash and marker of the index-th series."""
    index %= len(MARKERS)
    look = {"color": COLOURS[theme][index], "linestyle": DASHES[index], "marker": MARKERS[index]}
    return look | {"markevery": 0.15, "markersize": 4.5, "linewidth": 1.8}


def _series_of(figure: Figure) -> dict[str, int]:
    """The number of each name's series, in the order in which names appear."""
    marks = [mark for panel in figure.panels for mark in panel.marks if isinstance(mark, Line | Bars)]
    names = dict.fromkeys(mark.name for mark in marks if mark.series is None)
    return {name: index for index, name in enumerate(names)}


def _panel(axes: Axes, panel: Panel, series: Mapping[str, int], theme: Theme) -> Any:
    """Draw a panel; returns the image of its heat map, if it has one."""
    image: Any = None
    for mark in panel.marks:
        match mark:
            case Line():
                index = series[mark.name] if mark.series is None else mark.series
                _line(axes, mark, series_style(index, theme), theme)
            case Bars():
                index = series[mark.name] if mark.series is None else mark.series
                _bars(axes, mark, COLOURS[theme][index % len(COLOURS[theme])], theme)
            case Reference():
                _reference(axes, mark, theme)
            case Marks():
                colours = {"right": INK[theme][0], "wrong": COLOURS[theme][1], "target": GREY[theme]}
                look: Any = {"linewidth": 0, "color": colours[mark.look]} | LOOKS[mark.look]
                axes.scatter(mark.x, mark.y, zorder=3, label=mark.name, **look)
            case BlankRows():
                for number, row in enumerate(mark.rows):
                    label = mark.name if number == 0 else None
                    axes.axhspan(row - 0.5, row + 0.5, color=GREY[theme], alpha=0.3, linewidth=0, label=label)
            case HeatMap():
                image = _heat_map(axes, mark, theme)
    axes.set_title(verbatim(panel.title), loc="left")
    _axis(axes, "x", panel.x, panel.monospace)
    _axis(axes, "y", panel.y, panel.monospace)
    if panel.square:
        axes.set_aspect("equal")
    framed = next((m.framed for m in panel.marks if isinstance(m, HeatMap) and m.framed is not None), None)
    if framed is not None:
        axes.get_xticklabels()[framed].set(fontweight="bold", color=COLOURS[theme][1])
    return image


def _line(axes: Axes, mark: Line, style: dict[str, Any], theme: Theme) -> None:
    kept = _drawn_points(mark)
    x, y = np.asarray(mark.x, float)[kept], np.asarray(mark.y, float)[kept]
    style = style | ({"markevery": 1} if mark.every_marker or not mark.line else {})
    style |= {} if mark.line else {"linestyle": "none", "markersize": 6.0}
    has_interval = mark.low is not None and mark.high is not None
    if has_interval:
        low, high = (np.asarray(values, float)[kept] for values in (mark.low, mark.high))
    if has_interval and mark.interval == "band":
        axes.fill_between(x, low, high, color=style["color"], alpha=0.22, linewidth=0)
    if has_interval and mark.interval == "bars":
        middle = x if mark.across else y
        reach = np.abs(np.stack([np.minimum(low, middle), np.maximum(high, middle)]) - middle)
        style.pop("markevery")
        error: Any = {"xerr" if mark.across else "yerr": reach, "capsize": 2.5, "elinewidth": 1}
        axes.errorbar(x, y, label=mark.name, **error, **style)
    else:
        axes.plot(x, y, label=mark.name, **style)
    for place, text in zip(zip(x, y, strict=True), mark.labels, strict=False):
        # On a patch of paper, so that no line crosses it.
        box = {"facecolor": INK[theme][1], "edgecolor": "none", "pad": 0.8}
        axes.annotate(text, place, (7, 0), textcoords="offset points", va="center", fontsize=8.5, bbox=box)


def _drawn_points(mark: Line) -> np.ndarray:
    """All points of a short line; of a long one, which would make a file of a megabyte, as many as the eye can tell."""
    n = np.size(mark.x)
    if n <= MOST_POINTS or mark.every_marker or not mark.line or mark.labels:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, MOST_POINTS).round().astype(int))


def _bars(axes: Axes, mark: Bars, colour: str, theme: Theme) -> None:
    x, height = np.asarray(mark.x, float), np.asarray(mark.height, float)
    hatched: dict[str, Any] = {"facecolor": "none", "edgecolor": colour, "hatch": "///"}
    look = hatched if mark.hatched else {"color": colour}
    if mark.across:
        axes.barh(x, height, mark.width, label=mark.name, **look)
        return
    axes.bar(x, height, mark.width, label=mark.name, **look)
    top = height
    if mark.low is not None and mark.high is not None:
        reach = np.abs(np.stack([np.asarray(mark.low), np.asarray(mark.high)]) - height)
        axes.errorbar(x, height, reach, color=GREY[theme], capsize=3, linewidth=1.2, linestyle="none")
        top = np.asarray(mark.high, float)
    for place, above, text in zip(x, top, mark.labels, strict=False):
        axes.annotate(text, (place, above), (0, 2), textcoords="offset points", ha="center", fontsize=7.5)


def _reference(axes: Axes, mark: Reference, theme: Theme) -> None:
    look = {"color": GREY[theme], "linestyle": REFERENCE_DASHES[mark.dash], "linewidth": 1.3}
    if mark.at is None:
        axes.plot(mark.x, mark.y, label=mark.name, **look)
    elif mark.axis == "y":
        axes.axhline(mark.at, label=mark.name, **look)
    else:
        axes.axvline(mark.at, label=mark.name, **look)


def _heat_colours(theme: Theme) -> Colormap:
    """From paper by way of the first colour to the strongest: steadily darker (or lighter), for greyscale."""
    steps = [(0.0, INK[theme][1]), (0.4, COLOURS[theme][0]), (1.0, STRONGEST[theme])]
    return LinearSegmentedColormap.from_list("probability", steps).with_extremes(bad=(GREY[theme], 0.3))


def _heat_map(axes: Axes, mark: HeatMap, theme: Theme) -> Any:
    cells = np.ma.masked_invalid(np.asarray(mark.cells, float))
    rows, columns = cells.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    image = axes.pcolormesh(*edges, cells, cmap=_heat_colours(theme), vmin=0.0, vmax=1.0)
    image.set(edgecolor=to_rgba(INK[theme][0], 0.08), linewidth=0.4)
    axes.grid(visible=False)
    for row, labels in enumerate(mark.labels):
        for column, text in enumerate(labels):
            is_strong = cells[row, column] is not np.ma.masked and cells[row, column] > LABEL_TURNS
            ink = INK[theme][1 if is_strong else 0]
            axes.text(column, row, verbatim(text), color=ink, ha="center", va="center", fontsize=7.5)
    if mark.divider is not None:
        axes.axvline(mark.divider - 0.5, color=INK[theme][0], linewidth=0.8)
    if mark.framed is not None:
        frame = Rectangle((mark.framed - 0.5, -0.5), 1, rows, fill=False, clip_on=False, linewidth=1.8)
        frame.set_edgecolor(COLOURS[theme][1])
        axes.add_patch(frame)
    return image


def _axis(axes: Axes, which: Literal["x", "y"], axis: described.Axis, monospace: float | None) -> None:
    side = axes.xaxis if which == "x" else axes.yaxis
    set_limits, get_limits = getattr(axes, f"set_{which}lim"), getattr(axes, f"get_{which}lim")
    side.set_label_text(axis.label)
    if axis.scale != "linear":
        getattr(axes, f"set_{which}scale")("log", base=2 if axis.scale == "log2" else 10)
    set_limits(*axis.limits)
    if axis.names:
        look: dict[str, Any] = {"family": "monospace", "fontsize": monospace} if monospace else {}
        side.set_ticks(range(len(axis.names)), [verbatim(name) for name in axis.names], **look)
        ends = (-0.5, len(axis.names) - 0.5)
        set_limits(*(ends if which == "x" else reversed(ends)))
        side.set_tick_params(length=0)
        if which == "x" and monospace is None:
            axes.grid(visible=False, axis="x")
        if which == "x" and monospace:
            side.set_tick_params(pad=monospace)
            # Symbols stand on one line, with or without tails; words are turned.
            for text in axes.get_xticklabels():
                is_word = len(text.get_text()) > 2
                text.set(rotation=90 * is_word, verticalalignment="top" if is_word else "baseline")
        return
    ticks: Any = axis.ticks
    if ticks is None and axis.scale == "log":
        low, high = sorted(get_limits())
        wide = which == "x" and high > LARGE  # numbers that take much room beside each other
        ticks = described.log_ticks(low, high, 6 if wide else 10) if high / low < 1e6 else None
    if ticks is not None:
        names = list(ticks.values()) if isinstance(ticks, Mapping) else [_number(tick) for tick in ticks]
        limits = get_limits()  # ticks beyond them would move them
        side.set_ticks(list(ticks), names)
        set_limits(*limits)
        side.set_minor_locator(NullLocator())
    side.set_minor_formatter(NullFormatter())  # small numbers between the decades only crowd a log axis


def _number(tick: float) -> str:
    """A number as a tick; a large one as a power of ten."""
    if abs(tick) < LARGE:
        return f"{tick:g}"
    digits, power = f"{tick:.2e}".split("e")
    factor = "" if float(digits) == 1 else rf"{float(digits):g} \times "
    return f"${factor}10^{{{int(power)}}}$"


def _legends(canvas: Canvas, figure: Figure) -> None:
    # Matplotlib puts lines before error bars and bars; the figure's own order counts.
    marks = [mark for panel in figure.panels for mark in panel.marks]
    order = [mark.name for mark in marks if not isinstance(mark, HeatMap)]
    places: dict[str, dict[str, Any]] = {
        "panels": {},
        "right": {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)},
        "under": {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14)},
    }
    shared: dict[str, Any] = {}
    for axes in canvas.axes:
        handles, names = axes.get_legend_handles_labels()
        by_name = dict(zip(names, handles, strict=True))
        names = sorted(by_name, key=order.index)
        if names and figure.legend in places:
            axes.legend([by_name[name] for name in names], names, **places[figure.legend])
        shared = by_name | shared
    if figure.legend == "below":
        names = sorted(shared, key=order.index)
        shared_legend(canvas, [shared[name] for name in names], names)


def shared_legend(canvas: Canvas, handles: Sequence[Any], names: Sequence[str]) -> None:
    """One legend below all panels, in as many columns as the figure has room for."""
    inches = 0.6 + 0.075 * max(map(len, names), default=0)  # of a column: a line, and letters of 9 points
    fitting = max(1, int(canvas.get_figwidth() / inches))
    canvas.legend(handles, names, loc="outside lower center", ncols=min(fitting, max(1, len(names))))


def verbatim(text: str) -> str:
    """Matplotlib takes text between two dollar signs for mathematics."""
    return text.replace("$", r"\$")
