"""Homophonic ciphers, in which common letters have several symbols: the best many-to-one keys under an n-gram.

A key costs minus the logarithm of the probability of the whole ciphertext: of the plaintext under the n-gram, of each
symbol's standing for its letter (the commoner, the likelier), and of the symbols chosen where a letter has several.
Without the last one, the best key would read everything in a few common letters; other solvers weigh in the entropy of
the plaintext's letters, which is what it amounts to where the homophones of a letter are used evenly.

The search is the population annealing of search.py with another move: all keys try another letter for the same symbol,
each its own, so that only the n-grams that hold the symbol are looked up.

T positions of n-grams, P those that hold one symbol, R keys, S symbols, V letters, H homophones of a letter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from lexinvariant.decipher import search
from lexinvariant.decipher.language import Effort, Stages
from lexinvariant.decipher.ngram import SCALE, NGram
from lexinvariant.decipher.search import Candidates, KeyToNGrams, SearchProblem

LETTERS_PER_SYMBOL = 12
"""How much of a long text is searched: less would leave rare symbols in doubt."""
EVENNESS = 2.0
"""How evenly the homophones of a letter are used: the parameter of a symmetric Dirichlet distribution."""
FIRST = Stages(Effort(256, 4000, 0.15), Effort(256, 4000, 0.3))
RETRY = Stages(Effort(1024, 8000, 0.15), Effort(512, 6000, 0.3))
_MIN_FREQUENCY = 1e-4
_N_PROPOSALS = 4096  # letters to draw from
_N_ORDERS = 64  # different orders of the symbols

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


class KeyCosts:
    """What many-to-one keys cost, in 1/SCALE nats."""

    def __init__(self, problem: SearchProblem, frequency_V: Floats) -> None:
        self.problem = problem
        self.to_ngrams = KeyToNGrams(problem)
        self.places = [np.nonzero(weight_T)[0] for weight_T in self.to_ngrams.weight_ST]
        self.count_S = np.bincount(np.concatenate(problem.pieces) + 1, minlength=problem.n_symbols + 1)[1:]
        share_V = np.maximum(frequency_V[problem.letters], _MIN_FREQUENCY)
        self.share_V = share_V / share_V.sum()
        self.letter_V = np.round(-SCALE * np.log(self.share_V)).astype(np.int32)
        # A letter whose H symbols occur N times in all: the sequence of symbols under a Dirichlet-multinomial, but for
        # what every key costs alike.
        n_H1, count_N = np.arange(problem.n_symbols + 1)[:, None], np.arange(self.count_S.sum() + 1)
        choice_HN = gammaln(EVENNESS * n_H1 + count_N) - gammaln(np.maximum(EVENNESS * n_H1, 1e-9))
        choice_HN[0] = 0
        self.choice_HN = np.round(SCALE * choice_HN).astype(np.int32)

    def totals(self, key_SR: Ints) -> NDArray[np.int64]:
        ngram_R = self.problem.ngram.cost_G[self.to_ngrams.codes(key_SR)].sum(axis=0, dtype=np.int64)
        return ngram_R + self.beside_ngram(key_SR)

    def beside_ngram(self, key_SR: Ints) -> NDArray[np.int64]:
        choice_R = self.choice_HN[self.usage(key_SR)].sum(axis=0, dtype=np.int64)
        return choice_R + self.letter_V[key_SR].sum(axis=0, dtype=np.int64)

    def usage(self, key_SR: Ints) -> tuple[Ints, Ints]:
        """(n_VR, count_VR): how many symbols each letter has, and how often these occur."""
        n_VR = np.zeros((len(self.letter_V), key_SR.shape[1]), np.int32)
        count_VR, every_R = np.zeros_like(n_VR), np.arange(key_SR.shape[1])
        for key_R, count in zip(key_SR, self.count_S, strict=True):
            n_VR[key_R, every_R] += 1
            count_VR[key_R, every_R] += count
        return n_VR, count_VR

    def move(self, symbol: int, old_R: Ints, new_R: Ints, n_VR: Ints, count_VR: Ints) -> Ints:
        """What another letter for one symbol costs more, the n-gram aside; where it is the same letter, nothing."""
        every_R, count = np.arange(len(new_R)), self.count_S[symbol]
        n_R, count_R = n_VR[old_R, every_R], count_VR[old_R, every_R]
        change_R = self.choice_HN[n_R - 1, count_R - count] - self.choice_HN[n_R, count_R]
        n_R, count_R = n_VR[new_R, every_R], count_VR[new_R, every_R]
        # Of a letter that stays the same the sum would be one symbol too long.
        n_more_R = np.minimum(n_R + 1, self.problem.n_symbols)
        count_more_R = np.minimum(count_R + count, self.choice_HN.shape[1] - 1)
        change_R += self.choice_HN[n_more_R, count_more_R] - self.choice_HN[n_R, count_R]
        change_R += self.letter_V[new_R] - self.letter_V[old_R]
        return np.where(new_R == old_R, 0, change_R)

    def one_change_away(self, key_S: Ints) -> Candidates:
        """The key, and all that have another letter for one symbol."""
        n_letters = len(self.letter_V)
        letter_V = np.arange(n_letters, dtype=np.int32)
        code_T = self.to_ngrams.codes(key_S[:, None])[:, 0]
        cost_G = self.problem.ngram.cost_G
        usage = [np.repeat(used_V1, n_letters, axis=1) for used_V1 in self.usage(key_S[:, None])]
        total = int(self.totals(key_S[:, None])[0])
        keys, costs = [key_S[None]], [np.array([total])]
        for s, place_P in enumerate(self.places):
            if s in self.problem.pinned:
                continue
            weight_P1 = self.to_ngrams.weight_ST[s, place_P, None]
            new_PV = code_T[place_P, None] + weight_P1 * (letter_V - key_S[s])
            change_V = cost_G[new_PV].sum(axis=0, dtype=np.int64) - cost_G[code_T[place_P]].sum(
                dtype=np.int64
            )
            change_V += self.move(s, np.full(n_letters, key_S[s]), letter_V, *usage)
            key_VS = np.repeat(key_S[None], n_letters, axis=0)
            key_VS[:, s] = letter_V
            keys.append(key_VS)
            costs.append(total + change_V)
        return search.unique_candidates(
            self.problem, np.concatenate(keys).T, np.concatenate(costs) / SCALE
        )


def find_keys(problem: SearchProblem, short: NGram, stages: Stages = FIRST) -> Candidates:
    """The best keys: from random ones with short n-grams, whose landscape is smooth, and from there with the problem's
    own, to one that no other letter for any symbol betters.
    """
    rng = np.random.default_rng(0)  # the same for every text, so that none depends on the others
    frequency_V = short.stationary_distribution()
    smooth = KeyCosts(replace(problem, ngram=short), frequency_V)
    shape = problem.n_symbols, stages.short.n_keys
    key_SR = rng.choice(len(smooth.share_V), shape, p=smooth.share_V).astype(np.int32)
    for symbol, letter in problem.pinned.items():
        key_SR[symbol] = letter
    _, key_SR = anneal(smooth, key_SR, stages.short, rng)
    costs = KeyCosts(problem, frequency_V)
    candidates, _ = anneal(costs, key_SR[:, : stages.long.n_keys], stages.long, rng)
    return hill_climb(costs, candidates)


def hill_climb(costs: KeyCosts, candidates: Candidates) -> Candidates:
    """From the best key, by best changes of one symbol, to one that none betters; its neighbours are candidates too."""
    while True:
        near = costs.one_change_away(candidates.key_NS[0])
        better = near.cost_N[0] < candidates.cost_N[0] - 1e-9
        candidates = search.merge_candidates(costs.problem, [candidates, near])
        if not better:
            return candidates


def anneal(
    costs: KeyCosts, first_SR: Ints, effort: Effort, rng: np.random.Generator
) -> tuple[Candidates, Ints]:
    """Anneal a population from the first keys; returns the candidates (the last population, and the best key seen in
    each of its slots), and the last population, to continue from.
    """
    problem, cost_G = costs.problem, costs.problem.ngram.cost_G
    key_SR, n_keys = first_SR.copy(), first_SR.shape[1]
    code_TR = costs.to_ngrams.codes(key_SR)
    cost_TR = cost_G[code_TR]
    n_VR, count_VR = costs.usage(key_SR)
    total_R = costs.totals(key_SR)
    best_R, best_SR = total_R.copy(), key_SR.copy()
    movable = [s for s in range(problem.n_symbols) if s not in problem.pinned]
    n_moves = effort.n_swaps if movable else 0
    order = np.resize(np.concatenate([rng.permutation(movable) for _ in range(_N_ORDERS)]), n_moves)
    inverse_temperature = np.linspace(effort.start_inverse_temperature, 1.0, n_moves)
    resampled_at = effort.start_inverse_temperature
    proposed_Q, log_share_V = _proposals(costs.share_V)
    for step, symbol in enumerate(order.tolist()):
        if step % effort.resample_every == 0 and step:
            chosen_R = search.resample(total_R, (inverse_temperature[step] - resampled_at) / SCALE, rng)
            resampled_at = inverse_temperature[step]
            key_SR, code_TR, cost_TR = key_SR[:, chosen_R], code_TR[:, chosen_R], cost_TR[:, chosen_R]
            n_VR, count_VR, total_R = n_VR[:, chosen_R], count_VR[:, chosen_R], total_R[chosen_R]
        old_R, new_R = key_SR[symbol], proposed_Q[rng.integers(0, len(proposed_Q), n_keys)]
        place_P = costs.places[symbol]
        new_PR = costs.to_ngrams.weight_ST[symbol, place_P, None] * (new_R - old_R)
        new_PR += code_TR.take(place_P, axis=0)
        new_cost_PR = cost_G.take(new_PR, mode="clip")  # clip skips a check; all codes are in range
        change_R = np.add.reduce(new_cost_PR, axis=0, dtype=np.int32)
        change_R -= np.add.reduce(cost_TR.take(place_P, axis=0), axis=0, dtype=np.int32)
        change_R += costs.move(symbol, old_R, new_R, n_VR, count_VR)
        # Metropolis and Hastings: a letter that is proposed often is taken less easily.
        bound_R = rng.standard_exponential(n_keys, np.float32) + log_share_V[old_R] - log_share_V[new_R]
        (taken,) = ((change_R * inverse_temperature[step] <= SCALE * bound_R) & (new_R != old_R)).nonzero()
        if len(taken) == 0:
            continue
        cells = (place_P[:, None], taken)
        code_TR[cells], cost_TR[cells] = new_PR[:, taken], new_cost_PR[:, taken]
        total_R[taken] += change_R[taken]
        for sign, letter_R in ((-1, old_R[taken]), (1, new_R[taken])):
            n_VR[letter_R, taken] += sign
            count_VR[letter_R, taken] += sign * costs.count_S[symbol]
        key_SR[symbol, taken] = new_R[taken]
        better = taken[total_R[taken] < best_R[taken]]
        best_R[better], best_SR[:, better] = total_R[better], key_SR[:, better]
    every_SR = np.concatenate([best_SR, key_SR], axis=1)
    return search.unique_candidates(problem, every_SR, np.concatenate([best_R, total_R]) / SCALE), key_SR


def _proposals(share_V: Floats) -> tuple[Ints, Floats]:
    """Letters to draw from, common ones more often (by the root of their frequency), and the logarithms of how often."""
    root_V = np.sqrt(share_V)
    n_V = np.ceil(_N_PROPOSALS * root_V / root_V.sum()).astype(np.int64)
    return np.repeat(np.arange(len(n_V), dtype=np.int32), n_V), np.log(n_V)
