"""The section on convergence: the newest run of each corpus, and the paper's numbers beside ours."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from lexinvariant.experiments.rows import Provenance, Row, RowWriter, read_rows
from lexinvariant.report.convergence import section
from lexinvariant.report.figures import Drawing, house_style, save

WHERE = Provenance("convergence", seed=0, command="lexinvariant experiment convergence", draws=1)
N = 50


def averages(values: np.ndarray) -> dict[str, Any]:
    band = {"mean": values, "low": 0.9 * values, "high": 1.1 * values}
    return {
        "curves": {"geometric": band, "arithmetic": {name: 2 * v for name, v in band.items()}},
        "start": {"geometric": values[0], "arithmetic": 2 * values[0]},
        "end": {"geometric": values[-1], "arithmetic": 2 * values[-1]},
    }


def write(path: Path, label: str, end: float, *, baseline: bool = True, vocab_size: int = 128) -> list[Row]:
    """One run of the experiment, whose lexinvariant curve ends at `end` and whose standard one at half of it."""
    setting = {"label": label, "sequences": 7, "window": 30, "context": 79, "vocab_size": vocab_size}
    ours = np.geomspace(10 * end, end, N)
    with RowWriter(path / "convergence.jsonl", WHERE) as writer:
        roles = {"lexinvariant": ours, "standard": np.full(N, end / 2)}
        for role, values in list(roles.items())[: 1 + baseline]:
            about = {"role": role, "name": f"{role} model", "last_symbol_perplexity": 1.01 * end}
            writer.write("curve", **setting, **about, **averages(values))
        if baseline:
            ratio = {"geometric": 2.0, "arithmetic": 2.0}
            writer.write("gap", **setting, **averages(ours / (end / 2) - 1), ratio_at_end=ratio)
    return read_rows(path)


def words(rows: list[Row]) -> str:
    part = section(rows)
    assert part is not None
    cells = [cell for table in part.tables for row in table.rows for cell in row]
    return "\n".join([*part.paragraphs, *cells])


def drawn(drawing: Drawing) -> Figure:
    with house_style("dark"):
        figure = plt.figure(figsize=drawing.size, layout="constrained")
        drawing.draw(figure, "dark")
    plt.close(figure)
    return figure


def names(rows: list[Row]) -> list[str]:
    part = section(rows)
    assert part is not None
    return [drawing.name for drawing in part.drawings]


def test_without_rows_there_is_no_section() -> None:
    assert section([]) is None


def test_our_numbers_stand_beside_the_papers(tmp_path: Path) -> None:
    rows = write(tmp_path, "stdlib", 3.71)
    text = words(rows)
    for number in ("37.10 / 74.20", "3.71 / 7.42", "3.75 (78)", "1.85 / 3.71", "3.38 (511)", "2.00 (511)"):
        assert number in text, number
    for number in ("19.00 / 38.00", "9", "1.00 / 2.00", "under 1", "2.00 / 2.00", "1.69"):
        assert number in text.split("\n"), number
    assert names(rows) == ["convergence", "convergence-gap"]  # one corpus has nothing to be compared with


def test_the_newest_run_of_each_corpus_is_shown(tmp_path: Path) -> None:
    write(tmp_path, "code", 9.99)
    write(tmp_path, "prose", 4.44)
    rows = write(tmp_path, "code", 2.22)
    text = words(rows)
    assert "2.22 / 4.44" in text
    assert "4.44 / 8.88" in text
    assert "9.99" not in text
    assert names(rows) == ["convergence", "convergence-corpora", "convergence-gap"]
    part = section(rows)
    assert part is not None
    panels, together, gap = (drawn(drawing) for drawing in part.drawings)
    assert [axes.get_title(loc="left") for axes in panels.axes] == ["code", "prose"]
    for axes, end in zip(panels.axes, (2.22, 4.44), strict=True):
        assert [line.get_ydata()[-1] for line in axes.lines] == [end, end / 2]
        assert axes.get_yscale() == "log"
        low, high = axes.get_ylim()
        assert low < 1.0
        assert high > 44.4
    assert [line.get_ydata()[-1] for line in together.axes[0].lines] == [2.22, 4.44]
    assert [text.get_text() for text in gap.legends[0].get_texts()] == ["code", "prose", "twice the standard"]
    assert "2.22" in part.drawings[1].alt


def test_a_newer_run_without_a_baseline_has_no_gap(tmp_path: Path) -> None:
    write(tmp_path, "code", 3.0)
    rows = write(tmp_path, "code", 2.5, baseline=False)
    assert names(rows) == ["convergence"]
    assert "standard model" not in "\n".join(cell for t in section(rows).tables for r in t.rows for cell in r)  # type: ignore[union-attr]
    write(tmp_path, "prose", 4.0)
    figure = drawn(section(read_rows(tmp_path)).drawings[0])  # type: ignore[union-attr]
    # The first panel has no standard curve; the legend is of all panels.
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["lexinvariant", "standard"]


def test_vocabularies_that_differ_have_their_own_scales(tmp_path: Path) -> None:
    for label, end, size in (("a", 2.0, 128), ("b", 3.0, 128), ("c", 2.5, 128), ("d", 700.0, 32_128)):
        rows = write(tmp_path, label, end, vocab_size=size)
    part = section(rows)
    assert part is not None
    figure = drawn(part.drawings[0])
    assert len(figure.axes) == 4  # two rows of three places, two of them empty
    assert figure.axes[0].get_ylim()[1] < 100 < figure.axes[3].get_ylim()[0]
    assert all(len(drawing.alt) > 40 for drawing in part.drawings)
    saved = save(part.drawings[0], tmp_path / "figures")
    assert saved.svg_light != saved.svg_dark
