"""`lexinvariant plan PRESET`: what a run would take, before it is paid for."""

import os
import re
from dataclasses import dataclass, field
from typing import Annotated

import tyro

from lexinvariant import presets
from lexinvariant.checks import finite_number
from lexinvariant.config import TrainConfig
from lexinvariant.errors import UserError, nearest
from lexinvariant.training.devices import DEVICES, Device


@dataclass(frozen=True)
class Arguments:
    """Tell what a run would take, from shapes alone and in seconds: memory on each device, FLOP, communication, time.

    The training step is lowered for devices that need not be there. Every setting of the preset is an option, as for
    `lexinvariant train`. Ends with status 1 where the run would not fit.

    examples:
      lexinvariant plan paper-char --mesh 1x1 --device h200
      lexinvariant plan tokens-7b --mesh 32x8 --device h100 --tokens 1e11
    """

    mesh: str = "1x1"
    """Devices as DATAxFSDP: 8x4 are 32, in 8 groups that have the same parameters and share their gradients, and 4 that
    split parameters and optimiser among themselves."""
    device: str = "h100"
    """h100, h200, b200, a100, l40s, tpu-v3, tpu-v4, tpu-v5e, tpu-v5p or tpu-v6e: whose data sheet counts."""
    hbm: float = 0.0
    """Memory of a device in GB; 0 is the data sheet's."""
    tokens: float = 0.0
    """Tokens to train on; 0 is as many as the preset's steps take."""
    utilisation: float = 0.0
    """The share of the data sheet's FLOP that a step reaches; 0 is what was measured on an H200 at the model's width:
    49% for `paper-char` and wider ones, 18% for `char-small`."""
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)


def overview() -> str:
    return f"""usage: lexinvariant plan PRESET [--mesh DATAxFSDP] [--device NAME] [--hbm GB] [--tokens N] [options]

What a run would take: parameters, memory on each device, FLOP, communication and time, before it is paid for.

options:
  --mesh DATAxFSDP    devices: 8x4 are 32, in 8 groups with the same parameters, and 4 that split them (1x1)
  --device NAME       {", ".join(DEVICES)} (h100)
  --hbm GB            memory of a device, if not the data sheet's
  --tokens N          tokens to train on, if not as many as the preset's steps take
  --utilisation P     share of the data sheet's FLOP, if not what was measured at that width on an H200
  --batch-size, --accumulate, --model.context ...: every setting of `lexinvariant train`

presets: {", ".join(presets.PRESETS)}

Ends with status 1 where the run would not fit. `lexinvariant plan PRESET --help` lists every setting.

examples:
  lexinvariant plan paper-char --device h200
  lexinvariant plan tokens-7b --mesh 32x8 --device h100 --tokens 1e11
"""


def main(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(overview(), end="")
        return 0
    name, *rest = argv
    default = Arguments(config=presets.preset(name))
    arguments = tyro.cli(Arguments, args=rest, default=default, prog=f"lexinvariant plan {name}")
    data, fsdp = _mesh(arguments.mesh)
    device = _device(arguments.device)
    for option in ("hbm", "tokens", "utilisation"):
        finite_number(getattr(arguments, option), f"--{option}")
    if arguments.hbm < 0 or arguments.tokens < 0 or not 0 <= arguments.utilisation <= 1:
        raise UserError("--hbm and --tokens are at least 0, and --utilisation is a share from 0 to 1.")

    os.environ["JAX_PLATFORMS"] = "cpu"  # a plan needs no device, and takes none from others
    from lexinvariant.training.plan import fewest_parts_that_fit, make_plan

    plan = make_plan(arguments.config, data, fsdp, device, arguments.utilisation or None)
    memory, tokens = (
        plan.memory,
        arguments.tokens or arguments.config.steps * arguments.config.tokens_per_step,
    )
    available = arguments.hbm or device.memory_gb
    share = plan.share_of_peak
    rows = [
        ("parameters", f"{plan.n_parameters / 1e6:,.1f}M"),
        ("memory a device", f"{memory.total / 1e9:.1f} GB of {available:g}"),
        ("  parameters", f"{memory.parameters / 1e9:.2f} GB"),
        ("  optimiser", f"{memory.optimizer / 1e9:.2f} GB"),
        ("  gradients", f"{memory.gradients / 1e9:.2f} GB"),
        ("  activations", f"{memory.activations / 1e9:.2f} GB"),
        ("  workspace", f"{memory.workspace / 1e9:.2f} GB"),
        ("FLOP a step", f"{plan.flop / 1e12:,.1f} TFLOP"),
        ("sent by a device a step", f"{(plan.fsdp_bytes + plan.data_bytes) / 1e9:.2f} GB"),
        ("  parameters (fsdp)", f"{plan.fsdp_bytes / 1e9:.2f} GB"),
        ("  gradients (data)", f"{plan.data_bytes / 1e9:.2f} GB"),
        ("time a step", _time(plan.step_seconds)),
        ("  arithmetic", f"{_time(plan.compute_seconds)} at {share:.0%} of the data sheet's FLOP"),
        ("  communication", f"{_time(plan.communication_seconds)}, beside it"),
        ("tokens a second", f"{arguments.config.tokens_per_step / plan.step_seconds:,.0f}"),
        (f"{tokens:.3g} tokens", _duration(plan.seconds_for(tokens), plan.n_devices)),
    ]
    print(
        f"{name} on {data} x {fsdp} {device.kind}, {arguments.config.batch_size} x {arguments.config.model.context} "
        f"tokens a step{_parts(arguments.config.accumulate)}"
    )
    for label, value in rows:
        print(f"{label:<26}{value}")
    if plan.communication_seconds > plan.compute_seconds:
        print(
            "Communication takes longer than the arithmetic: larger batches or fewer devices would waste less."
        )
    if memory.total <= available * 1e9:
        return 0
    parts = fewest_parts_that_fit(plan, available)
    advice = (
        f"--accumulate {parts} fits"
        if parts
        else "split parameters over more devices (the second number of --mesh)"
    )
    print(f"It does not fit: {memory.total / 1e9:.1f} GB are needed and {available:g} there: {advice}.")
    return 1


def _mesh(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,5})", text)
    if not found:
        raise UserError(f"--mesh is two numbers of devices such as 8x4, not {text!r}.")
    return int(found[1]), int(found[2])


def _device(name: str) -> Device:
    if name not in DEVICES:
        raise UserError(f"There is no device {name!r} here: did you mean {nearest(name, DEVICES)!r}?")
    return DEVICES[name]


def _parts(accumulate: int) -> str:
    return "" if accumulate == 1 else f" in {accumulate} parts"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _duration(seconds: float, n_devices: int) -> str:
    if seconds < 2 * 3600:
        return f"{seconds / 60:,.1f} minutes, {seconds * n_devices / 3600:,.1f} device hours"
    return f"{seconds / 86400:,.1f} days, {seconds * n_devices / 3600:,.0f} device hours"
