"""Learning curves of runs as rows, by step and by the compute spent, for the report to compare.

Rows by kind: `run`, one a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tyro

from lexinvariant.config import TrainConfig, from_dict
from lexinvariant.errors import UserError
from lexinvariant.experiments.rows import Provenance, Row, RowWriter, hash_files
from lexinvariant.training.metrics import read_metrics


@dataclass(frozen=True)
class Options:
    """Compare the held-out loss of training runs at equal compute.

    Example: lexinvariant experiment training runs/char-small runs/paper-char --group recipes --out runs/report
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of runs, as given to `train --out`; the folder's name is the name on the figure."""
    out: Path = Path("runs/report")
    """Folder for the rows (training.jsonl)."""
    group: str = "runs"
    """What is compared: runs of one group share a figure."""


def run(options: Options, command: str = "", say: Callable[[str], None] = lambda line: None) -> list[Row]:
    """Append one row a run to training.jsonl."""
    if not options.runs:
        raise UserError("There are no runs to compare: give at least one run's folder.")
    curves = [curve_of(folder) for folder in options.runs]
    files = [file for folder in options.runs for file in (folder / "metrics.jsonl", folder / "config.json")]
    provenance = Provenance("training", seed=0, command=command, data_hash=hash_files(files))
    with RowWriter(options.out / "training.jsonl", provenance) as writer:
        rows = [writer.write("run", group=options.group, **curve) for curve in curves]
    for row in rows:
        say(
            f"{row['name']}: {row['tail_loss'][-1]:.3f} nats at the end of the context after {row['flop'][-1]:.2g} FLOP"
        )
    return rows


def curve_of(folder: Path) -> Row:
    """What a run measured on held-out text, and what it had spent by then."""
    valid = [row for row in read_metrics(folder / "metrics.jsonl") if row["kind"] == "valid"]
    if not valid or not (folder / "config.json").is_file():
        raise UserError(
            f"{folder} is not the folder of a run that has been evaluated: give a folder written by `train --out`."
        )
    config = from_dict(TrainConfig, json.loads((folder / "config.json").read_text()))
    flop_per_step = config.tokens_per_step * config.model.flop_per_token(config.model.context)
    return {
        "name": folder.resolve().name,
        "parameters": config.model.n_matmul_parameters,
        "lexicon": config.model.lexicon.kind,
        "optimizer": config.optimizer.name,
        "run_seed": config.seed,
        "step": [row["step"] for row in valid],
        "flop": [float(row["step"] * flop_per_step) for row in valid],
        "loss": [row["loss"] for row in valid],
        "tail_loss": [row["tail_loss"] for row in valid],
        "tail_deciphered": [row.get("tail_deciphered") for row in valid],
    }
