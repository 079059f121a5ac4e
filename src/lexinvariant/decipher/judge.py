"""Candidate keys ranked again by a language model: those that the n-gram found, and those one swap away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import WORD_BREAK
from lexinvariant.decipher.judge_lm import JudgeLM
from lexinvariant.decipher.language import Language
from lexinvariant.decipher.search import Candidates, SearchProblem
from lexinvariant.interruption import stop_if_given_up

_OVERHEAD = (
    8  # characters that a candidate counts beside its own, lest a very short text has thousands of them
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def rank_by_judge(
    judge: JudgeLM, language: Language, problem: SearchProblem, candidates: Candidates
) -> Candidates:
    """Rank by a weighted sum of the judge's and the n-gram's costs: the best keys, and keys one swap from the best."""
    settings = language.judging
    row = problem.telling_row
    assert row is not None, "the judge was asked about a text that repeats itself"
    letters = np.array(list(language.letters + " "))

    def nats(key_NS: Ints) -> Floats:
        letter_NT = np.where(row == WORD_BREAK, len(language.letters), key_NS[:, np.maximum(row, 0)])
        return judge.nats(["".join(plain_T) for plain_T in letters[letter_NT]])

    most = max(settings.min_readings, settings.max_characters // (len(row) + _OVERHEAD))
    limit = candidates.cost_N[0] + settings.max_ngram_excess
    asked = candidates.key_NS[candidates.cost_N <= limit][: most // 2]
    known: dict[bytes, tuple[Ints, float]] = {}
    while len(asked):
        stop_if_given_up()
        cost_N = settings.weight * nats(asked) + (1 - settings.weight) * search.costs(problem, asked)
        known |= {key_S.tobytes(): (key_S, cost) for key_S, cost in zip(asked, cost_N, strict=True)}
        if len(known) >= most:
            break
        # What the n-gram likes best of all that is one swap away from the two best so far.
        leaders = sorted(known.values(), key=lambda pair: pair[1])[:2]
        near = search.merge_candidates(
            problem, [search.one_swap_away(problem, key_S) for key_S, _ in leaders]
        )
        worth = near.key_NS[near.cost_N <= limit]
        asked = np.array([key_S for key_S in worth if key_S.tobytes() not in known][: most // 4])
    ranked = sorted(known.values(), key=lambda pair: pair[1])
    return Candidates(np.stack([key_S for key_S, _ in ranked]), np.array([cost for _, cost in ranked]))
