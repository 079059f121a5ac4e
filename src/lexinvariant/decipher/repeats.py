"""Which symbols of a text say something new: a stretch that stood there before says nothing more of the key.

To an n-gram a phrase said ten times is ten phrases, so the best key would read that phrase as something common,
whatever the rest of the text becomes, and be ten times as sure of it. A copy costs next to nothing to describe, and so
it counts for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LEAST_REPEAT = 10
"""Symbols that are the same as before: fewer are often the same by chance, and count again."""
LEAST_SHARE = 1 / 3
"""Of a text: any text says a few things twice, and is read better with them."""

Ids = NDArray[np.integer]
Mask = NDArray[np.bool_]


def new_symbols(pieces: Sequence[Ids]) -> list[Mask]:
    """For each symbol of each piece, whether it is none of a stretch that stood in these pieces before.

    All symbols are new where such stretches are not much of the text.
    """
    start = np.cumsum([0, *map(len, pieces)])
    row = np.concatenate([np.asarray(piece, np.int64) for piece in pieces]) + 1  # a word break is -1
    is_new_T = np.ones(len(row), bool)
    n_windows = len(row) - LEAST_REPEAT + 1
    if n_windows > 1:
        window_W = np.zeros(n_windows, np.uint64)
        base = np.uint64(int(row.max(initial=0)) + 1)
        for i in range(LEAST_REPEAT):  # beyond 64 bits it is a hash
            window_W = window_W * base + row[i : i + n_windows].astype(np.uint64)
        inside_W = np.ones(n_windows, bool)
        for end in start[1:-1]:  # a stretch lies in one piece
            inside_W[max(0, end - LEAST_REPEAT + 1) : end] = False
        (place_W,) = np.nonzero(inside_W)
        _, first_U, number_W = np.unique(window_W[inside_W], return_index=True, return_inverse=True)
        for place in place_W[first_U[number_W] < np.arange(len(place_W))]:
            is_new_T[place : place + LEAST_REPEAT] = False
    if is_new_T.mean() > 1 - LEAST_SHARE:
        is_new_T[:] = True
    return [is_new_T[a:b] for a, b in pairwise(start)]
