"""The shared look of all figures: labelled, colour-blind safe, told apart in greyscale, light and dark.

A figure is a function that draws on a Matplotlib figure in a theme; `save` draws it in both and writes SVG and PNG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

Theme = Literal["light", "dark"]

# Okabe and Ito's palette, each theme's in its own lightness; dash and marker tell series apart without colour.
COLOURS: dict[Theme, tuple[str, ...]] = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#4d4d4d"),
    "dark": ("#56b4e9", "#ff8c42", "#2fd6a4", "#f0a6cf", "#f0e442", "#d0d0d0"),
}
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (5, 1, 1, 1)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 3)),
)
MARKERS = ("o", "s", "^", "D", "v", "P")
GREY: dict[Theme, str] = {"light": "#4d4d4d", "dark": "#d0d0d0"}
"""For bounds and other lines that are not measurements."""
INK: dict[Theme, tuple[str, str]] = {"light": ("#1a1a1a", "#ffffff"), "dark": ("#e8e8e8", "#16181d")}
"""Ink and paper."""


@dataclass(frozen=True)
class Drawing:
    """One figure: a name for its files, what it shows in words, and how to draw it."""

    name: str
    alt: str
    """What a reader who cannot see the figure should know."""
    caption: str
    draw: Callable[[Figure, Theme], None]
    size: tuple[float, float] = (8.0, 4.6)


@dataclass(frozen=True)
class Saved:
    """A drawing on disk, and its two SVG texts for the page."""

    drawing: Drawing
    svg_light: bytes
    svg_dark: bytes
    png: Path


def series_style(index: int, theme: Theme) -> dict[str, Any]:
    """Colour, dash and marker of the index-th series."""
    return {
        "color": COLOURS[theme][index % len(COLOURS[theme])],
        "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKERS[index % len(MARKERS)],
        "markevery": 0.15,
        "markersize": 4.5,
        "linewidth": 1.8,
    }


@contextmanager
def house_style(theme: Theme) -> Iterator[None]:
    """Matplotlib settings of every figure in a theme, restored afterwards."""
    ink, paper = INK[theme]
    settings: Any = {
        "figure.facecolor": paper,
        "axes.facecolor": paper,
        "savefig.facecolor": paper,
        "text.color": ink,
        "axes.edgecolor": ink,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.grid": True,
        "grid.color": ink,
        "grid.alpha": 0.15,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 10.5,
        "axes.titlesize": 11,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "svg.hashsalt": "lexinvariant",  # the same rows give the same file
    }
    with plt.rc_context(settings):
        yield


def label(axes: Axes, title: str, x: str, y: str) -> None:
    """Title and axis labels, with units."""
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def shared_legend(figure: Figure) -> None:
    """One legend below all panels, for series that all of them have, in as many columns as the figure has room for."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    inches = 0.6 + 0.075 * max(map(len, names), default=0)  # of a column: a line, and letters of 9 points
    fitting = max(1, int(figure.get_figwidth() / inches))
    figure.legend(handles, names, loc="outside lower center", ncols=min(fitting, len(names)))


def save(drawing: Drawing, folder: Path) -> Saved:
    """Draw in both themes; write NAME.svg, NAME.png and NAME.dark.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    light, dark, png = (folder / (drawing.name + suffix) for suffix in (".svg", ".dark.svg", ".png"))
    _draw(drawing, "light", light, png)
    _draw(drawing, "dark", dark, None)
    return Saved(drawing, light.read_bytes(), dark.read_bytes(), png)


def _draw(drawing: Drawing, theme: Theme, svg: Path, png: Path | None) -> None:
    with house_style(theme):
        figure = plt.figure(figsize=drawing.size, layout="constrained")
        drawing.draw(figure, theme)
        for axes in figure.axes:  # small numbers between the decades only crowd a log axis
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.yaxis.set_minor_formatter(NullFormatter())
        figure.savefig(svg, metadata={"Date": None})
        if png is not None:
            figure.set_layout_engine("none")  # laid out already
            figure.savefig(png, dpi=150)
        plt.close(figure)
