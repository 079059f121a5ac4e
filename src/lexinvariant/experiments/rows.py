"""Result rows: JSON lines, each with all that is needed to know where it came from.

A row is written whole in one append and flushed, so an interrupted run leaves whole lines; if the machine
itself stopped in the middle of one, reading skips that torn last line and the next writer cuts it off.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from lexinvariant.errors import UserError

Row = dict[str, Any]


@dataclass(frozen=True)
class Provenance:
    """Where a row comes from. Hashes are None where the experiment uses no model or no data file."""

    experiment: str
    seed: int
    command: str
    """The command line that makes the same rows again."""
    model_hash: str | None = None
    data_hash: str | None = None
    draws: int | None = None
    """Draws of the lexicon averaged over, where a model is scored."""


def package_version() -> str:
    try:
        return version("lexinvariant")
    except PackageNotFoundError:
        return "unknown"


def hash_bytes(data: bytes) -> str:
    """A short content hash for provenance."""
    return hashlib.sha256(data).hexdigest()[:16]


def hash_files(paths: Iterable[Path]) -> str:
    """A short hash of the contents of files (a folder stands for all files in it), in the order of their
    names.
    """
    digest = hashlib.sha256()
    for path in sorted(paths):
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
            digest.update(file.name.encode())
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()[:16]


class RowWriter:
    """Appends rows to one file. `seconds` of a row is the time since the row before it, or since the
    start.
    """

    def __init__(self, path: Path, provenance: Provenance) -> None:
        self.path, self.provenance = path, provenance
        path.parent.mkdir(parents=True, exist_ok=True)
        _cut_torn_line(path)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._since = time.perf_counter()
        self._run = datetime.now(UTC).isoformat()

    def write(self, kind: str, **values: Any) -> Row:
        """Write one row of the given kind, and return it as it will be read back."""
        now = time.perf_counter()
        row = {
            "kind": kind,
            "run": self._run,
            **asdict(self.provenance),
            "version": package_version(),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(now - self._since, 3),
        }
        clash = set(values) & (set(row) - {"seconds"})
        if clash:
            raise ValueError(f"these names belong to the provenance of a row: {sorted(clash)}")
        line = json.dumps(row | {name: plain(value) for name, value in values.items()}, allow_nan=False)
        data = memoryview(line.encode() + b"\n")
        while data:
            data = data[os.write(self._descriptor, data) :]
        self._since = now
        return dict(json.loads(line))

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def plain(value: Any) -> Any:
    """NumPy values as JSON ones; a number that JSON cannot write (NaN, infinity) becomes null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def read_rows(source: Path) -> list[Row]:
    """All rows of a file, or of every *.jsonl in a folder; a torn last line is skipped."""
    if source.is_dir():
        return [row for path in sorted(source.glob("*.jsonl")) for row in read_rows(path)]
    if not source.is_file():
        raise UserError(f"There are no result rows at {source}: run an experiment with --out there first.")
    lines = source.read_bytes().split(b"\n")
    rows = []
    for number, line in enumerate(
        lines[:-1], start=1
    ):  # what follows the last newline is a torn line, or nothing
        try:
            rows.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise UserError(
                f"{source} line {number} is not a result row: repair or delete that line."
            ) from error
    return rows


def latest(rows: list[Row], experiment: str, kind: str) -> list[Row]:
    """The rows of one kind from the last run that wrote any: a file holds every run there has been."""
    mine = [row for row in rows if row["experiment"] == experiment and row["kind"] == kind]
    last = max((row["run"] for row in mine), default=None)
    return [row for row in mine if row["run"] == last]


def latest_of_each(rows: list[Row], experiment: str, kind: str, name: str) -> list[Row]:
    """The rows of one kind from the last run of each value of the field `name`, in the order of first appearance:
    for experiments whose runs add to a figure (another corpus, another text) instead of replacing it.
    """
    mine = [row for row in rows if row["experiment"] == experiment and row["kind"] == kind]
    by_value: dict[str, list[Row]] = {}
    for row in mine:
        by_value.setdefault(row[name], []).append(row)
    return [row for group in by_value.values() for row in latest(group, experiment, kind)]


def _cut_torn_line(path: Path) -> None:
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        data = file.read()
        if not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)
