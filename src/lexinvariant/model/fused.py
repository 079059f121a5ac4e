"""Steps of a block with gradients written by hand, so that each is one pass over memory where kernels.py can run.

Elsewhere they are the same formulas in plain jax.
"""

from functools import partial
from typing import Any

import jax

from lexinvariant.model import kernels


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def norm_beside(x_BTD: jax.Array, eps: float) -> tuple[jax.Array, jax.Array]:
    """(x, normed x): rows over their root mean square, beside the residual stream that goes on.

    Both come out of one function so that both gradients come into one. It keeps the normed rows, which the product
    after it keeps too, and not x: so the next sum can be written over x. The norm's scale is left to the matrix that
    follows (`fold_norm_scale`): there its gradient is cheap.
    """
    return _norm_forward(x_BTD, eps)[0]


def _norm_forward(x_BTD: jax.Array, eps: float) -> tuple[tuple[jax.Array, jax.Array], Any]:
    x_MD = x_BTD.reshape(-1, x_BTD.shape[-1])
    n_MD, inverse_M = (kernels.norm if _rows_fit(x_MD) else kernels.plain_norm)(x_MD, eps)
    return (x_BTD, n_MD.reshape(x_BTD.shape)), (n_MD, inverse_M)


def _norm_backward(eps: float, kept: Any, d: Any) -> tuple[jax.Array]:
    n_MD, inverse_M = kept
    dx_BTD, dn_BTD = d
    gradient = kernels.norm_gradient if _rows_fit(n_MD) else kernels.plain_norm_gradient
    dx_MD = gradient(n_MD, inverse_M, dn_BTD.reshape(n_MD.shape), dx_BTD.reshape(n_MD.shape))
    return (dx_MD.reshape(dx_BTD.shape),)


def _rows_fit(x_MD: jax.Array) -> bool:
    return kernels.can_run(x_MD.dtype) and kernels.fits_rows(*x_MD.shape)


norm_beside.defvjp(_norm_forward, _norm_backward)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def queries_keys(
    qk_BT2NK: jax.Array, scale_N: jax.Array, smear_N: jax.Array, eps: float
) -> tuple[jax.Array, jax.Array]:
    """Queries and keys of unit length, out of the product that has both: queries times a scale a head, keys with a
    share of the key before them mixed in, 0 for none.
    """
    return _queries_keys(qk_BT2NK, scale_N, smear_N, eps)


def _queries_keys(qk_BT2NK: jax.Array, scale_N: jax.Array, smear_N: jax.Array, eps: float) -> Any:
    compute = kernels.queries_keys if _heads_fit(qk_BT2NK) else kernels.plain_queries_keys
    return compute(qk_BT2NK, scale_N, smear_N, eps)


def _heads_fit(qk_BT2NK: jax.Array) -> bool:
    return kernels.can_run(qk_BT2NK.dtype) and kernels.fits_heads(qk_BT2NK.shape[1], qk_BT2NK.shape[4])


def _queries_keys_backward(eps: float, kept: Any, d: Any) -> Any:
    if _heads_fit(kept[0]):
        (qk_BT2NK, scale_N, smear_N), (dq_BTNK, dk_BTNK) = kept, d
        return kernels.queries_keys_gradient(qk_BT2NK, scale_N, smear_N, dq_BTNK, dk_BTNK, eps)
    return jax.vjp(partial(kernels.plain_queries_keys, eps=eps), *kept)[1](d)


queries_keys.defvjp(
    lambda qk, scale, smear, eps: (_queries_keys(qk, scale, smear, eps), (qk, scale, smear)),
    _queries_keys_backward,
)
