"""A cipher's key, read off what a model names each symbol: by majority vote, and as probabilities.

A window of a text holds cipher symbols, and a model has named each occurrence. The vote names a symbol by what
most of its occurrences in the window were named; where two names are even, the one given last counts, since the
model had seen most by then. Symbols are numbered 0..C-1 (`number_symbols`); -1 marks what is not of the key.

S sequences, T positions, C cipher symbols, V names, W offsets of a window.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexinvariant.errors import UserError

NONE = -1
"""Not a symbol of the key, or a symbol that has no name since the window does not hold it."""
_PART = 128  # sequences at a time: the tables of counts stay small

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def number_symbols(tok_ST: NDArray[np.integer], symbols_C: NDArray[np.integer], size: int) -> Ints:
    """The number of each token among the key's symbols; NONE for the others of a vocabulary of `size`."""
    number_V = np.full(size, NONE, np.int64)
    number_V[symbols_C] = np.arange(len(symbols_C))
    return number_V[tok_ST]


def majority(symbol_SN: NDArray[np.integer], name_SN: NDArray[np.integer], n_symbols: int, size: int) -> Ints:
    """name_SC: the vote over whole rows, NONE for a symbol that does not occur (or has only the name NONE)."""
    s_SN, n_SN = np.asarray(symbol_SN, np.int64), np.asarray(name_SN, np.int64)
    return np.concatenate([_majority(s_SN[p], n_SN[p], n_symbols, size) for p in _parts(len(s_SN))])


def _majority(symbol_SN: Ints, name_SN: Ints, n_symbols: int, size: int) -> Ints:
    n_rows, n = symbol_SN.shape
    s_M, n_M = np.nonzero((symbol_SN != NONE) & (name_SN != NONE))
    cell_M = (s_M * n_symbols + symbol_SN[s_M, n_M]) * size + name_SN[s_M, n_M]
    score = np.bincount(cell_M, minlength=n_rows * n_symbols * size) * (n + 1)
    last = np.zeros(len(score), np.int64)
    np.maximum.at(last, cell_M, n_M + 1)
    score_SCV = (score + last).reshape(n_rows, n_symbols, size)
    return np.where(score_SCV.max(axis=2) > 0, score_SCV.argmax(axis=2), NONE)


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + _PART) for start in range(0, n, _PART))


def check_window(window: int, length: int) -> None:
    if not 1 <= window <= length:
        raise UserError(
            f"A window of {window} symbols does not fit texts of {length}: give a --window from 1 to {length}."
        )


def check_temperature(temperature: float) -> None:
    if not temperature > 0:
        raise UserError(f"A temperature of {temperature} has no softmax: give a number above 0.")


def sliding_majority(
    symbol_ST: NDArray[np.integer], name_ST: NDArray[np.integer], n_symbols: int, size: int, window: int
) -> Iterator[Ints]:
    """name_SC of the window at each offset 0, 1, ..., T - window, for at most a few hundred sequences.

    One occurrence leaves a sequence's window and one enters it at each offset, so only their rows of the table
    change. An entry is its count times T + 1 plus its last position: the greatest wins, and none are even.
    The array yielded is overwritten by the next one.
    """
    symbol_ST, name_ST = np.asarray(symbol_ST, np.int64), np.asarray(name_ST, np.int64)
    n_rows, n = symbol_ST.shape
    check_window(window, n)
    score_SCV = np.zeros((n_rows, n_symbols, size), np.int64)
    best_SC = np.full((n_rows, n_symbols), NONE, np.int64)

    def at(t: int) -> tuple[Ints, Ints, Ints]:
        s_M = np.nonzero(symbol_ST[:, t] != NONE)[0]
        return s_M, symbol_ST[s_M, t], name_ST[s_M, t]

    for t in range(n):
        if t >= window:
            s_M, c_M, v_M = at(t - window)
            left_M = score_SCV[s_M, c_M, v_M] - (n + 1)
            # Where no occurrence is left in the window, the position of the last one must not remain as a score.
            score_SCV[s_M, c_M, v_M] = np.where(left_M > n, left_M, 0)
            row_MV = score_SCV[s_M, c_M]
            best_SC[s_M, c_M] = np.where(row_MV.max(axis=1) > 0, row_MV.argmax(axis=1), NONE)
        s_M, c_M, v_M = at(t)
        entered_M = (score_SCV[s_M, c_M, v_M] // (n + 1) + 1) * (n + 1) + t + 1
        score_SCV[s_M, c_M, v_M] = entered_M
        # A name that has just been given can only gain: it is compared with the best so far and no other.
        old_M = best_SC[s_M, c_M]
        wins_M = (old_M == NONE) | (entered_M >= score_SCV[s_M, c_M, old_M])
        best_SC[s_M, c_M] = np.where(wins_M, v_M, old_M)
        if t >= window - 1:
            yield best_SC


def sliding_counts(
    symbol_ST: NDArray[np.integer],
    name_ST: NDArray[np.integer],
    truth_SC: NDArray[np.integer],
    size: int,
    window: int,
) -> tuple[Ints, Ints]:
    """(right_SW, seen_SW): of the key's symbols seen in the window at each offset, how many the vote names rightly.

    truth_SC is what each symbol stands for; one truth_1C serves all sequences.
    """
    check_window(window, symbol_ST.shape[1])
    truth_SC = np.broadcast_to(truth_SC, (len(symbol_ST), truth_SC.shape[1]))
    right, seen = [], []
    for part in _parts(len(symbol_ST)):
        truth = truth_SC[part]
        votes = sliding_majority(symbol_ST[part], name_ST[part], truth.shape[1], size, window)
        counted = [((name == truth).sum(axis=1), (name != NONE).sum(axis=1)) for name in votes]
        right.append(np.stack([r for r, _ in counted], axis=1))
        seen.append(np.stack([s for _, s in counted], axis=1))
    return np.concatenate(right), np.concatenate(seen)


def mean_precision(right_SW: Ints, seen_SW: Ints) -> tuple[Floats, Floats]:
    """(mean_W, half_width_W): mean over the sequences whose window holds any symbol of the key, and half of its
    95% confidence interval (normal approximation; NaN where fewer than two sequences count).
    """
    counts_SW = seen_SW > 0
    share_SW = np.where(counts_SW, right_SW / np.maximum(seen_SW, 1), 0.0)
    n_W = counts_SW.sum(axis=0)
    mean_W = np.where(n_W > 0, share_SW.sum(axis=0) / np.maximum(n_W, 1), np.nan)
    square_W = np.where(counts_SW, (share_SW - mean_W) ** 2, 0.0).sum(axis=0)
    half_W = np.where(n_W > 1, 1.96 * np.sqrt(square_W / np.maximum(n_W - 1, 1) / np.maximum(n_W, 1)), np.nan)
    return mean_W, half_W


def tally(name_SC: NDArray[np.integer], size: int) -> Ints:
    """votes_CV: in how many sequences each symbol was voted each name."""
    n_symbols = name_SC.shape[1]
    s_M, c_M = np.nonzero(name_SC != NONE)
    cell_M = c_M * size + name_SC[s_M, c_M]
    return np.bincount(cell_M, minlength=n_symbols * size).reshape(n_symbols, size)


def whole_key(name_SC: NDArray[np.integer], size: int) -> Ints:
    """key_C: the vote over the votes of all sequences, for symbols that no single window may all hold."""
    symbol_SC = np.broadcast_to(np.arange(name_SC.shape[1]), name_SC.shape)
    return majority(symbol_SC.reshape(1, -1), name_SC.reshape(1, -1), name_SC.shape[1], size)[0]


@dataclass
class SoftKey:
    """Key matrices as probabilities, for windows at some starts; batches of logits are added one by one.

    In each sequence a symbol's row is the softmax, at a temperature, of the mean of the logits at its occurrences
    in the window; rows are then averaged over the sequences whose window holds the symbol.
    """

    starts: Sequence[int]
    window: int
    temperature: float
    total_KCV: Floats
    n_KC: Ints

    @classmethod
    def empty(
        cls, starts: Sequence[int], window: int, temperature: float, n_symbols: int, size: int
    ) -> "SoftKey":
        check_temperature(temperature)
        shape = (len(starts), n_symbols)
        return cls(starts, window, temperature, np.zeros((*shape, size)), np.zeros(shape, np.int64))

    def add(
        self, symbol_BT: NDArray[np.integer], logits_between: Callable[[int, int], NDArray[np.floating]]
    ) -> None:
        """`logits_between(start, stop)` are those of that stretch, by what was known at its end."""
        for k, start in enumerate(self.starts):
            stop = start + self.window
            row_BCV, holds_BC = soft_rows(
                symbol_BT[:, start:stop], logits_between(start, stop), self.n_KC.shape[1], self.temperature
            )
            self.total_KCV[k] += row_BCV.sum(axis=0)
            self.n_KC[k] += holds_BC.sum(axis=0)

    def matrices(self) -> Floats:
        """p_KCV; a symbol that no window held has a row of NaN."""
        return np.where(
            self.n_KC[..., None] > 0, self.total_KCV / np.maximum(self.n_KC, 1)[..., None], np.nan
        )


def soft_rows(
    symbol_BT: NDArray[np.integer], logits_BTV: NDArray[np.floating], n_symbols: int, temperature: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """(p_BCV, holds_BC): each sequence's soft key over the whole of what is given, zero where a symbol is absent."""
    is_BCT = symbol_BT[:, None, :] == np.arange(n_symbols)[:, None]
    count_BC = is_BCT.sum(axis=2)
    mean_BCV = is_BCT.astype(np.float64) @ logits_BTV.astype(np.float64) / np.maximum(count_BC, 1)[..., None]
    power_BCV = np.exp((mean_BCV - mean_BCV.max(axis=2, keepdims=True)) / temperature)
    holds_BC = count_BC > 0
    return holds_BC[..., None] * power_BCV / power_BCV.sum(axis=2, keepdims=True), holds_BC
