"""cuDNN's attention against plain XLA's, where there is a GPU: JAX_PLATFORMS=cuda python -m pytest THIS_FILE."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.model.attention import (
    bias_by_distance,
    bidirectional_attention,
    bidirectional_toeplitz,
    causal_attention,
    toeplitz,
)

pytestmark = pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs an NVIDIA GPU")

B, T, N, K = 4, 512, 8, 128
N_READ = np.array([T, 200, 1, 0])  # all of a text, some, hardly any; and a row that only fills a batch up
Attention = Callable[[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, str], jax.Array]


def causal(
    q: jax.Array, k: jax.Array, v: jax.Array, past: jax.Array, future: jax.Array, implementation: str
) -> jax.Array:
    return causal_attention(q, k, v, toeplitz(past), implementation)


def bidirectional(
    q: jax.Array, k: jax.Array, v: jax.Array, past: jax.Array, future: jax.Array, implementation: str
) -> jax.Array:
    read_BT = jnp.arange(T) < N_READ[:, None]
    return bidirectional_attention(q, k, v, bidirectional_toeplitz(past, future), read_BT, implementation)


def outputs_and_gradients(
    attention: Attention, counts_BT: np.ndarray, implementation: str, dtype: str
) -> list[np.ndarray]:
    """Attention of random inputs and the gradients of a random projection of what counts of it, as float64."""
    keys = jax.random.split(jax.random.key(7), 6)
    q, k, v, probe = (jax.random.normal(key, (B, T, N, K), jnp.float32).astype(dtype) for key in keys[:4])
    q = q * jnp.asarray(0.3, q.dtype)
    past_WN, future_WN = (jax.random.normal(key, (32, N), jnp.float32) for key in keys[4:])

    def projected(
        q: jax.Array, k: jax.Array, v: jax.Array, past_WN: jax.Array, future_WN: jax.Array
    ) -> tuple:
        past_NT, future_NT = (bias_by_distance(table, T, 128) for table in (past_WN, future_WN))
        out = attention(q, k, v, past_NT, future_NT, implementation)
        counted = jnp.where(counts_BT[:, :, None, None], out * probe, 0)
        return jnp.sum(counted.astype(jnp.float32)), out

    (_, out), grads = jax.jit(jax.value_and_grad(projected, argnums=tuple(range(5)), has_aux=True))(
        q, k, v, past_WN, future_WN
    )
    return [np.asarray(x, np.float64) for x in (out, *grads)]


@pytest.mark.parametrize("attention", [causal, bidirectional])
def test_cudnn_gives_the_same_numbers_within_bfloat16_error(attention: Attention) -> None:
    counts_BT = np.arange(T) < (np.full(B, T) if attention is causal else N_READ)[:, None]
    run = partial(outputs_and_gradients, attention, counts_BT)
    with jax.default_matmul_precision("highest"):
        exact = run("xla", "float32")
    fused = run("cudnn", "bfloat16")
    assert all(np.isfinite(x).all() for x in fused)
    exact[0], fused[0] = exact[0][counts_BT], fused[0][counts_BT]
    names = ("out", "dq", "dk", "dv", "dpast", "dfuture")
    for name, ours, reference in zip(names, fused, exact, strict=True):
        if not reference.any():
            assert (attention, name) == (causal, "dfuture") and not ours.any()
            continue
        error = np.linalg.norm(ours - reference) / np.linalg.norm(reference)
        assert error < 2e-2, (name, error)
