"""Logits in float32 from states in fewer bits, and what is asked of them, with gradients that stay small."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def float32_einsum(equation: str, x: jax.Array, y: jax.Array) -> jax.Array:
    """An einsum of two arrays of one type, summed and given in float32. Its gradients are products in that type: those
    that automatic differentiation makes are of float32, on the slow path of a GPU.
    """
    return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)


def _einsum_backward(equation: str, kept: Any, dz: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, y = kept
    _, transpose = jax.vjp(partial(jnp.einsum, equation), x, y)
    return transpose(dz.astype(x.dtype))


float32_einsum.defvjp(lambda equation, x, y: (float32_einsum(equation, x, y), (x, y)), _einsum_backward)


def weighted_sum(x_BTD: jax.Array, weight_D: jax.Array) -> jax.Array:
    """X @ weight in float32. Not as a product of matrices, for which x would be written out in float32."""
    return jnp.sum(x_BTD.astype(jnp.float32) * weight_D, axis=-1)


def at_symbol(logits_BTV: jax.Array, symbol_BT: jax.Array) -> jax.Array:
    """The logit of one symbol a position. A masked sum: the gradient of a gather would be a scatter into zeros."""
    return jnp.sum(logits_BTV, axis=2, where=_is_symbol(logits_BTV, symbol_BT))


def _is_symbol(logits_BTV: jax.Array, symbol_BT: jax.Array) -> jax.Array:
    return jnp.arange(logits_BTV.shape[2]) == symbol_BT[:, :, None]


@jax.custom_vjp
def log_softmax_at(logits_BTV: jax.Array, symbol_BT: jax.Array) -> jax.Array:
    """logp_BT: the log-probability of one symbol a position."""
    return _log_softmax_at_forward(logits_BTV, symbol_BT)[0]


def _log_softmax_at_forward(logits_BTV: jax.Array, symbol_BT: jax.Array) -> tuple[jax.Array, Any]:
    total_BT = jax.nn.logsumexp(logits_BTV, axis=2)
    return at_symbol(logits_BTV, symbol_BT) - total_BT, (logits_BTV, symbol_BT, total_BT)


def _log_softmax_at_backward(kept: Any, g_BT: jax.Array) -> tuple[jax.Array, None]:
    # By hand, because automatic differentiation keeps the exponentials beside the logits.
    logits_BTV, symbol_BT, total_BT = kept
    probability_BTV = jnp.exp(logits_BTV - total_BT[:, :, None])
    onehot_BTV = _is_symbol(logits_BTV, symbol_BT).astype(logits_BTV.dtype)
    return g_BT[:, :, None] * (onehot_BTV - probability_BTV), None


log_softmax_at.defvjp(_log_softmax_at_forward, _log_softmax_at_backward)


def is_likeliest(logits_BTV: jax.Array, symbol_BT: jax.Array) -> jax.Array:
    """Whether the symbol is the argmax, the first one of equals; without looking for where that stands."""
    chosen_BT1 = at_symbol(logits_BTV, symbol_BT)[:, :, None]
    is_earlier_BTV = jnp.arange(logits_BTV.shape[2]) < symbol_BT[:, :, None]
    return jnp.all(jnp.where(is_earlier_BTV, logits_BTV < chosen_BT1, logits_BTV <= chosen_BT1), axis=2)
