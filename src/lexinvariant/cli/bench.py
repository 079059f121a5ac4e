"""`lexinvariant bench train`: training speed on the machine at hand."""

import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from lexinvariant import presets
from lexinvariant.checks import whole_number
from lexinvariant.errors import UserError
from lexinvariant.files import check_can_write


@dataclass(frozen=True)
class Arguments:
    """Measure training speed and memory (for cipher solvers see `lexinvariant experiment decipher`). One run covers
    the bf16 matmul ceiling; a preset's training step; the same without its deciphering head; the paper's Gaussian
    rows, for the symbols that occur and the readout "seen"; the standard LM; the naive construction, with a Gaussian
    row for every symbol and the readout "full"; and, where PyTorch is installed, a PyTorch decoder of the same size.

    Tokens are drawn uniformly, so with a large vocabulary nearly all tokens of a sequence differ. Memory is what one
    step's program holds on a device: state, batch and all intermediates. FLOP are those of the layers, without the
    readout.

    example: lexinvariant bench train --preset paper-32k --out bench.json
    """

    what: tyro.conf.Positional[Literal["train"]]
    """What to measure."""
    preset: str = "paper-char"
    """The model and batch to train, as for `lexinvariant train`."""
    batch_size: int = 0
    """Sequences per step; 0: the preset's."""
    n_layers: int = 0
    """Layers; 0: the preset's. Fewer make a quick trial."""
    quick: bool = False
    """Only the preset, the standard LM and the PyTorch decoder: half the time, most of which goes into compiling."""
    torch: bool = True
    """Measure the PyTorch decoder too."""
    kernels: int = 0
    """Print this many of the slowest GPU kernels in the preset's step."""
    repeats: int = 5
    """Groups of steps to time; the median is reported."""
    out: Path = Path("bench-train.json")
    """Where the numbers go."""


def main(argv: list[str]) -> int:
    if argv[:1] == ["decipher"]:
        raise UserError("`bench decipher` is an experiment now: run `lexinvariant experiment decipher`.")
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant bench")
    whole_number(arguments.repeats, "--repeats", least=1)
    whole_number(arguments.kernels, "--kernels", least=0)
    check_can_write(arguments.out)
    has_torch = arguments.torch and importlib.util.find_spec("torch") is not None
    if has_torch:  # half of the memory, so that it has room in the same process
        os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    config = presets.preset(arguments.preset)
    if arguments.batch_size:
        config = config.changed({"batch_size": arguments.batch_size})
    if arguments.n_layers:
        config = config.changed({"model.n_layers": arguments.n_layers})

    from lexinvariant.bench.train import measure, relatives

    console = Console(markup=False)  # a path may have [brackets]
    with console.status("measuring ...") as status:
        result = measure(
            relatives(config, arguments.quick),
            has_torch,
            arguments.repeats,
            arguments.kernels,
            say=lambda what: status.update(f"{what} ..."),
        )
    console.print(_table(arguments.preset, result))
    if not arguments.quick:
        console.print(
            "(gaussian, readout full) is the naive construction: a Gaussian row for every symbol in each sequence, and "
            "a softmax over all of them."
        )
    for kernel in result["kernels"]:
        console.print(
            f"{kernel['ms']:9.3f} ms  {kernel['launches']:4d}x  {kernel['name'][:90]}", highlight=False
        )
    if arguments.torch and not has_torch:
        console.print(
            "PyTorch is not installed, so its decoder was not measured: pip install 'lexinvariant[torch]'."
        )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"preset": arguments.preset, **result}, indent=2) + "\n", "utf-8")
    console.print(f"Wrote {arguments.out}.")
    return 0


def _table(preset: str, result: dict[str, Any]) -> Table:
    shape = f"{result['batch_size']} x {result['context']} tokens of {result['vocab_size']:,}"
    table = Table(title=f"{preset}, {shape} per step, on {result['device']}", box=box.SIMPLE_HEAD, padding=0)
    table.add_column("a training step")
    for column in ("ms", "of standard", "tokens/s", "TFLOP/s", "of ceiling", "GB"):
        table.add_column(column, justify="right", no_wrap=True)
    ceiling = result["ceiling_tflops"]
    table.add_row("bf16 matmul ceiling", "", "", "", f"{ceiling:.3g}", "", "")
    for row in result["rows"]:
        memory = f"{row['peak_bytes'] / 1e9:.3g}" if row.get("peak_bytes") else ""
        if "error" in row:
            table.add_row(f"{row['what']}: {row['error']}", "", "", "", "", "", memory)
            continue
        table.add_row(
            row["what"],
            f"{row['ms']:.2f}",
            f"{row['times_standard']:.3f}" if "times_standard" in row else "",
            f"{row['tokens_per_second']:,.0f}",
            f"{row['tflops']:.3g}",
            f"{row['tflops'] / ceiling:.1%}",
            memory,
        )
    return table
