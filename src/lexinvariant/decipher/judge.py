"""The reader as the judge of keys: which of those that the n-gram found, and of those near them, reads best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import calibrate, search
from lexinvariant.decipher.judge_lm import JudgeLM
from lexinvariant.decipher.ngram import SPACED
from lexinvariant.decipher.search import Found, Task

WORTH_ASKING = 9.0
"""Nats that a key may cost the n-gram more than the best one: beyond it the reader does not overrule the n-gram."""
JUDGED_TOKENS = 3500
"""Characters that the reader may be given for one text, most of which it has read in another reading already."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def judged(reader: JudgeLM, task: Task, found: Found) -> Found:
    """The reader's cost and the n-gram's of the keys that matter, and of what is one swap away from the best."""
    row = task.pieces[0]
    fixed = np.where(row < 0, -1 - row, 0)
    letters = np.array(list(SPACED))
    share = calibrate.READER_SHARE

    def nats(key_NS: Ints) -> Floats:
        plain_NT = letters[np.where(row < 0, fixed, key_NS[:, np.maximum(row, 0)])]
        return reader.nats(["".join(plain_T) for plain_T in plain_NT])

    most = max(16, JUDGED_TOKENS // (len(row) + 8))
    limit = found.cost_N[0] + WORTH_ASKING
    asked = found.key_NS[found.cost_N <= limit][: most // 2]
    known: dict[bytes, tuple[Ints, float]] = {}
    while len(asked):
        cost_N = share * nats(asked) + (1 - share) * search.costs(task, asked)
        known |= {key_S.tobytes(): (key_S, cost) for key_S, cost in zip(asked, cost_N, strict=True)}
        if len(known) >= most:
            break
        # What the n-gram likes best of all that is one swap away from the two best so far.
        leaders = sorted(known.values(), key=lambda pair: pair[1])[:2]
        near = search.merged(task, [search.neighbours(task, key_S) for key_S, _ in leaders])
        worth = near.key_NS[near.cost_N <= limit]
        asked = np.array([key_S for key_S in worth if key_S.tobytes() not in known][: most // 4])
    ranked = sorted(known.values(), key=lambda pair: pair[1])
    return Found(np.stack([key_S for key_S, _ in ranked]), np.array([cost for _, cost in ranked]))
