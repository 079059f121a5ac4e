"""Learning curves as rows and on the page."""

import json
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.errors import UserError
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.experiments.training import Options
from lexinvariant.presets import preset
from lexinvariant.report.draw import draw
from lexinvariant.results.rows import Rows
from lexinvariant.results.training import Run
from lexinvariant.settings import to_json


def run(options: Options, **rest: Any) -> list[Run]:
    return Rows(find_experiment("training").run(options, **rest)).of(Run)


def a_run(folder: Path, name: str, losses: list[float]) -> Path:
    config = preset(name)
    folder.mkdir()
    (folder / "config.json").write_text(to_json(config))
    rows = [{"step": 5, "kind": "train", "loss": 9.0, "tail_loss": 9.0}]
    rows += [
        {"step": 10 * (i + 1), "kind": "valid", "loss": x + 1, "tail_loss": x} for i, x in enumerate(losses)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_run_is_compared_by_the_compute_it_has_spent(tmp_path: Path) -> None:
    tiny, small = (
        a_run(tmp_path / "a", "tiny", [2.0, 1.5]),
        a_run(tmp_path / "b", "char-tiny", [3.0, 2.5, 1.0]),
    )
    said: list[str] = []
    rows = run(Options((tiny, small), out=tmp_path / "out", group="sizes"), log=said.append)
    assert [row.name for row in rows] == ["a", "b"]
    config = preset("tiny")
    by_hand = 10 * 32 * 96 * (6 * 2 * (4 * 64 * 64 + 2 * 64 * 256) + 12 * 2 * 64 * 96)
    assert rows[0].curve.flop == pytest.approx([by_hand, 2 * by_hand])
    assert config.model.flop_per_token(96) * config.tokens_per_step * 10 == by_hand
    assert rows[1].curve.tail_loss == [3.0, 2.5, 1.0]
    assert said[1].startswith("b: 1.000 nats")

    run(Options((tiny,), out=tmp_path / "out", group="again"))
    section = find_experiment("training").section(read_all_rows(tmp_path / "out"))
    assert section is not None
    assert [figure.name for figure in section.figures] == ["training-sizes", "training-again"]
    assert all(draw(figure, "light").axes for figure in section.figures)
    assert [len(table.rows) for table in section.tables] == [2, 1]
    assert "b ends lowest, at 2.72" in section.figures[0].alt


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no runs to compare"):
        run(Options((), out=tmp_path))
    with pytest.raises(UserError, match="not the folder of a run"):
        run(Options((tmp_path,), out=tmp_path))
    assert not list(tmp_path.iterdir())
