"""How likely a key is right, given what all candidate keys cost: numbers fitted on held-out validation text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_SHARE = 1e-4  # no share is taken for more certain than this, nor for less likely

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """From costs to probabilities: a key weighs exp(-inverse_temperature * cost), and a symbol's share p of all weight
    is a probability of sigmoid(slope * logit(p) + shift).
    """

    inverse_temperature: float
    slope: float
    shift: float

    def weights(self, cost_N: Floats) -> Floats:
        """What each key weighs, given its cost in nats; they sum to 1."""
        weight_N = np.exp(-self.inverse_temperature * (cost_N - cost_N.min()))
        return weight_N / weight_N.sum()

    def probability(self, share: Floats) -> Floats:
        """The calibrated probability of symbols that have these shares of the weight."""
        return 1 / (1 + np.exp(-self.slope * _logit(share) - self.shift))


def fit(share_N: Floats, right_N: Floats, n_pseudo_wrong: float = 1.0) -> tuple[float, float, float]:
    """Logistic regression of right (1) or wrong (0) on the shares' logits: slope, shift and mean loss in nats.

    `n_pseudo_wrong` wrong symbols of the largest share are added: a small sample must not promise certainty.
    """
    from scipy.optimize import minimize

    logit_N = _logit(np.append(share_N, 1.0))
    right_N, weight_N = np.append(right_N, 0.0), np.append(np.ones(len(right_N)), n_pseudo_wrong)

    def loss(at: Floats) -> float:
        z_N = at[0] * logit_N + at[1]
        return float((weight_N * (np.logaddexp(0, z_N) - right_N * z_N)).sum())

    best = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead")
    return float(best.x[0]), float(best.x[1]), float(best.fun) / len(right_N)


def _logit(share: Floats) -> Floats:
    share = np.clip(share, MIN_SHARE, 1 - MIN_SHARE)
    return np.log(share / (1 - share))
