"""Figures are drawn as they are described, in both themes, and are told apart without colour."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.report.draw import COLOURS, DASHES, INK, MARKERS, draw, save, series_style, shared_legend
from lexinvariant.results.figure import (
    Axis,
    Bars,
    BlankRows,
    Figure,
    HeatMap,
    Line,
    Marks,
    Panel,
    Reference,
    log_ticks,
)


def figure(*panels: Panel, **settings: Any) -> Figure:
    return Figure("one", "what it is", list(panels), **settings)


def test_series_differ_without_colour() -> None:
    looks = [series_style(index, "light") for index in range(6)]
    assert len({(str(look["linestyle"]), look["marker"]) for look in looks}) == 6
    assert len(set(map(str, DASHES))) == len(set(MARKERS)) == len(set(COLOURS["dark"])) == 6


def test_each_theme_has_its_own_colours(tmp_path: Path) -> None:
    lines = [Line(str(index), [0, 1], [index, 1]) for index in range(6)]
    saved = save(figure(Panel("title", lines, Axis("x (units)"), Axis("y (units)"))), tmp_path)
    light, dark = saved.svg_light.decode().lower(), saved.svg_dark.decode().lower()
    for here, there, mine in ((light, dark, "light"), (dark, light, "dark")):
        for colour in (*COLOURS[mine], *INK[mine]):  # type: ignore[index]
            assert colour in here, (mine, colour)
            assert colour not in there, (mine, colour)
    assert saved.png.read_bytes().startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_file(tmp_path: Path) -> None:
    one = figure(Panel("title", [Line("a", [0, 1], [1, 2], [0, 1], [2, 3])]))
    first, second = save(one, tmp_path / "a"), save(one, tmp_path / "b")
    assert (first.svg_light, first.svg_dark) == (second.svg_light, second.svg_dark)


def test_a_name_looks_the_same_in_all_panels() -> None:
    a, b = Line("a", [0], [0]), Line("b", [0], [0])
    left, right = draw(figure(Panel("", [a, b]), Panel("", [b])), "light").axes
    assert right.lines[0].get_color() == left.lines[1].get_color() == COLOURS["light"][1]
    fixed = Line("c", [0], [0], series=4)
    assert draw(figure(Panel("", [fixed])), "light").axes[0].lines[0].get_color() == COLOURS["light"][4]


def test_labels_keep_away_from_the_edge(tmp_path: Path) -> None:
    names = [f"a long line of code {row}" for row in range(4)]
    panel = Panel(
        "", [HeatMap([[0.5]] * 4)], Axis("x", names=["a"]), Axis("occurrence", names=names), monospace=8.5
    )
    canvas = draw(figure(panel), "light")
    canvas.savefig(tmp_path / "one.png", dpi=150)  # laid out as for the file
    label = canvas.axes[0].yaxis.label.get_window_extent()
    assert label.x0 > 0.05 * canvas.dpi, "a twentieth of an inch"


def test_a_legend_of_many_long_names_stays_inside_the_figure() -> None:
    lines = [Line(f"run {index}: with a long name", [0, 1], [index, 0]) for index in range(6)]
    canvas = draw(figure(Panel("", lines)), "light")
    canvas.draw_without_rendering()
    box = canvas.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= canvas.bbox.width
    assert len(canvas.legends[0].get_texts()) == 6
    shared_legend(canvas, [], [])  # of nothing there is nothing to say


def test_intervals_are_bands_or_bars_that_hold_their_points() -> None:
    band = Line("band", [0, 1], [1, 2], [0.5, 1.5], [1.5, 3])
    bars = Line(
        "bars", [0, 1], [1, 2], [0.5, 2.5], [1.5, 3], interval="bars"
    )  # one interval misses its point
    across = Line("across", [1, 2], [0, 1], [0.5, 1.5], [1.5, 3], interval="bars", across=True, line=False)
    axes = draw(figure(Panel("", [band, bars, across])), "light").axes[0]
    assert len(axes.collections) == 3  # a band and the bars of two
    reach = axes.collections[1].get_segments()  # type: ignore[attr-defined]
    np.testing.assert_allclose([np.asarray(bar)[:, 1] for bar in reach], [[0.5, 1.5], [2.0, 3.0]])


def test_grids_name_rows_from_the_top_and_frame_the_truth() -> None:
    cells = np.array([[0.1, 0.9, np.nan], [0.5, 0.25, 0.25]])
    heat = Panel(
        "heat", [HeatMap(cells, divider=2, framed=1)], Axis(names="ab+"), Axis(names="xy"), monospace=8
    )
    marks = [Marks("right", "right", [0], [1]), Marks("wrong", "wrong", [1], [0]), BlankRows("blank", [0, 1])]
    grid = Panel("$grid$", marks, Axis(names="ab"), Axis(names="xy"), square=True)
    canvas = draw(figure(heat, grid, colour_bar="probability"), "light")
    first, second, bar = canvas.axes
    assert [tick.get_text() for tick in first.get_yticklabels()] == ["x", "y"]
    assert first.get_ylim() == (1.5, -0.5)  # the first row is on top
    assert first.get_xticklabels()[1].get_color() == COLOURS["light"][1]
    assert first.patches[0].get_xy() == (0.5, -0.5)  # type: ignore[attr-defined]
    assert bar.get_ylabel() == "probability"
    assert second.get_title(loc="left") == r"\$grid\$"  # not mathematics
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["right", "wrong", "blank"]


def test_bars_carry_their_numbers_and_others_are_hatched() -> None:
    ours = Bars("ours", [0, 1], [0.5, 0.25], 0.4, [0.4, 0.2], [0.6, 0.3], labels=["50", "25"])
    theirs = Bars("paper", [0.4, 1.4], [0.9, 0.8], 0.4, labels=["90", "80"], hatched=True, series=0)
    axes = draw(figure(Panel("", [ours, theirs], Axis(names=["LookUp", "Permutation"]))), "light").axes[0]
    assert {text.get_text() for text in axes.texts} == {"50", "25", "90", "80"}
    assert [bool(patch.get_hatch()) for patch in axes.patches] == [False, False, True, True]


def test_references_are_lines_of_no_series() -> None:
    marks = [
        Line("ours", [1, 2], [1, 2]),
        Reference("chance", at=0.25, dash="short"),
        Reference("here", at=1.5, axis="x"),
        Reference("bound", x=[1, 2], y=[2, 1]),
    ]
    axes = draw(figure(Panel("", marks), legend="panels"), "dark").axes[0]
    assert {line.get_color() for line in axes.lines[1:]} == {"#d0d0d0"}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "chance", "here", "bound"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("low", "high", "some"), [(2.1, 9.0, [3, 5, 7]), (1, 500, [1, 20, 500]), (1e-3, 1e2, [0.001, 0.1, 100])]
)
def test_log_axes_have_round_numbers(low: float, high: float, some: list[float]) -> None:
    ticks = log_ticks(low, high)
    assert all(low <= tick <= high for tick in ticks)
    assert {f"{tick:g}" for tick in some} <= {f"{tick:g}" for tick in ticks}
    axes = draw(figure(Panel("", [Line("a", [1, 2], [low, high])], y=Axis("", "log"))), "light").axes[0]
    assert len(axes.get_yticks()) >= 3
