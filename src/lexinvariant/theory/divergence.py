"""Distances between next-symbol distributions, and the inequalities that link them, each with its tight constant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def l1(p: Floats, q: Floats) -> Floats:
    """Sum of |p - q|: twice the total variation, between 0 and 2."""
    return np.abs(p - q).sum(axis=-1)


def kl(p: Floats, q: Floats) -> Floats:
    """D_KL(p || q) in nats; infinite where p has mass that q has not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
    return np.maximum(terms.sum(axis=-1), 0.0)


def hellinger_squared(p: Floats, q: Floats) -> Floats:
    """Sum of (sqrt p - sqrt q)^2, between 0 and 2."""
    return ((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=-1)


def pinsker(kl_value: Floats | float) -> Floats:
    """Pinsker for the L1 norm: l1 <= sqrt(2 KL). The paper prints sqrt(KL / 2), which bounds half of the L1 norm."""
    return np.sqrt(2.0 * np.asarray(kl_value))


def l1_from_hellinger(hellinger_value: Floats | float) -> Floats:
    """l1 <= 2 sqrt(hellinger_squared), by Cauchy-Schwarz on (sqrt p - sqrt q)(sqrt p + sqrt q)."""
    return 2.0 * np.sqrt(np.asarray(hellinger_value))
