"""Letters in other places: columnar transpositions, rail fences and texts turned round, read under n-grams.

A columnar transposition writes a text in rows and reads its columns in the order of a key. Which column stands beside
which is told by what their pairs of letters cost; where the last row is not full, the columns that come first are one
letter longer, so where a column begins depends on the order too. The best orders by pairs are found by trying all of
few columns and by hill climbing with restarts for many, and are then climbed on under long n-grams.

N letters, C columns of the grid, B blocks of the ciphertext (its columns as they were read), R orders at once, M moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.alphabet import Puzzle
from lexinvariant.decipher.calibration import Calibration
from lexinvariant.decipher.language import Language
from lexinvariant.decipher.ngram import SCALE, NGram
from lexinvariant.decipher.spacing import spaced_nats
from lexinvariant.decipher.text_reading import TextReading
from lexinvariant.decipher.verdict import Kind

LEAST_LETTERS = 20
MAX_COLUMNS = 12
MAX_RAILS = 12
MAX_TRIED_ALL = 7
"""Columns of which every order is tried."""
RESTARTS = 24
REFINED_COLUMNS, REFINED_ORDERS = 3, 6
"""Numbers of columns that are tried under long n-grams, and orders of each."""
PAIR_ROWS, LONG_LETTERS = 40, 1500
"""Rows and letters from the beginning of a text that are looked at, for pairs and for long n-grams."""
END_LETTERS = 10
"""At either end of a text, in which it is seen how a text begins and ends there."""
IS_CUT = 0.05
"""How likely it is that a text does not end with a word."""
LEAST_LIKE_LETTERS = 0.1
"""Nats a letter that the letters, as they stand, must be likelier as the language's than as random ones."""

Ids = NDArray[np.integer]
Floats = NDArray[np.float64]
Cost = Callable[[Ids], Floats]
"""Of orders, one a row."""


@dataclass(frozen=True)
class _Places:
    """A way to put the letters back: the plaintext's letter n is the ciphertext's letter place_N[n]."""

    kind: Kind
    parameters: dict[str, int | str]
    place_N: Ids
    log_keys: float
    rivals_RN: Ids
    """Other ways of the same kind, of the letters that are looked at..."""
    excess_R: Floats
    """... and the nats that they cost more."""


def looks_transposed(puzzle: Puzzle) -> bool:
    """Whether the letters, as they stand, are about as common as in the language."""
    letter_S, n = puzzle.letter_S, int(puzzle.count_S.sum())
    if letter_S is None or n < LEAST_LETTERS:
        return False
    frequency_V = puzzle.language.letter_frequencies
    likeness_V = np.log(np.maximum(frequency_V, 1e-4) * len(frequency_V))
    return float(likeness_V[letter_S] @ puzzle.count_S) >= LEAST_LIKE_LETTERS * n


def letter_nats(puzzle: Puzzle) -> float:
    """About what a text costs: by its letters alone, which a transposition keeps."""
    assert puzzle.letter_S is not None
    nats_V = -np.log(np.maximum(puzzle.language.letter_frequencies, 1e-4))
    return float(nats_V[puzzle.letter_S] @ puzzle.count_S)


def read_transposition(puzzle: Puzzle) -> TextReading | None:
    """The text with its letters put back in the best way; None where they are not the language's."""
    if not looks_transposed(puzzle):
        return None
    language, letter_S = puzzle.language, puzzle.letter_S
    assert letter_S is not None
    (cell_N,) = np.nonzero(puzzle.symbol_T >= 0)
    found = [_best_way(puzzle, cell_N, letter_S[puzzle.symbol_T[cell_N]], spaced=False)]
    if puzzle.spaced:  # perhaps spaces and punctuation changed places with the letters
        space = language.ngram("spaced").alphabet.index(" ")
        every_N = np.where(puzzle.symbol_T >= 0, letter_S[puzzle.symbol_T], space)
        found.append(_best_way(puzzle, np.arange(len(every_N)), every_N, spaced=True))
    return min(found, key=lambda reading: reading.description)


def _best_way(puzzle: Puzzle, cell_N: Ids, letter_N: Ids, spaced: bool) -> TextReading:
    """The best way to put these cells back, which are letters or, where `spaced`, also spaces."""
    language = puzzle.language
    ngram = language.ngram("spaced" if spaced else "unspaced")
    pair_costs = language.ngram("spaced-short" if spaced else "unspaced-short").pair_costs()
    n, shown_N = len(letter_N), _shown(len(letter_N))
    text = _TextCost(letter_N, ngram, language)
    none = np.empty((0, len(shown_N)), np.int64), np.empty(0)
    ways = [] if spaced else [_Places("reversed", {}, np.arange(n)[::-1], log(2), *none)]
    for rails in range(2, min(MAX_RAILS, n // 3) + 1):
        place_N = np.argsort(rail_fence(n, rails), kind="stable")
        ways.append(_Places("rail-fence", {"rails": rails}, place_N, log(MAX_RAILS), *none))
    ways += _columnar(text, pair_costs)
    costs = [float(text.nats(way.place_N[None, shown_N])[0]) for way in ways]
    cost, way = min(zip(costs, ways, strict=True), key=lambda pair: pair[0] + pair[1].log_keys)
    plain_N = letter_N[way.place_N]
    return TextReading(
        puzzle=puzzle,
        kind=way.kind,
        parameters=way.parameters,
        ngram=ngram,
        plain_N=plain_N,
        plaintext=_plaintext(puzzle, way.kind, cell_N[way.place_N], spaced),
        shows_words=spaced or (way.kind == "reversed" and puzzle.spaced),
        cost=cost,
        n_letters=int(np.count_nonzero(plain_N[shown_N] < len(language.letters))),
        log_keys=way.log_keys,
        sure_N=_shares(letter_N, way, shown_N, language.calibrations.of("spaced" if spaced else "unspaced")),
    )


def _shares(letter_N: Ids, way: _Places, shown_N: Ids, calibration: Calibration) -> Floats:
    """For each letter: the weight of this way and of those that agree with it; beyond those looked at, the mean.

    A probability as it is: unlike a search among all keys, these are all the ways there are that come close.
    """
    weight_R = np.exp(-calibration.inverse_temperature * way.excess_R)
    agrees_RN = letter_N[way.rivals_RN] == letter_N[way.place_N[shown_N]]
    shown_share_N = (1 + weight_R @ agrees_RN) / (1 + weight_R.sum())
    share_N = np.full(len(way.place_N), shown_share_N.mean())
    share_N[shown_N] = shown_share_N
    return share_N


def _plaintext(puzzle: Puzzle, kind: Kind, cell_N: Ids, spaced: bool) -> str:
    """The cells in this order; small letters alone, where the spaces between them mean nothing."""
    if puzzle.kind == "letters" and (spaced or kind == "reversed"):
        return "".join(puzzle.cells[::-1] if kind == "reversed" else [puzzle.cells[cell] for cell in cell_N])
    assert puzzle.letter_S is not None
    letters = puzzle.language.letters + " "
    return "".join(letters[puzzle.letter_S[s] if s >= 0 else -1] for s in puzzle.symbol_T[cell_N])


def rail_fence(n: int, rails: int) -> Ids:
    """The letters of a text in the order in which a rail fence reads them."""
    step = 2 * (rails - 1)
    place_N = np.arange(n) % step
    return np.argsort(np.minimum(place_N, step - place_N), kind="stable")


@dataclass(frozen=True)
class _TextCost:
    """What letters cost in one order or another: the n-gram, and that a text begins with a word and ends with one.

    Without its ends nothing would tell a text from the same one whose first letter has become the last: after "The
    keeper ...", "he keeper ... t" begins as well as that does.
    """

    letter_N: Ids
    ngram: NGram
    language: Language

    def inner_nats(self, place_RN: Ids) -> Floats:
        """Without the ends."""
        return _ngram_nats(self.letter_N[place_RN], self.ngram)

    def nats(self, place_RN: Ids) -> Floats:
        plain_RN = self.letter_N[place_RN]
        if " " in self.ngram.alphabet:
            before, space = self.ngram.order - 1, self.ngram.alphabet.index(" ")
            padded_RN = np.pad(plain_RN, [(0, 0), (before, 1)], constant_values=space)
            return _ngram_nats(padded_RN, self.ngram)
        spaced = self.language.ngram("spaced")
        # What an end costs is seen in some letters more than those of which it is one: "s the keeper" begins oddly.
        head_RN, tail_RN = plain_RN[:, :END_LETTERS], plain_RN[:, -END_LETTERS:]
        begun_R = spaced_nats(head_RN, spaced, begins=True, ends=False)
        begun_R -= spaced_nats(head_RN, spaced, begins=False, ends=False)
        ended_R = spaced_nats(tail_RN, spaced, begins=False, ends=True)
        ended_R -= spaced_nats(tail_RN, spaced, begins=False, ends=False)
        # Whatever is odd about the end, the text may be cut there.
        ended_R = -np.logaddexp(-ended_R + log(1 - IS_CUT), log(IS_CUT))
        return _ngram_nats(plain_RN, self.ngram) + begun_R + ended_R

    def judged_nats(self, place_RN: Ids) -> Floats:
        """The same where the judge of the language has seen those that come close, which sees further."""
        nats_R, judge, judging = self.nats(place_RN), self.language.judge, self.language.judging
        (close_R,) = np.nonzero(nats_R <= nats_R.min() + judging.max_ngram_excess)
        if judge is None or len(close_R) < 2:
            return nats_R
        letters = np.array(list(self.ngram.alphabet))
        judged_R = judge.nats(["".join(plain_N) for plain_N in letters[self.letter_N[place_RN[close_R]]]])
        least, close_nats_R = nats_R.min(), nats_R[close_R]
        mixed_R = judging.weight * judged_R + (1 - judging.weight) * close_nats_R
        # Beside the others, which the judge has not seen, the best of these is what it was.
        nats_R[close_R] = mixed_R - mixed_R.min() + least
        return nats_R


def _ngram_nats(plain_RN: Ids, ngram: NGram) -> Floats:
    n = plain_RN.shape[1] - ngram.order + 1
    code_RN = np.zeros((len(plain_RN), n), np.int64)
    for i in range(ngram.order):
        code_RN = code_RN * ngram.size + plain_RN[:, i : n + i]
    return np.take(ngram.cost_G, code_RN).sum(axis=1, dtype=np.int64) / SCALE


@dataclass(frozen=True)
class _Grid:
    """A ciphertext of N letters as columns; an order block_RC says which block of it each column is."""

    n: int
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Rows that are full."""
        return self.n // self.n_columns

    @property
    def n_longer(self) -> int:
        """Columns that are one letter longer than the others: the first ones."""
        return self.n % self.n_columns

    def longer_before(self, block_RC: Ids) -> Ids:
        """How many longer columns were read before each column."""
        longer_RB = np.argsort(block_RC, axis=-1) < self.n_longer
        before_RB: Ids = np.cumsum(longer_RB, axis=-1) - longer_RB
        return np.take_along_axis(before_RB, block_RC, axis=-1)

    def places(self, block_RC: Ids, shown_N: Ids) -> Ids:
        """Where in the ciphertext these letters of the plaintext stand."""
        start_RC = block_RC * self.n_rows + self.longer_before(block_RC)
        row_N, column_N = np.divmod(shown_N, self.n_columns)
        return start_RC[..., column_N] + row_N

    def pair_cost(self, letter_N: Ids, pair_costs: Floats) -> Cost:
        """What neighbouring columns cost, by the blocks they are and how many longer ones were read before them."""
        n_rows, n_before = min(self.n_rows, PAIR_ROWS), self.n_longer + 1
        start_S = (np.arange(self.n_columns)[:, None] * self.n_rows + np.arange(n_before)).ravel()
        letter_SN = letter_N[start_S[:, None] + np.arange(n_rows)]
        beside_SS = np.zeros((len(start_S), len(start_S)))
        wrapped_SS = np.zeros_like(beside_SS)  # the last column, and the first one a row below
        for row in range(n_rows):
            beside_SS += pair_costs[letter_SN[:, row, None], letter_SN[:, row]]
            if row:
                wrapped_SS += pair_costs[letter_SN[:, row - 1, None], letter_SN[:, row]]

        def cost(block_RC: Ids) -> Floats:
            start_RC = block_RC * n_before + self.longer_before(block_RC)
            beside_R = beside_SS[start_RC[..., :-1], start_RC[..., 1:]].sum(axis=-1)
            return np.asarray(beside_R + wrapped_SS[start_RC[..., -1], start_RC[..., 0]])

        return cost


def _shown(n: int) -> Ids:
    """The letters that are looked at: all, or the beginning and the end of a long text."""
    return np.arange(n) if n <= LONG_LETTERS else np.r_[0 : 2 * LONG_LETTERS // 3, n - LONG_LETTERS // 3 : n]


def _columnar(text: _TextCost, pair_costs: Floats) -> list[_Places]:
    """The best orders of the likeliest numbers of columns."""
    letter_N, n = text.letter_N, len(text.letter_N)
    found = []
    for n_columns in range(2, min(MAX_COLUMNS, n // 4) + 1):
        grid = _Grid(n, n_columns)
        orders, cost_R = _best_orders(n_columns, grid.pair_cost(letter_N, pair_costs))
        n_pairs = min(grid.n_rows, PAIR_ROWS) * n_columns - 1
        found.append((cost_R[0] / n_pairs + lgamma(n_columns + 1) / n, grid, orders))
    found.sort(key=lambda item: item[0])
    out = []
    for _, grid, block_RC in found[:REFINED_COLUMNS]:

        def inner_cost(block_RC: Ids, grid: _Grid = grid) -> Floats:
            places_RN = grid.places(block_RC.reshape(-1, grid.n_columns), _shown(n))
            return text.inner_nats(places_RN).reshape(block_RC.shape[:-1])

        def cost(block_RC: Ids, grid: _Grid = grid) -> Floats:
            places_RN = grid.places(block_RC.reshape(-1, grid.n_columns), _shown(n))
            return text.nats(places_RN).reshape(block_RC.shape[:-1])

        # The ends take longest, and matter only among the best order and its like.
        found_RC, _ = climb(block_RC, inner_cost)
        best_RC = np.concatenate([climb(found_RC[:1], cost)[0], found_RC])
        near_RC = np.concatenate([best_RC, best_RC[0][_moves(grid.n_columns)]])
        near_RC = near_RC[np.sort(np.unique(near_RC, axis=0, return_index=True)[1])]
        shown_RN = grid.places(near_RC, _shown(n))
        cost_R = text.judged_nats(shown_RN)
        best = int(np.argmin(cost_R))
        key = " ".join(str(block + 1) for block in near_RC[best])
        out.append(
            _Places(
                "columnar",
                {"columns": grid.n_columns, "key": key},
                grid.places(near_RC[best], np.arange(n)),
                lgamma(grid.n_columns + 1) + log(MAX_COLUMNS),
                np.delete(shown_RN, best, axis=0),
                np.delete(cost_R, best) - cost_R[best],
            )
        )
    return out


def _best_orders(n_columns: int, cost: Cost) -> tuple[Ids, Floats]:
    """Good orders under pairs, the best first."""
    if n_columns <= MAX_TRIED_ALL:
        block_RC = np.array([*permutations(range(n_columns))])
        cost_R = cost(block_RC)
        order = np.argsort(cost_R, kind="stable")[:REFINED_ORDERS]
        return block_RC[order], cost_R[order]
    rng = np.random.default_rng(0)
    first_RC = np.stack([rng.permutation(n_columns) for _ in range(RESTARTS)])
    block_RC, cost_R = climb(first_RC, cost)
    return block_RC[:REFINED_ORDERS], cost_R[:REFINED_ORDERS]


@cache
def _moves(n: int) -> Ids:
    """All ways to swap two of n things, or two stretches of them that stand side by side."""
    moves = []
    for i, j in combinations(range(n), 2):
        swapped = [*range(n)]
        swapped[i], swapped[j] = j, i
        moves.append(swapped)
    for i, j, k in combinations(range(n + 1), 3):
        moves.append([*range(i), *range(j, k), *range(i, j), *range(k, n)])
    return np.unique(np.array(moves), axis=0)


def climb(block_RC: Ids, cost: Cost) -> tuple[Ids, Floats]:
    """Orders that no move betters, from each of these by best moves; without repeats, the best first."""
    move_MC = _moves(block_RC.shape[1])
    cost_R = cost(block_RC)
    while True:
        near_RMC = block_RC[:, move_MC]
        near_RM = cost(near_RMC)
        best_R = near_RM.argmin(axis=1)
        row_R = np.arange(len(block_RC))
        better_R = near_RM[row_R, best_R] < cost_R - 1e-9
        if not better_R.any():
            order = np.argsort(cost_R, kind="stable")
            return block_RC[order], cost_R[order]
        block_RC = np.where(better_R[:, None], near_RMC[row_R, best_R], block_RC)
        block_RC, first_R = np.unique(block_RC, axis=0, return_index=True)
        cost_R = np.minimum(cost_R, near_RM[row_R, best_R])[first_R]
