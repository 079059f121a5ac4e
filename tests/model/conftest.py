"""What the model's tests share."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module")
def compile_quickly() -> Iterator[None]:
    """Small programs spend their time in the compiler; where exact bits do not matter, it may take short cuts."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
