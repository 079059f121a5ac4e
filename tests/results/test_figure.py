"""Round numbers on log axes, and figures in words."""

import numpy as np
import pytest

from lexinvariant.results.figure import (
    Axis,
    Bars,
    BlankRows,
    Figure,
    HeatMap,
    Line,
    Mark,
    Marks,
    Panel,
    Reference,
    log_ticks,
)

NUMBERS = Axis()


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (1.8, 22, 10, [2, 3, 5, 7, 10, 15, 20]),
        (2.53, 2.81, 10, [2.6, 2.7, 2.8]),  # narrow
        (10.1, 19.9, 4, [11, 14, 17]),
        (0.9e15, 2.2e16, 6, [1e15, 2e15, 5e15, 1e16, 2e16]),
        (0.9, 2.2e5, 10, [1, 10, 100, 1e3, 1e4, 1e5]),
    ],
)
def test_there_are_round_numbers_and_not_too_many(
    low: float, high: float, most: int, ticks: list[float]
) -> None:
    assert log_ticks(low, high, most) == pytest.approx(ticks)


def words(*marks: Mark, x: Axis = NUMBERS, y: Axis = NUMBERS) -> str:
    return Figure("name", "caption", [Panel("Panel", marks, x, y), Panel("", [])]).alt


def test_a_figure_can_be_told_to_those_who_cannot_see_it() -> None:
    curves = (
        Line("a", [1, 2, 3], [8123.4, 2, np.nan]),
        Line("b", [1, 2], [2, 1]),
        Reference("chance", at=0.25),
    )
    told = "Panel (loss by step): a from 8,120 to 2; b from 2 to 1; chance at 0.25; b ends lowest, at 1."
    assert words(*curves, x=Axis("step"), y=Axis("loss")) == told
    assert words(Line("", [1, 2], [3, 4])) == "Panel: from 3 to 4."
    assert words(Line("none", [1], [np.nan])) == "Panel: none: nothing."
    names = Axis(names=["one\nline", "two"])
    assert words(Bars("ours", [0.1, 1.1], [50, 25], 0.4), x=names) == "Panel: ours: one line 50, two 25."
    assert words(Line("ours", [5, 6], [0, 1], line=False), y=names) == "Panel: ours: one line 5, two 6."
    grid = Marks("right", "right", [0], [1]), BlankRows("blank", [0])
    assert words(*grid, y=names) == "Panel: 1 of 2 right; 1 of 2 blank."


def test_a_heat_map_is_told_by_its_strongest_cells() -> None:
    cells = [[0.1, 0.2, 0.7], [np.nan] * 3, [0.9, 0.1, 0.0]]
    told = "Panel: strongest in the first row b 0.20, in the last a 0.90, on average 0.55"
    assert words(HeatMap(cells, divider=2), x=Axis(names="ab+")) == f"{told}."
    assert (
        words(HeatMap(cells, divider=2, framed=0), x=Axis(names="ab+"))
        == f"{told}; framed a from 0.10 to 0.90."
    )
    assert words(HeatMap([[np.nan]]), x=Axis(names="a")) == "Panel: nothing."
