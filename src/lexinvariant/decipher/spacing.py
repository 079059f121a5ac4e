"""Spaces put back into a plaintext that has none: the likeliest places under an n-gram that knows the space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.ngram import SCALE, NGram

LONGEST = 20_000
"""Letters; a longer text is left as it is."""
_NEVER = 1 << 40

Ids = NDArray[np.integer]


def put_spaces(letters: str, ngram: NGram) -> str:
    """The letters with spaces where the n-gram has them.

    Exact (Viterbi's algorithm): of the symbols that the n-gram looks back on only the spaces are unknown, so a state is
    a bit for each of the last few letters, whether a space stands before it. Two spaces never follow each other.
    """
    letter_T = [ngram.alphabet.index(c) for c in letters]
    nats_M = _first_states(ngram, begins=True)
    back: list[NDArray[np.integer]] = []
    for t in range(len(letter_T)):
        total_2M, before_2M = _step(ngram, nats_M, letter_T[max(0, t - ngram.order) : t + 1])
        chosen_M = np.argmin(total_2M, axis=0)
        nats_M = total_2M.min(axis=0)
        back.append(before_2M[chosen_M, np.arange(len(nats_M))])
    nats_M = nats_M + _ending(ngram, letter_T)
    state = int(np.argmin(nats_M))
    pieces = []
    for t in range(len(letters) - 1, -1, -1):
        pieces.append((" " if state & 1 and t else "") + letters[t])
        state = int(back[t][state])
    return "".join(reversed(pieces))


def spaced_nats(letter_RN: Ids, ngram: NGram, *, begins: bool, ends: bool) -> NDArray[np.float64]:
    """What rows of letters cost with spaces in the best places; the row `begins` with a word, or else its first letters
    are only looked back on, and `ends` with one, or else anywhere.
    """
    letter_NR1 = list(np.asarray(letter_RN, np.int64).T[:, :, None])
    nats_RM = np.tile(_first_states(ngram, begins), (len(letter_RN), 1))
    for t in range(0 if begins else ngram.order - 1, len(letter_NR1)):
        nats_RM = _step(ngram, nats_RM, letter_NR1[max(0, t - ngram.order) : t + 1])[0].min(axis=-2)
    if ends:
        nats_RM = nats_RM + _ending(ngram, letter_NR1)
    return np.asarray(nats_RM.min(axis=-1) / SCALE)


def _first_states(ngram: NGram, begins: bool) -> NDArray[np.int64]:
    """nats_M: of every state, before the first letter that counts."""
    nats_M = np.full(1 << (ngram.order - 1), _NEVER if begins else 0)
    nats_M[1] = 0  # a text begins after a space
    return nats_M


def _step(ngram: NGram, nats_M: Ids, letters: Sequence[Any]) -> tuple[Ids, Ids]:
    """(total_2M, before_2M): what it costs to come to each state with the last of these letters from either of the two
    that lead to it, and which these are. Letters are numbers, or columns of them if there are rows of states.
    """
    order, size, space = ngram.order, ngram.size, ngram.alphabet.index(" ")
    n_bits, keep = order - 1, size ** (order - 1)
    state_M = np.arange(1 << n_bits)
    # A newer letter moves the bits up; the oldest one falls out, so two states lead into each.
    before_2M = (state_M >> 1) | np.array([[0], [1 << (n_bits - 1)]])
    has_space_M = state_M & 1 == 1  # the lowest bit: before the newest letter
    context_M = _contexts(letters[:-1], n_bits, order, size, space)
    straight_M = _cost(ngram, context_M * size + letters[-1])
    parted_M = _cost(ngram, (context_M * size + space) % keep * size + letters[-1])
    parted_M += _cost(ngram, context_M * size + space)
    step_2M = np.where(has_space_M, parted_M[..., before_2M], straight_M[..., before_2M])
    return nats_M[..., before_2M] + step_2M, before_2M


def _ending(ngram: NGram, letters: Sequence[Any]) -> Ids:
    """What it costs in every state that a space comes after the letters."""
    order, size, space = ngram.order, ngram.size, ngram.alphabet.index(" ")
    return _cost(ngram, _contexts(letters, order - 1, order, size, space) * size + space)


def _cost(ngram: NGram, code_M: NDArray[np.int64]) -> NDArray[np.int64]:
    return ngram.cost_G[code_M].astype(np.int64)


def _contexts(letters: Sequence[Any], n_bits: int, order: int, size: int, space: int) -> NDArray[np.int64]:
    """What the n-gram looks back on in each state: the last order - 1 of the letters and the spaces among them."""
    recent = letters[-n_bits:]
    state_M = np.arange(1 << n_bits)
    context_M = np.full(len(state_M), sum(space * size**i for i in range(order - 1)))
    keep = size ** (order - 1)
    for age in range(len(recent) - 1, -1, -1):  # the oldest first
        letter = recent[len(recent) - 1 - age]
        parted_M = (context_M * size + space) % keep
        context_M = np.where(state_M >> age & 1 == 1, parted_M, context_M)
        context_M = (context_M * size + letter) % keep
    return context_M
