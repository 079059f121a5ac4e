"""Rows survive interruption and say where they come from."""

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.experiments.rows import (
    Provenance,
    RowWriter,
    hash_bytes,
    hash_files,
    latest,
    latest_of_each,
    read_rows,
)

WHERE = Provenance(
    "trial", seed=3, command="lexinvariant experiment trial", data_hash="d", model_hash="m", draws=2
)


def test_a_row_carries_its_provenance(tmp_path: Path) -> None:
    with RowWriter(tmp_path / "new" / "rows.jsonl", WHERE) as writer:
        returned = writer.write(
            "point", value=np.float32(0.5), curve=np.arange(3), none=float("nan"), by={2: 1.0}
        )
    [row] = read_rows(tmp_path / "new" / "rows.jsonl")
    assert row == returned
    assert {k: row[k] for k in ("experiment", "seed", "command", "model_hash", "data_hash", "draws")} == {
        "experiment": "trial",
        "seed": 3,
        "command": "lexinvariant experiment trial",
        "model_hash": "m",
        "data_hash": "d",
        "draws": 2,
    }
    assert row["time"].endswith("+00:00")
    assert row["version"]
    assert row["seconds"] >= 0
    assert (row["value"], row["curve"], row["none"], row["by"]) == (0.5, [0, 1, 2], None, {"2": 1.0})


def test_provenance_cannot_be_overwritten(tmp_path: Path) -> None:
    with RowWriter(tmp_path / "rows.jsonl", WHERE) as writer, pytest.raises(ValueError, match="seed"):
        writer.write("point", seed=4)


def test_a_torn_line_is_skipped_and_then_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowWriter(path, WHERE) as writer:
        writer.write("point", n=1)
    with path.open("a") as file:
        file.write('{"kind": "point", "n": 2')  # the machine stopped here
    assert [row["n"] for row in read_rows(path)] == [1]
    with RowWriter(path, WHERE) as writer:
        writer.write("point", n=3)
    assert [row["n"] for row in read_rows(path)] == [1, 3]


def test_damage_inside_is_reported_not_hidden(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"kind": "a"}\nrubbish\n{"kind": "b"}\n')
    with pytest.raises(UserError, match="line 2"):
        read_rows(path)
    with pytest.raises(UserError, match="no result rows"):
        read_rows(tmp_path / "none.jsonl")


def _write_many(path: Path, start: int) -> None:
    with RowWriter(path, WHERE) as writer:
        for n in range(start, start + 50):
            writer.write("point", n=n, filler="x" * 5000)


def test_two_writers_at_once_leave_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_many, args=(path, start)) for start in (0, 1000)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(row["n"] for row in read_rows(path)) == [*range(50), *range(1000, 1050)]


def test_latest_takes_the_last_run_of_each_kind(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for n in (1, 2):
        with RowWriter(path, WHERE) as writer:
            writer.write("point", n=n)
            writer.write("point", n=n + 10)
    with RowWriter(path, WHERE) as writer:
        writer.write("bench", n=5)
    rows = read_rows(tmp_path)
    assert [row["n"] for row in latest(rows, "trial", "point")] == [2, 12]
    assert [row["n"] for row in latest(rows, "trial", "bench")] == [5]
    assert latest(rows, "other", "point") == []


def test_latest_of_each_takes_the_last_run_of_each_value(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for n, label in ((1, "code"), (2, "prose"), (3, "code")):
        with RowWriter(path, WHERE) as writer:
            writer.write("point", n=n, label=label)
            writer.write("point", n=n + 10, label=label)
            writer.write("bench", n=n, label=label)
    rows = read_rows(tmp_path)
    assert [row["n"] for row in latest_of_each(rows, "trial", "point", "label")] == [3, 13, 2, 12]
    assert latest_of_each(rows, "other", "point", "label") == []


def test_hashes_follow_contents(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"1")
    before = hash_files([tmp_path / "model"])
    assert before == hash_files([tmp_path / "model"])
    (tmp_path / "model" / "weights").write_bytes(b"2")
    assert hash_files([tmp_path / "model"]) != before
    assert hash_bytes(b"a") != hash_bytes(b"b")
    assert json.loads(json.dumps(before)) == before
