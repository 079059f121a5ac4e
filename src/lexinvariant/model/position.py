"""T5's relative positions, for readers with and without jax."""

import math

import numpy as np


def distance_buckets(n: int, buckets: int, max_distance: int) -> np.ndarray:
    """T5's causal bucket of each distance 0..n-1: exact up to half of the buckets, then logarithmic."""
    distance = np.arange(n)
    exact = buckets // 2
    span = math.log(max_distance / exact)
    far = exact + (np.log(np.maximum(distance, 1) / exact) / span * (buckets - exact)).astype(np.int64)
    return np.where(distance < exact, distance, np.minimum(far, buckets - 1))
