"""A weighted population of keys and what may be done to it without bias: weigh, branch, resample, move,
anneal.

Used by `smc`. key_VN keeps the particles along the last axis, so that one symbol's row is contiguous.
Axes: N particles, V symbols, U unseen symbols or distinct keys, T time, G n-grams, K their length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lexinvariant.theory.languages import Floats, Ints, KnownLanguage, NGramLanguage

MOVES_WANTED = 4
"""Accepted swaps a key, on average, after which a renewal has done its work."""


ANNEAL_ESS_SHARE = 0.95
"""How much of a population one step of annealing must leave. Lower is faster and loses the true key more often."""


@dataclass(frozen=True)
class Settings:
    n: int
    rng: np.random.Generator
    ess_share: float
    sweeps: int

    @property
    def enough(self) -> float:
        """The effective sample size below which a population is renewed."""
        return self.ess_share * self.n


@dataclass
class Population:
    """Keys with log-weights. `log_evidence` estimates log p'(text so far); its exponential is unbiased."""

    key_VN: Ints
    logw_N: Floats
    log_evidence: float = 0.0
    complete: bool = True
    """No key has been lost yet, so the weights are exact and there is nothing to resample."""


def log_sum(logw_N: Floats) -> float:
    """The log of a sum of exponentials; scipy's general one is many times slower on the short arrays here."""
    top = logw_N.max()
    return float(top) if np.isneginf(top) else float(top + np.log(np.exp(logw_N - top).sum()))


def normal(logw_N: Floats) -> Floats:
    """Weights that add up to 1."""
    weight_N = np.exp(logw_N - logw_N.max())
    return weight_N / weight_N.sum()


def ess(weight_N: Floats) -> float:
    """Effective sample size of normalised weights."""
    return float(1.0 / np.sum(weight_N**2))


def distinct_ess(population: Population) -> float:
    """Effective sample size with the weights of equal keys added up: copies of one key are one sample."""
    _, inverse_N = np.unique(fingerprint(population.key_VN), return_inverse=True)
    return ess(np.bincount(inverse_N, weights=normal(population.logw_N)).astype(np.float64))


@lru_cache(maxsize=8)
def _salt(d: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(2**64, size=(d, d), dtype=np.uint64)


def fingerprint(key_VN: Ints) -> NDArray[np.uint64]:
    """One random-looking number a key, equal for equal keys."""
    return np.bitwise_xor.reduce(np.take_along_axis(_salt(len(key_VN)), key_VN, axis=1), axis=0)


def safe_fraction(logw_N: Floats, gain_N: Floats, most: float, enough: float) -> float:
    """The largest exponent, at most `most`, that leaves an effective sample of `enough` (and at least a tiny step)."""

    def leaves_enough(exponent: float) -> bool:
        return ess(normal(logw_N + exponent * gain_N)) >= enough

    if leaves_enough(most):
        return most
    low, high = 0.0, most
    for _ in range(14):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if leaves_enough(middle) else (low, middle)
    return max(low, min(most, 1e-3))


def branch(population: Population, open_NU: Floats, slot_U: Ints, symbol: int, settings: Settings) -> Ints:
    """Give a new cipher symbol each plain symbol still free (they stand in the unseen slots); keep at most n
    branches.

    open_NU is the probability of each free plain symbol. Returns the parent of each survivor.
    """
    with np.errstate(divide="ignore"):
        logw_NU = population.logw_N[:, None] + np.log(open_NU)
    population.complete &= bool(np.isfinite(logw_NU).sum() <= settings.n)
    kept, population.logw_N = thin_out(logw_NU.ravel(), settings.n, settings.rng)
    parent, choice = np.divmod(kept, logw_NU.shape[1])
    key_VN, there, column = population.key_VN[:, parent], slot_U[choice], np.arange(len(kept))
    old_here = key_VN[symbol].copy()
    key_VN[symbol] = key_VN[there, column]
    keep_other = there != symbol
    key_VN[there[keep_other], column[keep_other]] = old_here[keep_other]
    population.key_VN = key_VN
    return parent


def thin_out(logw: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Fearnhead and Clifford's optimal resampling: heavy branches stay with their weight, light ones are
    drawn.

    Unbiased: each branch's expected weight afterwards is its weight before. Returns survivors and their log-
    weights.
    """
    alive = np.flatnonzero(np.isfinite(logw))
    weight = normal(logw[alive])
    if len(alive) <= n:
        return alive, np.log(np.maximum(weight, 1e-300))
    # The threshold c has sum_i min(1, weight_i / c) = n: with k heavy ones kept, c = (weight of the rest) / (n - k).
    order = np.argsort(-weight)
    rest_k = np.concatenate([[1.0], 1.0 - np.cumsum(weight[order])])[:n].clip(min=0.0)
    threshold_k = rest_k / (n - np.arange(n))
    heavy = int(np.argmax(weight[order][:n] <= threshold_k))
    if threshold_k[heavy] <= 0:  # rounding: the light ones carry nothing
        return alive[order[:n]], np.log(np.maximum(weight[order[:n]], 1e-300))
    light, draws = order[heavy:], n - heavy
    edges = np.cumsum(weight[light])
    points = (rng.random() + np.arange(draws)) / draws * edges[-1]
    drawn = light[np.searchsorted(edges, points).clip(max=len(light) - 1)]
    logw_kept = np.concatenate([np.log(weight[order[:heavy]]), np.full(draws, np.log(threshold_k[heavy]))])
    return alive[np.concatenate([order[:heavy], drawn])], logw_kept


def resample(population: Population, settings: Settings) -> None:
    """Systematic resampling to n equal weights."""
    points = (settings.rng.random() + np.arange(settings.n)) / settings.n
    parent = np.searchsorted(np.cumsum(normal(population.logw_N)), points).clip(
        max=len(population.logw_N) - 1
    )
    population.key_VN, population.logw_N = population.key_VN[:, parent], np.zeros(settings.n)


class Target(Protocol):
    """The log-likelihood of a text as a function of the key; its last symbol may count for less than one."""

    def total(self, key_VN: Ints) -> Floats: ...
    def gain(self, key_VN: Ints, a: int, b: int) -> Floats: ...


def target_for(language: KnownLanguage, text_T: Ints, last: float = 1.0) -> Target:
    return (
        NGramTarget(language, text_T, last)
        if isinstance(language, NGramLanguage)
        else ReplayTarget(language, text_T, last)
    )


def move(
    population: Population,
    target: Target,
    text_T: Ints,
    seen_V: NDArray[np.bool_],
    settings: Settings,
    power: float,
) -> None:
    """Metropolis swaps of two cipher symbols, leaving likelihood^power invariant, until most keys have moved."""
    rng, key_VN = settings.rng, population.key_VN
    d, count = key_VN.shape
    often_V = np.bincount(text_T, minlength=d)
    print_N, salt_VV, stale, accepted = fingerprint(key_VN), _salt(d), True, 0
    for _ in range(settings.sweeps):
        for a in rng.permutation(np.flatnonzero(seen_V)):
            # One pair for the whole population: it depends on the text alone, so the proposal is symmetric,
            # and few n-grams hold either symbol. Symbols that occur about as often are the ones worth
            # exchanging.
            closeness_V = 1.0 / (1.0 + np.abs(often_V - often_V[a]))
            closeness_V[a] = 0.0
            edge_V = np.cumsum(closeness_V)
            b = int(np.searchsorted(edge_V, rng.random() * edge_V[-1], side="right"))
            if stale:
                _, first_U, inverse_N = np.unique(print_N, return_index=True, return_inverse=True)
            gain_N = target.gain(key_VN[:, first_U], int(a), b)[inverse_N]
            moved = np.flatnonzero(np.log(rng.random(count)) < power * gain_N)
            stale = len(moved) > 0
            if stale:
                old_a, old_b = key_VN[a, moved], key_VN[b, moved]
                print_N[moved] ^= (
                    salt_VV[a, old_a] ^ salt_VV[b, old_b] ^ salt_VV[a, old_b] ^ salt_VV[b, old_a]
                )
                key_VN[a, moved], key_VN[b, moved] = old_b, old_a
                accepted += len(moved)
        if accepted > MOVES_WANTED * count:
            break


def anneal(
    language: KnownLanguage, text_T: Ints, seen_V: NDArray[np.bool_], settings: Settings
) -> Population:
    """A fresh population for a text, from random keys by rising powers of the likelihood (a tempered SMC sampler)."""
    d = language.d
    target = target_for(language, text_T)
    key_VN = settings.rng.permuted(np.tile(np.arange(d)[:, None], (1, settings.n)), axis=0)
    population = Population(key_VN, np.zeros(settings.n), complete=False)
    power = 0.0
    while power < 1.0:
        total_N = target.total(population.key_VN)
        step = safe_fraction(population.logw_N, total_N, 1.0 - power, ANNEAL_ESS_SHARE * settings.n)
        population.logw_N = step * total_N
        population.log_evidence += log_sum(population.logw_N) - np.log(settings.n)
        power = min(1.0, power + step)
        resample(population, settings)
        move(population, target, text_T, seen_V, settings, power)
    return population


def pool(first: Population, second: Population, settings: Settings) -> Population:
    """Two independent populations as one, each weighing its evidence: again an unbiased estimate."""
    evidence = np.array([first.log_evidence, second.log_evidence])
    logw_N = np.concatenate(
        [one.logw_N - log_sum(one.logw_N) + one.log_evidence for one in (first, second)], dtype=np.float64
    )
    both = Population(
        np.concatenate([first.key_VN, second.key_VN], axis=1),
        logw_N,
        log_sum(evidence) - np.log(2),
        complete=False,
    )
    resample(both, settings)
    return both


class ReplayTarget:
    """For any language: read the whole text."""

    def __init__(self, language: KnownLanguage, text_T: Ints, last: float) -> None:
        self.language, self.text_T, self.last = language, text_T, last

    def total(self, key_VN: Ints) -> Floats:
        prefix_N, state = self.language.replay(key_VN[self.text_T[:-1]].T)
        column = np.arange(key_VN.shape[1])
        with np.errstate(divide="ignore"):
            return prefix_N + self.last * np.log(
                self.language.predict(state)[column, key_VN[self.text_T[-1]]]
            )

    def gain(self, key_VN: Ints, a: int, b: int) -> Floats:
        swapped_VN = key_VN.copy()
        swapped_VN[[a, b]] = key_VN[[b, a]]
        return _difference(self.total(swapped_VN), self.total(key_VN))


class NGramTarget:
    """For an n-gram: counts of n-grams; after a swap only those that hold one of the two symbols matter."""

    def __init__(self, language: NGramLanguage, text_T: Ints, last: float) -> None:
        self.d, order = language.d, language.order
        self.logs = language.log_tables
        # The first order - 1 symbols have short contexts; after that come whole n-grams, counted.
        short = min(order - 1, len(text_T))
        self.parts: list[tuple[int, Ints, Floats]] = [
            (j, text_T[None, : j + 1], np.array([last if j == len(text_T) - 1 else 1.0]))
            for j in range(short)
        ]
        if len(text_T) >= order:
            windows = np.lib.stride_tricks.sliding_window_view(text_T, order)
            gram_GK, inverse = np.unique(windows, axis=0, return_inverse=True)
            weight = np.ones(len(windows))
            weight[-1] = last
            self.parts.append((order - 1, gram_GK, np.bincount(inverse.ravel(), weight).astype(np.float64)))
        self.holds = [
            (gram_GK[None] == np.arange(self.d)[:, None, None]).any(axis=2) for _, gram_GK, _ in self.parts
        ]

    def total(self, key_VN: Ints) -> Floats:
        return sum((w_G @ self._score(j, gram_GK, key_VN) for j, gram_GK, w_G in self.parts), np.zeros(1))

    def gain(self, key_VN: Ints, a: int, b: int) -> Floats:
        exchange_V = np.arange(self.d)
        exchange_V[a], exchange_V[b] = b, a
        gain_N = np.zeros(key_VN.shape[1])
        for (j, gram_GK, weight_G), holds_VG in zip(self.parts, self.holds, strict=True):
            touched_G = np.flatnonzero(holds_VG[a] | holds_VG[b])
            if len(touched_G):
                rows_GK, kept_G = gram_GK[touched_G], weight_G[touched_G]
                before_N = kept_G @ self._score(j, rows_GK, key_VN)
                after_N = kept_G @ self._score(j, exchange_V[rows_GK], key_VN)
                gain_N += _difference(after_N, before_N)
        return gain_N

    def _score(self, j: int, gram_GK: Ints, key_VN: Ints) -> Floats:
        code_GN = key_VN[gram_GK[:, 0]]
        for column in gram_GK.T[1:]:
            code_GN *= self.d
            code_GN += key_VN[column]
        return self.logs[j].take(code_GN)


def _difference(after_N: Floats, before_N: Floats) -> Floats:
    """The difference, where an impossible key may always leave and never be entered."""
    with np.errstate(invalid="ignore"):
        return np.where(
            np.isneginf(after_N), -np.inf, np.where(np.isneginf(before_N), np.inf, after_N - before_N)
        )
