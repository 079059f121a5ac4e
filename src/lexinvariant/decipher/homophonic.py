"""Homophonic ciphers, in which common letters have several symbols: the best many-to-one keys under an n-gram.

A key costs minus the logarithm of the probability of the whole ciphertext: of the plaintext under the n-gram, of each
symbol's standing for its letter (the commoner, the likelier), and of the symbols chosen where a letter has several.
Without the last one, the best key would read everything in a few common letters; other solvers weigh in the entropy of
the plaintext's letters, which is what it amounts to where the homophones of a letter are used evenly.

The search is the population annealing of search.py with another move: all keys try another letter for the same symbol,
each its own, so that only the n-grams that hold the symbol are looked up. Few keys that cool slowly do better than many
that cool fast.

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
from lexinvariant.interruption import stop_if_given_up

LETTERS_PER_SYMBOL = 12
"""How much of a long text is searched: less would leave rare symbols in doubt."""
LEAST_PER_SYMBOL = 4
"""A text of fewer letters for each symbol is not searched again: nobody could read it."""
EVENNESS = 2.0
"""How evenly the homophones of a letter are used: the parameter of a symmetric Dirichlet distribution."""
FIRST = Stages(Effort(96, 16000, 0.4), Effort(48, 4000, 0.4))
RETRY = Stages(Effort(96, 64000, 0.4), Effort(96, 8000, 0.3))
QUICK = Effort(48, 8000, 0.4)
"""To compare languages by..."""
QUICK_SYMBOLS = 400
"""... on so much of a text, or as much as it takes to see every symbol some times."""
_N_ORDERS = 64  # different orders of the symbols

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


class KeyCosts:
    """What many-to-one keys cost, in 1/SCALE nats."""

    def __init__(self, problem: SearchProblem, frequency_V: Floats) -> None:
        self.problem = problem
        self.to_ngrams = KeyToNGrams(problem)
        self.places = [np.nonzero(weight_T)[0] for weight_T in self.to_ngrams.weight_ST]
        count_S = np.bincount(problem.counted_T + 1, minlength=problem.n_symbols + 1)[1:]
        # Rare letters have a symbol as well, so that one symbol in that many is theirs.
        share_V = np.maximum(frequency_V[problem.letters], 0.5 / problem.n_symbols)
        self.share_V = share_V / share_V.sum()
        self.letter_V = np.round(-SCALE * np.log(self.share_V)).astype(np.int32)
        # How a letter is used is one number, usage = n_homophones * width + n_occurrences, and a symbol more or less
        # adds or takes its own. The choices of a letter's symbols cost the logarithm of a Dirichlet-multinomial
        # probability, of which a part is the same for all keys.
        width = int(count_S.sum()) + 1
        self.usage_S = (width + count_S).astype(np.int32)
        n_H1, count_N = np.arange(problem.n_symbols + 1)[:, None], np.arange(width)
        even_H1 = np.maximum(EVENNESS * n_H1, 1e-9)  # a letter without symbols does not occur
        choice_HN = gammaln(even_H1 + count_N) - gammaln(even_H1)
        self.choice_U = np.round(SCALE * choice_HN).astype(np.int32).ravel()
        self.same_for_all = -round(SCALE * float((gammaln(EVENNESS + count_S) - gammaln(EVENNESS)).sum()))

    def totals(self, key_SR: Ints) -> NDArray[np.int64]:
        """All costs: of the plaintext, of the choices among homophones, and of the letters that the symbols have."""
        letters_R = self.letter_V[key_SR].sum(axis=0, dtype=np.int64)
        return self.likelihoods(key_SR) + letters_R + self.same_for_all

    def likelihoods(self, key_SR: Ints) -> NDArray[np.int64]:
        ngram_R = self.problem.ngram.cost_G[self.to_ngrams.codes(key_SR)].sum(axis=0, dtype=np.int64)
        return ngram_R + self.choice_U[self.usage(key_SR)].sum(axis=0, dtype=np.int64)

    def usage(self, key_SR: Ints) -> Ints:
        """usage_VR: how each letter is used under each key."""
        usage_VR = np.zeros((len(self.letter_V), key_SR.shape[1]), np.int32)
        for key_R, usage in zip(key_SR, self.usage_S, strict=True):
            usage_VR[key_R, np.arange(len(key_R))] += usage
        return usage_VR

    def choice_change(self, symbol: int, old_R: Ints, new_R: Ints) -> Ints:
        """What the choices among homophones cost more, if a symbol goes from letters so used to others so used."""
        usage, choice_U = self.usage_S[symbol], self.choice_U
        change_R = choice_U.take(old_R - usage) - choice_U.take(old_R)
        # A letter cannot be used more than the whole text is, unless the old letter and the new one are the same.
        change_R += choice_U.take(new_R + usage, mode="clip") - choice_U.take(new_R)
        return change_R

    def one_change_away(self, key_S: Ints) -> Candidates:
        """The key, and all that have another letter for one symbol."""
        letter_V = np.arange(len(self.letter_V), dtype=np.int32)
        cost_G = self.problem.ngram.cost_G
        code_T = self.to_ngrams.codes(key_S[:, None])[:, 0]
        usage_V = self.usage(key_S[:, None])[:, 0]
        total = int(self.totals(key_S[:, None])[0])
        keys, costs = [key_S[None]], [np.array([total])]
        for s, place_P in enumerate(self.places):
            if s in self.problem.pinned:
                continue
            others = letter_V[letter_V != key_S[s]]
            old_P = code_T[place_P]
            new_PV = old_P[:, None] + self.to_ngrams.weight_ST[s, place_P, None] * (others - key_S[s])
            change_V = cost_G[new_PV].sum(axis=0, dtype=np.int64) - cost_G[old_P].sum(dtype=np.int64)
            change_V += self.choice_change(s, usage_V[key_S[s]], usage_V[others])
            change_V += self.letter_V[others] - self.letter_V[key_S[s]]
            key_VS = np.repeat(key_S[None], len(others), axis=0)
            key_VS[:, s] = others
            keys.append(key_VS)
            costs.append(total + change_V)
        return search.unique_candidates(self.problem, np.concatenate(keys).T, np.concatenate(costs) / SCALE)


def find_keys(problem: SearchProblem, short: NGram, stages: Stages) -> Candidates:
    """The best keys: from random ones with short n-grams, whose landscape is smooth, and from there with the problem's
    own, to one that no other letter for any symbol betters.
    """
    rng = np.random.default_rng(0)  # the same for every text, so that none depends on the others
    frequency_V = short.stationary_distribution()
    smooth = KeyCosts(replace(problem, ngram=short), frequency_V)
    _, key_SR = anneal(smooth, _random_keys(smooth, stages.short.n_keys, rng), stages.short, rng)
    costs = KeyCosts(problem, frequency_V)
    # Neighbours in a population that was resampled are often copies of one key, so some are drawn from all of it.
    drawn = rng.permutation(stages.short.n_keys)[: stages.long.n_keys]
    candidates, _ = anneal(costs, key_SR[:, drawn], stages.long, rng)
    return _hill_climb(costs, candidates)


def _random_keys(costs: KeyCosts, n_keys: int, rng: np.random.Generator) -> Ints:
    key_SR = rng.choice(len(costs.share_V), (costs.problem.n_symbols, n_keys), p=costs.share_V)
    for symbol, letter in costs.problem.pinned.items():
        key_SR[symbol] = letter
    return key_SR.astype(np.int32)


def quick_symbols(n_symbols: int) -> int:
    return max(QUICK_SYMBOLS, LEAST_PER_SYMBOL * n_symbols)


def quick_nats(problem: SearchProblem) -> float:
    """What a text costs at best, roughly, under a problem of short n-grams: to compare languages by."""
    return float(anneal_from_random(problem, QUICK, np.random.default_rng(0)).cost_N[0])


def anneal_from_random(problem: SearchProblem, effort: Effort, rng: np.random.Generator) -> Candidates:
    """One anneal of keys drawn at random."""
    costs = KeyCosts(problem, problem.ngram.stationary_distribution())
    return anneal(costs, _random_keys(costs, effort.n_keys, rng), effort, rng)[0]


def improve(problem: SearchProblem, short: NGram, key_NS: Ints) -> Candidates:
    """Keys that were found on less of the text, compared on more of it, and the best one made better."""
    costs = KeyCosts(problem, short.stationary_distribution())
    return _hill_climb(costs, search.unique_candidates(problem, key_NS.T, costs.totals(key_NS.T) / SCALE))


def log_keys(n_symbols: int, frequency_V: Floats) -> float:
    """The logarithm of how many keys there are to choose from, those that have common letters more often."""
    return float(-n_symbols * (frequency_V * np.log(np.maximum(frequency_V, 1e-9))).sum())


def _hill_climb(costs: KeyCosts, candidates: Candidates) -> Candidates:
    """From the best key, by best changes of one symbol, to one that none betters; its neighbours are candidates too."""
    found = [candidates]
    while True:
        best = found[-1]
        found.append(costs.one_change_away(best.key_NS[0]))
        if found[-1].cost_N[0] >= best.cost_N[0] - 1e-9:
            return search.merge_candidates(costs.problem, found)  # once: a long climb has very many


def anneal(
    costs: KeyCosts, first_SR: Ints, effort: Effort, rng: np.random.Generator
) -> tuple[Candidates, Ints]:
    """Anneal a population from the first keys; returns the candidates (the last population, and the best key seen in
    each of its slots), and the last population, to continue from.

    New letters are drawn as common as symbols of theirs are, so that only what depends on the text is left to decide.
    """
    problem, cost_G = costs.problem, costs.problem.ngram.cost_G
    key_SR, n_keys = first_SR.copy(), first_SR.shape[1]
    every_R = np.arange(n_keys)
    code_TR = costs.to_ngrams.codes(key_SR)
    cost_TR = cost_G[code_TR]
    usage_VR, total_R = costs.usage(key_SR), costs.likelihoods(key_SR)
    best_R, best_SR = total_R.copy(), key_SR.copy()
    moved = [
        (s, costs.places[s], costs.to_ngrams.weight_ST[s, costs.places[s], None])
        for s in range(problem.n_symbols)
        if s not in problem.pinned
    ]
    n_moves = effort.n_swaps if moved else 0
    order = np.concatenate([rng.permutation(len(moved)) for _ in range(_N_ORDERS)])
    inverse_temperature = np.linspace(effort.start_inverse_temperature, 1.0, n_moves)
    resampled_at = effort.start_inverse_temperature
    share_V = np.cumsum(costs.share_V)
    for step in range(n_moves):
        nth = step % effort.resample_every
        if nth == 0:
            stop_if_given_up()
            chosen_R = search.resample(total_R, (inverse_temperature[step] - resampled_at) / SCALE, rng)
            resampled_at = inverse_temperature[step]
            key_SR, code_TR, cost_TR = key_SR[:, chosen_R], code_TR[:, chosen_R], cost_TR[:, chosen_R]
            usage_VR, total_R = usage_VR[:, chosen_R], total_R[chosen_R]
            shape = effort.resample_every, n_keys
            drawn_ER = np.searchsorted(share_V[:-1], rng.random(shape), side="right").astype(np.int32)
            bound_ER = SCALE * rng.standard_exponential(shape, np.float32)
        symbol, place_P, weight_P1 = moved[order[step % len(order)]]
        old_R, new_R = key_SR[symbol], drawn_ER[nth]
        new_PR = weight_P1 * (new_R - old_R)
        new_PR += code_TR.take(place_P, axis=0)
        new_cost_PR = cost_G.take(new_PR, mode="clip")  # clip skips a check; all codes are in range
        change_R = np.add.reduce(new_cost_PR, axis=0, dtype=np.int32)
        change_R -= np.add.reduce(cost_TR.take(place_P, axis=0), axis=0, dtype=np.int32)
        change_R += costs.choice_change(symbol, usage_VR[old_R, every_R], usage_VR[new_R, every_R])
        taken_R = change_R * inverse_temperature[step] <= bound_ER[nth]
        taken_R &= new_R != old_R
        (taken,) = taken_R.nonzero()
        if len(taken) == 0:
            continue
        cells = (place_P[:, None], taken)
        code_TR[cells], cost_TR[cells] = new_PR[:, taken], new_cost_PR[:, taken]
        total_R[taken] += change_R[taken]
        usage_VR[old_R[taken], taken] -= costs.usage_S[symbol]
        usage_VR[new_R[taken], taken] += costs.usage_S[symbol]
        key_SR[symbol, taken] = new_R[taken]
        better = taken[total_R[taken] < best_R[taken]]
        if len(better):
            best_R[better], best_SR[:, better] = total_R[better], key_SR[:, better]
    every_SR = np.concatenate([best_SR, key_SR], axis=1)
    return search.unique_candidates(problem, every_SR, costs.totals(every_SR) / SCALE), key_SR
