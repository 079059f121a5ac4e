"""Shares and other numbers with their confidence intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lexinvariant.results.section import percent

Z_95 = 1.959963984540054  # the standard normal's quantile at 97.5%


def wilson(share: float, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's 95% interval for a share seen in n trials: sensible at 0, at 1 and for few trials.

    The share need not be a whole number of n-ths: ties that count in part are fine.
    """
    if n < 1:
        return 0.0, 1.0
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Exact at the ends, where rounding would leave specks such as 3e-17.
    return (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)


@dataclass(frozen=True)
class Share:
    """A share seen in so many trials, with its 95% interval."""

    value: float
    trials: int

    @property
    def low(self) -> float:
        return wilson(self.value, self.trials)[0]

    @property
    def high(self) -> float:
        return wilson(self.value, self.trials)[1]

    def __str__(self) -> str:
        return percent(self.value, self.low, self.high)


@dataclass(frozen=True)
class MeanShare:
    """A mean share over texts with its 95% interval; None where too few texts count."""

    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return percent(self.value, self.low, self.high, digits=2)


def mean_share(shares: Sequence[float]) -> MeanShare:
    """The mean of texts' shares, with its interval (normal approximation) where there are two or more."""
    if len(shares) < 2:
        return MeanShare(shares[0] if shares else None, None, None)
    mean, half = statistics.mean(shares), Z_95 * statistics.stdev(shares) / math.sqrt(len(shares))
    return MeanShare(mean, max(mean - half, 0.0), min(mean + half, 1.0))


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def percents(shares: Iterable[Share | MeanShare]) -> np.ndarray:
    """Values, lower and upper ends, in percent; NaN for None."""
    return 100 * np.array([(share.value, share.low, share.high) for share in shares], float).T
