"""What is written of a run: metrics.jsonl and TensorBoard. Imports no jax, so curves redraw on a laptop."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MetricsLog:
    """metrics.jsonl and TensorBoard; a resumed run first forgets what lies after its checkpoint."""

    def __init__(self, folder: Path, start: int, tensorboard: bool) -> None:
        self.path = folder / "metrics.jsonl"
        kept = [row for row in read_metrics(self.path) if row["step"] <= start] if start else []
        unfinished = self.path.with_suffix(".part")
        unfinished.write_text("".join(json.dumps(row) + "\n" for row in kept))
        unfinished.replace(self.path)
        self._file = self.path.open("a")
        self._board: Any = None
        if tensorboard:
            from tensorboardX import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=start)

    def write(self, step: int, kind: str, metrics: Mapping[str, Any]) -> None:
        self._file.write(json.dumps({"step": step, "kind": kind, **metrics}) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in metrics.items():
                if isinstance(value, float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a last line that a kill has torn is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows
