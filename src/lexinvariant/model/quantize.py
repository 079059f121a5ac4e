"""Matrices in 8 or 6 bits a number, for readers with and without jax.

Every matrix and output column has one scale, by which its largest entry becomes the largest whole number. int8 is
stored as it is; of 6 bits, four rows lie in three rows of bytes, so a file's type tells which of the two it has.
"""

import numpy as np

ROWS_A_PACK = 4  # four numbers of 6 bits are three bytes


def quantize(value: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(stored, scale): int8, or with 6 bits packed uint8; matrices whose rows make no whole packs stay int8."""
    if value.shape[-2] % ROWS_A_PACK:
        bits = 8
    largest = 2 ** (bits - 1) - 1
    scale = np.maximum(np.abs(value).max(axis=-2, keepdims=True), 1e-12) / largest
    whole = np.round(value / scale).astype(np.int8)
    return (_pack(whole) if bits == 6 else whole), scale.astype(np.float32)


def dequantize(stored: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """float32; a whole number times float32 is that in one pass, with no copy in between."""
    return (_unpack(stored) if stored.dtype == np.uint8 else stored) * scale


def is_quantized(stored: np.ndarray) -> bool:
    return stored.dtype == np.int8 or (
        stored.dtype == np.uint8 and stored.ndim >= 2 and stored.shape[-2] % 3 == 0
    )


def scale_shape(stored: np.ndarray) -> tuple[int, ...]:
    return (*stored.shape[:-2], 1, *stored.shape[-1:])


def _pack(whole: np.ndarray) -> np.ndarray:
    *stack, rows, columns = whole.shape
    codes = (whole + 32).astype(np.uint8).reshape(*stack, rows // ROWS_A_PACK, ROWS_A_PACK, columns)
    a, b, c, d = (codes[..., i, :] for i in range(ROWS_A_PACK))
    packed = np.stack([a | b << 6, b >> 2 | c << 4, c >> 4 | d << 2], axis=-2)
    return packed.reshape(*stack, rows // ROWS_A_PACK * 3, columns)


def _unpack(packed: np.ndarray) -> np.ndarray:
    *stack, rows, columns = packed.shape
    x, y, z = (packed.reshape(*stack, rows // 3, 3, columns)[..., i, :] for i in range(3))
    codes = np.stack([x & 63, x >> 6 | (y & 15) << 2, y >> 4 | (z & 3) << 4, z >> 2], axis=-2)
    return codes.reshape(*stack, rows // 3 * ROWS_A_PACK, columns).astype(np.int8) - np.int8(32)
