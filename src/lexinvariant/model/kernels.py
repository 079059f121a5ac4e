"""Kernels for one NVIDIA GPU, in Pallas: what XLA makes two or three passes over memory of, in one.

Each has a plain twin of the same signature beside it, which is what runs elsewhere; the tests run both. M rows, D their
width; the other axes are those of transformer.py.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

_ROWS = 16  # rows of a norm that one program takes
_POSITIONS = 64  # positions of one head that one program takes
BLOCK = 64  # positions a side of a tile of attention


def can_run(dtype: Any) -> bool:
    """On a GPU that has the whole batch, in 16 bits. XLA cannot divide a kernel among devices."""
    return jax.default_backend() == "gpu" and jax.device_count() == 1 and jnp.dtype(dtype).itemsize == 2


def _columns(width: int) -> list[slice]:
    """Pieces of a row whose width is a power of two, as a program's arrays must be."""
    size = min(width & -width, 1024)
    return [slice(start, start + size) for start in range(0, width, size)]


def fits_rows(rows: int, width: int) -> bool:
    """Whether so many rows, of that width, divide into the programs' tiles."""
    return rows % _ROWS == 0 and len(_columns(width)) <= 8


def fits_heads(length: int, head_dim: int) -> bool:
    return length % _POSITIONS == 0 and head_dim >= 16 and head_dim & (head_dim - 1) == 0


def _call(
    kernel: Any, grid: tuple[int, ...], in_specs: Any, out_specs: Any, out_shape: Any, interpret: bool
) -> Any:
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=in_specs,
        out_specs=out_specs,
        out_shape=out_shape,
        interpret=interpret,
        compiler_params=None if interpret else plgpu.CompilerParams(num_warps=4, num_stages=2),
        name=getattr(kernel, "func", kernel).__name__.strip("_"),
    )


def plain_norm(x_MD: jax.Array, eps: float) -> tuple[jax.Array, jax.Array]:
    """(n_MD, inverse_M): rows over their root mean square, and what they were multiplied by."""
    x32 = x_MD.astype(jnp.float32)
    inverse_M = jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1) + eps)
    return (x32 * inverse_M[..., None]).astype(x_MD.dtype), inverse_M


def _norm_kernel(x_ref: Any, n_ref: Any, inverse_ref: Any, *, eps: float) -> None:
    width = x_ref.shape[1]
    parts = [x_ref[:, columns].astype(jnp.float32) for columns in _columns(width)]
    total = sum((jnp.sum(part * part, axis=1) for part in parts[1:]), jnp.sum(parts[0] * parts[0], axis=1))
    inverse = jax.lax.rsqrt(total / width + eps)
    inverse_ref[:] = inverse
    for columns, part in zip(_columns(width), parts, strict=True):
        n_ref[:, columns] = (part * inverse[:, None]).astype(n_ref.dtype)


def norm(x_MD: jax.Array, eps: float, interpret: bool = False) -> tuple[jax.Array, jax.Array]:
    rows, width = x_MD.shape
    block, column = pl.BlockSpec((_ROWS, width), lambda i: (i, 0)), pl.BlockSpec((_ROWS,), lambda i: (i,))
    out_shape = (
        jax.ShapeDtypeStruct(x_MD.shape, x_MD.dtype),
        jax.ShapeDtypeStruct((rows,), jnp.float32),
    )
    kernel = partial(_norm_kernel, eps=eps)
    return _call(kernel, (rows // _ROWS,), [block], (block, column), out_shape, interpret)(x_MD)


def plain_norm_gradient(
    n_MD: jax.Array, inverse_M: jax.Array, dn_MD: jax.Array, dx_MD: jax.Array
) -> jax.Array:
    """The gradient of `norm` by what it gave, added to dx_MD."""
    n32, dn32 = n_MD.astype(jnp.float32), dn_MD.astype(jnp.float32)
    along = jnp.mean(n32 * dn32, axis=-1, keepdims=True)
    return (dx_MD.astype(jnp.float32) + inverse_M[..., None] * (dn32 - n32 * along)).astype(dx_MD.dtype)


def _norm_gradient_kernel(n_ref: Any, inverse_ref: Any, dn_ref: Any, dx_ref: Any, out_ref: Any) -> None:
    width = n_ref.shape[1]
    parts = [
        (n_ref[:, columns].astype(jnp.float32), dn_ref[:, columns].astype(jnp.float32))
        for columns in _columns(width)
    ]
    total = sum((jnp.sum(n * dn, axis=1) for n, dn in parts[1:]), jnp.sum(parts[0][0] * parts[0][1], axis=1))
    along, inverse = (total / width)[:, None], inverse_ref[:][:, None]
    for columns, (n, dn) in zip(_columns(width), parts, strict=True):
        gradient = dx_ref[:, columns].astype(jnp.float32) + inverse * (dn - n * along)
        out_ref[:, columns] = gradient.astype(out_ref.dtype)


def norm_gradient(
    n_MD: jax.Array, inverse_M: jax.Array, dn_MD: jax.Array, dx_MD: jax.Array, interpret: bool = False
) -> jax.Array:
    rows, width = n_MD.shape
    block, column = pl.BlockSpec((_ROWS, width), lambda i: (i, 0)), pl.BlockSpec((_ROWS,), lambda i: (i,))
    shape = jax.ShapeDtypeStruct(n_MD.shape, dx_MD.dtype)
    specs = [block, column, block, block]
    return _call(_norm_gradient_kernel, (rows // _ROWS,), specs, block, shape, interpret)(
        n_MD, inverse_M, dn_MD, dx_MD
    )


def _rows_at(ref: Any, row: jax.Array) -> jax.Array:
    """Rows of a (T, K) array, in float32."""
    column = jnp.arange(ref.shape[1])
    return plgpu.load(ref.at[row[:, None], column[None, :]]).astype(jnp.float32)


def _unit(x: jax.Array, eps: float) -> tuple[jax.Array, jax.Array]:
    inverse = jax.lax.rsqrt(jnp.sum(x * x, axis=1) + eps)[:, None]
    return x * inverse, inverse


def _unit_gradient(unit: jax.Array, inverse: jax.Array, d: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(dx, the part of d along the unit vector, row by row)."""
    along = jnp.sum(unit * d, axis=1)
    return inverse * (d - unit * along[:, None]), along


def _queries_keys_kernel(
    q_in: Any, k_in: Any, scale: Any, smear: Any, q_out: Any, k_out: Any, *, eps: float
) -> None:
    row = pl.program_id(1) * _POSITIONS + jnp.arange(_POSITIONS)
    m = smear[...]
    q_out[:, :] = (_unit(_rows_at(q_in, row), eps)[0] * scale[...]).astype(q_out.dtype)
    before = _unit(_rows_at(k_in, jnp.maximum(row - 1, 0)), eps)[0] * jnp.where(row > 0, 1.0, 0.0)[:, None]
    k_out[:, :] = ((1 - m) * _unit(_rows_at(k_in, row), eps)[0] + m * before).astype(k_out.dtype)


def _queries_keys_gradient_kernel(
    q_in: Any,
    k_in: Any,
    scale: Any,
    smear: Any,
    dq: Any,
    dk: Any,
    out: Any,
    dscale: Any,
    dsmear: Any,
    *,
    eps: float,
) -> None:
    length = q_in.shape[0]
    row = pl.program_id(1) * _POSITIONS + jnp.arange(_POSITIONS)
    m = smear[...]
    unit, inverse = _unit(_rows_at(q_in, row), eps)
    dx, along = _unit_gradient(unit, inverse, _rows_at(dq, row))
    out[:, 0, :] = (scale[...] * dx).astype(out.dtype)
    dscale[...] = jnp.sum(along)
    unit, inverse = _unit(_rows_at(k_in, row), eps)
    before = _unit(_rows_at(k_in, jnp.maximum(row - 1, 0)), eps)[0] * jnp.where(row > 0, 1.0, 0.0)[:, None]
    d = _rows_at(dk, row)
    later = _rows_at(dk, jnp.minimum(row + 1, length - 1)) * jnp.where(row < length - 1, 1.0, 0.0)[:, None]
    dsmear[...] = jnp.sum(d * (before - unit))
    out[:, 1, :] = _unit_gradient(unit, inverse, (1 - m) * d + m * later)[0].astype(out.dtype)


def _head_specs(length: int, head_dim: int) -> tuple[Any, ...]:
    """Of queries and of keys side by side; of an array of heads, whole and a program's part; of a number a head."""
    side = [
        pl.BlockSpec((None, length, None, None, head_dim), lambda b, i, n, which=which: (b, 0, which, n, 0))
        for which in range(2)
    ]
    whole = pl.BlockSpec((None, length, None, head_dim), lambda b, i, n: (b, 0, n, 0))
    part = pl.BlockSpec((None, _POSITIONS, None, head_dim), lambda b, i, n: (b, i, n, 0))
    number = pl.BlockSpec((None,), lambda b, i, n: (n,))
    return (*side, whole, part, number)


def queries_keys(
    qk_BT2NK: jax.Array, scale_N: jax.Array, smear_N: jax.Array, eps: float, interpret: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Queries and keys from the product that has both: of unit length, queries scaled, keys mixed with the
    one before.
    """
    batch, length, _, n_heads, head_dim = qk_BT2NK.shape
    queries, keys, _, part, number = _head_specs(length, head_dim)
    shape = jax.ShapeDtypeStruct((batch, length, n_heads, head_dim), qk_BT2NK.dtype)
    grid = (batch, length // _POSITIONS, n_heads)
    kernel = partial(_queries_keys_kernel, eps=eps)
    specs = [queries, keys, number, number]
    return _call(kernel, grid, specs, (part, part), (shape, shape), interpret)(
        qk_BT2NK, qk_BT2NK, scale_N, smear_N
    )


def queries_keys_gradient(
    qk_BT2NK: jax.Array,
    scale_N: jax.Array,
    smear_N: jax.Array,
    dq_BTNK: jax.Array,
    dk_BTNK: jax.Array,
    eps: float,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    batch, length, _, n_heads, head_dim = qk_BT2NK.shape
    queries, keys, whole, _, number = _head_specs(length, head_dim)
    both = pl.BlockSpec((None, _POSITIONS, 2, None, head_dim), lambda b, i, n: (b, i, 0, n, 0))
    sums = jax.ShapeDtypeStruct((batch, length // _POSITIONS, n_heads), jnp.float32)
    one = pl.BlockSpec((None, None, None), lambda b, i, n: (b, i, n))
    grid = (batch, length // _POSITIONS, n_heads)
    kernel = partial(_queries_keys_gradient_kernel, eps=eps)
    specs = [queries, keys, number, number, whole, whole]
    out_shape = (jax.ShapeDtypeStruct(qk_BT2NK.shape, qk_BT2NK.dtype), sums, sums)
    dqk, dscale, dsmear = _call(kernel, grid, specs, (both, one, one), out_shape, interpret)(
        qk_BT2NK, qk_BT2NK, scale_N, smear_N, dq_BTNK, dk_BTNK
    )
    return dqk, jnp.sum(dscale, axis=(0, 1)), jnp.sum(dsmear, axis=(0, 1))


def plain_queries_keys(
    qk_BT2NK: jax.Array, scale_N: jax.Array, smear_N: jax.Array, eps: float
) -> tuple[jax.Array, jax.Array]:
    qk32 = qk_BT2NK.astype(jnp.float32)
    unit = qk32 * jax.lax.rsqrt(jnp.sum(qk32 * qk32, axis=-1, keepdims=True) + eps)
    q_BTNK, k_BTNK = unit[:, :, 0] * scale_N[:, None], unit[:, :, 1]
    before_BTNK = jnp.pad(k_BTNK, ((0, 0), (1, 0), (0, 0), (0, 0)))[:, :-1]
    k_BTNK = (1 - smear_N[:, None]) * k_BTNK + smear_N[:, None] * before_BTNK
    return q_BTNK.astype(qk_BT2NK.dtype), k_BTNK.astype(qk_BT2NK.dtype)


def _rows_by_rows(a_TK: jax.Array, b_SK: jax.Array) -> jax.Array:
    return jax.lax.dot_general(a_TK, b_SK, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)


def _bias_gradient_kernel(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    do_ref: Any,
    total_ref: Any,
    delta_ref: Any,
    bias_ref: Any,
    out_ref: Any,
) -> None:
    """The sum over some sequences and all tiles of one distance of softmax's gradient."""
    batch, length = total_ref.shape
    shift = pl.program_id(1)
    bias = bias_ref[:, :].astype(jnp.float32)
    is_causal = shift * BLOCK + jnp.arange(BLOCK)[:, None] >= jnp.arange(BLOCK)[None, :]

    def tile(b: jax.Array, i: jax.Array, sums: jax.Array) -> jax.Array:
        now, then = pl.ds(i * BLOCK, BLOCK), pl.ds((i - shift) * BLOCK, BLOCK)
        s = _rows_by_rows(q_ref[b, now, :], k_ref[b, then, :]) + bias
        p = jnp.where(is_causal, jnp.exp(s - total_ref[b, now][:, None]), 0.0)
        dp = _rows_by_rows(do_ref[b, now, :], v_ref[b, then, :])
        return sums + p * (dp - delta_ref[b, now][:, None])

    def sequence(b: jax.Array, sums: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(shift, length // BLOCK, partial(tile, b), sums)

    out_ref[:, :] = jax.lax.fori_loop(0, batch, sequence, jnp.zeros((BLOCK, BLOCK), jnp.float32))


def bias_gradient(
    q_BTNK: jax.Array,
    k_BTNK: jax.Array,
    v_BTNK: jax.Array,
    do_BTNK: jax.Array,
    total_BNT: jax.Array,
    delta_BNT: jax.Array,
    bias_NTS: jax.Array,
    n_shifts: int,
    interpret: bool = False,
) -> jax.Array:
    """sum_NXTS: of causal attention's logits' gradients, over sequences and over tiles that stand X tiles apart.

    `total_BNT` is the log-sum-exp of the logits, `delta_BNT` the product of output and its gradient.
    """
    batch, length, n_heads, head_dim = q_BTNK.shape
    # Enough programs to fill a GPU twice, each with some sequences.
    per_program = max(1, batch * n_heads * n_shifts // 264)
    while batch % per_program:
        per_program -= 1
    some = pl.BlockSpec((per_program, length, None, head_dim), lambda n, x, c: (c, 0, n, 0))
    numbers = pl.BlockSpec((per_program, None, length), lambda n, x, c: (c, n, 0))
    tile_of_bias = pl.BlockSpec((None, BLOCK, BLOCK), lambda n, x, c: (n, x, 0))
    out = pl.BlockSpec((None, None, None, BLOCK, BLOCK), lambda n, x, c: (c, n, x, 0, 0))
    chunks = batch // per_program
    shape = jax.ShapeDtypeStruct((chunks, n_heads, n_shifts, BLOCK, BLOCK), jnp.float32)
    specs = [some, some, some, some, numbers, numbers, tile_of_bias]
    sums = _call(_bias_gradient_kernel, (n_heads, n_shifts, chunks), specs, out, shape, interpret)(
        q_BTNK, k_BTNK, v_BTNK, do_BTNK, total_BNT, delta_BNT, bias_NTS
    )
    return jnp.sum(sums, axis=0)
