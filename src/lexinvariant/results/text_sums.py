"""Ratios of sums over texts, which models share, and their differences: with intervals by bootstrap over texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lexinvariant.results.intervals import Estimate
from lexinvariant.results.perplexity import resampled


@dataclass(frozen=True)
class TextSums:
    """Nats, and how many tokens, characters or words they were spent on, whose ratio is what is measured; summed over
    groups of texts, which are the same for all models, so that two of them can be compared on the same texts.
    """

    nats: list[float]
    units: list[float]

    def estimate(self) -> Estimate | None:
        """With a bootstrap over groups; None where there is nothing to count."""
        return _bootstrap([self])

    def minus(self, other: TextSums) -> Estimate | None:
        """The difference of two models on the same texts, which are resampled together."""
        return _bootstrap([self, other])


def _bootstrap(parts: list[TextSums]) -> Estimate | None:
    """The first ratio, or its difference from the second."""
    if any(sum(part.units) == 0 for part in parts):
        return None
    weight_RS = np.vstack([np.full(len(parts[0].nats), 1.0), resampled(len(parts[0].nats), seed=0)])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = [weight_RS @ np.array(part.nats) / (weight_RS @ np.array(part.units)) for part in parts]
    value_R = ratios[0] if len(ratios) == 1 else ratios[0] - ratios[1]
    low, high = np.nanquantile(value_R[1:], [0.025, 0.975])
    return Estimate(float(value_R[0]), float(low), float(high))
