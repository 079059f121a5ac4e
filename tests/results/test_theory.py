"""The theory's section: our numbers beside the paper's, from rows of every kind."""

from pathlib import Path

import numpy as np

from lexinvariant.report.draw import draw, save
from lexinvariant.results.rows import Provenance, Rows, RowWriter, read_rows
from lexinvariant.results.section import Section
from lexinvariant.results.theory import (
    FAMILIES,
    ROWS,
    Bench,
    Bound,
    Convergence,
    Exponents,
    Worst,
    section,
)
from lexinvariant.results.theory_limit import Limit, ModelCurve

GRID = [1, 4, 16, 64]
FALLING = [1.0, 0.5, 0.25, 0.125]
NATS = np.linspace(3.3, 1.25, 40)
WHERE = Provenance("theory", seed=0, command="lexinvariant experiment theory --quick", draws=3)


def write(folder: Path, *, model: bool = False) -> Rows:
    """One run with rows of every kind."""
    with RowWriter(folder / "theory.jsonl", WHERE) as writer:
        for name in FAMILIES:
            for d in (3, 5):
                writer.write(
                    Convergence(
                        language=name, d=d, texts=2, context=GRID,
                        l1_mean=[0.0] * 4 if (name, d) == ("symmetric", 3) else FALLING, l1_max=FALLING,
                        kl_sum_mean=FALLING, hellinger_sum_max=FALLING, regret_max=FALLING, entropy_mean=FALLING,
                        key_surprise_mean=FALLING, delta=0.05, bound_sharp=[2, 2, 1, 0.5],
                        bound_expected=[2, 1, 0.5, 0.3],
                    )
                )  # fmt: skip
            writer.write(Exponents(language=name, in_T={3: -0.9, 5: -0.8}, in_d=None, fitted_from=4))
        writer.write(Exponents(language="worst", in_T={2: -0.49}, in_d=0.61, fitted_from=4))
        writer.write(Worst(d=2, context=GRID, l1_mean=FALLING, texts=5, bound_expected=[2, 1, 0.6, 0.4]))
        writer.write(
            Bound(
                d=8, delta=0.05, context=GRID,
                epsilon={"printed": [2, 2, 2, 1], "repaired": [2, 2, 1.5, 1], "sharp": FALLING},
                context_for_tenth={"printed": 10**12, "repaired": 10**11, "sharp": 12345},
            )
        )  # fmt: skip
        nats = NATS.tolist()
        writer.write(
            Limit(
                text=0, d=27, order=3, particles=64, nats=nats, known_nats=(NATS - 0.5).tolist(), l1=nats,
                key_surprise=nats, log_evidence_error=nats, key_accuracy=1.0, fitted_characters=100,
            )
        )  # fmt: skip
        if model:
            writer.write(ModelCurve(text=0, nats=(NATS + 0.1).tolist(), name="tiny"))
        writer.write(
            Bench(
                what="enumeration", d=8, length=512, keys=40320, wall_seconds=2.4, cpu_seconds=2.3, bar_seconds=5.0
            )
        )  # fmt: skip
    return read_rows(folder, ROWS)


def made(rows: Rows) -> Section:
    found = section(rows)
    assert found is not None
    return found


def cells(part: Section) -> list[str]:
    return [cell for table in part.tables for row in table.rows for cell in row]


def test_without_rows_there_is_no_section() -> None:
    assert section(Rows([])) is None


def test_our_numbers_stand_beside_the_papers(tmp_path: Path) -> None:
    part = made(write(tmp_path, model=True))
    for number in (
        "-0.49 (d=2)",
        "-0.25",
        "0.61",
        "12,345",
        "1,000,000,000,000",
        "3.38",
        "2.00",
        "2.4 s",
        "none",
    ):
        assert number in cells(part), number
    at_end = NATS[-10:].mean()
    assert f"{np.exp(at_end):.2f}" in cells(part)
    assert f"{np.exp(at_end + 0.1):.2f}" in cells(part)
    assert "Trained model tiny" in cells(part)
    assert "Its draws: 3" in part.figures[-1].caption
    assert [len(table.rows) for table in part.tables] == [6, 1, 3, 3, 1]


def test_figures_show_what_the_rows_say(tmp_path: Path) -> None:
    part = made(write(tmp_path, model=True))
    names = ["convergence", "entropy", "worst", "bounds", "limit"]
    assert [figure.name for figure in part.figures] == [f"theory-{name}" for name in names]
    assert all(len(figure.alt) > 40 for figure in part.figures)
    convergence, entropy, worst, bounds, limit = (draw(figure, "dark") for figure in part.figures)
    assert [axes.get_title(loc="left") for axes in convergence.axes] == list(FAMILIES.values())
    # Where p' is p there is no curve: two bounds and one size less.
    assert [len(axes.lines) for axes in convergence.axes] == [4, 4, 4, 3]
    for figure in (convergence, entropy):
        assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False, False, True, True]
        assert [bool(axes.get_ylabel()) for axes in figure.axes] == [True, False, True, False]
    assert worst.axes[0].lines[0].get_label() == "d = 2 (slope -0.49)"
    np.testing.assert_allclose(worst.axes[0].lines[2].get_ydata(), np.array(GRID) ** -0.25)
    assert [line.get_label() for line in bounds.axes[0].lines] == [
        "paper, as printed",
        "paper, repaired",
        "direct",
    ]
    assert len(limit.axes[0].lines) == 3
    assert limit.axes[0].get_legend() is not None
    assert limit.axes[1].get_legend() is None


def test_the_same_rows_give_the_same_figure(tmp_path: Path) -> None:
    figure = made(write(tmp_path)).figures[2]
    first, second = save(figure, tmp_path / "one"), save(figure, tmp_path / "two")
    assert (first.svg_light, first.svg_dark) == (second.svg_light, second.svg_dark)
    assert first.svg_light.startswith(b"<?xml")
    assert first.png.read_bytes().startswith(b"\x89PNG")


def test_a_newer_run_without_a_model_shows_none(tmp_path: Path) -> None:
    write(tmp_path, model=True)
    part = made(write(tmp_path))
    assert "Trained model tiny" not in cells(part)


def test_the_first_screen_compares_with_the_papers_bound(tmp_path: Path) -> None:
    [decay] = made(write(tmp_path)).findings
    assert (decay.paper, decay.ours, decay.verdict) == (-0.25, -0.49, "reached")
    assert "upper bound" in decay.note
