"""Several alphabets in turn: Vigenere, Beaufort, Gronsfeld and Porta ciphers, read under a language's n-grams.

A key is a ring of numbers, one for each column of the text written in rows as long as the period. Under pairs of
letters only neighbouring columns matter to each other, so the best key of a tableau and a period is found exactly
(Viterbi's algorithm, round the ring). The few tableaus and periods that describe the text shortest are refined under
long n-grams: from the best key and from some with noise, one column after the other takes its best number.

Z signs of a text (letters and spaces), N pairs of neighbouring letters, P columns (the period), K numbers of a key, V
letters, R keys at once, W windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.alphabet import WORD_BREAK, Puzzle
from lexinvariant.decipher.classical import Tableau, undo_polyalphabetic
from lexinvariant.decipher.features import MAX_PERIOD
from lexinvariant.decipher.language import Evidence, Language
from lexinvariant.decipher.ngram import SCALE, NGram, ngram_codes
from lexinvariant.decipher.text_reading import TextReading
from lexinvariant.decipher.verdict import Kind

LEAST_LETTERS = 20
LOOKS_LETTERS = 60
"""Letters from which on an index of coincidence tells something."""
LETTERS_PER_KEY = 3
"""A column of fewer letters could be anything."""
PAIRS_LETTERS, LONG_LETTERS = 1000, 3000
"""Letters from the beginning of a text that are looked at, for pairs and for long n-grams."""
REFINED = 6
"""Tableaus and periods that are tried under long n-grams."""
STARTS = 8
NOISE = 2.0
"""Nats of noise on the costs of pairs, for the first keys beside the best."""
MAX_SWEEPS = 12
DIGITS = 10
LIKE_A_WORD = 3.0
"""Nats a letter below which a key is taken for a word."""
LIKELIER = 3.0
"""Nats that a variant Beaufort cipher's word must cost less than the Vigenere cipher's key that does the same."""

Ids = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KeyAlphabets:
    """The alphabets of one cipher: plain_KV[k, v] is what cipher letter v stands for under the key's number k."""

    kind: Kind
    plain_KV: Ids

    @property
    def n_keys(self) -> int:
        return len(self.plain_KV)


def key_alphabets(letters: str) -> list[KeyAlphabets]:
    """Of every cipher that these letters allow; Porta's halves need an even number of them."""
    size = len(letters)
    tableaus: list[tuple[Kind, Tableau, range]] = [
        ("vigenere", "vigenere", range(size)),
        ("gronsfeld", "vigenere", range(min(DIGITS, size))),
        ("beaufort", "beaufort", range(size)),
    ]
    if size % 2 == 0:
        tableaus.append(("porta", "porta", range(0, size, 2)))
    out = []
    for kind, tableau, numbers in tableaus:
        rows = [undo_polyalphabetic(letters, [k], tableau, letters) for k in numbers]
        out.append(KeyAlphabets(kind, np.array([[letters.index(c) for c in row] for row in rows])))
    return out


@dataclass(frozen=True)
class _Row:
    """Letters in a row, with spaces where words are known to end, and how far the key has come at each letter."""

    ngram: NGram
    symbol_Z: Ids
    """Letters as they stand and spaces, with those before and after the text that the n-gram wants."""
    step_Z: Ids
    """At a letter: how many numbers of the key were used before; WORD_BREAK at a space."""

    def cut(self, n: int) -> _Row:
        return _Row(self.ngram, self.symbol_Z[:n], self.step_Z[:n])

    @property
    def is_letter_Z(self) -> NDArray[np.bool_]:
        return self.step_Z >= 0


def _row(puzzle: Puzzle, letter_S: Ids, blanks_count: bool) -> _Row:
    ngram = puzzle.language.ngram("spaced" if puzzle.spaced else "unspaced")
    words = puzzle.words
    step_T = np.full(len(words), WORD_BREAK, np.int64)
    (cell_N,) = np.nonzero(puzzle.symbol_T >= 0)
    step_T[words >= 0] = cell_N if blanks_count else np.arange(len(cell_N))
    space = ngram.alphabet.find(" ")
    letter_T = np.where(words >= 0, letter_S[words], space)
    return _Row(ngram, ngram.padded(letter_T, space), ngram.padded(step_T, WORD_BREAK))


@dataclass(frozen=True)
class _Ring:
    """What the keys of one cipher and period cost under pairs of letters."""

    alphabets: KeyAlphabets
    period: int
    row: _Row
    blanks_count: bool
    pair_PKK: Floats
    """Column p under one number and the next column under another."""

    def best(self, noise_PKK: Floats | float = 0.0) -> tuple[Ids, float]:
        """The cheapest key, and its cost."""
        pair_PKK = self.pair_PKK + noise_PKK
        # cost_FK: from the first column under number f to this one under number k.
        cost_FK, back = pair_PKK[0], []
        for pair_KK in pair_PKK[1:]:
            step_FKK = cost_FK[:, :, None] + pair_KK
            back.append(step_FKK.argmin(axis=1))
            cost_FK = np.take_along_axis(step_FKK, back[-1][:, None], axis=1)[:, 0]
        first = int(np.diagonal(cost_FK).argmin())
        key = [first]
        for before_FK in reversed(back):
            key.append(int(before_FK[first, key[-1]]))
        return np.array(key[:1] + key[:0:-1]), float(cost_FK[first, first])

    @cached_property
    def best_key(self) -> tuple[Ids, float]:
        return self.best()

    @property
    def log_keys(self) -> float:
        """The logarithm of how many keys there are, of all ciphers and periods as likely as this."""
        return self.period * log(self.alphabets.n_keys) + log(4 * MAX_PERIOD)

    @property
    def description(self) -> float:
        return self.best_key[1] + self.log_keys


def _rings(
    alphabets: KeyAlphabets, row: _Row, blanks_count: bool, pair_costs: Floats, periods: Sequence[int]
) -> list[_Ring]:
    """All periods of one cipher: what each number of the key costs beside the next one."""
    plain_VK = alphabets.plain_KV.T
    letter_Z, space = row.is_letter_Z, row.ngram.alphabet.find(" ")
    (at_N,) = np.nonzero(letter_Z[:-1] & letter_Z[1:])
    first_NK, second_NK = plain_VK[row.symbol_Z[at_N]], plain_VK[row.symbol_Z[at_N + 1]]
    pair_NKK = pair_costs[first_NK[:, :, None], second_NK[:, None, :]].astype(np.float32)
    (begin_B,) = np.nonzero(~letter_Z[:-1] & letter_Z[1:])  # a letter follows
    (end_E,) = np.nonzero(letter_Z[:-1] & ~letter_Z[1:])
    begin_BK = pair_costs[space, plain_VK[row.symbol_Z[begin_B + 1]]]
    end_EK = pair_costs[plain_VK[row.symbol_Z[end_E]], space]
    n_keys = alphabets.n_keys
    out = []
    for period in periods:
        column_Z = row.step_Z % period
        is_PN = (column_Z[at_N] == np.arange(period)[:, None]).astype(np.float32)
        pair_PKK = (is_PN @ pair_NKK.reshape(len(at_N), -1)).astype(np.float64)
        single_PK = np.zeros((period, n_keys))
        np.add.at(single_PK, column_Z[begin_B + 1], begin_BK)
        np.add.at(single_PK, column_Z[end_E], end_EK)
        pair_PKK = pair_PKK.reshape(period, n_keys, n_keys) + single_PK[:, :, None]
        out.append(_Ring(alphabets, period, row, blanks_count, pair_PKK))
    return out


class _Columns:
    """A text's n-grams by the columns that they touch, for one cipher and period."""

    def __init__(self, ring: _Ring, row: _Row) -> None:
        self.cost_G = row.ngram.cost_G
        self.n_letters = int(np.count_nonzero(row.is_letter_Z))
        order, size = row.ngram.order, row.ngram.size
        column_Z = np.where(row.is_letter_Z, row.step_Z % ring.period, WORD_BREAK)
        self.fixed_W = ngram_codes(np.where(row.is_letter_Z, 0, row.symbol_Z), order, size)
        n = len(self.fixed_W)
        self.part: list[tuple[Ids, Ids]] = []
        """Of each column: the windows that hold it, and what it adds to their n-grams under each number."""
        plain_KZ = ring.alphabets.plain_KV[:, np.where(row.is_letter_Z, row.symbol_Z, 0)]
        for column in range(ring.period):
            is_Z = column_Z == column
            (window_M,) = np.nonzero(np.any([is_Z[i : n + i] for i in range(order)], axis=0))
            add_KM = np.zeros((len(plain_KZ), len(window_M)), np.int64)
            for i in range(order):
                add_KM += size ** (order - 1 - i) * np.where(is_Z[window_M + i], plain_KZ[:, window_M + i], 0)
            self.part.append((window_M, add_KM))

    def codes(self, key_RP: Ids) -> Ids:
        code_RW = np.repeat(self.fixed_W[None], len(key_RP), axis=0)
        for (window_M, add_KM), key_R in zip(self.part, key_RP.T, strict=True):
            code_RW[:, window_M] += add_KM[key_R]
        return code_RW

    def others(self, code_RW: Ids, key_R: Ids, column: int) -> NDArray[np.int64]:
        """change_RK: what a column's every number costs more than the one it has, in 1/SCALE nats."""
        window_M, add_KM = self.part[column]
        rest_RM = code_RW[:, window_M] - add_KM[key_R]
        cost_RK = np.stack(
            [np.take(self.cost_G, rest_M + add_KM).sum(axis=1, dtype=np.int64) for rest_M in rest_RM]
        )
        return cost_RK - cost_RK[np.arange(len(key_R)), key_R][:, None]

    def shares(self, key_P: Ids, inverse_temperature: float) -> Floats:
        """Of each column: the weight of its number among all, the other columns being right."""
        code_1W = self.codes(key_P[None])
        changes = [self.others(code_1W, key_P[p : p + 1], p) / SCALE for p in range(len(key_P))]
        return np.array([1 / np.exp(-inverse_temperature * change_1K).sum() for change_1K in changes])

    def descend(self, key_RP: Ids) -> tuple[Ids, Floats]:
        """Keys in which no other number of one column is better, and their costs in nats; the best first."""
        key_RP, code_RW = key_RP.copy(), self.codes(key_RP)
        for _ in range(MAX_SWEEPS):
            changed = False
            for column, (window_M, add_KM) in enumerate(self.part):
                old_R = key_RP[:, column]
                new_R = self.others(code_RW, old_R, column).argmin(axis=1)
                if (new_R != old_R).any():
                    code_RW[:, window_M] += add_KM[new_R] - add_KM[old_R]
                    key_RP[:, column], changed = new_R, True
            if not changed:
                break
        cost_R = self.cost_G[code_RW].sum(axis=1, dtype=np.int64) / SCALE
        order = np.argsort(cost_R, kind="stable")
        return key_RP[order], cost_R[order]


def looks_polyalphabetic(puzzle: Puzzle) -> bool:
    """Whether a text is long enough to tell that its symbols are more even than a language's letters."""
    count_S = puzzle.count_S
    n, frequency_V = int(count_S.sum()), puzzle.language.letter_frequencies
    even = (1 / len(frequency_V) + (frequency_V**2).sum()) / 2
    return (
        puzzle.letter_S is not None
        and n >= LOOKS_LETTERS
        and (count_S * (count_S - 1)).sum() < even * n * (n - 1)
    )


def column_nats(puzzle: Puzzle) -> float:
    """About what a text costs: by the letters of each column alone, under the best key of any cipher and period."""
    n, letter_S = int(puzzle.count_S.sum()), puzzle.letter_S
    assert letter_S is not None
    language, size = puzzle.language, len(puzzle.language.letters)
    nats_V = -np.log(np.maximum(language.letter_frequencies, 1e-4))
    letter_N = letter_S[puzzle.symbol_T[puzzle.symbol_T >= 0]][:LONG_LETTERS]
    costs = []
    for alphabets in key_alphabets(language.letters):
        for period in _periods(n):
            cell_N = np.arange(len(letter_N)) % period * size + letter_N
            count_PV = np.bincount(cell_N, minlength=period * size).reshape(period, size)
            best_P = (count_PV @ nats_V[alphabets.plain_KV].T).min(axis=1)
            costs.append(float(best_P.sum()) + period * log(alphabets.n_keys))
    return min(costs)


def _periods(n_letters: int) -> range:
    return range(2, min(MAX_PERIOD, n_letters // LETTERS_PER_KEY) + 1)


def read_polyalphabetic(puzzle: Puzzle) -> TextReading | None:
    """The text under the best key of any of these ciphers; None where there is none: the text is too short, has no
    letters, or one alphabet does.
    """
    language, letter_S = puzzle.language, puzzle.letter_S
    n_letters = int(puzzle.count_S.sum())
    if letter_S is None or n_letters < LEAST_LETTERS:
        return None
    pair_costs = language.ngram("spaced-short" if puzzle.spaced else "unspaced-short").pair_costs()
    rings = []
    for blanks_count in (False, True) if puzzle.spaced else (False,):
        row = _row(puzzle, letter_S, blanks_count)
        for alphabets in key_alphabets(language.letters):
            some = _rings(alphabets, row.cut(PAIRS_LETTERS), blanks_count, pair_costs, _periods(n_letters))
            rings += [(ring, row.cut(LONG_LETTERS)) for ring in some]
    rings.sort(key=lambda pair: pair[0].description)
    rng = np.random.default_rng(0)
    refined = [(ring, *_refined(ring, row, rng)) for ring, row in rings[:REFINED]]
    ring, columns, key_P, cost = min(refined, key=lambda found: found[3] + found[0].log_keys)
    if len(_shortest(key_P)) == 1:
        return None
    evidence: Evidence = "spaced" if puzzle.spaced else "unspaced"
    calibration = language.calibrations.of(evidence)
    share_P = columns.shares(key_P, calibration.inverse_temperature)
    (cell_N,) = np.nonzero(puzzle.symbol_T >= 0)
    column_N = (cell_N if ring.blanks_count else np.arange(n_letters)) % ring.period
    plain_N = ring.alphabets.plain_KV[key_P[column_N], letter_S[puzzle.symbol_T[cell_N]]]
    kind, key = _named(ring.alphabets, _shortest(key_P), language)
    return TextReading(
        puzzle=puzzle,
        kind=kind,
        parameters={"period": len(key), "key": key},
        ngram=ring.row.ngram,
        plain_N=plain_N,
        plaintext=puzzle.filled("".join(language.letters[v] for v in plain_N)),
        shows_words=puzzle.spaced,
        cost=cost,
        n_letters=columns.n_letters,
        log_keys=ring.log_keys,
        sure_N=calibration.probability(share_P)[column_N],
    )


def _refined(ring: _Ring, row: _Row, rng: np.random.Generator) -> tuple[_Columns, Ids, float]:
    """The best key of this cipher and period under long n-grams, and its cost."""
    shape = ring.pair_PKK.shape
    starts = [ring.best_key[0]] + [ring.best(NOISE * rng.gumbel(size=shape))[0] for _ in range(STARTS - 1)]
    columns = _Columns(ring, row)
    key_RP, cost_R = columns.descend(np.unique(np.stack(starts), axis=0))
    return columns, key_RP[0], float(cost_R[0])


def _shortest(key_P: Ids) -> Ids:
    """A key that repeats itself, once."""
    n = len(key_P)
    return next(
        key_P[:p] for p in range(1, n + 1) if n % p == 0 and np.array_equal(np.resize(key_P[:p], n), key_P)
    )


def _named(alphabets: KeyAlphabets, key_P: Ids, language: Language) -> tuple[Kind, str]:
    """What the cipher is called, and its key word: where several would do, the likeliest one."""
    letters, size = language.letters, len(language.letters)
    ngram = language.ngram("spaced")

    def spelled(number_P: Ids) -> str:
        return "".join(letters[k] for k in number_P % size)

    word = spelled(key_P)
    if alphabets.kind == "porta":
        return "porta", _likeliest_word([(letters[2 * k], letters[2 * k + 1]) for k in key_P], ngram)
    like_a_word = LIKE_A_WORD * len(word)
    if alphabets.kind == "gronsfeld" and ngram.nats(word) > like_a_word:
        return "gronsfeld", "".join(map(str, key_P))
    if alphabets.kind in ("vigenere", "gronsfeld"):
        variant = spelled(-key_P)
        is_variant = ngram.nats(variant) < min(like_a_word, ngram.nats(word) - LIKELIER)
        return ("variant-beaufort", variant) if is_variant else ("vigenere", word)
    return alphabets.kind, word


def _likeliest_word(choices: Sequence[tuple[str, ...]], ngram: NGram, width: int = 64) -> str:
    """One letter of each choice: a beam search under the n-gram, which takes every word for short ones."""
    words = [""]
    for choice in choices:
        words = sorted((word + letter for word in words for letter in choice), key=ngram.nats)[:width]
    return words[0]
