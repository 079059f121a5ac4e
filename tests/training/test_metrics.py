"""metrics.jsonl: what a kill tears, and what a resumed run forgets."""

import itertools
import resource
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lexinvariant.training.metrics import MetricsLog, read_metrics


def write(folder: Path, start: int, steps: range) -> None:
    log = MetricsLog(folder, start, tensorboard=False)
    for step in steps:
        log.write(step, "train", {"loss": step / 2})
    log.close()


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path, 0, range(1, 3))
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert rows == [{"step": 1, "kind": "train", "loss": 0.5}, {"step": 2, "kind": "train", "loss": 1.0}]


def test_a_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "metrics.jsonl") == []


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 0, range(1, 4))
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    last_line = whole.rstrip(b"\n").rindex(b"\n") + 1
    for cut in range(last_line, len(whole) - 2):
        path.write_bytes(whole[:cut])
        assert [row["step"] for row in read_metrics(path)] == [1, 2]


@pytest.mark.parametrize(
    "spoilt", [b"\xff\xfe\x00", b"[" * 100_000, b"[1]", b'{"loss": 2}', b'{"step": "3", "kind": 1}']
)
def test_a_line_that_the_disk_has_spoilt_is_left_out(tmp_path: Path, spoilt: bytes) -> None:
    write(tmp_path, 0, range(1, 3))
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(spoilt + b"\n" + path.read_bytes())
    assert [row["step"] for row in read_metrics(path)] == [1, 2]
    write(tmp_path, 1, range(2, 4))
    assert [row["step"] for row in read_metrics(path)] == [1, 2, 3]


def test_a_resumed_run_forgets_what_lies_after_its_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, 0, range(1, 8))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 8, "ki')
    write(tmp_path, 4, range(5, 7))
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]


def test_a_run_that_starts_anew_forgets_everything(tmp_path: Path) -> None:
    write(tmp_path, 0, range(1, 8))
    write(tmp_path, 0, range(1, 2))
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1]


def test_rows_are_on_disk_as_soon_as_they_are_written(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, 0, tensorboard=False)
    log.write(1, "valid", {"loss": 2.0, "loss_by_position": [2.5, 1.5]})
    assert read_metrics(tmp_path / "metrics.jsonl")[0]["loss_by_position"] == [2.5, 1.5]
    log.close()


def test_tensorboard_gets_the_scalars(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, 0, tensorboard=True)
    log.write(1, "valid", {"loss": 2.0, "loss_by_position": [2.5, 1.5]})
    log.close()
    [events] = (tmp_path / "tensorboard").iterdir()
    assert b"valid/loss" in events.read_bytes()
    assert b"loss_by_position" not in events.read_bytes()


def test_a_disk_that_takes_no_more_curves_is_told_and_not_waited_for(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, 0, tensorboard=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            for step in range(1000):
                log.write(step, "train", {"loss": 2.0})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        with suppress(OSError):
            log.close()


def test_a_clock_that_is_set_back_is_no_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(500_000, -700)
    monkeypatch.setattr(time, "time", lambda: 3600.0 * next(hours))
    log = MetricsLog(tmp_path, 0, tensorboard=True)
    for step in range(40):
        log.write(step, "train", {"loss": 2.0})
    log.close()
    [events] = (tmp_path / "tensorboard").iterdir()
    assert events.read_bytes().count(b"train/loss") == 40
