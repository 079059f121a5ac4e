"""What the solver finds: keys with their costs, and out of them a plaintext, how sure it is, and a verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import Alphabet, Puzzle
from lexinvariant.decipher.calibration import Calibration, FitTest
from lexinvariant.decipher.features import measure
from lexinvariant.decipher.language import Evidence
from lexinvariant.decipher.search import Candidates, SearchProblem
from lexinvariant.decipher.spacing import LONGEST, put_spaces
from lexinvariant.decipher.verdict import KINDS_IN_ORDER, MOST_UNREAD, Kind, Reading, Verdict, verdict_on

FOREIGN_SCRIPT_ODDS = 1 / 20
"""That letters of another script are signs for this language, beside that they are a language of their own."""
LEAST_LETTERS = 6
"""Of a shorter text nobody knows whether it was read."""
FEW_RUNS, MOST_IN_RUNS = 3, 0.05
"""Symbols that are the third one in a row, at most; as a share of all."""
NOT_IN_JSON = ("cells", "symbol_of")
"""Fields of a decipherment that only those who show it need."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Alternative:
    """Another plaintext, and the probability of its key among all that were found."""

    plaintext: str
    key: dict[str, str]
    probability: float


@dataclass(frozen=True)
class Decipherment:
    """What a text is, its plaintext, what every cipher symbol stands for, and how sure all that is."""

    verdict: Verdict
    right: float
    """The share of the text's cipher symbols that is expected to be right."""
    plaintext: str
    spaced: str | None
    """The plaintext with spaces put back, where the ciphertext shows no words."""
    key: dict[str, str]
    confidence: dict[str, float]
    """For every cipher symbol, the probability that the key is right about it."""
    alternatives: list[Alternative]
    notation: str
    """How the ciphertext is written: a notation of notation.py."""
    cells: str | tuple[str, ...] = field(repr=False)
    """The ciphertext in pieces of one symbol each."""
    symbol_of: dict[str, str] = field(repr=False)
    """The cipher symbol that each of these pieces is: that of a capital is the small letter."""
    seconds: float = 0.0
    letter_confidence: tuple[float, ...] = ()
    """Where no key of symbols gives the plaintext (several alphabets, other places): for every letter of it in turn,
    the probability that it is right. `key` and `confidence` are empty then."""
    alphabet: Alphabet = "auto"
    """With which alphabet (alphabet.py) the text is taken apart in the same way again..."""
    folded: bool = False
    """... and whether in the language's spelling in fewer letters."""

    def to_json(self) -> dict[str, Any]:
        """As `lexinvariant decipher --json` prints it."""
        shown = asdict(self) | {"seconds": round(self.seconds, 3)}
        return {name: value for name, value in shown.items() if name not in NOT_IN_JSON}


def log_number_of_keys(problem: SearchProblem) -> float:
    """The logarithm of how many keys there are."""
    n_letters, n_pinned = len(problem.letters), len(problem.pinned)
    return lgamma(n_letters - n_pinned + 1) - lgamma(n_letters - problem.n_symbols + 1)


@dataclass(frozen=True, eq=False)
class KeyPosterior:
    """Candidate keys of one ciphertext with their costs, and the evidence that the costs come from."""

    puzzle: Puzzle
    problem: SearchProblem
    candidates: Candidates
    evidence: Evidence
    kind: Kind = "substitution"
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    log_keys: float | None = None
    """The logarithm of how many keys there were to choose from; None: all."""
    languages: Mapping[str, float] = field(default_factory=dict)
    """How likely each language is, where it was found out."""

    @property
    def n_letters(self) -> int:
        """Cipher symbols whose costs were added up."""
        return self.problem.n_letters

    @cached_property
    def n_telling(self) -> int:
        return n_telling(self.problem.pieces, self.problem.new, self.problem.ngram.order, self.n_letters)

    @cached_property
    def ngram_cost(self) -> float:
        """What the best key costs the n-gram alone, in nats."""
        return float(search.costs(replace(self.problem, prior_SV=None), self.candidates.key_NS[:1])[0])

    @property
    def nats_per_symbol(self) -> float:
        return self.ngram_cost / len(self.problem.counted_T)

    @property
    def description(self) -> float:
        """Nats a letter to write the text down: what the best key costs, and which of all keys it is."""
        if self.evidence == "homophonic":  # which symbol stands for a letter that has several is told, too
            return float(self.candidates.cost_N[0]) / self.n_letters
        return (self.ngram_cost + self.effort) / self.n_letters

    @property
    def effort(self) -> float:
        """The logarithm of how many keys there were to choose from."""
        if self.log_keys is not None:
            return self.log_keys
        return log_number_of_keys(self.problem)

    @property
    def may_be_read(self) -> bool:
        """Whether the best key's reading may be one."""
        return self.reading().probability > MOST_UNREAD

    def reading(self) -> Reading:
        """How good the best key's reading is, for the verdict."""
        judged = self.evidence in ("judge_spaced", "judge_unspaced")
        cost = (float(self.candidates.cost_N[0]) if judged else self.ngram_cost) / self.n_letters
        test = self.puzzle.language.calibrations.of(self.evidence).fit
        return tested_reading(
            self.puzzle,
            test,
            self.kind,
            self.parameters,
            cost,
            self.problem.pieces,
            self.n_telling,
            self.effort,
        )

    def best_key(self, calibration: Calibration) -> tuple[Ints, Floats, Floats]:
        """(letter_S, share_S, weight_N): the key with the fewest expected wrong symbols, the total weight of the
        candidates that agree on each symbol, and the weight of each candidate.
        """
        weight_N = calibration.weights(self.candidates.cost_N)
        share_SV = np.zeros((self.problem.n_symbols, self.problem.ngram.size))
        for key_S, weight in zip(self.candidates.key_NS, weight_N, strict=True):
            share_SV[np.arange(self.problem.n_symbols), key_S] += weight
        if self.puzzle.is_homophonic:
            letter_S = np.argmax(share_SV, axis=1)
        elif self.kind in KINDS_IN_ORDER:  # there are few such keys, and a mixture of two is none of them
            share_NS = share_SV[np.arange(self.problem.n_symbols), self.candidates.key_NS]
            letter_S = self.candidates.key_NS[np.argmax(share_NS @ self.puzzle.count_S)]
        else:
            _, letter_S = linear_sum_assignment(self.puzzle.count_S[:, None] * share_SV, maximize=True)
        return letter_S, share_SV[np.arange(len(letter_S)), letter_S], weight_N

    def spelled(self, key_S: NDArray[np.integer]) -> dict[str, str]:
        """What each cipher symbol stands for."""
        letters = self.problem.ngram.alphabet
        return {symbol: letters[v] for symbol, v in zip(self.puzzle.symbols, key_S, strict=True)}

    def decipherment(self, top: int, certain: Collection[str] = ()) -> Decipherment:
        """The best key, how sure each of its symbols is, the next best keys, and the verdict on all of it.

        Symbols that somebody knows are `certain`; where a known word stands is not.
        """
        puzzle = self.puzzle
        calibration = puzzle.language.calibrations.of(self.evidence)
        reading = in_its_language(self.reading(), self.languages)
        verdict = verdict_of(puzzle, reading, self.languages)
        letter_S, share_S, weight_N = self.best_key(calibration)
        # A symbol is right if the text was read at all and the key is right about it.
        p_S = verdict.symbol_probability(self.n_letters) * calibration.probability(share_S)
        p_S[[symbol in certain for symbol in puzzle.symbols]] = 1.0
        others = []
        for key_S, weight in zip(self.candidates.key_NS[: top + 1], weight_N, strict=False):
            if not np.array_equal(key_S, letter_S):
                key = self.spelled(key_S)
                others.append(Alternative(puzzle.plaintext(key), key, round(float(weight), 6)))
        key = self.spelled(letter_S)
        return Decipherment(
            verdict=verdict,
            right=round(float((puzzle.count_S * p_S).sum() / puzzle.count_S.sum()), 4),
            plaintext=puzzle.plaintext(key),
            spaced=self._spaced(key) if reading.probability > MOST_UNREAD else None,
            key=key,
            confidence={symbol: round(float(p), 4) for symbol, p in zip(puzzle.symbols, p_S, strict=True)},
            alternatives=others[:top],
            notation=puzzle.notation,
            cells=puzzle.cells,
            symbol_of={cell: name for cell in set(puzzle.cells) if (name := puzzle.symbol(cell)) is not None},
            alphabet=puzzle.alphabet,
            folded=puzzle.language.is_folded,
        )

    def _spaced(self, key: Mapping[str, str]) -> str | None:
        """The plaintext with spaces put back, where none are to be seen."""
        if self.puzzle.spaced or " " in self.problem.ngram.alphabet or len(self.puzzle.words) > LONGEST:
            return None
        letters = "".join(key[self.puzzle.symbols[s]] for s in self.puzzle.words)
        return put_spaces(letters, self.puzzle.language.ngram("spaced"))


def tested_reading(
    puzzle: Puzzle,
    test: FitTest,
    kind: Kind,
    parameters: Mapping[str, int | str],
    cost: float,
    pieces: Sequence[NDArray[np.integer]],
    n_telling: int,
    log_keys: float,
) -> Reading:
    """How good a reading is that costs so many nats a letter, the best under exp(log_keys) keys."""
    odds = FOREIGN_SCRIPT_ODDS if puzzle.is_foreign_script else 1.0
    p = test.probability(cost, n_telling, log_keys)
    if n_telling < LEAST_LETTERS:
        p = min(p, 0.5)
    in_runs = puzzle.kind != "ascii" and is_in_runs(pieces)  # code is full of spaces
    return Reading(
        kind,
        0.0 if in_runs else odds * p / (odds * p + 1 - p),
        puzzle.language.name,
        cost,
        test.right,
        test.nonsense(n_telling, log_keys),
        n_telling,
        parameters,
        in_runs,
    )


def is_in_runs(pieces: Sequence[NDArray[np.integer]]) -> bool:
    """Whether symbols often stand three and more in a row, as those of sorted letters do and no language's."""
    n_runs = sum(int(np.count_nonzero((p[2:] == p[1:-1]) & (p[1:-1] == p[:-2]))) for p in pieces)
    return n_runs > max(FEW_RUNS, MOST_IN_RUNS * sum(map(len, pieces)))


def n_telling(
    pieces: Sequence[NDArray[np.integer]], new: Sequence[NDArray[np.bool_]], order: int, n_letters: int
) -> int:
    """Letters that tell something new: of those that count, an n-gram that was there before tells nothing either."""
    windows = [
        np.lib.stride_tricks.sliding_window_view(piece, order)[counts[order - 1 :]]
        for piece, counts in zip(pieces, new, strict=True)
        if len(piece) >= order
    ]
    every = np.concatenate([*windows, np.zeros((0, order), np.int64)])
    return round(n_letters * len(np.unique(every, axis=0)) / len(every)) if len(every) else n_letters


def in_its_language(reading: Reading, languages: Mapping[str, float]) -> Reading:
    """A text is in one language: where several came into question, a reading is no likelier than its own is.

    Without this, whatever made no sense in English (lists of names, misspelt words) was read in another language as
    surely as if there had been no other to choose from.
    """
    share = languages.get(reading.language, 1.0) if len(languages) > 1 else 1.0
    return replace(reading, probability=share * reading.probability)


def verdict_of(puzzle: Puzzle, reading: Reading, languages: Mapping[str, float]) -> Verdict:
    """What a text is of which this is the best reading; `languages` as in KeyPosterior."""
    language = puzzle.language
    symbol_T = puzzle.symbol_T[puzzle.symbol_T >= 0]
    features = measure(symbol_T, language.letter_frequencies, puzzle.letter_S)
    verdict = verdict_on(features, reading, language.unread_kinds, len(puzzle.symbols), puzzle.notation)
    return verdict.in_languages(languages)
