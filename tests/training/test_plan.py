"""A plan says what XLA says of the same program, and what was measured where it was."""

import re
from typing import NamedTuple

import jax
import numpy as np
import pytest

from lexinvariant.config import TrainConfig
from lexinvariant.presets import as_standard, preset
from lexinvariant.text.batch import Batch
from lexinvariant.training.devices import DEVICES, device_of_kind
from lexinvariant.training.plan import Plan, expected_share_of_peak, fewest_parts_that_fit, make_plan
from lexinvariant.training.setup import build, device_batch

H200, TPU = DEVICES["h200"], DEVICES["tpu-v5p"]
LAYOUTS = {"one": (1, 1), "both": (2, 4)}
SMALL = preset("tiny").changed({"model.context": 64, "model.n_layers": 1, "batch_size": 16})
BYTES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1}


class Compiled(NamedTuple):
    plan: Plan
    arguments: int
    """Bytes of the state and the batch on a device."""
    temporary: int
    flop: float
    gathered: int
    added_up: int
    """Bytes that come out of all-gathers, and out of all-reduces."""


def compiled(data: int, fsdp: int) -> Compiled:
    config = SMALL.changed({"sharding.data": data, "sharding.fsdp": fsdp})
    setup, shape = build(config), (config.batch_size, config.model.context)
    rows = Batch(
        np.zeros(shape, np.int32), np.ones(shape, bool), np.ones(shape[0], bool), np.arange(shape[0])
    )
    batch = device_batch(rows, config.batch_size, setup.mesh)
    program = setup.train_step.lower(setup.abstract_state, batch).compile()
    memory, costs = program.memory_analysis(), program.cost_analysis()
    moved = {"all-gather": 0, "all-reduce": 0}
    for result, kind in re.findall(r"= (.+?) (all-gather|all-reduce)(?:-start)?\(", program.as_text()):
        for dtype, axes in re.findall(r"(\w+)\[([\d,]*)\]", result):
            moved[kind] += BYTES[dtype] * int(np.prod([int(n) for n in axes.split(",") if n]))
    # Without cuDNN's attention, as here on a CPU.
    plan = make_plan(SMALL, data, fsdp, TPU)
    return Compiled(
        plan,
        memory.argument_size_in_bytes,
        memory.temp_size_in_bytes,
        costs["flops"],
        moved["all-gather"],
        moved["all-reduce"],
    )


@pytest.fixture(scope="module")
def programs() -> dict[str, Compiled]:
    return {name: compiled(*layout) for name, layout in LAYOUTS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_and_flop_of_a_plan_are_those_of_the_compiled_step(
    programs: dict[str, Compiled], layout: str
) -> None:
    program = programs[layout]
    plan, memory = program.plan, program.plan.memory
    batch = 5 * 16 * 64 // plan.n_devices + 4 * 16 // plan.n_devices  # tokens and mask; numbers of rows
    state = memory.parameters + memory.optimizer
    assert state + batch == pytest.approx(program.arguments, abs=8)  # two counters
    beside_the_state = memory.gradients + memory.activations + memory.workspace
    assert beside_the_state / program.temporary == pytest.approx(1, abs=0.4)
    # XLA counts the readout and elementwise work too.
    assert 1 < program.flop * plan.n_devices / plan.flop < 1.2


@pytest.mark.slow
def test_devices_that_split_parameters_send_those_and_no_activations(programs: dict[str, Compiled]) -> None:
    both = programs["both"]
    parameters = 4 * both.plan.n_parameters
    assert 1.8 * parameters < both.gathered < 2.1 * parameters  # forwards and backwards
    assert (
        0.9 * parameters < both.added_up < 1.5 * parameters
    )  # gradients, which accelerators scatter instead
    assert both.plan.fsdp_bytes == pytest.approx(3 * parameters * 3 / 4)
    assert both.temporary < programs["one"].temporary / 5


@pytest.mark.parametrize(
    ("config", "gigabytes", "too_little"),
    [
        (preset("paper-32k").changed({"model.readout": "seen"}), 16.6, 0.02),
        (as_standard(preset("paper-32k")), 24.9, 0.02),
        (preset("paper-32k"), 37.2, 0.25),
        (preset("tokens-small").changed({"model.decipher_head": False}), 3.9, -0.1),
    ],
    ids=["paper-32k", "standard", "naive", "tokens-small"],
)
def test_memory_that_was_measured_on_an_h200(
    config: TrainConfig, gigabytes: float, too_little: float
) -> None:
    planned = make_plan(config, 1, 1, H200).memory.total / 1e9
    assert planned / gigabytes == pytest.approx(1 - too_little, abs=0.08)


@pytest.mark.parametrize(("name", "ms"), [("paper-char", 66.6), ("char-small", 39.3)])
def test_time_that_was_measured_on_an_h200(name: str, ms: float) -> None:
    config = preset(name)
    flop = config.model.flop_per_token(config.model.context) * config.tokens_per_step
    rate = H200.peak_flop * expected_share_of_peak(config.model.width)
    assert flop / rate * 1e3 == pytest.approx(ms, rel=0.01)
    assert expected_share_of_peak(4096) == expected_share_of_peak(1024) > expected_share_of_peak(600)


@pytest.mark.parametrize(
    ("name", "billions"), [("paper-char", 0.15), ("tokens-1b", 1.11), ("tokens-7b", 6.82)]
)
def test_presets_lower_for_256_devices_that_are_not_there(name: str, billions: float) -> None:
    assert jax.device_count() == 8
    plan = make_plan(preset(name).changed({"batch_size": 512}), 32, 8, DEVICES["h100"])
    assert plan.n_parameters / 1e9 == pytest.approx(billions, rel=0.01)
    assert plan.n_devices == 256 and plan.program_bytes > 100_000
    assert plan.memory.total < 80e9
    assert plan.memory.parameters < 1.3 * 4 * plan.n_parameters / 8
    assert plan.step_seconds == max(plan.compute_seconds, plan.communication_seconds) > 0
    assert plan.communication_seconds > plan.fsdp_bytes / 450e9, (
        "gradients go between machines, parameters within"
    )


@pytest.mark.slow
def test_parts_of_a_batch_take_less_memory(programs: dict[str, Compiled]) -> None:
    plan = programs["one"].plan
    needed = plan.memory.total / 1e9
    assert fewest_parts_that_fit(plan, needed / 1.5) == 2
    assert fewest_parts_that_fit(plan, plan.memory.parameters / 1e9) is None
    in_parts = make_plan(SMALL.changed({"accumulate": 2}), 1, 1, TPU).memory
    assert in_parts.total / 1e9 <= needed / 1.5
    assert in_parts.gradients == 2 * plan.memory.gradients


def test_jaxs_names_of_devices_are_found() -> None:
    assert device_of_kind("NVIDIA H100 80GB HBM3") is DEVICES["h100"]
    assert device_of_kind("TPU v5 lite") is DEVICES["tpu-v5e"]
    assert device_of_kind("cpu") is None
