"""Eight CPU devices, so that sharding is tested for real, and no silent change of types."""

import os
from collections.abc import Iterator

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(scope="module")
def compile_quickly() -> Iterator[None]:
    """Small programs spend their time in the compiler; where exact bits do not matter, it may take short cuts."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
