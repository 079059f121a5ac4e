"""Learning curves are drawn from metrics.jsonl, as far as a run has come."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.report.curves import demo_curves, demo_figure, run_curves, run_figure
from lexinvariant.report.draw import draw
from lexinvariant.text import MarkovLanguage


def write(folder: Path, steps: int, *, valid: bool = True) -> Path:
    folder.mkdir(parents=True)
    rows: list[dict[str, Any]] = [
        {"step": step, "kind": "train", "tail_loss": float(step)} for step in range(1, steps + 1)
    ]
    if valid:
        measured = {
            "loss": 2.5,
            "tail_loss": 2.0,
            "tail_perplexity": 7.39,
            "loss_by_position": [3.0, 2.5, 2.0],
        }
        rows.append({"step": steps, "kind": "valid", **measured})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_run_shows_training_held_out_text_and_positions(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", 3)
    figure = run_curves(folder)
    assert figure.caption == "The run in run. Perplexity at the end of the context: 7.39."
    learning, reading = draw(figure, "dark").axes
    assert [line.get_label() for line in learning.lines] == [
        "training, end of context",
        "held out, all positions",
        "held out, end of context",
    ]
    assert [list(line.get_xdata()) for line in learning.lines] == [[1, 2, 3], [3], [3]]
    np.testing.assert_allclose(reading.lines[0].get_ydata(), np.exp([3.0, 2.5, 2.0]))
    assert reading.get_yscale() == "log"
    assert run_figure(folder) == folder / "curves.png"


def test_a_long_run_is_smoothed(tmp_path: Path) -> None:
    [line] = draw(run_curves(write(tmp_path / "run", 240, valid=False)), "dark").axes[0].lines
    assert list(line.get_xdata()) == list(range(20, 241, 20))
    np.testing.assert_allclose(line.get_ydata(), np.arange(10.5, 240, 20))


def test_a_run_that_has_not_begun_has_no_curves(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no metrics.jsonl with training steps"):
        run_figure(tmp_path)


def test_the_demo_shows_both_runs_and_what_can_be_known(tmp_path: Path) -> None:
    write(tmp_path / "tiny", 3)
    write(tmp_path / "standard", 2)
    learning, reading = draw(demo_curves(tmp_path), "dark").axes
    assert [list(line.get_xdata()) for line in learning.lines] == [[1, 2, 3], [1, 2]]
    ours, unigrams, known = (line.get_ydata() for line in reading.lines)
    assert list(ours) == [3.0, 2.5, 2.0]
    assert (unigrams[0], known[0]) == (MarkovLanguage().unigram_entropy, MarkovLanguage().entropy_rate)
    assert demo_figure(tmp_path).read_bytes().startswith(b"\x89PNG")


def test_a_row_that_the_disk_has_spoilt_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "run", 3) / "metrics.jsonl"
    path.write_text(path.read_text().replace("tail_loss", "taim_loss", 2))
    learning = run_curves(path.parent).panels[0].marks[0]
    assert list(learning.x) == [3]
