"""The kernels compute what plain jax does, gradients too; without a GPU they run interpreted."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model import fused, kernels, levers
from lexinvariant.model.attention import bias_gradient, causal_attention, toeplitz
from lexinvariant.model.params import Params, flatten_named
from lexinvariant.model.position import distance_buckets, n_distances_told_apart
from lexinvariant.model.transformer import forward
from tests.tiny_models import random_params

EPS = 1e-6
INTERPRET = jax.default_backend() != "gpu"


def normal(seed: int, *shape: int, dtype: str = "float32") -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def assert_close(ours: jax.Array, expected: jax.Array, tolerance: float) -> None:
    ours, expected = np.asarray(ours, np.float64), np.asarray(expected, np.float64)
    assert np.linalg.norm(ours - expected) <= tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("width", [128, 384])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 4e-3)])
def test_a_norm_and_its_gradient(width: int, dtype: str, tolerance: float) -> None:
    x, dn, dx = (normal(seed, 32, width, dtype=dtype) for seed in range(3))
    n, inverse = kernels.norm(x, EPS, interpret=INTERPRET)
    expected_n, expected_inverse = kernels.plain_norm(x.astype(jnp.float32), EPS)
    assert_close(n, expected_n, tolerance)
    assert_close(inverse, expected_inverse, 1e-6)

    def by_jax(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x, x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + EPS)

    _, transpose = jax.vjp(by_jax, x.astype(jnp.float32))
    (expected,) = transpose((dx.astype(jnp.float32), dn.astype(jnp.float32)))
    for gradient in (partial(kernels.norm_gradient, interpret=INTERPRET), kernels.plain_norm_gradient):
        assert_close(gradient(n, inverse, dn, dx), expected, tolerance)


def test_what_goes_on_beside_a_norm_keeps_its_gradient() -> None:
    x, weight = normal(0, 2, 3, 8), normal(1, 2, 3, 8)

    def loss(norm_beside: object, x: jax.Array) -> jax.Array:
        x, n = norm_beside(x, EPS)  # type: ignore[operator]
        return jnp.sum(jnp.sin(x) * weight) + jnp.sum(n**3 * weight)

    def plain(x: jax.Array, eps: float) -> tuple[jax.Array, jax.Array]:
        return x, x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)

    assert_close(jax.grad(partial(loss, fused.norm_beside))(x), jax.grad(partial(loss, plain))(x), 1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 6e-3)])
def test_queries_and_keys_and_their_gradients(dtype: str, tolerance: float) -> None:
    qk = normal(0, 2, 128, 2, 3, 16, dtype=dtype)
    scale_N, smear_N = jnp.asarray([8.0, 1.0, 3.0]), jnp.asarray([0.9, 0.0, 0.3])
    d = (normal(1, 2, 128, 3, 16, dtype=dtype), normal(2, 2, 128, 3, 16, dtype=dtype))
    exact, transpose = jax.vjp(
        partial(kernels.plain_queries_keys, eps=EPS), qk.astype(jnp.float32), scale_N, smear_N
    )
    ours = kernels.queries_keys(qk, scale_N, smear_N, EPS, interpret=INTERPRET)
    gradients = kernels.queries_keys_gradient(qk, scale_N, smear_N, *d, EPS, interpret=INTERPRET)
    expected = transpose(tuple(x.astype(jnp.float32) for x in d))
    for one, other in zip((*ours, *gradients), (*exact, *expected), strict=True):
        assert one.shape == other.shape
        assert_close(one, other, tolerance)


def test_distances_are_told_apart_up_to_the_last_bucket() -> None:
    assert n_distances_told_apart(32, 128) == 113
    buckets = distance_buckets(600, 32, 128)
    assert (buckets[113:] == 31).all()
    assert buckets[112] == 30


@pytest.mark.parametrize(("length", "n_near"), [(256, 113), (64, 113)])
def test_the_gradient_of_a_bias_by_distance(length: int, n_near: int) -> None:
    """Against automatic differentiation, with a bias that is one from a distance on."""
    q, k, v, do = (normal(seed, 4, length, 2, 16) for seed in range(4))
    free_NT = 0.5 * normal(4, 2, min(n_near + 1, length))

    def bias(free_NT: jax.Array) -> jax.Array:
        return free_NT[:, np.minimum(np.arange(length), free_NT.shape[1] - 1)]

    def loss(free_NT: jax.Array) -> jax.Array:
        return jnp.sum(causal_attention(q, k, v, toeplitz(bias(free_NT)), "xla") * do)

    expected = jax.jit(jax.grad(loss))(free_NT)
    bias_NTS = toeplitz(bias(free_NT))
    logits = jnp.einsum("btnk,bsnk->bnts", q, k) + bias_NTS
    total_BNT = jax.nn.logsumexp(jnp.where(jnp.tril(jnp.ones((length, length), bool)), logits, -1e30), axis=3)
    delta_BNT = jnp.sum(causal_attention(q, k, v, bias_NTS, "xla") * do, axis=3).swapaxes(1, 2)
    kernel = partial(kernels.bias_gradient, interpret=INTERPRET)
    d_NT = bias_gradient(q, k, v, do, total_BNT, delta_BNT, bias_NTS, n_near, kernel)
    assert d_NT.shape == (2, length)
    d_free_NT = jax.vjp(bias, free_NT)[1](d_NT)[0]
    assert_close(d_free_NT, expected, 1e-4 if INTERPRET else 1e-2)  # a GPU rounds to TF32


def test_a_model_with_kernels_learns_what_one_without_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16, against float32 without: the loss, and the direction of the gradient of every parameter."""
    config = ModelConfig(
        vocab_size=11,
        n_layers=1,
        width=32,
        n_heads=2,
        head_dim=16,
        hidden=48,
        lexicon=LexiconConfig(kind="permuted"),
        smeared_keys=True,
    )
    params = random_params(config)
    tok_BT = np.random.default_rng(0).integers(11, size=(2, 64))

    def loss(params: Params, dtype: str) -> jax.Array:
        key_B = jax.random.split(jax.random.key(1), 2)
        return -jnp.mean(forward(params, config, tok_BT, key_B, dtype=jnp.dtype(dtype)).logp_BT)

    with levers.only(set()):
        expected, exact = jax.jit(partial(jax.value_and_grad(loss), dtype="float32"))(params)
    calls: list[str] = []

    def interpreted(kernel: object, *args: object, call: Callable[..., object] = kernels._call) -> object:
        calls.append(getattr(kernel, "func", kernel).__name__)
        return call(kernel, *args[:-1], INTERPRET)

    monkeypatch.setattr(kernels, "can_run", lambda dtype: True)
    monkeypatch.setattr(kernels, "_call", interpreted)
    ours, gradient = jax.jit(partial(jax.value_and_grad(loss), dtype="bfloat16"))(params)
    assert set(calls) == {
        "_norm_kernel",
        "_norm_gradient_kernel",
        "_queries_keys_kernel",
        "_queries_keys_gradient_kernel",
    }
    assert float(ours) == pytest.approx(float(expected), rel=0.01)
    for (name, one), (_, other) in zip(flatten_named(gradient), flatten_named(exact), strict=True):
        assert np.sum(one * other) >= 0.99 * np.linalg.norm(one) * np.linalg.norm(other), name
