"""What a run would take before anyone pays for it: memory, arithmetic, communication and time, from shapes alone.

The training step is traced and lowered for a mesh that need not exist. Memory is the sum of what every device holds:
the state as it is laid out, gradients, all that the forward pass keeps for the backward pass (told by tracing both) and
once more the largest of that. Beside what XLA needed on an H200 for five programs that is 1% too little, 1% too little,
6% and 17% too much, and for the naive construction, which draws a row for every symbol, 24% too little.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from lexinvariant.config import ShardingConfig, TrainConfig
from lexinvariant.model import params as model_params
from lexinvariant.training.devices import Device
from lexinvariant.training.setup import build
from lexinvariant.training.sharding import BATCH
from lexinvariant.training.step import DeviceBatch, microbatch_loss

FLOAT32 = 4  # bytes
# A small step waits for its kernels to be started, not for their arithmetic: a rule of thumb, which was not measured.
LEAST_SECONDS, LEAST_SECONDS_A_LAYER = 1e-3, 50e-6
# The share of the data sheet's FLOP that steps reached on an H200, by the width of the model: `char-small` (39.3 ms)
# and `paper-char` (66.6 ms; docs/results.md). Wider models are taken to do no better: a plan should not be too hopeful.
MEASURED_SHARE_OF_PEAK = {256: 0.175, 1024: 0.488}


@dataclass(frozen=True)
class Memory:
    """Bytes on each device."""

    parameters: int
    optimizer: int
    gradients: int
    activations: int
    """What the forward pass keeps for the backward pass."""
    workspace: int
    """The gradient of the largest of that, and the layer that is at work, where parameters are split."""

    @property
    def total(self) -> int:
        return self.parameters + self.optimizer + self.gradients + self.activations + self.workspace


@dataclass(frozen=True)
class Plan:
    """A run on `data` x `fsdp` devices, as far as shapes tell."""

    config: TrainConfig
    device: Device
    data: int
    fsdp: int
    n_parameters: int
    memory: Memory
    program_bytes: int
    """Size of the program that was lowered for the mesh: the proof that it can be."""
    flop: float
    """FLOP a step, by all devices together."""
    share_of_peak: float
    fsdp_bytes: float
    data_bytes: float
    """Bytes that each device sends a step, to gather parameters and spread gradients, and to add up gradients."""

    @property
    def n_devices(self) -> int:
        return self.data * self.fsdp

    @property
    def compute_seconds(self) -> float:
        return self.flop / (self.n_devices * self.device.peak_flop * self.share_of_peak)

    @property
    def communication_seconds(self) -> float:
        near, far = self.device.near_gb * 1e9, self.device.far_gb * 1e9
        fsdp_rate = near if self.fsdp <= self.device.n_near else far
        data_rate = near if self.n_devices <= self.device.n_near else far
        return self.fsdp_bytes / fsdp_rate + self.data_bytes / data_rate

    @property
    def least_seconds(self) -> float:
        """Below this nothing can be predicted from FLOP."""
        return LEAST_SECONDS + LEAST_SECONDS_A_LAYER * self.config.model.n_layers

    @property
    def step_seconds(self) -> float:
        """Communication goes on beside the arithmetic, so that the slower of both counts."""
        return max(self.compute_seconds, self.communication_seconds, self.least_seconds)

    def seconds_for(self, tokens: float) -> float:
        return tokens / self.config.tokens_per_step * self.step_seconds


def make_plan(
    config: TrainConfig, data: int, fsdp: int, device: Device, share_of_peak: float | None = None
) -> Plan:
    """Lower the training step for data x fsdp devices, and count."""
    config = replace(config, sharding=ShardingConfig(data=data, fsdp=fsdp))
    mesh = AbstractMesh((data, fsdp), ("data", "fsdp"), axis_types=(AxisType.Auto,) * 2)
    setup = build(config, mesh)
    batch = _abstract_batch(config, config.batch_size, NamedSharding(mesh, BATCH))
    traced = setup.train_step.trace(setup.abstract_state, batch)
    lowered = traced.lower(lowering_platforms=("cuda" if device.is_gpu else "tpu",))

    parameters = _bytes_on_each_device(setup.abstract_state.params)
    optimizer = _bytes_on_each_device(setup.abstract_state.optimizer)
    activations, workspace = _activation_bytes(config, data * fsdp, fsdp, device)
    n_parameters = model_params.count(config.model)
    # Of n devices in a ring each sends all but its own part of n: gathering parameters (for the forward pass and once
    # more for the backward pass) and spreading their gradients; adding gradients up over `data` takes two such rounds.
    fsdp_bytes = 3 * FLOAT32 * n_parameters * (fsdp - 1) / fsdp
    data_bytes = 2 * parameters * (data - 1) / data
    return Plan(
        config=config,
        device=device,
        data=data,
        fsdp=fsdp,
        n_parameters=n_parameters,
        memory=Memory(
            parameters=parameters,
            optimizer=optimizer,
            gradients=parameters * (1 if config.accumulate == 1 else 2),  # of one part, and of all so far
            activations=activations,
            workspace=workspace,
        ),
        program_bytes=len(lowered.as_text()),
        flop=config.model.flop_per_token(config.model.context) * config.tokens_per_step,
        share_of_peak=share_of_peak or expected_share_of_peak(config.model.width),
        fsdp_bytes=fsdp_bytes,
        data_bytes=data_bytes,
    )


def expected_share_of_peak(width: int) -> float:
    """Between the widths that were measured, by the logarithm of the width; beyond them as measured."""
    (small, low), (large, high) = MEASURED_SHARE_OF_PEAK.items()
    way = math.log(width / small) / math.log(large / small)
    return low + (high - low) * min(max(way, 0.0), 1.0)


def fewest_parts_that_fit(plan: Plan, memory_gb: float) -> int | None:
    """The least --accumulate with which the run fits, if there is one: parts of the batch keep parts of the memory."""
    memory, before = plan.memory, plan.config.accumulate
    always = (
        2 * memory.parameters + memory.optimizer + memory.parameters
    )  # gradients of a part, and of all so far
    of_batch = (memory.activations + memory.workspace) * before
    rows = plan.config.batch_size // plan.n_devices
    parts = [n for n in range(before + 1, rows + 1) if rows % n == 0 and plan.config.batch_size % n == 0]
    return next((n for n in parts if always + of_batch / n <= memory_gb * 1e9), None)


def _bytes_on_each_device(tree: Any) -> int:
    return sum(
        math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(tree)
    )


def _activation_bytes(config: TrainConfig, n_devices: int, fsdp: int, device: Device) -> tuple[int, int]:
    """What each device keeps for the backward pass, and the largest array of that (of one layer, where it is stacked).

    What grows with the number of sequences is split as they are. The rest is made of parameters: where those are split
    it is not kept but made again (`keep_rows_alone`), for one layer at a time.
    """
    one, two = (_kept_for_backward(config, rows) for rows in (1, 2))
    rows = config.batch_size // config.accumulate // n_devices
    context, total, largest = config.model.context, 0, 0
    for leaf, of_two in zip(one, two, strict=True):
        if device.is_gpu and leaf.shape[-2:] == (context, context) and len(leaf.shape) >= 4:
            continue  # cuDNN's attention does not keep what every position makes of every other
        size, size_of_two = (math.prod(x.shape) * x.dtype.itemsize for x in (leaf, of_two))
        each_row = size_of_two - size
        on_device = each_row * rows + (size - each_row if fsdp == 1 else 0)
        total += on_device
        n_layers = config.model.n_layers if leaf.shape[:1] == (config.model.n_layers,) else 1
        largest = max(largest, on_device // n_layers)
    gathered = 0 if fsdp == 1 else config.model.n_matmul_parameters // config.model.n_trained_layers
    return total, largest + gathered * (FLOAT32 + jnp.dtype(config.dtype).itemsize)


def _abstract_batch(config: TrainConfig, rows: int, sharding: NamedSharding | None = None) -> DeviceBatch:
    length = config.model.context
    shapes: Any = [
        ((rows, length), jnp.int32),
        ((rows, length), jnp.bool_),
        ((rows,), jnp.bool_),
        ((rows,), jnp.int32),
    ]
    return DeviceBatch(*(jax.ShapeDtypeStruct(*shape, sharding=sharding) for shape in shapes))  # type: ignore[arg-type]


def _kept_for_backward(config: TrainConfig, rows: int) -> list[jax.ShapeDtypeStruct]:
    def backward(params: Any, batch: DeviceBatch, step: jax.Array, n_tokens: jax.Array) -> Any:
        # The function of the backward pass is a tree whose leaves are what it keeps.
        return jax.vjp(lambda p: microbatch_loss(p, config, batch, step, n_tokens), params, has_aux=True)[1]

    batch = _abstract_batch(config, rows)
    number = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), jnp.float32)
    kept = jax.tree.leaves(jax.eval_shape(backward, model_params.abstract(config.model), batch, *number))
    return [leaf for leaf in kept if not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)]  # keys are small
