"""Learning curves of runs as rows, by step and by the compute spent, for the report to compare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from lexinvariant.config import TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.files import read_json_object
from lexinvariant.results.rows import hash_files
from lexinvariant.results.training import LearningCurve, Run
from lexinvariant.settings import from_dict
from lexinvariant.training.metrics import read_metrics


@dataclass(frozen=True)
class Options:
    """Compare the held-out loss of training runs at equal compute.

    example: lexinvariant experiment training runs/char-small runs/paper-char --group recipes --out runs/report
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...")]
    """Folders of runs, as given to `train --out`; the figure shows each by its folder's name."""
    out: Path = Path("runs/report")
    """Folder for the rows (training.jsonl)."""
    group: str = "runs"
    """Name of the comparison; runs of one group share a figure."""


def run(options: Options, recorder: Recorder) -> None:
    """A row a run."""
    if not options.runs:
        raise UserError("There are no runs to compare: give at least one run's folder.")
    curves = [curve_of(folder) for folder in options.runs]
    files = [file for folder in options.runs for file in (folder / "metrics.jsonl", folder / "config.json")]
    recorder.measured_on(data_hash=hash_files(files))
    for folder, curve in zip(options.runs, curves, strict=True):
        row = recorder.write(Run(group=options.group, name=folder.resolve().name, curve=curve))
        recorder.log(
            f"{row.name}: {curve.tail_loss[-1]:.3f} nats at the end of the context after {curve.flop[-1]:.2g} FLOP"
        )


def curve_of(folder: Path) -> LearningCurve:
    """The learning curve of the run in a folder."""
    valid = [row for row in read_metrics(folder / "metrics.jsonl") if row["kind"] == "valid"]
    if not valid or not (folder / "config.json").is_file():
        raise UserError(
            f"{folder} is not the folder of a run that has been evaluated: give a folder written by `train --out`."
        )
    if not all(isinstance(row.get(name), float) for row in valid for name in ("loss", "tail_loss")):
        raise UserError(
            f"No held-out text of the run in {folder} reaches the end of its context, so there is no loss to compare: "
            "train on longer texts, or with a shorter --model.context."
        )
    config = from_dict(TrainConfig, read_json_object(folder / "config.json", "train again."))
    return LearningCurve(
        parameters=config.model.n_matmul_parameters,
        lexicon=config.model.lexicon.kind,
        optimizer=config.optimizer.name,
        seed=config.seed,
        flop_per_step=float(config.tokens_per_step * config.model.flop_per_token(config.model.context)),
        step=[row["step"] for row in valid],
        loss=[row["loss"] for row in valid],
        tail_loss=[row["tail_loss"] for row in valid],
        tail_deciphered=[row.get("tail_deciphered") for row in valid],
    )
