"""From a configuration to a state on its devices and a compiled step."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding

from lexinvariant.config import TrainConfig
from lexinvariant.model import params as model_params
from lexinvariant.text.batch import Batch
from lexinvariant.training.init import initial_params
from lexinvariant.training.optim import make_optimizer, rate_schedule
from lexinvariant.training.sharding import (
    REPLICATED,
    check_batch,
    host_rows,
    lay_out,
    make_mesh,
    optimizer_shardings,
    param_shardings,
    to_devices,
)
from lexinvariant.training.step import DeviceBatch, TrainState, make_train_step


class TrainSetup(NamedTuple):
    """What a run is made of before its first step."""

    mesh: Mesh
    abstract_state: TrainState  # shapes, types and shardings: what a checkpoint is restored into
    fresh_state: Callable[[], TrainState]
    train_step: jax.stages.Wrapped  # (state, batch) -> (state, metrics)


def compiler_options() -> dict[str, bool | str] | None:
    """What made the training step faster when tried on an H200; the numbers stand in docs/results.md."""
    if jax.default_backend() != "gpu":
        return None
    return {
        "xla_gpu_enable_triton_gemm": False,
        "xla_gpu_experimental_enable_fusion_block_level_rewriter": True,
        # XLA would make one product of those of queries, keys and values, and then copy the values out of it.
        "xla_gpu_dot_merger_threshold_mb": "0",
    }


def build(config: TrainConfig, abstract_mesh: AbstractMesh | None = None) -> TrainSetup:
    """Lay the state out over the devices and jit the step; nothing is computed yet. Over a mesh of devices that are not
    there, the step can be lowered and no more.
    """
    mesh = cast(Mesh, abstract_mesh) or make_mesh(config.sharding)
    check_batch(config.batch_size, config.accumulate, mesh)
    optimizer = make_optimizer(config.optimizer, config.steps, config.dtype)
    shapes = model_params.abstract(config.model)
    on_params = param_shardings(config.model, mesh)
    shardings = TrainState(
        step=NamedSharding(mesh, REPLICATED),
        params=on_params,
        optimizer=optimizer_shardings(optimizer, shapes, on_params, mesh),
    )

    def fresh() -> TrainState:
        # Not one jit: XLA fuses the random draws of all parameters into kernels that take minutes to compile.
        params = jax.tree.map(lay_out, initial_params(config), on_params)
        moments = jax.jit(optimizer.init, out_shardings=shardings.optimizer)(params)
        return TrainState(lay_out(jnp.zeros((), jnp.int32), shardings.step), params, moments)

    abstract = TrainState(jax.ShapeDtypeStruct((), jnp.int32), shapes, jax.eval_shape(optimizer.init, shapes))

    def with_sharding(shape: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=sharding)

    step = make_train_step(config, optimizer, rate_schedule(config.optimizer, config.steps))

    def step_on_mesh(state: TrainState, batch: DeviceBatch) -> tuple[TrainState, dict[str, jax.Array]]:
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            return step(state, batch)

    return TrainSetup(
        mesh=mesh,
        abstract_state=jax.tree.map(with_sharding, abstract, shardings),
        fresh_state=fresh,
        train_step=jax.jit(
            step_on_mesh,
            donate_argnums=0,
            out_shardings=(shardings, None),
            compiler_options=compiler_options(),
        ),
    )


def device_batch(batch: Batch, batch_size: int, mesh: Mesh) -> DeviceBatch:
    """This host's rows of a batch, laid out over the devices."""
    row_B = np.asarray(host_rows(batch_size), np.int32)
    arrays = (batch.tok_BT, batch.mask_BT, batch.named_B, row_B)
    return DeviceBatch(*(to_devices(array, mesh) for array in arrays))
