"""The best keys of a substitution cipher under an n-gram: population annealing.

Many keys at once are changed by swaps, hot at first (any swap is taken) and then ever colder, until a swap is taken
as often as the n-gram's probabilities say. Every few swaps the keys are drawn anew in proportion to how much more
likely the colder language makes them, so that the whole population gathers where good keys are. At the end it is
a sample of the n-gram's posterior over keys, which is what confidence is made of, and the best key met on the way is
kept too.

All keys try the same swap of two cipher symbols at a time: only the n-grams that hold one of the two are looked up,
and they are the same ones for every key. NumPy does this faster than XLA on a CPU (its look-ups cost half), and
there is nothing to compile.

T places of n-grams, P those touched by a swap, R keys, S slots: the cipher symbols, then the letters left over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from lexinvariant.decipher.ngram import SCALE, NGram, codes

Ids = NDArray[np.integer]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Pieces of one ciphertext, and which letters its symbols may stand for."""

    ngram: NGram
    pieces: Sequence[Ids]
    """Numbers of cipher symbols, and -1 - v for what is known to be letter v of the n-gram's alphabet."""
    n_symbols: int
    letters: Ids
    """What the cipher symbols may stand for: at least as many as there are symbols."""
    pinned: Mapping[int, int]
    """Cipher symbols whose letter is known."""
    prior_SV: Floats | None = None
    """Nats that each symbol costs as each letter, from other evidence than the n-gram."""


@dataclass(frozen=True)
class Effort:
    """How long to look."""

    keys: int = 256
    swaps: int = 3000
    coldness: float = 0.3
    """Where it starts: 0 takes every swap, 1 is the n-gram's own temperature, where it ends."""
    redraw: int = 32
    """Swaps between two redrawings of the population."""


@dataclass(frozen=True)
class Found:
    """Different keys, best first: key_NS[n, s] is what symbol s stands for, and its cost in nats."""

    key_NS: Ints
    cost_N: Floats


class Places:
    """Where each slot's symbol stands in the n-grams of a text: code_T = fixed_T + key @ weight_ST."""

    def __init__(self, task: Task) -> None:
        size, order = task.ngram.size, task.ngram.order
        taken = set(task.pinned.values())
        self.spare = np.array([v for v in task.letters if v not in taken], np.int32)
        self.n_slots = task.n_symbols + max(0, len(task.letters) - task.n_symbols)
        padded = [_padded(task.ngram, np.asarray(piece, np.int64)) for piece in task.pieces]
        padded = [piece for piece in padded if len(piece) >= order]
        n = sum(len(piece) - order + 1 for piece in padded)
        fixed_T, weight_ST = np.zeros(n, np.int64), np.zeros((self.n_slots, n), np.int64)
        start = 0
        for piece in padded:
            end = start + len(piece) - order + 1
            fixed_T[start:end] = codes(np.where(piece < 0, -1 - piece, 0), order, size)
            for i in range(order):
                shown = piece[i : i + end - start]
                (place,) = np.nonzero(shown >= 0)
                weight_ST[shown[place], start + place] += size ** (order - 1 - i)
            start = end
        self.fixed_T, self.weight_ST = fixed_T.astype(np.int32), weight_ST.astype(np.int32)

    def codes(self, key_SR: Ints) -> Ints:
        code_TR = self.fixed_T[:, None] + np.zeros(key_SR.shape[1], np.int32)
        for weight_T, key_R in zip(self.weight_ST, key_SR, strict=True):
            (place,) = np.nonzero(weight_T)
            if len(place):
                code_TR[place] += weight_T[place, None] * key_R
        return code_TR


def _padded(ngram: NGram, piece: Ids) -> Ids:
    if " " not in ngram.alphabet:
        return piece
    space = -1 - ngram.alphabet.index(" ")
    return np.concatenate([np.full(ngram.order - 1, space), piece, [space]])


def costs(task: Task, key_NS: Ints) -> Floats:
    """Cost in nats of each key (over symbols, or over all slots)."""
    places = Places(task)
    key_SN = np.zeros((places.n_slots, len(key_NS)), np.int32)
    key_SN[: key_NS.shape[1]] = key_NS.T
    language_N = np.take(task.ngram.cost_G, places.codes(key_SN)).sum(axis=0, dtype=np.int64)
    return (
        language_N
        + _prior_costs(task, places.n_slots)[np.arange(places.n_slots)[:, None], key_SN].sum(axis=0)
    ) / SCALE


def _prior_costs(task: Task, n_slots: int) -> NDArray[np.int32]:
    """The prior in the n-gram's units; letters that no symbol uses cost nothing."""
    cost_SV = np.zeros((n_slots, task.ngram.size), np.int32)
    if task.prior_SV is not None:
        cost_SV[: task.n_symbols] = np.round(np.minimum(task.prior_SV, 1e4) * SCALE)
    return cost_SV


def _prior(prior_SV: NDArray[np.int32], key_SR: Ints) -> NDArray[np.int64]:
    return prior_SV[np.arange(len(key_SR))[:, None], key_SR].sum(axis=0, dtype=np.int64)


def by_frequency(task: Task, n_keys: int, rng: np.random.Generator, noise: float = 3.0) -> Ints:
    """First keys: the commonest symbol stands for the commonest letter and so on, with the ranks shaken."""
    size = task.ngram.size
    count_S = sum(
        (np.bincount(p[p >= 0], minlength=task.n_symbols) for p in task.pieces), np.zeros(1, np.int64)
    )
    commonness_V = task.ngram.shares()
    ranked = sorted((int(v) for v in task.letters), key=lambda v: -commonness_V[v])
    free = [v for v in ranked if v not in set(task.pinned.values())]
    symbols = [int(s) for s in np.argsort(-count_S, kind="stable") if int(s) not in task.pinned]
    symbols += range(task.n_symbols, task.n_symbols + len(free) - len(symbols))
    shaken_SR = np.argsort(
        np.arange(len(free))[:, None] + noise * rng.standard_normal((len(free), n_keys)), axis=0
    )
    shaken_SR[:, 0] = np.arange(len(free))
    key_SR = np.zeros((task.n_symbols + max(0, len(task.letters) - task.n_symbols), n_keys), np.int32)
    key_SR[symbols] = np.array(free, np.int32)[shaken_SR]
    for symbol, letter in task.pinned.items():
        key_SR[symbol] = letter
    assert key_SR.max() < size
    return key_SR


def by_posterior(task: Task, logp_SV: Floats, n_keys: int, rng: np.random.Generator) -> Ints:
    """First keys drawn from log-probabilities of what each symbol stands for, one to one."""
    n_slots = task.n_symbols + max(0, len(task.letters) - task.n_symbols)
    letters = np.asarray(task.letters)
    score_SL = np.zeros((n_slots, len(letters)))
    score_SL[: task.n_symbols] = logp_SV[:, letters]
    for symbol, letter in task.pinned.items():
        score_SL[symbol] = np.where(letters == letter, 1e6, -1e6)
    key_SR = np.zeros((n_slots, n_keys), np.int32)
    for r in range(n_keys):
        shake = rng.gumbel(size=score_SL.shape) if r else 0.0
        row, column = linear_sum_assignment(score_SL + shake, maximize=True)
        key_SR[row, r] = letters[column]
    return key_SR


def anneal(task: Task, first_SR: Ints, effort: Effort, rng: np.random.Generator) -> tuple[Found, Ints]:
    """Search from the first keys; returns all that is worth keeping (the last population and the best of each
    line), and the last population as it is, to go on from."""
    places = Places(task)
    cost_G = task.ngram.cost_G
    key_SR = first_SR.copy()
    n_keys = key_SR.shape[1]
    movable = [s for s in range(places.n_slots) if s not in task.pinned]
    pairs = [(i, j) for i in movable if i < task.n_symbols for j in movable if j > i]
    code_TR = places.codes(key_SR)
    cost_TR = np.take(cost_G, code_TR)
    prior_SV = _prior_costs(task, places.n_slots)
    total_R = cost_TR.sum(axis=0, dtype=np.int64)
    total_R += _prior(prior_SV, key_SR)
    best_R, best_SR = total_R.copy(), key_SR.copy()
    if not pairs:
        return distinct(task, key_SR, total_R / SCALE), key_SR

    touched = []
    for i, j in pairs:
        weight_T = places.weight_ST[i] - places.weight_ST[j]
        (place_P,) = np.nonzero(weight_T)
        touched.append((place_P, weight_T[place_P, None]))
    rounds = -(-effort.swaps // len(pairs))
    order = np.concatenate([rng.permutation(len(pairs)) for _ in range(rounds)])[: effort.swaps]
    coldness = np.linspace(effort.coldness, 1.0, effort.swaps)
    at = effort.coldness
    n_refused = 0
    for step, pair in enumerate(order):
        if step % effort.redraw == 0 and step:
            chosen_R = _redrawn(total_R, (coldness[step] - at) / SCALE, rng)
            at = coldness[step]
            key_SR, code_TR, cost_TR = key_SR[:, chosen_R], code_TR[:, chosen_R], cost_TR[:, chosen_R]
            total_R = total_R[chosen_R]
        (i, j), (place_P, weight_P1) = pairs[pair], touched[pair]
        new_PR = weight_P1 * (key_SR[j] - key_SR[i])
        new_PR += code_TR.take(place_P, axis=0)
        new_cost_PR = cost_G.take(new_PR, mode="clip")  # clip skips a check; all codes are in range
        change_R = np.add.reduce(new_cost_PR, axis=0, dtype=np.int32)
        change_R -= np.add.reduce(cost_TR.take(place_P, axis=0), axis=0, dtype=np.int32)
        if task.prior_SV is not None:
            change_R += (
                prior_SV[i, key_SR[j]]
                + prior_SV[j, key_SR[i]]
                - prior_SV[i, key_SR[i]]
                - prior_SV[j, key_SR[j]]
            )
        taken_R = change_R * coldness[step] <= SCALE * rng.standard_exponential(n_keys, np.float32)
        (taken,) = taken_R.nonzero()
        if len(taken) == 0:
            n_refused += 1
            if n_refused == len(pairs):
                break  # no key takes any swap, and later ones would be colder
            continue
        n_refused = 0
        cells = (place_P[:, None], taken)
        code_TR[cells], cost_TR[cells] = new_PR[:, taken], new_cost_PR[:, taken]
        total_R[taken] += change_R[taken]
        key_SR[i, taken], key_SR[j, taken] = key_SR[j, taken], key_SR[i, taken]
        better = taken[total_R[taken] < best_R[taken]]
        best_R[better], best_SR[:, better] = total_R[better], key_SR[:, better]
    every_SR = np.concatenate([best_SR, key_SR], axis=1)
    return distinct(task, every_SR, np.concatenate([best_R, total_R]) / SCALE), key_SR


def _redrawn(total_R: NDArray[np.int64], colder: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of the keys that go on, each about as often as it has become likelier than the others."""
    weight_R = np.cumsum(np.exp(-colder * (total_R - total_R.min())))
    mark_R = (np.arange(len(total_R)) + rng.random()) / len(total_R) * weight_R[-1]
    return np.minimum(np.searchsorted(weight_R, mark_R), len(total_R) - 1)


def distinct(task: Task, key_SR: Ints, cost_R: Floats) -> Found:
    """The keys without repeats (letters that no symbol uses do not tell keys apart), best first."""
    key_RS = key_SR[: task.n_symbols].T
    # Compared as strings of bytes (which may not end in 0): many times quicker than row by row.
    spelled_R = np.ascontiguousarray(key_RS + 1, np.uint8).view(f"S{task.n_symbols}").ravel()
    _, first_N = np.unique(spelled_R, return_index=True)
    first_N = first_N[np.argsort(cost_R[first_N], kind="stable")]
    return Found(key_RS[first_N].astype(np.int32), cost_R[first_N])


def merged(task: Task, several: Sequence[Found]) -> Found:
    """All keys of several searches, without repeats."""
    key_NS = np.concatenate([found.key_NS for found in several])
    return distinct(task, key_NS.T, np.concatenate([found.cost_N for found in several]))


def neighbours(task: Task, key_S: Ints) -> Found:
    """All keys one swap away, a swap with a letter not in use among them; the key itself comes along."""
    free = [int(v) for v in task.letters if v not in set(key_S.tolist()) and v not in task.pinned.values()]
    movable = [s for s in range(task.n_symbols) if s not in task.pinned]
    keys = [key_S]
    for i in movable:
        for j in movable:
            if j > i:
                keys.append(key_S.copy())
                keys[-1][i], keys[-1][j] = key_S[j], key_S[i]
        for letter in free:
            keys.append(key_S.copy())
            keys[-1][i] = letter
    key_NS = np.stack(keys).astype(np.int32)
    return distinct(task, key_NS.T, costs(task, key_NS))
