"""How long a context guarantees which error: the paper's theorem as printed, repaired, and sharpened.

All three bound (1/T) sum_t || p(.|x_<t) - p'(.|x_<t) ||_1 with probability at least 1 - delta over x drawn
from p.

- printed: the appendix's explicit condition T >= 512 log(2/delta) log^2(d T / (delta eps')) log(d!) / eps^4.
  Its proof uses Pinsker for half of the L1 norm and a step on conditionals that fails, so it is a claim, not
  a proof.
- repaired: the same route with every constant valid.
- sharp: no smoothing, no multiplicative-weights corollary, no Azuma: eps = 2 sqrt((log d! + 2 log(1/delta)) /
  T), at all T at once. A rate of 1/2 in T and in d log d where the paper has 1/4.

The derivations are in docs/method.md, statement by statement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scipy.optimize import brentq

from lexinvariant.errors import UserError
from lexinvariant.theory.mixture import log_factorial

Kind = Literal["printed", "repaired", "sharp"]
KINDS: tuple[Kind, ...] = ("printed", "repaired", "sharp")

VACUOUS = 2.0
"""The L1 distance of two distributions never exceeds 2, so no bound needs to say more."""


@dataclass(frozen=True)
class Guarantee:
    """One instance of the theorem: at context length T the average L1 distance is at most epsilon, except
    with delta.
    """

    kind: Kind
    d: int
    T: int
    epsilon: float
    delta: float
    sigma: float
    """The smoothing the proof uses at this T; 0 where it uses none."""


def _check(d: int, delta: float, epsilon: float | None = None, T: int | None = None) -> None:
    if d < 1:
        raise UserError(f"The alphabet size d must be at least 1, not {d}.")
    if not 0 < delta < 0.5:
        raise UserError(f"The failure probability delta must lie strictly between 0 and 1/2, not {delta}.")
    if epsilon is not None and not 0 < epsilon < 0.5:
        raise UserError(f"The error epsilon must lie strictly between 0 and 1/2, not {epsilon}.")
    if T is not None and T < 1:
        raise UserError(f"The context length T must be at least 1, not {T}.")


# --- the pieces, each with a test of its own


def increment_bound(d: int, sigma: float) -> float:
    """|Z_i - Z_{i-1}| <= 2 log(d / sigma). (The main text prints 2 log(1/sigma), without d.)"""
    return 2 * math.log(d / sigma)


def azuma_deviation(T: int, increment: float, delta: float) -> float:
    """The b with P(Z_T >= b) <= delta for a martingale with |increments| <= increment: increment * sqrt(2 T
    log(1/delta)).

    With increment = 2 log(d/sigma) this is log(d/sigma) sqrt(8 T log(1/delta)), without the lemma's minus
    sign under the root and without the factor 2 in front of its statement.
    """
    return increment * math.sqrt(2 * T * math.log(1 / delta))


def smoothing_cost(T: int, sigma: float, delta: float) -> float:
    """What replacing p, p' by their smoothed versions costs in average L1, with probability at least 1 -
    delta.

    ||p - p~||_1 <= 2 sigma always. ||p' - p~'||_1 <= 2 sigma + 2 (1 - w_t), where 1 - w_t is the part of the
    smoothed prefix probability that smoothing made; it is not small for every prefix, but E[1 - w_t] <= sigma
    (t - 1) over x from p, so Markov's inequality bounds its average.
    """
    return 4 * sigma + sigma * (T - 1) / delta


# --- the paper's theorem, as printed


def _ratio(kind: Kind, d: int, delta: float) -> float:
    """Epsilon / epsilon'. Printed: 2 sqrt 2 (2 log(2/delta))^(1/4). Repaired: 1 + 2 sqrt(1 + v / 2) with
    v = sqrt(2 log(2/delta) / log d!).
    """
    if kind == "printed":
        return 2 * math.sqrt(2) * (2 * math.log(2 / delta)) ** 0.25
    return 1 + 2 * math.sqrt(1 + 0.5 * math.sqrt(2 * math.log(2 / delta) / log_factorial(d)))


SIGMA_SHARE: dict[Kind, float] = {"printed": 1.0, "repaired": 0.25}
"""sigma = share * delta * epsilon' / T. A quarter leaves room for three failures: coupling, Azuma, Markov."""


def _log_span(kind: Kind, d: int, T: float, epsilon_prime: float, delta: float) -> float:
    """log(d / sigma)."""
    return math.log(d * T / (SIGMA_SHARE[kind] * delta * epsilon_prime))


def _needed(kind: Kind, d: int, T: float, epsilon_prime: float, delta: float) -> float:
    """The right side of T >= 4 log^2(d/sigma) log(d!) / eps'^4, which itself grows with T."""
    return 4 * _log_span(kind, d, T, epsilon_prime, delta) ** 2 * log_factorial(d) / epsilon_prime**4


# --- solving in both directions


def context_needed(d: int, epsilon: float, delta: float, kind: Kind = "sharp") -> Guarantee:
    """The smallest T from which on the theorem promises epsilon."""
    _check(d, delta, epsilon=epsilon)
    if d == 1:
        return Guarantee(kind, d, 1, epsilon, delta, 0.0)
    if kind == "sharp":
        T = math.ceil(4 * (log_factorial(d) + 2 * math.log(1 / delta)) / epsilon**2)
        return Guarantee(kind, d, T, epsilon, delta, 0.0)
    epsilon_prime = epsilon / _ratio(kind, d, delta)

    def slack(log_T: float) -> float:
        return log_T - math.log(_needed(kind, d, math.exp(log_T), epsilon_prime, delta))

    # T / log^2(a T) grows for a T > e^2, and a = d / (share delta eps') > 7 e^2 here, so the root is the only one.
    root = math.exp(_root(slack, 0.0))
    T = math.ceil(root)
    return Guarantee(kind, d, T, epsilon, delta, _sigma(kind, T, epsilon_prime, delta))


def error_guaranteed(d: int, T: int, delta: float, kind: Kind = "sharp") -> Guarantee:
    """The smallest epsilon that the theorem promises at context length T: 2 (no promise) where T is too small
    for it.

    The printed theorem is stated for epsilon < 1/2; here its formula is followed as long as its eps' <= 1/2.
    """
    _check(d, delta, T=T)
    if d == 1:
        return Guarantee(kind, d, T, 0.0, delta, 0.0)
    if kind == "sharp":
        epsilon = 2 * math.sqrt((log_factorial(d) + 2 * math.log(1 / delta)) / T)
        return Guarantee(kind, d, T, min(epsilon, VACUOUS), delta, 0.0)

    def slack(log_epsilon_prime: float) -> float:
        return math.log(T) - math.log(_needed(kind, d, T, math.exp(log_epsilon_prime), delta))

    if slack(math.log(0.5)) < 0:
        return Guarantee(kind, d, T, VACUOUS, delta, 0.0)
    epsilon_prime = math.exp(brentq(slack, -40.0, math.log(0.5)))
    epsilon = epsilon_prime * _ratio(kind, d, delta)
    return Guarantee(kind, d, T, min(epsilon, VACUOUS), delta, _sigma(kind, T, epsilon_prime, delta))


def expected_error(d: int, T: int) -> float:
    """Bound on the *mean* of the average L1 distance over texts of p: sqrt(2 log(d!) / T)."""
    _check(d, 0.25, T=T)
    return min(math.sqrt(2 * log_factorial(d) / T), VACUOUS)


def hellinger_budget(d: int, delta: float) -> float:
    """With probability 1 - delta, the sum over all t of hellinger_squared(p, p') stays below log d! + 2
    log(1/delta).
    """
    _check(d, delta)
    return log_factorial(d) + 2 * math.log(1 / delta)


def _sigma(kind: Kind, T: int, epsilon_prime: float, delta: float) -> float:
    return SIGMA_SHARE[kind] * delta * epsilon_prime / T


def _root(function: Callable[[float], float], low: float) -> float:
    high = low + 1.0
    while function(high) < 0:
        high += 5.0
    return float(brentq(function, low, high, xtol=1e-12))
