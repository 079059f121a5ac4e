"""Perplexity by context length, as the paper draws it. NumPy alone, so that figures redraw without jax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lexinvariant.generators import generator_at
from lexinvariant.results import paper

Floats = NDArray[np.float64]
Averaging = Literal["geometric", "arithmetic"]
"""geometric: exp of the mean loss in nats. arithmetic: the mean of the sequences' perplexities, which a few hard
sequences can dominate."""
AVERAGINGS: tuple[Averaging, ...] = get_args(Averaging)

RESAMPLES = 1000
NEW_MATTERS = 0.05
"""Where this share of the tokens at the end of the context is new, losses on new and seen tokens are shown apart."""


@dataclass(frozen=True)
class Band:
    """A mean over sequences at every context length, with its 95% confidence band."""

    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class PartBand:
    """The same of some tokens alone; None where there are none, or none in some resamples."""

    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


def smoothed_nats(nats_ST: Floats, window: int) -> Floats:
    """nats_SI: the mean loss of the `window` symbols that follow the first i, for i from 0 to T - window.

    Its exponential is the paper's P(x_(i+1) .. x_(i+k) | x_1 .. x_i)^(-1/k); the minus sign is missing in print.
    """
    total_ST = np.concatenate([np.zeros((len(nats_ST), 1)), np.cumsum(nats_ST, axis=1)], axis=1)
    return (total_ST[:, window:] - total_ST[:, :-window]) / window


def smoothed_perplexity(nats_ST: Floats, window: int = paper.WINDOW) -> Floats:
    """The paper's curve, as the geometric mean over texts; over the whole text where that is shorter than the
    window.
    """
    return np.exp(smoothed_nats(nats_ST, min(window, nats_ST.shape[1])).mean(axis=0))


def resampled(n_sequences: int, seed: int, resamples: int = RESAMPLES) -> Floats:
    """weight_RS: the share of each sequence in each bootstrap resample. One for several curves pairs them."""
    rng = generator_at(seed)
    counts_RS = rng.multinomial(n_sequences, np.full(n_sequences, 1 / n_sequences), size=resamples)
    return counts_RS / n_sequences


def perplexity_curve(nats_SI: Floats, averaging: Averaging, weight_RS: Floats) -> Band:
    """Perplexity at every context length, averaged over sequences, with a bootstrap band."""
    return _with_band(_averaged(nats_SI, averaging), _averaged(nats_SI, averaging, weight_RS))


def gap_curve(ours_SI: Floats, theirs_SI: Floats, averaging: Averaging, weight_RS: Floats) -> Band:
    """(ours - theirs) / theirs in averaged perplexity; each resample holds the same sequences of both."""
    return _with_band(
        _averaged(ours_SI, averaging) / _averaged(theirs_SI, averaging) - 1,
        _averaged(ours_SI, averaging, weight_RS) / _averaged(theirs_SI, averaging, weight_RS) - 1,
    )


def part_curve(nats_ST: Floats, part_ST: NDArray[np.bool_], window: int, weight_RS: Floats) -> PartBand:
    """Nats a token over those tokens of each window that are part of it; all such tokens weigh the same."""
    total_SI = smoothed_nats(np.where(part_ST, nats_ST, 0.0), window)
    share_SI = smoothed_nats(part_ST.astype(np.float64), window)
    with np.errstate(invalid="ignore"):
        mean_I = total_SI.mean(axis=0) / share_SI.mean(axis=0)
        resampled_RI = (weight_RS @ total_SI) / (weight_RS @ share_SI)
    band = _with_band(mean_I, resampled_RI)
    return PartBand(*(_or_none(values) for values in (band.mean, band.low, band.high)))


def lexinvariant_floor(occurrence_ST: NDArray[np.int64], vocab_size: int) -> tuple[Floats, Floats]:
    """(nats_ST, unseen_ST): what each token costs any lexinvariant model at least, and the log of the number of symbols
    that have not occurred before it. Those cannot be told apart, so a new token costs that log or more; one seen before
    may cost nothing.
    """
    is_new_ST = occurrence_ST == 1
    n_seen_ST = np.cumsum(is_new_ST, axis=1) - is_new_ST
    unseen_ST = np.log(np.maximum(vocab_size - n_seen_ST, 1))
    return np.where(is_new_ST, unseen_ST, 0.0), unseen_ST


def _or_none(values: list[float]) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values]


def _averaged(nats_SI: Floats, averaging: Averaging, weight_RS: Floats | None = None) -> Floats:
    """Averaged perplexity under each row of weights, or under equal weights."""
    if averaging == "geometric":
        return np.exp(nats_SI.mean(axis=0) if weight_RS is None else weight_RS @ nats_SI)
    perplexity_SI = np.exp(nats_SI)
    return perplexity_SI.mean(axis=0) if weight_RS is None else weight_RS @ perplexity_SI


def _with_band(mean_I: Floats, resampled_RI: Floats) -> Band:
    low_I, high_I = np.percentile(resampled_RI, [2.5, 97.5], axis=0)
    return Band(mean_I.tolist(), low_I.tolist(), high_I.tolist())
