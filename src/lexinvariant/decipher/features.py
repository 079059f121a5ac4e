"""What a ciphertext's symbols tell before anybody reads it: how they are distributed, repeat and follow each other.

Each number is a comparison with what a language or pure chance would give, in nats or standard deviations and over the
root of the text's length, so that one set of weights serves texts of all lengths and languages of all alphabets.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

MAX_PERIOD = 20
LONGEST = 5_000
"""Symbols that are looked at: more would tell nothing else."""
FLAT_LETTERS = 100
"""A shorter text is not said to be flat."""
ENOUGH_REPEATS, UNORDERED = 330, 3.0
"""Where so many pairs of neighbours would be the same by chance, a language has half as many more (nine standard
deviations), however many symbols a letter has; where there are not even so many deviations more, it is none."""
_NEARLY = (
    0.7  # of the best period's deviation: the least period that has as much is taken, not a multiple of it
)

Floats = NDArray[np.float64]
Ids = NDArray[np.integer]


@dataclass(frozen=True)
class Features:
    """All that the classifier of unread texts looks at; what comes after `extra_symbols` is for people."""

    log_length: float
    skew: float
    """How much likelier the sorted counts are as the language's letters in some order than as random ones."""
    as_they_stand: float
    """How much likelier the letters are as the language's own than as random ones: a transposition keeps them."""
    periodicity: float
    """Repeats at the distances of the best period, beyond what the counts alone give."""
    followers: float
    """Repeated pairs of neighbours, beyond what the counts alone give: a transposition has none."""
    extra_symbols: float
    """Symbols beyond the language's letters, as a share of them."""

    period: int
    coincidence: float
    """The index of coincidence: the probability that two symbols of the text are the same."""
    is_unordered: bool
    """Whether neighbours say nothing about each other, in a text that is long enough to tell."""

    def vector(self) -> Floats:
        return np.array(astuple(self)[:N_FEATURES])


N_FEATURES = len(fields(Features)) - 3
NAMES = tuple(field.name for field in fields(Features))[:N_FEATURES]


def measure(symbol_T: Ids, frequency_V: Floats, letter_S: Ids | None) -> Features:
    """Features of numbered symbols, beside a language's frequencies of letters.

    `letter_S` are the letters that the symbols are as they stand, or None where they are no letters.
    """
    symbol_T = np.asarray(symbol_T[:LONGEST], np.int64)
    n, size = len(symbol_T), len(frequency_V)
    count_S = np.bincount(symbol_T)
    count_S = count_S[count_S > 0]
    root = np.sqrt(n)
    surprise_V = np.log(np.maximum(frequency_V, 1e-4) * size)
    stand = 0.0
    if letter_S is not None:
        stand = float(surprise_V[letter_S[symbol_T]].sum()) / root
    coincidence = _coincidence(count_S)
    period, periodicity = _best_period(symbol_T, coincidence)
    expected, followers = _repeated_pairs(symbol_T, coincidence)
    return Features(
        log_length=float(np.log(n)),
        skew=_skew(count_S, frequency_V) / root,
        as_they_stand=stand,
        periodicity=periodicity,
        followers=float(np.sign(followers) * np.log1p(abs(followers))),
        extra_symbols=max(0.0, len(count_S) / size - 1),
        period=period,
        coincidence=coincidence,
        is_unordered=_says_nothing(expected, followers),
    )


def is_unordered(symbol_T: Ids) -> bool:
    """As `Features` has it: such a text has no key of symbols for letters."""
    symbol_T = np.asarray(symbol_T[:LONGEST], np.int64)
    return _says_nothing(*_repeated_pairs(symbol_T, _coincidence(np.bincount(symbol_T))))


def _says_nothing(expected: float, followers: float) -> bool:
    return expected >= ENOUGH_REPEATS and followers < UNORDERED


def is_flat(count_S: NDArray[np.integer], frequency_V: Floats) -> bool:
    """Whether symbols are too evenly distributed for a language's letters in any order: half as far from random ones as
    they should be. (Of validation texts from 90 letters on, none was below 0.7.)
    """
    n = int(count_S.sum())
    if n < FLAT_LETTERS:
        return False
    expected = float((frequency_V * np.log(np.maximum(frequency_V, 1e-4) * len(frequency_V))).sum())
    return _skew(count_S, frequency_V) < 0.5 * n * expected


def _coincidence(count_S: NDArray[np.integer]) -> float:
    n = int(count_S.sum())
    return float((count_S * (count_S - 1)).sum() / max(1, n * (n - 1)))


def _repeated_pairs(symbol_T: Ids, coincidence: float) -> tuple[float, float]:
    """How many pairs of neighbours the counts of single symbols let expect to be the same, and by how many standard
    deviations more are.
    """
    pair_T = symbol_T[:-1] * (int(symbol_T.max(initial=0)) + 1) + symbol_T[1:]
    pair_counts = np.unique(pair_T, return_counts=True)[1]
    expected = len(pair_T) * (len(pair_T) - 1) / 2 * coincidence**2
    repeats = float((pair_counts * (pair_counts - 1)).sum() / 2)
    return expected, (repeats - expected) / float(np.sqrt(expected + 1.0))


def _skew(count_S: NDArray[np.integer], frequency_V: Floats) -> float:
    """By how many nats the sorted counts are likelier as letters of the language than as random ones; symbols beyond
    the number of letters cost a nat each.
    """
    surprise_V = np.sort(np.log(np.maximum(frequency_V, 1e-4) * len(frequency_V)))[::-1]
    counts = np.sort(count_S)[::-1]
    as_letters, more = counts[: len(surprise_V)], counts[len(surprise_V) :]
    return float((as_letters * surprise_V[: len(as_letters)]).sum() - more.sum())


def _best_period(symbol_T: Ids, coincidence: float) -> tuple[int, float]:
    """The period whose columns hold the most equal pairs, and by how many standard deviations more than by chance."""
    n = len(symbol_T)
    deviation = np.zeros(MAX_PERIOD + 1)
    for period in range(2, min(MAX_PERIOD, n // 3) + 1):
        equal, pairs = 0.0, 0.0
        for column in range(period):
            counts = np.bincount(symbol_T[column::period])
            total = counts.sum()
            equal += float((counts * (counts - 1)).sum()) / 2
            pairs += float(total * (total - 1)) / 2
        spread = np.sqrt(max(pairs * coincidence * (1 - coincidence), 1e-9))
        deviation[period] = (equal - pairs * coincidence) / spread if pairs else 0.0
    best = float(deviation.max())
    if best <= 0:
        return 1, 0.0
    return int(np.argmax(deviation >= _NEARLY * best)), best
