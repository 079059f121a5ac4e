"""p' for alphabets too large to enumerate: sequential Monte Carlo over keys, with an error estimate.

Four things make it work where a plain particle filter loses the true key within fifty symbols.

- A key is only decided where the text asks: symbols not seen yet are exchangeable, so their share of the
  prediction is exact, and a key branches when a symbol first occurs. While few symbols are known *all* keys
  are kept.
- A symbol that would empty the population is absorbed in fractions, each followed by Metropolis swaps of the
  key's symbols, scored on the whole text so far; the effective sample size decides the fractions.
- At growing intervals a fresh population is annealed from random keys for the text so far, and pooled with
  the running one by estimated evidence, so that a population stuck in a wrong reading is replaced.
- Islands run independently and are pooled by evidence too; their spread is the error estimate.

Every step keeps the estimate of p'(y_1..t) unbiased, but for the choice of fractions by what was drawn. Axes:
N particles, V symbols, T time, R islands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexinvariant.errors import UserError
from lexinvariant.generators import generator_at
from lexinvariant.theory.languages import Floats, Ints, KnownLanguage, NGramLanguage, check_sequence
from lexinvariant.theory.mixture import (
    BayesTrace,
    check_key,
    impossible,
    key_marginals,
    known_predictions,
    log_factorial,
)
from lexinvariant.theory.population import (
    Population,
    Settings,
    anneal,
    branch,
    distinct_ess,
    ess,
    log_sum,
    move,
    normal,
    pool,
    resample,
    safe_fraction,
    target_for,
)

REFRESH = 8
"""A population of copies has even weights and no diversity: it is moved every so many symbols all the same."""
ANNEAL_AT = (8, 12, 17, 24, 34, 48, 68, 110, 180)
"""Text lengths at which a fresh population is annealed: dense where most of the key is being learned."""


@dataclass(frozen=True)
class ParticleTrace(BayesTrace):
    """A trace by sampling. logp_T is the log of the pooled prediction, which only looks back: an attained score."""

    log_evidence_T: Floats
    """Estimate of log p'(y_1..t)."""
    log_evidence_error_T: Floats
    """Its standard error from the spread of the islands, with islands - 1 degrees of freedom; 0 if none was lost."""
    prob_error_TV: Floats
    """Standard error of p'(. | y_<t), likewise."""
    ess_T: Floats
    """Mean effective sample size of an island after y_1..t, equal keys counted once."""

    @property
    def evidence_key_surprise_T(self) -> Floats:
        """-log P(true key | y_1..t), from the evidence."""
        return log_factorial(self.d) - np.cumsum(self.known_logp_T) + self.log_evidence_T


def particles(
    language: KnownLanguage,
    cipher_T: ArrayLike,
    n: int = 4096,
    islands: int = 4,
    seed: int = 0,
    ess_share: float = 0.5,
    sweeps: int = 5,
    true_key: ArrayLike | None = None,
) -> ParticleTrace:
    """Read one text with n keys in all; `sweeps` bounds the passes of swaps when a population is renewed."""
    if islands < 2 or n < 2 * islands:
        raise UserError(
            "Give at least two islands and two particles to each: their spread is the error estimate."
        )
    if not 0 < ess_share < 1 or sweeps < 1:
        raise UserError("The effective-sample-size share must lie in (0, 1) and sweeps must be at least 1.")
    text_T, key_V = check_sequence(cipher_T, language.d), check_key(true_key, language.d)
    runs = [
        _run_island(language, text_T, Settings(n // islands, generator_at(seed, island), ess_share, sweeps))
        for island in range(islands)
    ]
    prob_RTV = np.stack([run.prob_TV for run in runs])
    log_evidence_RT = np.stack([run.log_evidence_T for run in runs])
    known_TV, known_logp_T = known_predictions(language, text_T, key_V)

    before_RT = np.concatenate([np.zeros((islands, 1)), log_evidence_RT[:, :-1]], axis=1)
    weight_RT = np.stack([normal(column) for column in before_RT.T], axis=1)
    prob_TV = np.einsum("rt,rtv->tv", weight_RT, prob_RTV)
    spread_TV = np.einsum("rt,rtv->tv", weight_RT**2, (prob_RTV - prob_TV) ** 2)
    log_evidence_T = np.array([log_sum(column) for column in log_evidence_RT.T]) - np.log(islands)
    relative_RT = np.exp(log_evidence_RT - log_evidence_T)
    matrix_RVV = np.stack([_key_matrix(run.population, text_T) for run in runs])
    return ParticleTrace(
        prob_TV=prob_TV,
        known_TV=known_TV,
        logp_T=np.log(prob_TV[np.arange(len(text_T)), text_T]),
        known_logp_T=known_logp_T,
        key_matrix_VV=np.einsum("r,rvw->vw", normal(log_evidence_RT[:, -1]), matrix_RVV),
        log_evidence_T=log_evidence_T,
        log_evidence_error_T=relative_RT.std(axis=0, ddof=1) / np.sqrt(islands),
        prob_error_TV=np.sqrt(spread_TV * islands / (islands - 1)),
        ess_T=np.mean([run.ess_T for run in runs], axis=0),
    )


@dataclass(frozen=True)
class _IslandRun:
    prob_TV: Floats
    log_evidence_T: Floats
    ess_T: Floats
    population: Population


def _run_island(language: KnownLanguage, text_T: Ints, settings: Settings) -> _IslandRun:
    d, steps = language.d, len(text_T)
    population = Population(key_VN=np.arange(d)[:, None], logw_N=np.zeros(1))
    state = language.start(1)
    seen_V = np.zeros(d, dtype=bool)
    prob_TV, log_evidence_T, ess_T = np.empty((steps, d)), np.empty(steps), np.empty(steps)
    for t, symbol in enumerate(text_T):
        prefix_T = text_T[: t + 1]
        cipher_NV = np.take_along_axis(language.predict(state), population.key_VN.T, axis=1)
        unseen_V = ~seen_V
        open_NU = cipher_NV[:, unseen_V]
        if unseen_V.any():
            cipher_NV[:, unseen_V] = open_NU.mean(axis=1, keepdims=True)
        prob_TV[t] = normal(population.logw_N) @ cipher_NV
        if prob_TV[t, symbol] <= 0:
            raise impossible(t)
        if seen_V[symbol]:
            state = _absorb(population, language, state, prefix_T, seen_V, settings)
        else:
            population.log_evidence += float(np.log(prob_TV[t, symbol]))
            parent = branch(population, open_NU, np.flatnonzero(unseen_V), int(symbol), settings)
            seen_V[symbol] = True
            state = language.advance(language.select(state, parent), population.key_VN[symbol])
        if not population.complete and t + 1 in ANNEAL_AT:
            population = pool(population, anneal(language, prefix_T, seen_V, settings), settings)
            state = _reread(population, language, prefix_T)
        log_evidence_T[t], ess_T[t] = population.log_evidence, distinct_ess(population)
        uneven = ess(normal(population.logw_N)) < settings.enough
        if not population.complete and (uneven or (ess_T[t] < settings.enough and t % REFRESH == 0)):
            if uneven:
                resample(population, settings)
            move(population, target_for(language, prefix_T), prefix_T, seen_V, settings, 1.0)
            state = _reread(population, language, prefix_T)
    return _IslandRun(prob_TV, log_evidence_T, ess_T, population)


def _absorb(
    population: Population,
    language: KnownLanguage,
    state: Any,
    text_T: Ints,
    seen_V: NDArray[np.bool_],
    settings: Settings,
) -> Any:
    """Weigh the population by a known symbol, in fractions if need be; returns the readers' state after it."""
    symbol, done = int(text_T[-1]), 0.0
    while True:
        row_N = np.arange(population.key_VN.shape[1])
        with np.errstate(divide="ignore"):
            gain_N = np.log(language.predict(state)[row_N, population.key_VN[symbol]])
        enough = min(settings.enough, 0.5 * ess(normal(population.logw_N)))
        step = (
            1.0 - done
            if population.complete
            else safe_fraction(population.logw_N, gain_N, 1.0 - done, enough)
        )
        weighed_N = population.logw_N + step * gain_N
        population.log_evidence += log_sum(weighed_N) - log_sum(population.logw_N)
        population.logw_N = weighed_N
        done += step
        if done > 1.0 - 1e-9:
            return language.advance(state, population.key_VN[symbol])
        resample(population, settings)
        move(population, target_for(language, text_T, done), text_T, seen_V, settings, 1.0)
        state = _reread(population, language, text_T[:-1])


def _reread(population: Population, language: KnownLanguage, text_T: Ints) -> Any:
    """The readers' state after the text, under the keys as they are now."""
    memory = min(len(text_T), language.order - 1) if isinstance(language, NGramLanguage) else len(text_T)
    return language.replay(population.key_VN[text_T[len(text_T) - memory :]].T)[1]


def _key_matrix(population: Population, text_T: Ints) -> Floats:
    """Marginals of the posterior; symbols not in the text share what is left evenly."""
    matrix_VV = key_marginals(population.key_VN, normal(population.logw_N))
    unseen = np.setdiff1d(np.arange(len(matrix_VV)), text_T)
    if len(unseen):
        matrix_VV[unseen] = matrix_VV[unseen].mean(axis=0)
    return matrix_VV
