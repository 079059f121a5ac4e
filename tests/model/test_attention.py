"""Causal attention and its position bias, against plain loops."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.model.attention import (
    bias_by_distance,
    causal_attention,
    choose_implementation,
    distance_buckets,
    toeplitz,
)

B, T, N, K = 2, 11, 3, 4
RNG = np.random.default_rng(0)
Q, KEYS, VALUES = (RNG.normal(size=(B, T, N, K)) for _ in range(3))
BIAS = RNG.normal(size=(N, T, T))


_attention = partial(jax.jit, static_argnames=("implementation", "dropout"))(causal_attention)


def run_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    bias: np.ndarray,
    dropout: float = 0.0,
    dropout_key_B: jax.Array | None = None,
) -> np.ndarray:
    arrays = (x.astype(np.float32) for x in (q, k, v, bias))
    return np.asarray(_attention(*arrays, implementation="xla", dropout=dropout, dropout_key_B=dropout_key_B))


def reference_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: np.ndarray) -> np.ndarray:
    mixed = np.zeros_like(q)
    for b in range(B):
        for n in range(N):
            for t in range(T):
                logits = k[b, : t + 1, n] @ q[b, t, n] + bias[n, t, : t + 1]
                weights = np.exp(logits - logits.max())
                mixed[b, t, n] = weights / weights.sum() @ v[b, : t + 1, n]
    return mixed


def test_buckets_are_exact_for_near_distances() -> None:
    np.testing.assert_array_equal(distance_buckets(16, 32, 128), np.arange(16))


@pytest.mark.parametrize(
    ("distance", "bucket"),
    [(16, 16), (18, 16), (19, 17), (21, 18), (32, 21), (64, 26), (112, 30), (113, 31), (128, 31), (9999, 31)],
)
def test_far_buckets_are_those_of_t5(distance: int, bucket: int) -> None:
    assert distance_buckets(10_000, 32, 128)[distance] == bucket


def test_buckets_never_fall_and_all_are_used() -> None:
    buckets = distance_buckets(600, 32, 128)
    assert np.all(np.diff(buckets) >= 0)
    assert set(buckets.tolist()) == set(range(32))


def test_bias_by_distance_looks_up_each_distances_bucket() -> None:
    position_WN = RNG.normal(size=(32, N)).astype(np.float32)
    bias_NT = np.asarray(bias_by_distance(jnp.asarray(position_WN), 200, 128))
    np.testing.assert_array_equal(bias_NT, position_WN[distance_buckets(200, 32, 128)].T)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_toeplitz_is_the_bias_of_the_distance_back(length: int) -> None:
    bias_NT = RNG.normal(size=(N, length)).astype(np.float32)
    rows = np.asarray(toeplitz(jnp.asarray(bias_NT)))
    assert rows.shape == (N, length, length)
    for t in range(length):
        for s in range(t + 1):
            np.testing.assert_array_equal(rows[:, t, s], bias_NT[:, t - s])


def test_the_gradient_of_toeplitz_sums_over_diagonals() -> None:
    weight = np.tril(RNG.normal(size=(N, T, T))).astype(np.float32)
    gradient = jax.jit(jax.grad(lambda bias: jnp.sum(toeplitz(bias) * weight)))(jnp.ones((N, T), jnp.float32))
    expected = [[np.trace(weight[n], -distance) for distance in range(T)] for n in range(N)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def test_attention_equals_a_float64_loop() -> None:
    np.testing.assert_allclose(
        run_attention(Q, KEYS, VALUES, BIAS), reference_attention(Q, KEYS, VALUES, BIAS), rtol=1e-4, atol=1e-6
    )


def test_the_future_does_not_alter_the_past() -> None:
    before = run_attention(Q, KEYS, VALUES, BIAS)
    later = np.arange(T)[None, :, None, None] >= 6
    after = run_attention(
        np.where(later, 3.0, Q), np.where(later, -2.0, KEYS), np.where(later, 9.0, VALUES), BIAS
    )
    np.testing.assert_array_equal(before[:, :6], after[:, :6])
    assert np.all(np.any(before[:, 6:] != after[:, 6:], axis=(2, 3)))


def test_dropout_drops_and_rescales_weights() -> None:
    values = np.zeros((B, T, N, T))
    values[:, np.arange(T), :, np.arange(T)] = 1.0  # so that what comes out is the weights themselves
    plain = run_attention(Q, KEYS, values, BIAS)
    key_B = jax.random.split(jax.random.key(0), B)
    dropped = run_attention(Q, KEYS, values, BIAS, dropout=0.5, dropout_key_B=key_B)
    was_dropped = (dropped == 0) & (plain > 0)
    assert np.mean(was_dropped[plain > 0]) == pytest.approx(0.5, abs=0.12)
    np.testing.assert_allclose(dropped[~was_dropped], 2 * plain[~was_dropped], rtol=1e-5)
    np.testing.assert_array_equal(run_attention(Q, KEYS, values, BIAS, dropout=0.5), plain)


def test_without_a_gpu_auto_is_xla() -> None:
    assert choose_implementation("auto", jnp.bfloat16) == "xla"
    assert choose_implementation("xla", jnp.bfloat16) == "xla"
    assert choose_implementation("cudnn", jnp.bfloat16) == "cudnn"


def test_auto_is_cudnn_on_a_gpu_in_16_bit_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert choose_implementation("auto", jnp.bfloat16) == "cudnn"
    assert choose_implementation("auto", jnp.float32) == "xla"
    assert choose_implementation("auto", jnp.bfloat16, has_dropout=True) == "xla"  # cuDNN would leave it out
