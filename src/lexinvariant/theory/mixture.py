"""The associated lexinvariant model p'(y) = E_pi[p(pi^-1(y))], exactly, by reading the text under all d!
keys.

A key is the array key_V with key_V[cipher symbol] = plain symbol, that is pi^-1; a uniform pi makes a uniform
key.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from lexinvariant.errors import UserError
from lexinvariant.theory.divergence import hellinger_squared, kl, l1
from lexinvariant.theory.languages import Floats, Ints, KnownLanguage, check_sequence

ENUMERATION_LIMIT = 8


def log_factorial(d: int) -> float:
    """The log of d!, the prior entropy of the key in nats."""
    return float(gammaln(d + 1))


@lru_cache(maxsize=4)
def all_keys(d: int) -> Ints:
    """key_NV: all d! keys; the first is the identity."""
    keys = np.array(list(permutations(range(d))), dtype=np.int64)
    keys.flags.writeable = False
    return keys


def check_key(key: ArrayLike | None, d: int) -> Ints:
    """The key as an array, the identity where none is given."""
    key_V = np.arange(d) if key is None else np.asarray(key)
    if key_V.shape != (d,) or not np.array_equal(np.sort(key_V), np.arange(d)):
        raise UserError(f"The key must hold each of the numbers 0..{d - 1} once.")
    return key_V.astype(np.int64)


def impossible(position: int) -> UserError:
    """The error for a text that no relabelling of the language can produce."""
    return UserError(
        f"The text has probability zero under every relabelling of the language from position {position} on: "
        "smooth the language, or check that the text belongs to it."
    )


@dataclass(frozen=True)
class BayesTrace:
    """What p' did on one text y_1..y_T, beside the language that knows the key."""

    prob_TV: Floats
    """p'(. | y_<t), by cipher symbol."""
    known_TV: Floats
    """p(. | y_<t) when the true key is known, by cipher symbol."""
    logp_T: Floats
    """log p'(y_t | y_<t)."""
    known_logp_T: Floats
    """log p(y_t | y_<t) under the true key."""
    key_matrix_VV: Floats
    """After the whole text: probability that a cipher symbol (row) stands for a plain symbol (column)."""

    @property
    def d(self) -> int:
        return int(self.prob_TV.shape[1])

    @cached_property
    def l1_T(self) -> Floats:
        return l1(self.known_TV, self.prob_TV)

    @cached_property
    def kl_T(self) -> Floats:
        return kl(self.known_TV, self.prob_TV)

    @cached_property
    def hellinger_T(self) -> Floats:
        return hellinger_squared(self.known_TV, self.prob_TV)

    @cached_property
    def regret_T(self) -> Floats:
        """The log of p(y_1..t) / p'(y_1..t): never above log d!, for any language and any text."""
        return np.cumsum(self.known_logp_T - self.logp_T)

    @cached_property
    def key_surprise_T(self) -> Floats:
        """-log P(true key | y_1..t) = log d! - regret. Its mean over texts of the language is the posterior entropy."""
        return log_factorial(self.d) - self.regret_T

    @cached_property
    def average_l1_T(self) -> Floats:
        """The left side of the paper's theorem, for every T up to the length of the text."""
        return np.cumsum(self.l1_T) / np.arange(1, len(self.l1_T) + 1)


@dataclass(frozen=True)
class ExactTrace(BayesTrace):
    """A trace by enumeration, with the whole posterior over keys."""

    key_NV: Ints
    log_posterior_N: Floats
    """After the whole text."""
    entropy_T: Floats
    """Entropy of the posterior over keys after y_1..t, in nats."""


def exact(language: KnownLanguage, cipher_T: ArrayLike, true_key: ArrayLike | None = None) -> ExactTrace:
    """Read one text with p' under all d! keys; the known_* columns use true_key (default: the identity)."""
    d = language.d
    if d > ENUMERATION_LIMIT:
        raise UserError(
            f"Enumeration over {d}! keys is out of reach (limit: {ENUMERATION_LIMIT} symbols): "
            "use lexinvariant.theory.particles."
        )
    text_T, key_V = check_sequence(cipher_T, d), check_key(true_key, d)
    key_NV = all_keys(d)
    state = language.start(len(key_NV))
    logw_N = np.full(len(key_NV), -log_factorial(d))
    weight_N = np.exp(logw_N)
    prob_TV, logp_T, entropy_T = np.empty((len(text_T), d)), np.empty(len(text_T)), np.empty(len(text_T))
    for t, symbol in enumerate(text_T):
        prob_NV = np.take_along_axis(language.predict(state), key_NV, axis=1)
        prob_TV[t] = weight_N @ prob_NV
        with np.errstate(divide="ignore"):
            logw_N = logw_N + np.log(prob_NV[:, symbol])
        top = logw_N.max()
        if np.isneginf(top):
            raise impossible(t)
        weight_N = np.exp(logw_N - top)
        total = weight_N.sum()
        logp_T[t] = top + np.log(total)
        weight_N /= total
        logw_N -= logp_T[t]
        entropy_T[t] = -np.sum(weight_N * np.where(weight_N > 0, logw_N, 0.0))
        state = language.advance(state, key_NV[:, symbol])
    known_TV, known_logp_T = known_predictions(language, text_T, key_V)
    matrix_VV = key_marginals(key_NV.T, weight_N)
    return ExactTrace(
        prob_TV, known_TV, logp_T, known_logp_T, matrix_VV, key_NV, logw_N, np.maximum(entropy_T, 0.0)
    )


def key_marginals(key_VN: Ints, weight_N: Floats) -> Floats:
    """Probability that each cipher symbol (row) stands for each plain symbol (column)."""
    d = len(key_VN)
    return np.stack([np.bincount(plain_N, weight_N, minlength=d).astype(np.float64) for plain_N in key_VN])


def known_predictions(language: KnownLanguage, cipher_T: Ints, key_V: Ints) -> tuple[Floats, Floats]:
    """prob_TV by cipher symbol and log-probabilities of the language that knows the key."""
    plain_TV = language.predictions(key_V[cipher_T])
    known_TV = plain_TV[:, key_V]
    with np.errstate(divide="ignore"):
        logp_T = np.log(known_TV[np.arange(len(cipher_T)), cipher_T])
    return known_TV, logp_T
