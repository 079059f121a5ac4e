"""Languages whose probabilities are known exactly: n-gram tables, hidden Markov models, and any Python
function.

A language is read by many readers at once, one for each candidate key, because the lexinvariant mixture asks
the same language about d! relabellings of one text. Names end in their axes: N readers, V symbols, T time, S
states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexinvariant.errors import UserError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NORMALISATION_TOLERANCE = 1e-6


def check_distribution(prob: ArrayLike, what: str) -> Floats:
    """The array as floats, after checking that its last axis is a probability distribution everywhere."""
    prob = np.asarray(prob, dtype=np.float64)
    if prob.ndim == 0 or prob.shape[-1] == 0:
        raise UserError(f"{what} is empty: give one probability for each symbol.")
    if not np.isfinite(prob).all() or (prob < 0).any():
        raise UserError(f"{what} holds a negative, infinite or missing probability: all must lie in [0, 1].")
    worst = float(np.abs(prob.sum(axis=-1) - 1.0).max())
    if worst > NORMALISATION_TOLERANCE:
        raise UserError(
            f"{what} is not normalised: a row sums to 1 only within {worst:.2g}; divide it by its sum."
        )
    return prob


def check_sequence(symbol_T: ArrayLike, d: int) -> Ints:
    """The text as symbol numbers, after checking that it is not empty and stays inside the alphabet."""
    array = np.asarray(symbol_T)
    if array.ndim != 1 or array.size == 0:
        raise UserError("The text is empty: give a one-dimensional sequence with at least one symbol.")
    if array.dtype.kind not in "iu":
        raise UserError("The text must be symbol numbers (integers), not " + str(array.dtype) + ".")
    if array.min() < 0 or array.max() >= d:
        raise UserError(f"The text has a symbol outside 0..{d - 1}, the alphabet of this language.")
    return array.astype(np.int64)


class KnownLanguage(ABC):
    """A distribution over texts of d symbols, read by several readers in step; a state is opaque to the caller."""

    d: int

    @abstractmethod
    def start(self, n: int) -> Any:
        """The state of n readers that have read nothing."""

    @abstractmethod
    def predict(self, state: Any) -> Floats:
        """prob_NV: what each reader expects next. A reader that has read the impossible may answer anything."""

    @abstractmethod
    def advance(self, state: Any, symbol_N: Ints) -> Any:
        """The state after each reader has read its symbol."""

    @abstractmethod
    def select(self, state: Any, index: Ints) -> Any:
        """The state of the readers named by index (with repeats)."""

    def replay(self, symbol_NT: Ints) -> tuple[Floats, Any]:
        """Log-probability of each reader's whole text, and the state after it."""
        state = self.start(symbol_NT.shape[0])
        logp_N = np.zeros(symbol_NT.shape[0])
        row_N = np.arange(symbol_NT.shape[0])
        with np.errstate(divide="ignore"):
            for symbol_N in symbol_NT.T:
                logp_N += np.log(self.predict(state)[row_N, symbol_N])
                state = self.advance(state, symbol_N)
        return logp_N, state

    def predictions(self, symbol_T: ArrayLike) -> Floats:
        """prob_TV: the next-symbol distribution before each symbol of one text."""
        text_T = check_sequence(symbol_T, self.d)
        state, rows = self.start(1), []
        for symbol in text_T:
            rows.append(self.predict(state)[0])
            state = self.advance(state, np.array([symbol]))
        return np.stack(rows)

    def sample(self, rng: np.random.Generator, length: int) -> Ints:
        """One text drawn from the language."""
        state, text = self.start(1), []
        for _ in range(length):
            prob_V = self.predict(state)[0]
            # The last cumulative sum may fall short of 1 by rounding; the clip keeps the draw inside the alphabet.
            symbol = min(int(np.searchsorted(np.cumsum(prob_V), rng.random(), side="right")), self.d - 1)
            text.append(symbol)
            state = self.advance(state, np.array([symbol]))
        return np.array(text, dtype=np.int64)


class NGramLanguage(KnownLanguage):
    """An n-gram: tables[j] has shape (d,) * (j + 1) and predicts after j symbols; the last one serves ever after."""

    def __init__(self, tables: Sequence[ArrayLike]) -> None:
        if not tables:
            raise UserError("An n-gram needs at least one table: the distribution of the first symbol.")
        checked = [check_distribution(table, f"n-gram table {j}") for j, table in enumerate(tables)]
        self.d = checked[0].shape[-1]
        self.order = len(checked)
        for j, table in enumerate(checked):
            if table.shape != (self.d,) * (j + 1):
                raise UserError(f"n-gram table {j} has shape {table.shape}, expected {(self.d,) * (j + 1)}.")
        self.table_CV = [table.reshape(-1, self.d) for table in checked]

    @cached_property
    def log_tables(self) -> list[Floats]:
        """Logs of the tables, flat: entry c1 * d^j + ... + x."""
        with np.errstate(divide="ignore"):
            return [np.log(table).ravel() for table in self.table_CV]

    def start(self, n: int) -> tuple[int, Ints]:
        return 0, np.zeros(n, dtype=np.int64)

    def predict(self, state: tuple[int, Ints]) -> Floats:
        seen, context_N = state
        return self.table_CV[seen][context_N]

    def advance(self, state: tuple[int, Ints], symbol_N: Ints) -> tuple[int, Ints]:
        seen, context_N = state
        kept = min(seen + 1, self.order - 1)
        return kept, (context_N * self.d + symbol_N) % self.d**kept

    def select(self, state: tuple[int, Ints], index: Ints) -> tuple[int, Ints]:
        return state[0], state[1][index]


class HMM(KnownLanguage):
    """A hidden Markov model: start_S, transition_SS (from, to) and emission_SV."""

    def __init__(self, start_S: ArrayLike, transition_SS: ArrayLike, emission_SV: ArrayLike) -> None:
        self.start_S = check_distribution(start_S, "HMM start")
        self.transition_SS = check_distribution(transition_SS, "HMM transition")
        self.emission_SV = check_distribution(emission_SV, "HMM emission")
        states = self.start_S.shape[0]
        if self.transition_SS.shape != (states, states) or self.emission_SV.shape[0] != states:
            raise UserError(
                "The HMM's start, transition and emission tables disagree on the number of states."
            )
        self.d = self.emission_SV.shape[1]

    def start(self, n: int) -> Floats:
        return np.tile(self.start_S, (n, 1))

    def predict(self, state: Floats) -> Floats:
        return state @ self.emission_SV

    def advance(self, state: Floats, symbol_N: Ints) -> Floats:
        belief_NS = state * self.emission_SV[:, symbol_N].T
        total_N1 = belief_NS.sum(axis=1, keepdims=True)
        # A reader of the impossible has weight zero for ever; any belief will do, as long as it is a number.
        belief_NS = np.where(total_N1 > 0, belief_NS / np.where(total_N1 > 0, total_N1, 1.0), self.start_S)
        return belief_NS @ self.transition_SS

    def select(self, state: Floats, index: Ints) -> Floats:
        return state[index]


class FunctionLanguage(KnownLanguage):
    """Any function from a prefix (tuple of symbol numbers) to d probabilities; asked once for each prefix.

    For a prefix that cannot occur the function may return anything normalised.
    """

    def __init__(self, function: Callable[[tuple[int, ...]], ArrayLike], d: int) -> None:
        if d < 1:
            raise UserError("A language needs an alphabet of at least one symbol.")
        self.d = d
        self._function = function
        self._memory: dict[tuple[int, ...], Floats] = {}

    def _ask(self, prefix: tuple[int, ...]) -> Floats:
        if prefix not in self._memory:
            prob_V = check_distribution(self._function(prefix), f"The prediction after {prefix}")
            if prob_V.shape != (self.d,):
                raise UserError(
                    f"The prediction after {prefix} has shape {prob_V.shape}, expected ({self.d},)."
                )
            self._memory[prefix] = prob_V
        return self._memory[prefix]

    def start(self, n: int) -> Ints:
        return np.zeros((n, 0), dtype=np.int64)

    def predict(self, state: Ints) -> Floats:
        return np.stack([self._ask(tuple(prefix)) for prefix in state.tolist()])

    def advance(self, state: Ints, symbol_N: Ints) -> Ints:
        return np.concatenate([state, symbol_N[:, None]], axis=1)

    def select(self, state: Ints, index: Ints) -> Ints:
        return state[index]


class Smoothed(KnownLanguage):
    """The paper's p-tilde: (1 - sigma) p + sigma / d at every step."""

    def __init__(self, language: KnownLanguage, sigma: float) -> None:
        if not 0 <= sigma < 1:
            raise UserError(f"The smoothing sigma must lie in [0, 1), not {sigma}.")
        self.language, self.sigma, self.d = language, sigma, language.d

    def start(self, n: int) -> Any:
        return self.language.start(n)

    def predict(self, state: Any) -> Floats:
        return (1 - self.sigma) * self.language.predict(state) + self.sigma / self.d

    def advance(self, state: Any, symbol_N: Ints) -> Any:
        return self.language.advance(state, symbol_N)

    def select(self, state: Any, index: Ints) -> Any:
        return self.language.select(state, index)


def from_texts(weights: Mapping[str, float], alphabet: str) -> FunctionLanguage:
    """The language that consists of these texts with these probabilities (and stops being defined after them)."""
    check_distribution(list(weights.values()), "The list of texts")
    d = len(alphabet)

    def next_symbol(prefix: tuple[int, ...]) -> Floats:
        written = "".join(alphabet[symbol] for symbol in prefix)
        mass_V = np.zeros(d)
        for text, weight in weights.items():
            if text.startswith(written) and len(text) > len(written):
                mass_V[alphabet.index(text[len(written)])] += weight
        return mass_V / mass_V.sum() if mass_V.sum() > 0 else np.full(d, 1 / d)

    return FunctionLanguage(next_symbol, d)


def markov(transition_VV: ArrayLike, start_V: ArrayLike | None = None) -> NGramLanguage:
    """A Markov chain; it starts uniform unless told otherwise."""
    table = np.asarray(transition_VV, dtype=np.float64)
    return NGramLanguage(
        [np.full(table.shape[-1], 1 / table.shape[-1]) if start_V is None else start_V, table]
    )


def random_markov(d: int, rng: np.random.Generator, concentration: float = 0.5) -> NGramLanguage:
    """A Markov chain whose rows are drawn from a symmetric Dirichlet."""
    return markov(rng.dirichlet(np.full(d, concentration), size=d))


def symmetric_markov(d: int, rng: np.random.Generator, concentration: float = 0.5) -> NGramLanguage:
    """A Markov chain in which symbols 2k and 2k+1 are interchangeable, so that 2^(d//2) keys can never be
    told apart.
    """
    group_V = np.arange(d) // 2
    size_G = np.bincount(group_V)
    between_GG = rng.dirichlet(np.full(len(size_G), concentration), size=len(size_G))
    return markov((between_GG / size_G)[np.ix_(group_V, group_V)])


def near_uniform(d: int, gap: float) -> NGramLanguage:
    """Independent symbols, half of them (1 + gap) and half (1 - gap) as likely as chance: hard to tell apart."""
    if not 0 <= gap < 1:
        raise UserError(f"The gap of a near-uniform language must lie in [0, 1), not {gap}.")
    tilt_V = np.where(np.arange(d) < d // 2, 1 + gap, 1 - gap)
    return NGramLanguage([tilt_V / tilt_V.sum()])
