"""The best keys of a substitution cipher under an n-gram: population annealing.

Many keys at once are changed by Metropolis swaps, at a temperature that falls to the n-gram's own (1). Every few swaps
the population is resampled by the importance weights of the lower temperature. At the end it is a sample of the
n-gram's posterior over keys, from which confidence is computed; the best key met on the way is kept too.

All keys try the same swap of two cipher symbols at a time: only the n-grams that hold one of the two are looked up,
and they are the same ones for every key. NumPy does this faster than XLA on a CPU (its look-ups cost half), and
there is nothing to compile.

T positions of n-grams, P those changed by a swap, R keys, S slots: the cipher symbols, then the letters left over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from lexinvariant.decipher.alphabet import WORD_BREAK
from lexinvariant.decipher.language import Effort
from lexinvariant.decipher.ngram import SCALE, NGram, ngram_codes
from lexinvariant.decipher.repeats import new_symbols
from lexinvariant.interruption import stop_if_given_up

Ids = NDArray[np.integer]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SearchProblem:
    """Pieces of one ciphertext, and which letters its symbols may stand for."""

    ngram: NGram
    pieces: Sequence[Ids]
    """Numbers of cipher symbols, and WORD_BREAK where a word is known to end."""
    n_symbols: int
    letters: Ids
    """What the cipher symbols may stand for: at least as many as there are symbols."""
    pinned: Mapping[int, int]
    """Cipher symbols whose letter is known."""
    prior_SV: Floats | None = None
    """Nats that each symbol costs as each letter, from other evidence than the n-gram."""
    repeats_count: bool = False
    """Whether what stood there before counts again: code says the same all the time, in symbols that matter."""

    @property
    def n_slots(self) -> int:
        return max(self.n_symbols, len(self.letters))

    @cached_property
    def new(self) -> list[NDArray[np.bool_]]:
        """For each piece, which of its symbols count: those of stretches that stood there before say nothing new."""
        if self.repeats_count:
            return [np.ones(len(piece), bool) for piece in self.pieces]
        return new_symbols(self.pieces)

    @cached_property
    def counted_T(self) -> Ids:
        """All symbols that count, in a row."""
        return np.concatenate([piece[new] for piece, new in zip(self.pieces, self.new, strict=True)])

    @property
    def n_letters(self) -> int:
        """Symbols that count and are no word breaks."""
        return int(np.count_nonzero(self.counted_T >= 0))

    @property
    def telling_row(self) -> Ids | None:
        """A text in one piece without the repeats that it ends with; None where there are others, or more pieces."""
        (piece, *more), (new, *_) = self.pieces, self.new
        n = int(new.sum())
        return piece[:n] if not more and new[:n].all() else None


@dataclass(frozen=True)
class Candidates:
    """Different keys, best first: key_NS[n, s] is what symbol s stands for, and its cost in nats."""

    key_NS: Ints
    cost_N: Floats


class KeyToNGrams:
    """A text's n-grams as a linear function of the key: their numbers are fixed_T + key @ weight_ST."""

    def __init__(self, problem: SearchProblem) -> None:
        size, order = problem.ngram.size, problem.ngram.order
        padded = [problem.ngram.padded(np.asarray(p, np.int64), WORD_BREAK) for p in problem.pieces]
        counts = [problem.ngram.counted(new)[order - 1 :] for new in problem.new]
        long = [len(piece) >= order for piece in padded]
        padded, counts = [*compress(padded, long)], [*compress(counts, long)]
        n = sum(len(piece) - order + 1 for piece in padded)
        fixed_T, weight_ST = np.zeros(n, np.int64), np.zeros((problem.n_slots, n), np.int64)
        space = max(0, problem.ngram.alphabet.find(" "))
        start = 0
        for piece in padded:
            end = start + len(piece) - order + 1
            fixed_T[start:end] = ngram_codes(np.where(piece == WORD_BREAK, space, 0), order, size)
            for i in range(order):
                shown = piece[i : i + end - start]
                (place,) = np.nonzero(shown >= 0)
                weight_ST[shown[place], start + place] += size ** (order - 1 - i)
            start = end
        # What a symbol costs counts where the symbol does, whatever stands before it.
        counts_T = np.concatenate([*counts, np.zeros(0, bool)])
        self.fixed_T = fixed_T[counts_T].astype(np.int32)
        self.weight_ST = weight_ST[:, counts_T].astype(np.int32)

    def codes(self, key_SR: Ints) -> Ints:
        code_TR = self.fixed_T[:, None] + np.zeros(key_SR.shape[1], np.int32)
        for weight_T, key_R in zip(self.weight_ST, key_SR, strict=True):
            (place,) = np.nonzero(weight_T)
            if len(place):
                code_TR[place] += weight_T[place, None] * key_R
        return code_TR


def costs(problem: SearchProblem, key_NS: Ints) -> Floats:
    """Cost in nats of each key (over symbols, or over all slots)."""
    key_SN = np.zeros((problem.n_slots, len(key_NS)), np.int32)
    key_SN[: key_NS.shape[1]] = key_NS.T
    ngram_N = np.take(problem.ngram.cost_G, KeyToNGrams(problem).codes(key_SN)).sum(axis=0, dtype=np.int64)
    return (ngram_N + _prior(_prior_costs(problem), key_SN)) / SCALE


def _prior_costs(problem: SearchProblem) -> NDArray[np.int32]:
    """The prior in the n-gram's units; letters that no symbol uses cost nothing."""
    cost_SV = np.zeros((problem.n_slots, problem.ngram.size), np.int32)
    if problem.prior_SV is not None:
        cost_SV[: problem.n_symbols] = np.round(np.minimum(problem.prior_SV, 1e4) * SCALE)
    return cost_SV


def _prior(prior_SV: NDArray[np.int32], key_SR: Ints) -> NDArray[np.int64]:
    return prior_SV[np.arange(len(key_SR))[:, None], key_SR].sum(axis=0, dtype=np.int64)


def keys_by_frequency(
    problem: SearchProblem, n_keys: int, rank_noise: float, rng: np.random.Generator
) -> Ints:
    """First keys: the commonest symbol stands for the commonest letter and so on, with noise on the ranks."""
    count_S = sum(
        (np.bincount(p[p >= 0], minlength=problem.n_symbols) for p in problem.pieces), np.zeros(1, np.int64)
    )
    frequency_V = problem.ngram.stationary_distribution()
    ranked = sorted((int(v) for v in problem.letters), key=lambda v: -frequency_V[v])
    free = [v for v in ranked if v not in set(problem.pinned.values())]
    symbols = [int(s) for s in np.argsort(-count_S, kind="stable") if int(s) not in problem.pinned]
    symbols += range(problem.n_symbols, problem.n_symbols + len(free) - len(symbols))
    rank_SR = np.arange(len(free))[:, None] + rank_noise * rng.standard_normal((len(free), n_keys))
    order_SR = np.argsort(rank_SR, axis=0)
    order_SR[:, 0] = np.arange(len(free))
    key_SR = np.zeros((problem.n_slots, n_keys), np.int32)
    key_SR[symbols] = np.array(free, np.int32)[order_SR]
    for symbol, letter in problem.pinned.items():
        key_SR[symbol] = letter
    return key_SR


def keys_by_posterior(problem: SearchProblem, logp_SV: Floats, n_keys: int, rng: np.random.Generator) -> Ints:
    """First keys drawn from log-probabilities of what each symbol stands for, one to one."""
    letters = np.asarray(problem.letters)
    score_SL = np.zeros((problem.n_slots, len(letters)))
    score_SL[: problem.n_symbols] = logp_SV[:, letters]
    for symbol, letter in problem.pinned.items():
        score_SL[symbol] = np.where(letters == letter, 1e6, -1e6)
    key_SR = np.zeros((problem.n_slots, n_keys), np.int32)
    for r in range(n_keys):
        stop_if_given_up()
        noise = rng.gumbel(size=score_SL.shape) if r else 0.0
        row, column = linear_sum_assignment(score_SL + noise, maximize=True)
        key_SR[row, r] = letters[column]
    return key_SR


def anneal(
    problem: SearchProblem, first_SR: Ints, effort: Effort, rng: np.random.Generator
) -> tuple[Candidates, Ints]:
    """Search from the first keys; returns the candidates (the last population, and the best key seen in each of its
    slots), and the last population, to continue from.
    """
    to_ngrams = KeyToNGrams(problem)
    cost_G = problem.ngram.cost_G
    key_SR = first_SR.copy()
    n_keys = key_SR.shape[1]
    movable = [s for s in range(problem.n_slots) if s not in problem.pinned]
    pairs = [(i, j) for i in movable if i < problem.n_symbols for j in movable if j > i]
    code_TR = to_ngrams.codes(key_SR)
    cost_TR = np.take(cost_G, code_TR)
    prior_SV = _prior_costs(problem)
    total_R = cost_TR.sum(axis=0, dtype=np.int64)
    total_R += _prior(prior_SV, key_SR)
    best_R, best_SR = total_R.copy(), key_SR.copy()
    if not pairs:
        return unique_candidates(problem, key_SR, total_R / SCALE), key_SR

    changed = []
    for i, j in pairs:
        weight_T = to_ngrams.weight_ST[i] - to_ngrams.weight_ST[j]
        (place_P,) = np.nonzero(weight_T)
        changed.append((place_P, weight_T[place_P, None]))
    n_swaps = effort.n_swaps
    if effort.swaps_per_symbol is not None:
        n_swaps = min(n_swaps, effort.swaps_per_symbol * problem.n_symbols)
    rounds = -(-n_swaps // len(pairs))
    order = np.concatenate([rng.permutation(len(pairs)) for _ in range(rounds)])[:n_swaps]
    inverse_temperature = np.linspace(effort.start_inverse_temperature, 1.0, n_swaps)
    resampled_at = effort.start_inverse_temperature
    n_refused = 0
    for step, pair in enumerate(order):
        if step % effort.resample_every == 0 and step:
            stop_if_given_up()
            chosen_R = resample(total_R, (inverse_temperature[step] - resampled_at) / SCALE, rng)
            resampled_at = inverse_temperature[step]
            key_SR, code_TR, cost_TR = key_SR[:, chosen_R], code_TR[:, chosen_R], cost_TR[:, chosen_R]
            total_R = total_R[chosen_R]
        (i, j), (place_P, weight_P1) = pairs[pair], changed[pair]
        new_PR = weight_P1 * (key_SR[j] - key_SR[i])
        new_PR += code_TR.take(place_P, axis=0)
        new_cost_PR = cost_G.take(new_PR, mode="clip")  # clip skips a check; all codes are in range
        change_R = np.add.reduce(new_cost_PR, axis=0, dtype=np.int32)
        change_R -= np.add.reduce(cost_TR.take(place_P, axis=0), axis=0, dtype=np.int32)
        if problem.prior_SV is not None:
            change_R += (
                prior_SV[i, key_SR[j]]
                + prior_SV[j, key_SR[i]]
                - prior_SV[i, key_SR[i]]
                - prior_SV[j, key_SR[j]]
            )
        taken_R = change_R * inverse_temperature[step] <= SCALE * rng.standard_exponential(n_keys, np.float32)
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
    return unique_candidates(problem, every_SR, np.concatenate([best_R, total_R]) / SCALE), key_SR


def resample(total_R: NDArray[np.int64], colder: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Systematic resampling: indices of keys, in proportion to exp(-colder * cost)."""
    weight_R = np.cumsum(np.exp(-colder * (total_R - total_R.min())))
    mark_R = (np.arange(len(total_R)) + rng.random()) / len(total_R) * weight_R[-1]
    return np.minimum(np.searchsorted(weight_R, mark_R), len(total_R) - 1)


def unique_candidates(problem: SearchProblem, key_SR: Ints, cost_R: Floats) -> Candidates:
    """The keys without repeats (letters that no symbol uses do not tell keys apart), best first."""
    key_RS = key_SR[: problem.n_symbols].T
    # Compared as strings of bytes (which may not end in 0): many times quicker than row by row.
    spelled_R = np.ascontiguousarray(key_RS + 1, np.uint8).view(f"S{problem.n_symbols}").ravel()
    _, first_N = np.unique(spelled_R, return_index=True)
    first_N = first_N[np.argsort(cost_R[first_N], kind="stable")]
    return Candidates(key_RS[first_N].astype(np.int32), cost_R[first_N])


def merge_candidates(problem: SearchProblem, several: Sequence[Candidates]) -> Candidates:
    """All keys of several searches, without repeats."""
    key_NS = np.concatenate([candidates.key_NS for candidates in several])
    return unique_candidates(problem, key_NS.T, np.concatenate([candidates.cost_N for candidates in several]))


def one_swap_away(problem: SearchProblem, key_S: Ints) -> Candidates:
    """All keys one swap away, a swap with a letter not in use among them; the key itself comes along."""
    stop_if_given_up()
    used = {*key_S.tolist(), *problem.pinned.values()}
    free = [int(v) for v in problem.letters if int(v) not in used]
    movable = [s for s in range(problem.n_symbols) if s not in problem.pinned]
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
    return unique_candidates(problem, key_NS.T, costs(problem, key_NS))
