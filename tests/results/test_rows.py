"""Rows survive interruption and say where they come from."""

import multiprocessing
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.results.rows import Provenance, Row, Rows, RowWriter, hash_bytes, hash_files, read_rows

WHERE = Provenance(
    "trial", seed=3, command="lexinvariant experiment trial", data_hash="d", model_hash="m", draws=2
)


@dataclass(frozen=True)
class Inner:
    value: float
    curve: list[float | None]


@dataclass(frozen=True, kw_only=True)
class Point(Row, experiment="trial", kind="point"):
    n: int
    label: str = ""
    inner: Inner | None = None
    by: dict[int, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Bench(Row, experiment="trial", kind="bench"):
    n: int


def read(source: Path) -> Rows:
    return read_rows(source, [Point, Bench])


def numbers(rows: list[Point] | list[Bench]) -> list[int]:
    return [row.n for row in rows]


def test_a_row_is_read_as_it_was_written_and_knows_its_origin(tmp_path: Path) -> None:
    curve = np.array([0.5, np.nan, 2.0]).tolist()
    with RowWriter(tmp_path / "new" / "rows.jsonl", WHERE) as writer:
        row = Point(n=1, inner=Inner(float(np.float32(0.5)), curve), by={2: 1.0})
        returned = writer.write(row)
    [found] = read(tmp_path / "new" / "rows.jsonl").of(Point)
    assert found == returned
    assert found.origin == returned.origin
    assert found.inner == Inner(0.5, [0.5, None, 2.0])  # what JSON cannot write is nothing
    assert found.by == {2: 1.0}
    assert {name: getattr(found.origin, name) for name in vars(WHERE)} == vars(WHERE)
    assert found.origin.time.endswith("+00:00")
    assert found.origin.version
    assert found.origin.seconds >= 0


def test_a_row_cannot_name_its_own_origin() -> None:
    with pytest.raises(TypeError, match="seed"):

        class Wrong(Row, experiment="trial", kind="wrong"):
            seed: int


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    with (
        RowWriter(tmp_path / "rows.jsonl", WHERE) as writer,
        pytest.raises(ValueError, match="Expected `int`"),
    ):
        writer.write(Point(n="one"))  # type: ignore[arg-type]
    assert len(read(tmp_path / "rows.jsonl")) == 0


def test_a_row_of_another_version_is_told_with_its_command(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowWriter(path, WHERE) as writer:
        writer.write(Point(n=1))
    path.write_text(path.read_text().replace('"n":', '"number":').replace('"version":"', '"version":"old '))
    with pytest.raises(
        UserError, match=r"line 1 .*version old .*missing required field `n`.*experiment trial"
    ):
        read(path)
    path.write_text(path.read_text().replace('"trial"', '"unheard of"'))
    assert len(read(path)) == 0  # an experiment that this version does not have is none of its business


def test_a_torn_line_is_skipped_and_then_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowWriter(path, WHERE) as writer:
        writer.write(Point(n=1))
    with path.open("a") as file:
        file.write('{"kind": "point", "n": 2')  # the machine stopped here
    assert numbers(read(path).of(Point)) == [1]
    with RowWriter(path, WHERE) as writer:
        writer.write(Point(n=3))
    assert numbers(read(path).of(Point)) == [1, 3]


def test_damage_inside_is_reported_not_hidden(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowWriter(path, WHERE) as writer:
        writer.write(Point(n=1))
    path.write_text(path.read_text() + "rubbish\n")
    with pytest.raises(UserError, match="line 2"):
        read(path)
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(UserError, match="line 1"):
        read(path)
    path.write_text('{"kind": "point"}\n')
    with pytest.raises(UserError, match="line 1"):
        read(path)
    with pytest.raises(UserError, match="no result rows"):
        read(tmp_path / "none.jsonl")


def _write_many(path: Path, start: int) -> None:
    with RowWriter(path, WHERE) as writer:
        for n in range(start, start + 50):
            writer.write(Point(n=n, label="x" * 5000))


def test_two_writers_at_once_leave_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_many, args=(path, start)) for start in (0, 1000)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(numbers(read(path).of(Point))) == [*range(50), *range(1000, 1050)]


def test_latest_takes_the_last_run_of_each_kind(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for n in (1, 2):
        with RowWriter(path, WHERE) as writer:
            writer.write(Point(n=n))
            writer.write(Point(n=n + 10))
    with RowWriter(path, WHERE) as writer:
        writer.write(Bench(n=5))
    rows = read(tmp_path)
    assert numbers(rows.latest(Point)) == [2, 12]
    assert numbers(rows.latest(Bench)) == [5]
    assert Rows([]).latest(Point) == []


def test_latest_of_each_takes_the_last_run_of_each_value(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for n, label in ((1, "code"), (2, "prose"), (3, "code")):
        with RowWriter(path, WHERE) as writer:
            writer.write(Point(n=n, label=label))
            writer.write(Point(n=n + 10, label=label))
            writer.write(Bench(n=n))
    assert numbers(read(tmp_path).latest_of_each(Point, lambda row: row.label)) == [3, 13, 2, 12]
    assert Rows([]).latest_of_each(Point, lambda row: row.label) == []


def test_hashes_follow_contents(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"1")
    before = hash_files([tmp_path / "model"])
    assert before == hash_files([tmp_path / "model"])
    (tmp_path / "model" / "weights").write_bytes(b"2")
    assert hash_files([tmp_path / "model"]) != before
    assert hash_bytes(b"a") != hash_bytes(b"b")


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")
def test_a_line_that_another_is_still_writing_is_not_cut_off(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "rows.jsonl"
    with path.open("ab", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b'{"half": ')
        opening = threading.Thread(target=lambda: RowWriter(path, WHERE).close())
        opening.start()
        opening.join(timeout=0.2)
        assert opening.is_alive(), "it waits"
        other.write(b"1}\n")
        fcntl.flock(other, fcntl.LOCK_UN)
        opening.join(timeout=10)
    assert path.read_bytes() == b'{"half": 1}\n'


def test_a_name_that_is_no_utf8_costs_no_row(tmp_path: Path) -> None:
    """As of a folder on the command line, or of a tag in JSON that is half a surrogate pair."""
    path = tmp_path / "rows.jsonl"
    with RowWriter(path, replace(WHERE, command="theory --out \udcff")) as writer:
        writer.write(Point(n=1, label="\ud800"))
    [row] = read(path).of(Point)
    assert (row.n, row.label, row.origin.command) == (1, r"\ud800", r"theory --out \udcff")
