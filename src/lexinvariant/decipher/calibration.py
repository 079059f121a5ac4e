"""How likely a reading is one at all, and how likely its key is right: numbers fitted on held-out validation text.

`FitTest` compares what a reading costs with what the language costs and with what the best reading of nonsense would,
at that length and after as much searching. `Calibration` then tells how sure each symbol is, given the keys found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

MIN_SHARE = 1e-4  # no share is taken for more certain than this, nor for less likely
RIDGE = 0.01
MIN_NOISE = 1.0  # nats a letter: so much at least do letters differ, whatever a sample of long texts says
MAX_ODDS = 7.0  # in nats: no reading is taken for more certain than 99.9%, nor for less

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FitTest:
    """Goodness of fit: how likely a reading is one, by the nats a letter that it costs.

    Right readings cost `right`. The best reading of what is none costs `wrong`, less the more keys there were to choose
    from: a search among K keys is taken to gain `effort_gain` log K nats in all. The odds are even where a reading
    costs the share `threshold` of the way from the one to the other, and change with it the faster the further these
    two are apart and the less right readings differ among themselves.
    """

    right: float
    wrong: float
    effort_gain: float
    spread: float
    """Standard deviation of what long right readings cost a letter..."""
    noise: float
    """... and of what a single letter does, whose part falls with the length."""
    threshold: float
    slope: float
    shift: float
    """Log-odds beside those: where a text is so short that its cost tells nothing."""

    def nonsense(self, n_letters: int, log_keys: float) -> float:
        """Nats a letter of the best reading of nonsense."""
        return max(self.wrong - self.effort_gain * log_keys / n_letters, self.right)

    def probability(self, cost: float, n_letters: int, log_keys: float) -> float:
        """That a reading of this cost in nats a letter, the best under exp(log_keys) keys, is right; from even odds."""
        apart = self.nonsense(n_letters, log_keys) - self.right
        variance = self.spread**2 + self.noise**2 / n_letters
        better = self.right + self.threshold * apart - cost
        odds = self.slope * apart * better / variance + self.shift
        return float(1 / (1 + np.exp(-np.clip(odds, -MAX_ODDS, MAX_ODDS))))


@dataclass(frozen=True)
class Calibration:
    """From costs to probabilities: a key weighs exp(-inverse_temperature * cost), and a symbol's share p of all weight
    is a probability of sigmoid(slope * logit(p) + shift).
    """

    inverse_temperature: float
    slope: float
    shift: float
    fit: FitTest

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
        # The ridge matters only where a few symbols, all of them right, say nothing of the slope.
        ridge = RIDGE * ((at[0] - 1) ** 2 + at[1] ** 2)
        return float((weight_N * (np.logaddexp(0, z_N) - right_N * z_N)).sum()) + ridge

    best = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead")
    return float(best.x[0]), float(best.x[1]), float(best.fun) / len(right_N)


def fit_test(cost_N: Floats, n_letters_N: Floats, log_keys_N: Floats, right_N: NDArray[np.bool_]) -> FitTest:
    """The test for readings of these costs (nats a letter) and lengths, of which some are right and others not.

    Both sorts weigh the same, however many there are of each.
    """
    from scipy.optimize import minimize

    keys_N = log_keys_N / n_letters_N
    right = float(np.median(cost_N[right_N]))
    gain = max(0.0, -float(np.polyfit(keys_N[~right_N], cost_N[~right_N], 1)[0]))
    wrong = float((cost_N + gain * keys_N)[~right_N].mean())
    # Variance = spread^2 + noise^2 / n, by least squares with neither negative.
    basis_N2 = np.stack([np.ones(len(cost_N)), 1 / n_letters_N], axis=1)[right_N]
    (spread2, noise2), _ = nnls(basis_N2, (cost_N[right_N] - right) ** 2)
    noise2 = max(noise2, MIN_NOISE**2)
    apart_N = np.maximum(wrong - gain * keys_N - right, 0.0)
    variance_N = spread2 + noise2 / n_letters_N
    weight_N = np.where(right_N, 1 / right_N.sum(), 1 / (~right_N).sum())

    def loss(at: Floats) -> float:
        slope, threshold, shift = at
        z_N = slope * apart_N * (right + threshold * apart_N - cost_N) / variance_N + shift
        # The ridge keeps two sorts that can be told apart altogether from promising certainty.
        return float(
            (weight_N * (np.logaddexp(0, z_N) - right_N * z_N)).sum() + RIDGE * (slope**2 + shift**2)
        )

    slope, threshold, shift = minimize(loss, np.array([0.3, 0.5, 0.0]), method="Nelder-Mead").x
    numbers = (right, wrong, gain, spread2**0.5, noise2**0.5, threshold, slope, shift)
    return FitTest(*(round(float(number), 4) for number in numbers))


def _logit(share: Floats) -> Floats:
    share = np.clip(share, MIN_SHARE, 1 - MIN_SHARE)
    return np.log(share / (1 - share))
