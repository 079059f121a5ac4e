"""The hardest languages for a lexinvariant model, and exponents fitted to curves.

A language that is easy to identify is soon free of error, one that is nearly uniform has little error to
make. The worst case lies between, and moves with T: symbols whose frequencies differ by a share of about
sqrt(d / T).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from lexinvariant.errors import UserError
from lexinvariant.theory.languages import Floats


def two_level_l1(d: int, gap: float, texts: int, length: int, rng: np.random.Generator) -> Floats:
    """l1_ST of p and p' for `near_uniform(d, gap)` on sampled texts, exactly.

    All that a key can say about this language is which half of the symbols is frequent, so C(d, d/2) subsets
    stand for the d! keys and larger alphabets are within reach.
    """
    if d % 2 or d < 2:
        raise UserError("The two-level language needs an even number of symbols.")
    if not 0 < gap < 1:
        raise UserError(f"The gap must lie strictly between 0 and 1, not {gap}.")
    half = d // 2
    high_NV = np.zeros((len(list(combinations(range(d), half))), d))
    for n, subset in enumerate(combinations(range(d), half)):
        high_NV[n, list(subset)] = 1.0
    prob_NV = (1 - gap + 2 * gap * high_NV) / d
    log_NV = np.log(prob_NV)
    true_V = prob_NV[0]
    text_ST = rng.choice(d, p=true_V, size=(texts, length))
    logw_SN = np.zeros((texts, len(prob_NV)))
    l1_ST = np.empty((texts, length))
    for t in range(length):
        weight_SN = np.exp(logw_SN - logw_SN.max(axis=1, keepdims=True))
        weight_SN /= weight_SN.sum(axis=1, keepdims=True)
        l1_ST[:, t] = np.abs(weight_SN @ prob_NV - true_V).sum(axis=1)
        logw_SN += log_NV[:, text_ST[:, t]].T
    return l1_ST


def fit_exponent(x: ArrayLike, y: ArrayLike) -> float:
    """The slope of log y on log x: y grows like x to this power."""
    x_array, y_array = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    usable = (x_array > 0) & (y_array > 0)
    if usable.sum() < 2:
        raise UserError("An exponent needs at least two positive points.")
    return float(np.polyfit(np.log(x_array[usable]), np.log(y_array[usable]), 1)[0])
