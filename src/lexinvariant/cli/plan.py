"""`lexinvariant plan PRESET`: what a run would take, before anybody pays for it."""

import os
import re
from dataclasses import dataclass, field
from typing import Annotated

import tyro

from lexinvariant import presets
from lexinvariant.checks import finite_number
from lexinvariant.cli.run_settings import RunSettings, run_config, words_of
from lexinvariant.errors import UserError, suggestion
from lexinvariant.results.section import short
from lexinvariant.training.devices import DEVICES, Device


@dataclass(frozen=True)
class Arguments:
    """Estimate what a run would take, from shapes alone and in seconds: memory per device, FLOP, communication, time.

    The training step is lowered for devices that need not be present. Every setting of the preset is an option, as for
    `lexinvariant train`, and so are its twins and --init. Exits with status 1 if the run would not fit.

    examples:
      lexinvariant plan paper-char --mesh 1x1 --device h200
      lexinvariant plan tokens-7b --mesh 32x8 --device h100 --tokens 1e11
    """

    mesh: str = "1x1"
    """Devices as DATAxFSDP. 8x4 is 32 devices in 8 groups; the 4 of a group split parameters and optimiser state among
    themselves, and the groups share their gradients."""
    device: str = "h100"
    """h100, h200, b200, a100, l40s, tpu-v3, tpu-v4, tpu-v5e, tpu-v5p or tpu-v6e; its data sheet is used."""
    hbm: float = 0.0
    """Memory of a device in GB; 0: the data sheet's."""
    tokens: float = 0.0
    """Tokens to train on; 0: as many as the preset's steps read."""
    utilisation: float = 0.0
    """The share of the data sheet's FLOP that a step reaches; 0: what was measured on an H200 at the model's width,
    49% for `paper-char` and wider, 18% for `char-small`."""
    settings: Annotated[RunSettings, tyro.conf.arg(name="")] = field(default_factory=RunSettings)


def overview() -> str:
    return f"""usage: lexinvariant plan PRESET [--mesh DATAxFSDP] [--device NAME] [--hbm GB] [--tokens N] [options]

Estimate what a run would take: parameters, memory per device, FLOP, communication and time.

options:
  --mesh DATAxFSDP    devices: 8x4 is 8 groups of 4; each group splits one copy of the parameters (default 1x1)
  --device NAME       {", ".join(DEVICES)} (default h100)
  --hbm GB            memory of a device, if not the data sheet's
  --tokens N          tokens to train on, if not what the preset's steps read
  --utilisation P     share of the data sheet's FLOP, if not what was measured at that width on an H200
  --batch-size, --accumulate, --model.context ...: every setting of `lexinvariant train`, also --standard,
                      --regularise KIND, --p and --init MODEL

presets: {", ".join(presets.PRESETS)}

Exits with status 1 if the run would not fit. `lexinvariant plan PRESET --help` lists every setting.

examples:
  lexinvariant plan paper-char --device h200
  lexinvariant plan tokens-7b --mesh 32x8 --device h100 --tokens 1e11
"""


def main(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(overview(), end="")
        return 0
    words = words_of(argv)
    name = words.preset

    def read(defaults: RunSettings) -> Arguments:
        default = Arguments(settings=defaults)
        return tyro.cli(Arguments, args=words.options, default=default, prog=f"lexinvariant plan {name}")

    arguments = read(RunSettings(config=presets.preset(name)))
    data, fsdp = _mesh(arguments.mesh)
    device = _device(arguments.device)
    for option in ("hbm", "tokens", "utilisation"):
        finite_number(getattr(arguments, option), f"--{option}")
    if arguments.hbm < 0 or arguments.tokens < 0 or not 0 <= arguments.utilisation <= 1:
        raise UserError("--hbm and --tokens are at least 0, and --utilisation is a share from 0 to 1.")

    os.environ["JAX_PLATFORMS"] = "cpu"  # a plan needs no device, and takes none from others
    from lexinvariant.training.plan import fewest_parts_that_fit, make_plan

    config = run_config(words, arguments.settings, lambda defaults: read(defaults).settings)
    plan = make_plan(config, data, fsdp, device, arguments.utilisation or None)
    memory, tokens = (
        plan.memory,
        arguments.tokens or config.steps * config.tokens_per_step,
    )
    available = arguments.hbm or device.memory_gb
    share = plan.share_of_peak
    rows = [
        ("parameters", f"{_amount(plan.n_parameters / 1e6)}M"),
        ("memory per device", f"{_amount(memory.total / 1e9)} GB of {available:g}"),
        ("  parameters", f"{_amount(memory.parameters / 1e9)} GB"),
        ("  optimiser", f"{_amount(memory.optimizer / 1e9)} GB"),
        ("  gradients", f"{_amount(memory.gradients / 1e9)} GB"),
        ("  activations", f"{_amount(memory.activations / 1e9)} GB"),
        ("  workspace", f"{_amount(memory.workspace / 1e9)} GB"),
        ("FLOP per step", f"{_amount(plan.flop / 1e12)} TFLOP"),
        ("sent per device and step", f"{_amount((plan.fsdp_bytes + plan.data_bytes) / 1e9)} GB"),
        ("  parameters (fsdp)", f"{_amount(plan.fsdp_bytes / 1e9)} GB"),
        ("  gradients (data)", f"{_amount(plan.data_bytes / 1e9)} GB"),
        ("time per step", _time(plan.step_seconds)),
        ("  arithmetic", f"{_time(plan.compute_seconds)} at {share:.0%} of the data sheet's FLOP"),
        ("  communication", f"{_time(plan.communication_seconds)}, overlapping"),
        ("tokens per second", f"{config.tokens_per_step / plan.step_seconds:,.0f}"),
        (f"{tokens:.3g} tokens", _duration(plan.seconds_for(tokens), plan.n_devices)),
    ]
    print(
        f"{name} on {data} x {fsdp} {device.kind}, {config.batch_size} x {config.model.context} "
        f"tokens per step{_parts(config.accumulate)}"
    )
    for label, value in rows:
        print(f"{label:<26}{value}")
    if plan.step_seconds == plan.least_seconds:
        print(
            f"Too small to predict by its FLOP: a step is taken to last {_time(plan.least_seconds)} all the same, to "
            "start its kernels (a rule of thumb, which was not measured)."
        )
    elif plan.communication_seconds > plan.compute_seconds:
        print(
            "Communication takes longer than the arithmetic: larger batches or fewer devices would waste less."
        )
    if memory.total <= available * 1e9:
        return 0
    parts = fewest_parts_that_fit(plan, available)
    advice = (
        f"--accumulate {parts} would fit"
        if parts
        else "split parameters over more devices (the second number of --mesh)"
    )
    print(f"It does not fit ({memory.total / 1e9:.1f} GB needed, {available:g} available): {advice}.")
    return 1


def _mesh(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,5})", text)
    if not found:
        raise UserError(f"--mesh is two numbers of devices such as 8x4, not {text!r}.")
    return int(found[1]), int(found[2])


def _device(name: str) -> Device:
    if name not in DEVICES:
        raise UserError(f"There is no device {name!r} here: {suggestion(name, DEVICES)}")
    return DEVICES[name]


def _parts(accumulate: int) -> str:
    return "" if accumulate == 1 else f" in {accumulate} parts"


def _amount(number: float) -> str:
    return f"{number:,.1f}" if number >= 10 else short(number)


def _time(seconds: float) -> str:
    return f"{_amount(seconds * 1e3)} ms" if seconds < 1 else f"{seconds:.2f} s"


def _duration(seconds: float, n_devices: int) -> str:
    if seconds < 60:
        return f"{short(seconds)} seconds"
    if seconds < 2 * 3600:
        return f"{seconds / 60:,.1f} minutes, {seconds * n_devices / 3600:,.1f} device hours"
    return f"{seconds / 86400:,.1f} days, {seconds * n_devices / 3600:,.0f} device hours"
