"""What an experiment is given beside its options: a file for its rows, a log, and progress."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Self

from lexinvariant.progress import Log, Progress
from lexinvariant.results.rows import Provenance, Row, RowT, RowWriter


class Recorder:
    """Writes the rows of one run; the file is touched when the first row is there."""

    def __init__(self, path: Path, provenance: Provenance, log: Log) -> None:
        self.log = log
        self.rows: list[Row] = []
        self._path, self._provenance = path, provenance
        self._writer: RowWriter | None = None

    def measured_on(
        self, *, model_hash: str | None = None, data_hash: str | None = None, uses_model: bool = True
    ) -> None:
        """What the rows to come were measured with: part of their provenance. Without a model nothing is drawn."""
        assert self._writer is None, "rows have been written already"
        draws = self._provenance.draws if uses_model else None
        self._provenance = replace(self._provenance, model_hash=model_hash, data_hash=data_hash, draws=draws)

    def write(self, row: RowT) -> RowT:
        """Append a row; returns it as it will be read back."""
        if self._writer is None:
            self._writer = RowWriter(self._path, self._provenance)
        written = self._writer.write(row)
        self.rows.append(written)
        return written

    def progress(self, what: str, total: int) -> Progress:
        return Progress(what, total, self.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._writer is not None:
            self._writer.close()
