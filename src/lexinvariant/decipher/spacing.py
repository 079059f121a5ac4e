"""Spaces put back into a plaintext that has none: the likeliest places under an n-gram that knows the space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.ngram import NGram

LONGEST = 20_000
"""Letters; a longer text is left as it is."""
_NEVER = 1 << 40


def put_spaces(letters: str, ngram: NGram) -> str:
    """The letters with spaces where the n-gram has them.

    Exact (Viterbi's algorithm): of the symbols that the n-gram looks back on only the spaces are unknown, so a state is
    a bit for each of the last few letters, whether a space stands before it. Two spaces never follow each other.
    """
    order, size, space = ngram.order, ngram.size, ngram.alphabet.index(" ")
    letter_T = [ngram.alphabet.index(c) for c in letters]
    n_bits, keep = order - 1, size ** (order - 1)
    state_M = np.arange(1 << n_bits)
    # A newer letter moves the bits up; the oldest one falls out, so two states lead into each.
    before_2M = (state_M >> 1) | np.array([[0], [1 << (n_bits - 1)]])
    has_space_M = state_M & 1 == 1  # the lowest bit: before the newest letter
    nats_M = np.full(len(state_M), _NEVER)
    nats_M[1] = 0  # a text begins after a space
    back: list[NDArray[np.integer]] = []
    for t, letter in enumerate(letter_T):
        context_M = _contexts(letter_T[max(0, t - n_bits) : t], n_bits, order, size, space)
        straight_M = _cost(ngram, context_M * size + letter)
        parted_M = _cost(ngram, (context_M * size + space) % keep * size + letter)
        parted_M += _cost(ngram, context_M * size + space)
        step_2M = np.where(has_space_M, parted_M[before_2M], straight_M[before_2M])
        total_2M = nats_M[before_2M] + step_2M
        chosen_M = np.argmin(total_2M, axis=0)
        nats_M = total_2M[chosen_M, state_M]
        back.append(before_2M[chosen_M, state_M])
    nats_M = nats_M + _cost(ngram, _contexts(letter_T[-n_bits:], n_bits, order, size, space) * size + space)
    state = int(np.argmin(nats_M))
    pieces = []
    for t in range(len(letters) - 1, -1, -1):
        pieces.append((" " if state & 1 and t else "") + letters[t])
        state = int(back[t][state])
    return "".join(reversed(pieces))


def _cost(ngram: NGram, code_M: NDArray[np.int64]) -> NDArray[np.int64]:
    return ngram.cost_G[code_M].astype(np.int64)


def _contexts(recent: list[int], n_bits: int, order: int, size: int, space: int) -> NDArray[np.int64]:
    """What the n-gram looks back on in each state: the last order - 1 of the letters and the spaces among them."""
    state_M = np.arange(1 << n_bits)
    context_M = np.full(len(state_M), sum(space * size**i for i in range(order - 1)))
    keep = size ** (order - 1)
    for age in range(len(recent) - 1, -1, -1):  # the oldest first
        letter = recent[len(recent) - 1 - age]
        parted_M = (context_M * size + space) % keep
        context_M = np.where(state_M >> age & 1 == 1, parted_M, context_M)
        context_M = (context_M * size + letter) % keep
    return context_M
