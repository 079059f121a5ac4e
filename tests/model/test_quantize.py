"""Whole numbers in 8 and 6 bits: exact where they can be, and small."""

import numpy as np
import pytest

from lexinvariant.model.quantize import dequantize, is_quantized, quantize, scale_shape


def test_every_number_of_6_bits_survives_packing() -> None:
    whole = np.random.default_rng(0).permuted(np.tile(np.arange(-31, 32), (2, 5, 4)), axis=-1)[:, :, :63]
    value = np.moveaxis(whole, -1, -2)[:, :60].astype(np.float32)  # 60 rows: whole packs
    value[:, 0], value[:, 1] = 31, -31  # so that the scale is 1
    stored, scale = quantize(value, 6)
    assert stored.dtype == np.uint8
    assert stored.shape == (2, 45, 5)
    assert scale.shape == scale_shape(stored) == (2, 1, 5)
    assert len(np.unique(value)) > 55
    np.testing.assert_array_equal(dequantize(stored, scale), value)


@pytest.mark.parametrize("rows", [1, 3, 6, 18])
def test_rows_that_make_no_whole_packs_stay_int8(rows: int) -> None:
    value = np.random.default_rng(1).normal(size=(rows, 7)).astype(np.float32)
    stored, scale = quantize(value, 6)
    assert stored.dtype == np.int8
    np.testing.assert_allclose(dequantize(stored, scale), value, atol=np.abs(value).max() / 127)


def test_what_is_no_matrix_of_packs_is_not_taken_for_one() -> None:
    assert is_quantized(np.zeros((3, 2), np.uint8))
    assert not is_quantized(np.zeros((4, 2), np.uint8))
    assert not is_quantized(np.zeros(3, np.uint8))
    assert not is_quantized(np.zeros((3, 2), np.float32))
