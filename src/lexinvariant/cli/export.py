"""`lexinvariant export RUN OUT`: a run as a model that can be loaded and shared, or a model in fewer bits."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from lexinvariant.remote import uploaded


@dataclass(frozen=True)
class Arguments:
    """Write model.safetensors, config.json and the tokenizer of a run.

    examples:
      lexinvariant export runs/mine models/mine --precision bfloat16
      lexinvariant export bundled models/smaller --precision int6
    """

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run's folder, as given to `train --out`; or a model, to write it in another precision."""
    out: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """The folder to write: a new or empty one, or that of a model, which is replaced. Both may be on an object
    store."""
    precision: Literal["float32", "bfloat16", "int8", "int6"] = "float32"
    """Type of the matrices; int8 and int6 have one scale per column. int6 takes three quarters of the space of int8
    and cost the bundled model 0.003 nats per character."""
    step: Literal["last", "best"] | int = "last"
    """Which checkpoint: the newest, the one with the lowest held-out loss, or the one of a given step."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant export")
    from lexinvariant.training.export import export

    which = {"last": None, "best": -1}.get(str(arguments.step), arguments.step)
    with uploaded(arguments.out, kind="model", recognised_by="model.safetensors", replaces=True) as out:
        step = export(arguments.run, out, precision=arguments.precision, step=which)  # type: ignore[arg-type]
    print(f"Wrote the model{'' if step is None else f' of step {step}'} to {arguments.out}.")
    return 0
