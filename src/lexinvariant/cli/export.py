"""`lexinvariant export RUN OUT`: a run as a model that can be loaded and shared."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from lexinvariant.remote import local_copy, uploaded


@dataclass(frozen=True)
class Arguments:
    """Write model.safetensors, config.json and the tokenizer of a run.

    example: lexinvariant export runs/mine models/mine --precision bfloat16
    """

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run's folder, as given to `train --out`."""
    out: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """The folder to write; it may be on an object store, as may the run."""
    precision: Literal["float32", "bfloat16", "int8"] = "float32"
    """Type of the matrices; int8 has one scale a column."""
    step: Literal["last", "best"] | int = "last"
    """Which checkpoint: the newest, the one with the lowest held-out loss, or a step's number."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant export")
    from lexinvariant.training.export import export

    which = {"last": None, "best": -1}.get(str(arguments.step), arguments.step)
    with uploaded(arguments.out, kind="model", recognised_by="model.safetensors", replaces=True) as out:
        step = export(local_copy(arguments.run), out, precision=arguments.precision, step=which)  # type: ignore[arg-type]
    print(f"Wrote the model of step {step} to {arguments.out}.")
    return 0
