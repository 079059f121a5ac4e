"""Many sequences through a model in batches of one shape, for whatever is measured at every position."""

from collections.abc import Iterator, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from lexinvariant.config import ModelConfig
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import ForwardOutput, forward
from lexinvariant.rng import evaluation_keys


def machine_mesh(batch_size: int, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Those of this machine's accelerators, or of the given devices, over which a batch can be split evenly, as the
    axis "data" beside an axis "fsdp" of one. A CPU is one device: several would share its cores.
    """
    if devices is None:
        devices = jax.local_devices()[: 1 if jax.default_backend() == "cpu" else None]
    n = max(n for n in range(1, len(devices) + 1) if batch_size % n == 0)
    return jax.make_mesh((n, 1), ("data", "fsdp"), (AxisType.Auto,) * 2, devices=devices[:n])


@partial(jax.jit, static_argnames=("config", "dtype"))
def _forward(
    params: Params, config: ModelConfig, tok_BT: jax.Array, key_B: jax.Array, dtype: str
) -> ForwardOutput:
    return forward(params, config, tok_BT, key_B, dtype=jnp.dtype(dtype))


def forward_batches(
    params: Params,
    config: ModelConfig,
    tok_ST: np.ndarray,
    address_S: np.ndarray,
    *,
    seed: int = 0,
    draw: int = 0,
    batch_size: int = 16,
    dtype: str = "float32",
    devices: Sequence[jax.Device] | None = None,
) -> Iterator[tuple[slice, ForwardOutput]]:
    """Read the sequences in order; yields which ones, and the model's output for them (on the devices, which are all
    of this machine's unless some are given).

    A sequence's lexicon comes from its address (the number of its piece) and the draw's number, so that
    nothing measured depends on the batch size or on the other sequences.
    """
    batch_size = min(batch_size, len(tok_ST))
    mesh = machine_mesh(batch_size, devices)
    by_row = NamedSharding(mesh, PartitionSpec("data"))
    params = jax.device_put(params, NamedSharding(mesh, PartitionSpec()))
    for start in range(0, len(tok_ST), batch_size):
        rows = slice(start, min(start + batch_size, len(tok_ST)))
        n_real = rows.stop - start
        # The last batch is filled up with repeats that are cut off again: one shape, one compilation.
        index_B = np.minimum(np.arange(start, start + batch_size), len(tok_ST) - 1)
        tok_BT, address_B = jax.device_put((tok_ST[index_B], address_S[index_B]), by_row)
        output = _forward(params, config, tok_BT, evaluation_keys(seed, address_B, draw), dtype)
        yield rows, ForwardOutput(*(value[:n_real] for value in output))
