"""Keys for all characters ranked again by what their readings cost as letters.

An n-gram of a hundred characters has to be short, and one of letters is longer: once capitals are small letters and all
else parts words, it sees that "Xohn" is rather "John". Of the best few keys the judge then says which name is likelier.
N candidates, T positions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import search
from lexinvariant.decipher.judge_lm import JudgeLM
from lexinvariant.decipher.language import Language
from lexinvariant.decipher.ngram import SCALE, NGram, ngram_codes
from lexinvariant.decipher.search import Candidates, SearchProblem

MAX_EXCESS = 15.0
"""Nats that a key may cost more than the best one of those it is compared with, before letters are looked at."""
LEAST_JUDGED = 4
"""Keys whose readings the judge is given, however long the text is."""

Floats = NDArray[np.float64]
Ids = NDArray[np.integer]


def rank_by_letters(
    language: Language, problem: SearchProblem, candidates: Candidates, weight: float
) -> Candidates:
    """Climb by best swaps under the problem's costs and, with a weight, those of the letters; all keys that were
    compared are candidates.
    """
    ngram = language.ngram("spaced")
    letter_V = _letters_of_characters(language, problem)

    def compared(some: Candidates) -> Candidates:
        worth = some.cost_N <= some.cost_N[0] + MAX_EXCESS
        key_NS = some.key_NS[worth]
        nats_N = sum(letter_nats(ngram, letter_V[key_NS[:, piece]]) for piece in problem.pieces)
        return search.unique_candidates(problem, key_NS.T, some.cost_N[worth] + weight * nats_N)

    ranked, climbed = compared(candidates), False
    while not climbed:
        best_S = ranked.key_NS[0]
        near = compared(search.one_swap_away(problem, best_S))
        ranked = search.merge_candidates(problem, [ranked, near])
        climbed = np.array_equal(ranked.key_NS[0], best_S)
    return ranked


def rank_by_judged_letters(
    judge: JudgeLM, language: Language, problem: SearchProblem, candidates: Candidates, weight: float
) -> Candidates:
    """The best few keys cost less or more as the judge likes their letters better or worse than the best key's."""
    n_symbols = sum(map(len, problem.pieces))
    most = max(LEAST_JUDGED, language.judging.max_characters // max(1, n_symbols))
    asked = int(np.sum(candidates.cost_N[:most] <= candidates.cost_N[0] + MAX_EXCESS))
    letters_V = np.array(list(language.letters + " "))[_letters_of_characters(language, problem)]
    nats_N = np.zeros(asked)
    for piece in problem.pieces:
        for part in np.array_split(piece, -(-len(piece) // judge.max_characters)):
            nats_N += _judged_nats(judge, ["".join(t) for t in letters_V[candidates.key_NS[:asked, part]]])
    cost_N = candidates.cost_N.copy()
    cost_N[:asked] += weight * (nats_N - nats_N[0])
    return search.unique_candidates(problem, candidates.key_NS.T, cost_N)


def _judged_nats(judge: JudgeLM, texts: list[str]) -> Floats:
    """What the judge makes of texts, several spaces in a row counting as one. It takes those of one length at once."""
    words_N = [" ".join(text.split()) for text in texts]
    nats: dict[str, float] = {"": 0.0}
    for length in {len(words) for words in words_N} - {0}:
        alike = sorted({words for words in words_N if len(words) == length})
        nats |= dict(zip(alike, judge.nats(alike).tolist(), strict=True))
    return np.array([nats[words] for words in words_N])


def _letters_of_characters(language: Language, problem: SearchProblem) -> Ids:
    """Which letter (or the space, the last one) each character of the n-gram is to an n-gram of letters."""
    alphabet = language.letters + " "
    return np.array([alphabet.index(language.letter(c) or " ") for c in problem.ngram.alphabet])


def letter_nats(ngram: NGram, letter_NT: Ids) -> Floats:
    """What texts of letters and spaces cost, several spaces in a row counting as one."""
    n_before, space = ngram.order - 1, ngram.alphabet.index(" ")
    padded_NT = np.pad(letter_NT, [(0, 0), (n_before, 1)], constant_values=space)
    kept_NT = padded_NT != space
    kept_NT[:, n_before:] |= padded_NT[:, n_before - 1 : -1] != space
    kept_NT[:, :n_before] = True
    # All texts in one row: n-grams that begin in one and end in the next are left out of the sums.
    cost = ngram.cost_G[ngram_codes(padded_NT[kept_NT], ngram.order, ngram.size)]
    until = np.concatenate([[0], np.cumsum(cost, dtype=np.int64)])
    end_N = np.cumsum(kept_NT.sum(axis=1))
    start_N = np.concatenate([[0], end_N[:-1]])
    return (until[end_N - n_before] - until[start_N]) / SCALE
