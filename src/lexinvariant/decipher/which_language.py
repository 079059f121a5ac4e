"""Which language a ciphertext is in, and what kind of cipher: the shortest description of the text that is found.

English (or the language that was given) is tried first, and is enough where it reads the text well. Otherwise the
letters rule most languages out: a text with an ą in it is Polish, or nobody's. For every kind of cipher that the text
may be, a quick look under each language that is left tells what the text costs at best, and what comes close is read in
full. Readings are compared by the nats that it takes to write the text down: what it costs under its best key, and
which of all keys that is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log

import numpy as np

from lexinvariant.decipher import homophonic, search
from lexinvariant.decipher.alphabet import KEPT, Puzzle
from lexinvariant.decipher.crib_words import pinned_by_words
from lexinvariant.decipher.decipherment import KeyPosterior, log_number_of_keys
from lexinvariant.decipher.features import is_flat, is_unordered
from lexinvariant.decipher.language import Effort, Language
from lexinvariant.decipher.ordered_keys import read_in_order
from lexinvariant.decipher.polyalphabetic import column_nats, looks_polyalphabetic, read_polyalphabetic
from lexinvariant.decipher.search import SearchProblem
from lexinvariant.decipher.substitution import character_problem, letter_problem
from lexinvariant.decipher.text_reading import Solution, TextReading
from lexinvariant.decipher.transposition import letter_nats, looks_transposed, read_transposition
from lexinvariant.decipher.verdict import LEAST_READ
from lexinvariant.errors import UserError

CERTAIN = 0.99
"""A reading by one of few keys that is so likely needs no search."""
ENOUGH, STRANGE = 0.9, 0.25
"""A reading in the first language that is so likely to be one is not compared with others, unless it costs so many nats
a symbol more than where a search is taken to be stuck: a language may look much like another."""
PREFERENCE = 6.0
"""Nats by which a text must cost less in another language than in the first, to be taken for that."""
CLOSE, CLOSER = 16.0, 8.0
"""Nats beyond the best quick look within which a text is also read in full (and beyond that in the first language, if
it may have been read in that)..."""
READ_IN_FULL = 5
"""... in so many languages and spellings at most."""
LEAST_COMPARED = 40
"""Letters: the keys of a shorter text could make sense of it in any language."""
LIKELY = 0.5
"""The least probability of a reading in another language as what has no key of symbols: there are many to try."""
MOST_FOREIGN = 0.03
"""Of a text's letters: where more are not of an alphabet, the text is not written in it."""
INVERSE_TEMPERATURE = 0.3
"""From differences of nats to probabilities: well below 1, since n-grams are surer than they should be."""
_LOOKED_AT = 20_000  # characters, to see which letters there are
_SEARCHED = 240  # symbols
_QUICK = Effort(n_keys=64, n_swaps=1000, start_inverse_temperature=0.3)


@dataclass(frozen=True, eq=False)
class Attempt:
    """A text as a puzzle in one spelling of one language, and what is known of its key."""

    puzzle: Puzzle
    known: Mapping[int, str]
    crib_words: tuple[str, ...] = ()

    @cached_property
    def pinned(self) -> Mapping[int, str]:
        """What is known, and what the known words say where they fit best."""
        return pinned_by_words(self.puzzle, self.known, self.crib_words) if self.crib_words else self.known

    @property
    def has_places(self) -> bool:
        """Whether there are any for the known words."""
        try:
            return self.pinned is not None
        except UserError:
            return False


Search = Callable[[Attempt, bool], KeyPosterior]
"""Searches for the best keys of symbols, patiently or not."""


@dataclass(frozen=True)
class OtherKind:
    """A kind of cipher that has no key of symbols."""

    read: Callable[[Puzzle], TextReading | None]
    looks_so: Callable[[Puzzle], bool]
    quick_nats: Callable[[Puzzle], float]
    """About what the text costs in the puzzle's language: tells which languages are worth a reading."""


OTHER_KINDS = (
    OtherKind(read_polyalphabetic, looks_polyalphabetic, column_nats),
    OtherKind(read_transposition, looks_transposed, letter_nats),
)


def read_in_best_language(
    first: Attempt, others: Iterable[Attempt], search_keys: Search, finds_language: bool
) -> Solution:
    """The best reading, in the language that the text is likeliest to be in and the spelling that suits it best.

    The first attempt is enough if it reads the text well and its language has no other spelling. If the text is so
    short that some key makes sense of it in any language, only the few keys in the alphabet's order are compared.
    """
    language = first.puzzle.language
    has_spellings = len(language.spellings) > 1
    is_alone = not finds_language and not has_spellings
    kinds = () if first.known or first.crib_words else OTHER_KINDS
    found = _Readings(language, is_preferred=not has_spellings)
    if not has_spellings:
        found.add(_read_alone(first, search_keys, kinds, patient=is_alone))
        p = found.best.reading().probability
        if p >= ENOUGH and not _is_stuck(found.best, STRANGE):
            return replace(found.best, languages={language.name: p} if finds_language else {})
    is_hopeless = first.puzzle.is_homophonic and _is_unordered(first.puzzle)  # in any language
    attempts = [first] if is_alone or is_hopeless else [first, *others]
    if not has_spellings and first.puzzle.count_S.sum() < LEAST_COMPARED:
        found.add(_read_in_order_elsewhere(attempts))
        attempts = [first]
    # Letters of another alphabet may be signs like any others, if they are no language's own.
    signs = [attempt for attempt in attempts[1:] if attempt.puzzle.is_foreign_script]
    quick = _quick_key_nats([a for a in attempts if a not in signs]) if attempts[1:] else {}
    may_be_first = bool(found) and found.best.may_be_read
    most = quick.get(first.puzzle, np.inf) + CLOSER if may_be_first else np.inf
    for attempt in [*(_closest(attempts, quick, most) or [first]), *signs]:
        needs_no_signs = attempt in signs and found.best.reading().probability >= LEAST_READ
        if not (needs_no_signs or found.has(attempt.puzzle.language)):
            found.add(_read_alone(attempt, search_keys, (), patient=False))
    if not (is_alone or found.best.may_be_read) and _is_stuck(found.best):
        again = next(a for a in attempts if a.puzzle.language is found.best.puzzle.language)
        found.add(_read_alone(again, search_keys, (), patient=True))
    if found.best.reading().probability < LEAST_READ:
        for kind in kinds:
            found.add(_read_as(kind, attempts, was_tried=not has_spellings))
    return replace(found.best, languages=found.shares(quick) if finds_language else {})


def _read_alone(
    attempt: Attempt, search_keys: Search, kinds: Iterable[OtherKind], patient: bool
) -> list[Solution]:
    """Readings in one language; if one is certain, it is the last."""
    puzzle = attempt.puzzle
    found: list[Solution] = []

    def is_certain() -> bool:
        return bool(found) and found[-1].reading().probability >= CERTAIN

    if (ordered := read_by_few_keys(attempt)) is not None:
        found.append(ordered)
    # What a text looks like is tried first: a search among all keys for one that is none takes longest.
    for kind in kinds:
        if not is_certain() and kind.looks_so(puzzle) and (reading := kind.read(puzzle)) is not None:
            found.append(reading)
    if not is_certain():
        found.append(search_keys(attempt, patient))
    return found


def read_by_few_keys(attempt: Attempt, short: bool = False) -> KeyPosterior | None:
    """The text under the best key that follows the order of the alphabet; in short, by short n-grams and whatever words
    are known, since finding places for them takes seconds.
    """
    puzzle = attempt.puzzle
    known = attempt.known if short else attempt.pinned
    if puzzle.kind == "ascii":
        return read_in_order(puzzle, character_problem(puzzle, known))
    if puzzle.letter_S is None:
        return None
    return read_in_order(puzzle, letter_problem(puzzle, known, puzzle.spaced, short))


def _read_in_order_elsewhere(attempts: Sequence[Attempt]) -> list[Solution]:
    """By one of the few keys, in another language than the first, if that is one of the text's best under short n-grams
    and if it is a reading.
    """
    ordered = {attempt.puzzle: read_by_few_keys(attempt, short=True) for attempt in attempts}
    nats = {p: s.description * s.n_letters + _foreign_nats(p, s.n_letters) for p, s in ordered.items() if s}
    closest = [attempt for attempt in _closest(attempts, nats) if attempt is not attempts[0]]
    found = [reading for attempt in closest[:2] if (reading := read_by_few_keys(attempt)) is not None]
    # The language was chosen as well as the key.
    readings = [replace(reading, log_keys=reading.effort + log(len(attempts))) for reading in found]
    return [reading for reading in readings if reading.reading().probability >= LEAST_READ]


def _read_as(kind: OtherKind, attempts: Sequence[Attempt], was_tried: bool) -> list[TextReading]:
    """Readings in the first language, unless it `was_tried` because the text looked so, and where it looks so, in those
    that come close.
    """
    first, likely = attempts[0], [attempt for attempt in attempts if kind.looks_so(attempt.puzzle)]
    nats = {attempt.puzzle: kind.quick_nats(attempt.puzzle) for attempt in likely}
    tried = [attempt for attempt in _closest(likely, nats) if attempt is not first]
    if not (was_tried and first in likely):
        tried.append(first)
    readings = [kind.read(attempt.puzzle) for attempt in tried]
    return [
        reading
        for attempt, reading in zip(tried, readings, strict=True)
        if reading is not None and (attempt is first or reading.reading().probability >= LIKELY)
    ]


class _Readings:
    """Readings of one text so far; each spelling of a language is a `Language`."""

    def __init__(self, first: Language, is_preferred: bool) -> None:
        self._first, self._is_preferred = first, is_preferred
        self._found: list[Solution] = []

    def add(self, found: Iterable[Solution]) -> None:
        self._found += found

    def __len__(self) -> int:
        return len(self._found)

    def has(self, language: Language) -> bool:
        return any(solution.puzzle.language is language for solution in self._found)

    @property
    def best(self) -> Solution:
        """The shortest description of the text: by a key of symbols, if that reads it, or else any. Where none is a
        reading, the one in the first language, beside which it is told what else it may be.
        """

        def shortest(found: Iterable[Solution]) -> Solution:
            return min(found, key=self._nats_per_letter)

        keys = [solution for solution in self._found if isinstance(solution, KeyPosterior)]
        best = shortest(keys or self._found)
        if best.reading().probability < LEAST_READ:
            likely = [solution for solution in self._found if solution.may_be_read]
            best = shortest([best, *likely])
        if self._is_preferred and not best.may_be_read:
            best = shortest(key for key in keys if key.puzzle.language is self._first)
        return best

    def _nats_per_letter(self, solution: Solution) -> float:
        """What it takes to write the text down as a ciphertext of its language."""
        n = solution.n_letters
        preferred = self._is_preferred and solution.puzzle.language is self._first
        foreign = _foreign_nats(solution.puzzle, n)
        return solution.description + (foreign - PREFERENCE * preferred) / n

    def shares(self, quick: Mapping[Puzzle, float]) -> dict[str, float]:
        """How likely each language is, the likeliest first: by the nats that the text costs beyond its best reading, or
        beyond the best quick one where it was not read in full.
        """
        best = self.best
        if not quick and {s.puzzle.language.name for s in self._found} == {best.puzzle.language.name}:
            return {best.puzzle.language.name: best.reading().probability}  # it was compared with nothing
        alike = [s for s in self._found if isinstance(s, TextReading) == isinstance(best, TextReading)]
        least = self._nats_per_letter(best)
        nats: dict[str, float] = {}
        # Quick looks are at keys of letters.
        is_like_quick = isinstance(best, KeyPosterior) and best.evidence != "characters"
        for puzzle, cost in quick.items() if is_like_quick else ():
            name = puzzle.language.name
            nats[name] = min(cost - min(quick.values()), nats.get(name, np.inf))
        nats |= {solution.puzzle.language.name: np.inf for solution in alike}
        for solution in alike:
            name = solution.puzzle.language.name
            nats[name] = min((self._nats_per_letter(solution) - least) * best.n_letters, nats[name])
        weight = {name: float(np.exp(-INVERSE_TEMPERATURE * cost)) for name, cost in nats.items()}
        total = sum(weight.values())
        return {name: weight[name] / total for name in sorted(weight, key=lambda name: -weight[name])}


def _is_stuck(solution: Solution, by: float = 0.0) -> bool:
    """Whether it costs so much, by so many nats a symbol, that a patient search would go on."""
    if isinstance(solution, TextReading) or solution.evidence == "characters":
        return False
    puzzle, settings = solution.puzzle, solution.puzzle.language.letter_search
    spaced = " " in solution.problem.ngram.alphabet
    goes_on = not (_is_unordered(puzzle) if puzzle.kind == "glyphs" else _is_flat(puzzle))
    return goes_on and solution.nats_per_symbol > settings.stuck_above(spaced) + by


def _is_flat(puzzle: Puzzle) -> bool:
    """Whether symbols are too evenly distributed for the letters of the language."""
    return is_flat(puzzle.count_S, puzzle.language.letter_frequencies)


def _is_unordered(puzzle: Puzzle) -> bool:
    """Whether symbols follow each other as those of no language do."""
    return is_unordered(puzzle.symbol_T[puzzle.symbol_T != KEPT])


def letters_of(text: str | Sequence[str]) -> Counter[str]:
    """The letters of any alphabet in (the beginning of) a text."""
    return Counter(c for c in "".join(text[:_LOOKED_AT]) if c.isalpha())


def share_of_foreign(letters: Mapping[str, int], language: Language) -> float:
    """The share of the letters that the language does not have."""
    own = set(language.letters + language.capitals)
    foreign = sum(n for letter, n in letters.items() if letter not in own)
    return foreign / max(1, sum(letters.values()))


def can_hold(letters: Mapping[str, int], language: Language) -> bool:
    """Whether a text of these letters may be one in this language's alphabet."""
    return share_of_foreign(letters, language) <= MOST_FOREIGN


def _closest(
    attempts: Sequence[Attempt], nats: Mapping[Puzzle, float], most: float = np.inf
) -> list[Attempt]:
    """Those in which the text costs least at a quick look, and not more than `most`."""
    most = min(min(nats.values(), default=0.0) + CLOSE, most)
    close = [attempt for attempt in attempts if nats.get(attempt.puzzle, np.inf) <= most]
    return sorted(close, key=lambda attempt: nats[attempt.puzzle])[:READ_IN_FULL]


def _quick_key_nats(attempts: Sequence[Attempt]) -> dict[Puzzle, float]:
    """What a text costs at best by a key of symbols, by quick searches: in the spelling of fewest letters of every
    language that it may be in, and in the other spellings of those that come close.
    """
    possible = [attempt for attempt in attempts if _may_have_key(attempt.puzzle)]
    by_size = sorted(possible, key=lambda attempt: -len(attempt.puzzle.language.letters))
    fewest = {attempt.puzzle.language.name: attempt for attempt in by_size}
    nats = {name: _quick_nats(attempt) for name, attempt in fewest.items()}
    close = {name for name, cost in nats.items() if cost <= min(nats.values()) + CLOSE}
    cost = {attempt.puzzle: nats[name] for name, attempt in fewest.items()}
    for attempt in possible:
        if attempt.puzzle not in cost and attempt.puzzle.language.name in close:
            cost[attempt.puzzle] = _quick_nats(attempt)
    return cost


def _may_have_key(puzzle: Puzzle) -> bool:
    """Whether a key of symbols for letters may be found."""
    if puzzle.is_homophonic:
        return bool(puzzle.count_S.sum() >= homophonic.LEAST_PER_SYMBOL * len(puzzle.symbols))
    return puzzle.kind != "ascii" and not _is_flat(puzzle)


def _quick_nats(attempt: Attempt) -> float:
    puzzle, language = attempt.puzzle, attempt.puzzle.language
    ngram = language.ngram("spaced-short" if puzzle.spaced else "unspaced-short")
    pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in attempt.known.items()}
    letters = np.arange(len(language.letters))
    n_searched = homophonic.quick_symbols(len(puzzle.symbols)) if puzzle.is_homophonic else _SEARCHED
    problem = SearchProblem(ngram, [puzzle.words[:n_searched]], len(puzzle.symbols), letters, pinned)
    rng = np.random.default_rng(0)
    if puzzle.is_homophonic:
        nats = homophonic.quick_nats(problem)
    else:
        noise = language.letter_search.first_key_rank_noise
        first_SR = search.keys_by_frequency(problem, _QUICK.n_keys, noise, rng)
        candidates, _ = search.anneal(problem, first_SR, _QUICK, rng)
        nats = float(candidates.cost_N[0]) + log_number_of_keys(problem)
    return nats + _foreign_nats(puzzle, n_searched)


def _foreign_nats(puzzle: Puzzle, n: int) -> float:
    """What the letters cost that an alphabet does not have, which stand for themselves: as much as random ones."""
    if puzzle.kind != "letters":
        return 0.0
    share = share_of_foreign(letters_of(puzzle.cells), puzzle.language)
    return share * min(n, len(puzzle.cells)) * log(len(puzzle.language.letters))
