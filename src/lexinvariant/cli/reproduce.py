"""`lexinvariant reproduce PRESET`: train the pair, run the experiments on it, write the report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lexinvariant import presets
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Arguments:
    """Train a preset and its standard twin, run the experiments that fit them, and write one report.

    Give the same command again to continue where it stopped; --model and --baseline use trained models instead.

    examples:
      lexinvariant reproduce char-tiny --data data/stdlib --quick --out runs/reproduce
      lexinvariant reproduce char-small --model bundled --data data/mixed --out runs/report
    """

    preset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET")]
    """A preset, as for `lexinvariant train`."""
    data: str = ""
    """A folder written by `lexinvariant data prepare`; not needed for presets that come with data."""
    out: Path = Path("runs/reproduce")
    """Where the runs, the rows and report.html go."""
    quick: bool = False
    """Small sizes, for minutes on a CPU, instead of the paper's."""
    model: str = ""
    """Use this trained lexinvariant model instead of training one; `bundled` is the package's own."""
    baseline: str = ""
    """Use this trained standard twin instead of training one."""
    data_text: str | None = None
    """Simple English texts for the semantic experiment (JSON lines, or any source of `data prepare`)."""
    batch_size: int = 16
    """Sequences per batch in the experiments."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the experiments' arithmetic; bfloat16 is faster on a GPU."""
    seed: int = 0
    """Seed of every lexicon, key and text drawn."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant reproduce")
    config = presets.preset(arguments.preset)
    data = arguments.data or config.data.path
    if not data:
        raise UserError(f"{arguments.preset} needs data: give --data with a prepared folder.")
    config = config.changed({"data.path": data})

    from lexinvariant.experiments.registry import Pair
    from lexinvariant.experiments.reproduce import run_all
    from lexinvariant.report.page import write_report
    from lexinvariant.training.loop import train

    runs: list[Path] = []

    def trained(given: str, name: str, of: presets.TrainConfig) -> str:
        if given:
            return given
        folder = arguments.out / name
        outcome = train(of, folder, name)
        if not outcome.finished:
            raise UserError(
                f"Training the {name} model was stopped at step {outcome.step}: give the same command to continue."
            )
        runs.append(folder)
        return str(outcome.model_folder)

    model = trained(arguments.model, "lexinvariant", config)
    # A model given without its twin is measured alone: nobody knows how the twin would have to be trained.
    alone = bool(arguments.model) and not arguments.baseline
    baseline = None if alone else trained(arguments.baseline, "standard", presets.as_standard(config))
    pair = Pair(
        model=model,
        baseline=baseline,
        data=data,
        out=arguments.out,
        quick=arguments.quick,
        runs=tuple(runs),
        data_text=arguments.data_text,
        seed=arguments.seed,
        batch_size=arguments.batch_size,
        dtype=arguments.dtype,
    )
    run_all(pair, log=lambda line: print(line, flush=True))
    print(f"The report is {write_report(arguments.out)}")
    return 0
