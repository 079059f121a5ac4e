"""The section on solvers: what stands in it and what replaces what."""

from dataclasses import replace

import pytest

from lexinvariant.report.draw import draw
from lexinvariant.results.decipher import Batch, Reliability, Setting, SolverErrors, section
from lexinvariant.results.rows import Origin, Row, Rows
from lexinvariant.results.section import Section


def origin(run: str) -> Origin:
    return Origin("decipher", 0, "the command", run=run)


def errors(
    solver: str, length: int, errors: list[float], setting: Setting = "spaced", run: str = "1"
) -> SolverErrors:
    return SolverErrors(
        solver=solver, solver_version="1.5" if solver == "subbreaker" else None, setting=setting, length=length,
        errors=errors, error_interval=(0.0, max(errors)), key_accuracy=0.95, key_interval=(0.9, 1.0),
        median_seconds=0.25, origin=origin(run),
    )  # fmt: skip


def sure(setting: Setting = "spaced", run: str = "1") -> Reliability:
    return Reliability(
        setting=setting, length=100, edges=[0.0, 0.5, 0.9, 0.95, 1.0], symbols=[10, 4, 20, 80],
        symbols_right=[1, 3, 18, 79], sure=[2.0, 2.8, 18.6, 79.5], occurrences=[10, 4, 40, 300],
        occurrences_right=[1, 3, 38, 299], origin=origin(run),
    )  # fmt: skip


ROWS: list[Row] = [
    errors("lexinvariant", 64, [0.0, 0.5, 0.1]),
    errors("lexinvariant", 100, [0.0, 0.0, 0.03]),
    errors("subbreaker", 100, [0.2, 0.4]),
    sure(),
    Batch(n=1000, length=200, wall_seconds=12.5, error=0.001, origin=origin("1")),
]


def made(rows: list[Row]) -> Section:
    found = section(Rows(rows))
    assert found is not None
    return found


def test_without_rows_there_is_no_section() -> None:
    assert section(Rows([])) is None


def test_the_table_tells_how_ours_did_on_the_peers_texts() -> None:
    [table] = made(ROWS).tables
    assert [row[:4] for row in table.rows] == [
        ("64", "lexinvariant (ours)", "20.00%", "20.00%"),
        ("100", "lexinvariant (ours)", "1.00%", "1.00%"),
        ("100", "subbreaker 1.5", "30.00%", "0.00%"),
    ]
    assert [row[5] for row in table.rows] == ["1.50%", "0.10%", ""]  # bars are for ours
    assert table.rows[1][4] == "0.00% to 3.00%"
    assert table.rows[1][6:] == ("0.950", "67%", "0.25", "3")


def test_paragraphs_say_how_sure_and_how_fast() -> None:
    text = " ".join(made(ROWS).paragraphs)
    assert "Of the 100 symbols of keys that our solver gave 90% or more, 97.0% are right" in text
    assert "1,000 texts of 200 symbols at once took 12.5 s" in text


def test_figures_show_what_the_rows_say() -> None:
    lines, calibration = (draw(figure, "dark") for figure in made(ROWS).figures)
    [axes] = lines.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["64", "100"]
    assert [text.get_text() for text in lines.legends[0].get_texts()] == [
        "lexinvariant (ours)",
        "subbreaker",
        "our target",
    ]
    # Zero has no place on a log axis: it is drawn on the lowest line.
    none_wrong = draw(made([errors("lexinvariant", 100, [0.0])]).figures[0], "dark")
    assert none_wrong.axes[0].lines[0].get_ydata() == pytest.approx([1e-4])
    diagonal, reliable = (line.get_ydata() for line in calibration.axes[0].lines[:2])
    assert list(diagonal) == [0, 1]
    assert list(reliable) == pytest.approx([0.1, 18 / 20, 79 / 80])  # a bin of four symbols is left out
    assert sum(bar.get_height() for bar in calibration.axes[1].patches) == pytest.approx(1)


def test_a_later_run_of_one_setting_replaces_nothing_of_another() -> None:
    later: list[Row] = [errors("lexinvariant", 480, [0.1], "ascii", run="2"), sure("ascii", run="2")]
    both = made([*ROWS, *later])
    assert len(both.figures) == 2
    assert (len(made(ROWS).tables), len(both.tables)) == (1, 2)
    assert [figure.name for figure in made(later).figures] == ["decipher-reliability"]  # peers cannot read it
    again = made([*ROWS, replace(ROWS[1], origin=origin("3"))])
    assert len(again.tables[0].rows) == 1  # and a later run of the same replaces all of it
