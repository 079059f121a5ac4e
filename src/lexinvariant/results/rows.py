"""Result rows: JSON lines, each with all that is needed to know where it came from.

Each kind of row is a frozen dataclass that experiments write and sections read. A row is written whole in one append
and flushed, under a lock that lets several commands write to one file, so an interrupted run leaves whole lines; if
the machine itself stopped in the middle of one, reading skips that torn last line and the next writer cuts it off.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Provenance:
    """What the rows of one run have in common. Hashes are None where no model or no data file was used."""

    experiment: str
    seed: int
    command: str
    """The command line that makes the same rows again."""
    model_hash: str | None = None
    data_hash: str | None = None
    draws: int | None = None
    """Draws of the lexicon averaged over, where a model is scored."""


@dataclass(frozen=True)
class Origin(Provenance):
    """Where one row comes from."""

    run: str = ""
    """When its run began: the same for all rows of a run, and later for a later run."""
    version: str = ""
    time: str = ""
    seconds: float = 0.0
    """Since the row before it, or since the start."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A result. A kind of row is a subclass: `class Curve(Row, experiment="convergence", kind="curve")`."""

    experiment: ClassVar[str]
    kind: ClassVar[str]
    origin: Origin = field(default=Origin("", 0, ""), compare=False)
    """Set when the row is written or read."""

    def __init_subclass__(cls, *, experiment: str = "", kind: str = "") -> None:
        cls.experiment, cls.kind = experiment, kind
        clash = set(cls.__annotations__) & {f.name for f in dataclasses.fields(Origin)}
        if clash:
            raise TypeError(f"these names belong to the origin of a row: {sorted(clash)}")

    def with_origin(self, origin: Origin) -> Self:
        return dataclasses.replace(self, origin=origin)


# NumPy's values become numbers and lists; NaN and infinity become null.
_encoder = msgspec.json.Encoder(enc_hook=lambda value: value.tolist())
SIGNIFICANT_DIGITS = 7
"""Of every number in a row: all that float32 has, and a third of what a curve would take otherwise."""
RowT = TypeVar("RowT", bound=Row)
Item = TypeVar("Item")


class Rows:
    """All rows of a folder: it holds every run there has been."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, kind: type[RowT]) -> list[RowT]:
        return [row for row in self._rows if isinstance(row, kind)]

    def latest(self, kind: type[RowT]) -> list[RowT]:
        """The rows of one kind from the last run that wrote any."""
        return _of_last_run(self.of(kind))

    def latest_of_each(self, kind: type[RowT], by: Callable[[RowT], Hashable]) -> list[RowT]:
        """The rows of one kind from the last run of each value of `by`, in the order of first appearance: for
        experiments whose runs add to a figure (another corpus, another text) instead of replacing it.
        """
        return [row for group in self.latest_groups(kind, by).values() for row in group]

    def latest_groups(self, kind: type[RowT], by: Callable[[RowT], Hashable]) -> dict[Any, list[RowT]]:
        """The same, by that value."""
        return {value: _of_last_run(group) for value, group in group_by(self.of(kind), by).items()}


def beside(rows: Iterable[RowT], others: Iterable[Row]) -> list[RowT]:
    """Those that were written by the runs of the others."""
    runs = {row.origin.run for row in others}
    return [row for row in rows if row.origin.run in runs]


def _encode(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        # A path on the command line may be no UTF-8, and a document's tag half a surrogate pair.
        return json.dumps(_writable(value), default=lambda array: array.tolist()).encode()


def _writable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case list() | tuple():
            return [_writable(item) for item in value]
        case dict():
            return {_writable(name): _writable(item) for name, item in value.items()}
    return value


def _rounded(value: Any) -> Any:
    """JSON with floats of so many digits."""
    match value:
        case float():
            return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
        case list():
            return [_rounded(item) for item in value]
        case dict():
            return {name: _rounded(item) for name, item in value.items()}
    return value


def _of_last_run(rows: list[RowT]) -> list[RowT]:
    last = max((row.origin.run for row in rows), default=None)
    return [row for row in rows if row.origin.run == last]


def group_by(items: Iterable[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    """Items by a key, groups and members in the order of appearance."""
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class RowWriter:
    """Appends rows to one file."""

    def __init__(self, path: Path, provenance: Provenance) -> None:
        self.path, self.provenance = path, provenance
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        with _locked(self._descriptor):
            _cut_torn_line(path)
        self._since = time.perf_counter()
        self._run = datetime.now(UTC).isoformat()

    def write(self, row: RowT) -> RowT:
        """Write one row, and return it as it will be read back."""
        assert row.experiment == self.provenance.experiment, (row.experiment, self.provenance.experiment)
        now = time.perf_counter()
        about: Any = {"run": self._run, "version": package_version(), "seconds": round(now - self._since, 3)}
        at = datetime.now(UTC).isoformat(timespec="seconds")
        origin = Origin(**vars(self.provenance), **about, time=at)
        values = {f.name: getattr(row, f.name) for f in dataclasses.fields(row) if f.name != "origin"}
        values = _rounded(msgspec.json.decode(_encode(values)))
        line = _encode({"kind": row.kind, **vars(origin), **values}) + b"\n"
        # What cannot be read is not written.
        written = msgspec.convert(msgspec.json.decode(line), type(row), str_keys=True)
        data = memoryview(line)
        with _locked(self._descriptor):
            while data:
                data = data[os.write(self._descriptor, data) :]
        self._since = now
        return written.with_origin(origin)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def read_rows(source: Path, kinds: Iterable[type[Row]]) -> Rows:
    """The rows of these kinds in a file, or in every *.jsonl of a folder; a torn last line is skipped."""
    by_name = {(kind.experiment, kind.kind): kind for kind in kinds}
    if source.is_dir():
        return Rows(row for path in sorted(source.glob("*.jsonl")) for row in _read_file(path, by_name))
    return Rows(_read_file(source, by_name))


def _read_file(path: Path, kinds: Mapping[tuple[str, str], type[Row]]) -> Iterable[Row]:
    if not path.is_file():
        raise UserError(f"There are no result rows at {path}: run an experiment with --out there first.")
    # What follows the last newline is a torn line, or nothing.
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            values = msgspec.json.decode(line)
            kind = kinds.get((values["experiment"], values["kind"]))
        except (msgspec.DecodeError, RecursionError, KeyError, TypeError) as error:
            told = f"{path} line {number} is not a result row: repair or delete that line."
            raise UserError(told) from error
        if kind is None:
            continue  # of an experiment that this version does not know
        try:
            yield msgspec.convert(values, kind, str_keys=True).with_origin(msgspec.convert(values, Origin))
        except msgspec.ValidationError as error:
            raise UserError(
                f"{path} line {number} was written by version {values.get('version')} and is not what this one "
                f"writes ({error}): delete the file and run `{values.get('command')}` again."
            ) from error


def package_version() -> str:
    try:
        return version("lexinvariant")
    except PackageNotFoundError:
        return "unknown"


def hash_bytes(data: bytes) -> str:
    """A short content hash for provenance."""
    return hashlib.sha256(data).hexdigest()[:16]


def hash_files(paths: Iterable[Path]) -> str:
    """A short hash of the contents of files (a folder stands for all files in it), in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
            digest.update(file.name.encode())
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()[:16]


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Others who write to the file wait, so that nobody takes a line in the making for a torn one."""
    if sys.platform == "win32":  # no such locks: one command at a time
        yield
        return
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _cut_torn_line(path: Path) -> None:
    with path.open("rb+") as file:
        data = file.read()
        if not data.endswith(b"\n"):
            file.truncate(data.rfind(b"\n") + 1)
