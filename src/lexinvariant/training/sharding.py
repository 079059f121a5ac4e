"""Devices: a mesh of data x fsdp, by configuration alone; XLA does the communication.

The batch is split over both axes. Over `fsdp` each matrix is split along its width, and is gathered where it is
used; over `data` parameters are replicated.
"""

from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from lexinvariant.config import ModelConfig, ShardingConfig
from lexinvariant.errors import UserError
from lexinvariant.model.params import Params, ParamSpec, is_spec, specs

BATCH = P(("data", "fsdp"))
REPLICATED = P()


def make_mesh(config: ShardingConfig) -> Mesh:
    n_devices = jax.device_count()
    fsdp = config.fsdp or n_devices // max(config.data, 1)
    data = config.data or n_devices // fsdp
    if min(data, fsdp) < 1 or data * fsdp > n_devices:
        raise UserError(
            f"--sharding.data {config.data} x --sharding.fsdp {config.fsdp} does not fit the "
            f"{n_devices} device(s) of this machine: lower one of them."
        )
    if jax.process_count() > 1 and data * fsdp < n_devices:
        raise UserError(
            f"--sharding.data {config.data} x --sharding.fsdp {config.fsdp} leaves some of the {n_devices} devices of "
            f"{jax.process_count()} processes without work: start fewer processes, or leave --sharding.data out."
        )
    # The type must be named: jax's default for new meshes is the explicit one, in which every op is annotated.
    return jax.make_mesh(
        (data, fsdp), ("data", "fsdp"), (AxisType.Auto,) * 2, devices=jax.devices()[: data * fsdp]
    )


def param_shardings(config: ModelConfig, mesh: Mesh) -> Params:
    n = mesh.shape["fsdp"]
    if config.width % n:
        raise UserError(
            f"--sharding.fsdp {n} does not divide the width {config.width}: choose one that does."
        )

    def sharding(spec: ParamSpec) -> NamedSharding:
        is_split = n > 1 and len(spec.shape) > 1 and "D" in spec.axes
        axes = [("fsdp" if is_split and axis == "D" else None) for axis in spec.axes]
        return NamedSharding(mesh, P(*axes))

    return jax.tree.map(sharding, specs(config), is_leaf=is_spec)


def optimizer_shardings(
    optimizer: optax.GradientTransformation,
    abstract_params: Params,
    shardings: Params,
    mesh: Mesh,
) -> Any:
    """Moments lie as their parameters do; what has another shape (factored moments, counts) is replicated."""
    replicated = NamedSharding(mesh, REPLICATED)

    def like_param(leaf: Any, param: Any, sharding: NamedSharding) -> Any:
        if isinstance(leaf, optax.MaskedNode):
            return leaf  # Muon and AdamW each have moments for some of the parameters
        return sharding if leaf.shape == param.shape else replicated

    return optax.tree_map_params(
        optimizer,
        like_param,
        jax.eval_shape(optimizer.init, abstract_params),
        abstract_params,
        shardings,
        transform_non_params=lambda _: replicated,
        is_leaf=lambda leaf: isinstance(leaf, optax.MaskedNode),
    )


def host_rows(batch_size: int) -> range:
    """The rows of the global batch that this host reads."""
    hosts, host = jax.process_count(), jax.process_index()
    each = batch_size // hosts
    return range(host * each, (host + 1) * each)


def check_batch(batch_size: int, accumulate: int, mesh: Mesh) -> None:
    if (batch_size // accumulate) % mesh.size:
        raise UserError(
            f"A batch of {batch_size} in {accumulate} part(s) cannot be split over {mesh.size} devices: "
            "choose --batch-size so that it can."
        )


def lay_out(value: jax.Array, sharding: NamedSharding) -> jax.Array:
    """A value that every host has, laid out over the devices of all; `device_put` would first compare the hosts'."""
    if jax.process_count() == 1:
        return jax.device_put(value, sharding)
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def to_devices(array: np.ndarray, mesh: Mesh) -> jax.Array:
    """A host's rows of the batch, as a part of the global array."""
    return jax.make_array_from_process_local_data(NamedSharding(mesh, BATCH), array)
