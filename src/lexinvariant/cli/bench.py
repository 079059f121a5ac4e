"""`lexinvariant bench train`: training speed on the machine at hand."""

import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.table import Table

from lexinvariant import presets
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Arguments:
    """Measure training speed (solvers of ciphers: `lexinvariant experiment decipher`), in one run: the bf16 matmul
    ceiling, a preset's training step, the same with a learned lexicon, and a PyTorch decoder of the same dimensions
    where PyTorch is installed.

    example: lexinvariant bench train --preset paper-char --out bench.json
    """

    what: tyro.conf.Positional[Literal["train"]]
    """What to measure."""
    preset: str = "paper-char"
    """The model and batch to train, as for `lexinvariant train`."""
    batch_size: int = 0
    """Sequences a step; 0 is the preset's."""
    n_layers: int = 0
    """Layers; 0 is the preset's. Fewer make a rehearsal quick."""
    torch: bool = True
    """Measure the PyTorch peer too."""
    kernels: int = 0
    """Print this many of the longest GPU kernels of the preset's step."""
    repeats: int = 5
    """Groups of steps to time; the median counts."""
    out: Path = Path("bench-train.json")
    """Where the numbers go."""


def main(argv: list[str]) -> int:
    if argv[:1] == ["decipher"]:
        raise UserError("`bench decipher` is an experiment now: run `lexinvariant experiment decipher`.")
    # Half of the memory, so that the PyTorch peer has room in the same process.
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant bench")
    config = presets.preset(arguments.preset)
    if arguments.batch_size:
        config = config.changed({"batch_size": arguments.batch_size})
    if arguments.n_layers:
        config = config.changed({"model.n_layers": arguments.n_layers})

    from lexinvariant.bench.train import measure

    has_torch = arguments.torch and importlib.util.find_spec("torch") is not None
    console = Console()
    with console.status("measuring ...") as status:
        result = measure(
            config,
            has_torch,
            arguments.repeats,
            arguments.kernels,
            say=lambda what: status.update(f"{what} ..."),
        )
    console.print(_table(arguments.preset, result))
    for kernel in result["kernels"]:
        console.print(
            f"{kernel['ms']:9.3f} ms  {kernel['launches']:4d}x  {kernel['name'][:90]}", highlight=False
        )
    if arguments.torch and not has_torch:
        console.print(
            "PyTorch is not installed, so there is no peer: pip install 'lexinvariant[torch]'.", markup=False
        )
    arguments.out.write_text(json.dumps({"preset": arguments.preset, **result}, indent=2) + "\n")
    console.print(f"Wrote {arguments.out}.")
    return 0


def _table(preset: str, result: dict) -> Table:
    shape = f"{result['batch_size']} x {result['context']}"
    table = Table(title=f"{preset}, {shape} tokens a step, on {result['device']}")
    for column in ("what", "ms a step", "TFLOP/s", "of ceiling", "speed"):
        table.add_column(column, justify="left" if column == "what" else "right")
    ceiling = result["ceiling_tflops"]
    table.add_row("bf16 matmul ceiling", "", f"{ceiling:.4g}", "100%", "")
    reference = result["rows"][0]["ms"]
    for row in result["rows"]:
        table.add_row(
            row["what"],
            f"{row['ms']:.2f}",
            f"{row['tflops']:.4g}",
            f"{row['tflops'] / ceiling:.1%}",
            f"{reference / row['ms']:.3f}x",
        )
    return table
