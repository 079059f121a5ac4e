"""cuDNN's attention against plain XLA's, where there is a GPU: JAX_PLATFORMS=cuda python -m pytest THIS_FILE."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.model.attention import bias_by_distance, causal_attention, toeplitz

pytestmark = pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs an NVIDIA GPU")


def outputs_and_gradients(implementation: str, dtype: str) -> list[np.ndarray]:
    """Attention of random inputs and the gradients of a random projection of it, as float64."""
    keys = jax.random.split(jax.random.key(7), 5)
    q, k, v, probe = (jax.random.normal(key, (4, 512, 8, 128), jnp.float32).astype(dtype) for key in keys[:4])
    q = q * jnp.asarray(0.3, q.dtype)
    position_WN = jax.random.normal(keys[4], (32, 8), jnp.float32)

    def projected(q: jax.Array, k: jax.Array, v: jax.Array, position_WN: jax.Array) -> tuple:
        bias = toeplitz(bias_by_distance(position_WN, 512, 128))
        out = causal_attention(q, k, v, bias, implementation)
        return jnp.sum((out * probe).astype(jnp.float32)), out

    (_, out), grads = jax.jit(jax.value_and_grad(projected, argnums=(0, 1, 2, 3), has_aux=True))(
        q, k, v, position_WN
    )
    return [np.asarray(x, np.float64) for x in (out, *grads)]


def relative_errors() -> dict[str, float]:
    with jax.default_matmul_precision("highest"):
        exact = outputs_and_gradients("xla", "float32")
    fused = outputs_and_gradients("cudnn", "bfloat16")
    names = ("out", "dq", "dk", "dv", "dbias")
    return {
        name: float(np.linalg.norm(a - b) / np.linalg.norm(b))
        for name, a, b in zip(names, fused, exact, strict=True)
    }


def test_cudnn_gives_the_same_numbers_within_bfloat16_error() -> None:
    for name, error in relative_errors().items():
        assert error < 2e-2, (name, error)
