"""What is asked of logits, and its gradients, against what automatic differentiation makes of the plain formulas."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.model.logits import at_symbol, float32_einsum, is_likeliest, log_softmax_at, weighted_sum

B, T, V, D = 2, 5, 7, 4


def normal(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


LOGITS_BTV = 3 * normal(0, B, T, V)
SYMBOL_BT = jnp.asarray(np.random.default_rng(1).integers(0, V, (B, T)))


def plain_log_softmax_at(logits_BTV: jax.Array, symbol_BT: jax.Array) -> jax.Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits_BTV), symbol_BT[:, :, None], axis=2)[:, :, 0]


def test_a_symbol_s_log_probability_and_its_gradient() -> None:
    weight_BT = normal(2, B, T)
    found, expected = (
        jax.value_and_grad(lambda x, f=f: jnp.sum(weight_BT * f(x, SYMBOL_BT)))(LOGITS_BTV)
        for f in (log_softmax_at, plain_log_softmax_at)
    )
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), found, expected)


def test_a_symbol_s_logit_and_whether_none_is_greater() -> None:
    expected_BT = jnp.take_along_axis(LOGITS_BTV, SYMBOL_BT[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_array_equal(at_symbol(LOGITS_BTV, SYMBOL_BT), expected_BT)
    for logits_BTV in (
        LOGITS_BTV,
        jnp.round(LOGITS_BTV / 3),
        jnp.zeros_like(LOGITS_BTV),
    ):  # without and with equals
        is_likeliest_BTV = [is_likeliest(logits_BTV, jnp.full((B, T), symbol)) for symbol in range(V)]
        np.testing.assert_array_equal(
            np.stack(is_likeliest_BTV, 2), jax.nn.one_hot(jnp.argmax(logits_BTV, 2), V)
        )


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 2e-2)])
def test_products_are_summed_in_float32_and_their_gradients_are_of_the_states_type(
    dtype: str, tolerance: float
) -> None:
    x, y, dz = normal(3, B, T, D).astype(dtype), normal(4, V, D).astype(dtype), normal(5, B, T, V)
    z, transpose = jax.vjp(partial(float32_einsum, "btd,vd->btv"), x, y)
    x64, y64, dz64 = (np.asarray(a, np.float64) for a in (x, y, dz))
    assert z.dtype == jnp.float32
    np.testing.assert_allclose(z, np.einsum("btd,vd->btv", x64, y64), rtol=1e-5, atol=1e-5)
    dx, dy = transpose(dz)
    assert dx.dtype == x.dtype and dy.dtype == y.dtype
    for found, expected in (
        (dx, np.einsum("btv,vd->btd", dz64, y64)),
        (dy, np.einsum("btv,btd->vd", dz64, x64)),
    ):
        assert np.linalg.norm(np.asarray(found, np.float64) - expected) <= tolerance * np.linalg.norm(
            expected
        )


def test_a_weighted_sum_is_the_product_with_a_vector() -> None:
    x, weight = normal(6, B, T, D), normal(7, D)
    np.testing.assert_allclose(weighted_sum(x, weight), x @ weight, rtol=1e-5, atol=1e-6)
