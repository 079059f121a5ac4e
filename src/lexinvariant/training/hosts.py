"""What the hosts of one run tell each other beside gradients. All of them have to ask the same in the same order."""

import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from lexinvariant.model.params import Params
from lexinvariant.training.sharding import to_devices


def from_first_host(values: Sequence[int]) -> list[int]:
    """The numbers that host 0 has; on all of them."""
    if jax.process_count() == 1:
        return list(values)
    return [int(value) for value in multihost_utils.broadcast_one_to_all(np.asarray(values, np.int32))]


def differs_between_hosts(what: str) -> bool:
    """Whether any of them has another text than the first one; on all of them."""
    if jax.process_count() == 1:
        return False
    here = np.frombuffer(hashlib.sha256(what.encode()).digest(), np.int32)
    every_host = multihost_utils.process_allgather(here)
    return bool((every_host != every_host[0]).any())


def on_first_host(params: Params) -> Params | None:
    """All of the parameters in the memory of host 0; None on the others. One array after the other is gathered."""
    if jax.process_count() == 1:
        return params
    leaves, form = jax.tree.flatten(params)
    gathered = []
    for leaf in leaves:
        value = multihost_utils.process_allgather(leaf, tiled=True)
        if jax.process_index() == 0:
            gathered.append(value)
    return jax.tree.unflatten(form, gathered) if gathered else None


class Agreement:
    """Whether any host has said yes, with the same answer on all: one that stopped by itself would leave the others
    waiting for it. An answer is that of the call before, so that no device waits.
    """

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._before: jax.Array | None = None

    def any_host(self, yes: bool) -> bool:
        if jax.process_count() == 1:
            return yes
        here = np.full(len(self._mesh.local_devices), yes)
        before, self._before = self._before, jax.jit(jnp.any)(to_devices(here, self._mesh))
        return before is not None and bool(before)
