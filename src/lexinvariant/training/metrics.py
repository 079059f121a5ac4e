"""What is written of a run: metrics.jsonl and TensorBoard. Imports no jax, so curves redraw on a laptop."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from lexinvariant.errors import UserError
from lexinvariant.files import parse_json_object, read_small_file
from lexinvariant.training.tensorboard import EventFile


class MetricsLog:
    """metrics.jsonl and TensorBoard; a resumed run first forgets what lies after its checkpoint."""

    def __init__(self, folder: Path, start: int, tensorboard: bool) -> None:
        self.path = folder / "metrics.jsonl"
        self._file: TextIO | None = None
        self.rewind(start)
        self._board: EventFile | None = None
        if tensorboard:
            self._board = EventFile(folder / "tensorboard", start)

    def rewind(self, start: int) -> None:
        """Forget what lies after a step."""
        if self._file is not None:
            self._file.close()
        kept = [row for row in read_metrics(self.path) if row["step"] <= start] if start else []
        unfinished = self.path.with_suffix(".part")
        unfinished.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        unfinished.replace(self.path)
        self._file = self.path.open("a", encoding="utf-8")

    def write(self, step: int, kind: str, metrics: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps({"step": step, "kind": kind, **metrics}) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in metrics.items():
                if isinstance(value, float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._board is not None:
            self._board.close()


class NoLog:
    """The log of a host that leaves writing to another."""

    def rewind(self, start: int) -> None:
        pass

    def write(self, step: int, kind: str, metrics: Mapping[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; lines that a kill or a bad disk has spoilt are left out."""
    rows = []
    for line in read_small_file(path, "remove it.").splitlines() if path.exists() else []:
        with suppress(UserError):
            row = parse_json_object(line, "", "")
            if isinstance(row.get("step"), int) and isinstance(row.get("kind"), str):
                rows.append(row)
    return rows
