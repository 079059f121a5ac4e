"""Which language a ciphertext is in.

Its letters rule most out: a text with an ą in it is Polish, or nobody's. Under each language that is left, a quick
search with short n-grams finds what the text costs at best, and the likeliest few are then read in full. Languages are
compared by the nats that it takes to write the text down: what the best key costs, and which of all keys it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import Puzzle
from lexinvariant.decipher.decipherment import KeyPosterior, log_number_of_keys
from lexinvariant.decipher.language import Effort, Language
from lexinvariant.decipher.search import SearchProblem
from lexinvariant.decipher.verdict import MOST_UNREAD

ENOUGH = 0.9
"""A reading in the first language that is so likely to be one is not compared with others."""
READ_IN_FULL = 3
"""Languages."""
MOST_FOREIGN = 0.03
"""Of a text's letters: where more are not of an alphabet, the text is not written in it."""
INVERSE_TEMPERATURE = 0.3
"""From differences of nats to probabilities; fitted on validation text."""
_LOOKED_AT = 20_000  # characters, to see which letters there are
_SEARCHED = 240  # symbols
_QUICK = Effort(n_keys=48, n_swaps=700, start_inverse_temperature=0.3)


@dataclass(frozen=True)
class Attempt:
    """A text as a puzzle in one spelling of one language, and what is known of its key."""

    puzzle: Puzzle
    known: Mapping[int, str]


Read = Callable[[Attempt, bool], KeyPosterior]
"""Reads an attempt, patiently or not."""


def read_in_best_language(
    first: Attempt, others: Iterable[Attempt], read: Read, finds_language: bool
) -> KeyPosterior:
    """The best keys in the language that a text is likeliest to be in, and in the spelling that suits it best.

    The first attempt is enough if it reads the text well, and if its language has no other spelling.
    """
    language = first.puzzle.language
    found: list[KeyPosterior] = []
    if len(language.spellings) == 1:
        found = [read(first, not finds_language)]
        p = found[0].reading().probability
        if not finds_language or p >= ENOUGH:
            return replace(found[0], languages={language.name: p} if finds_language else {})
    attempts = [first, *others]

    def read_quickly(attempt: Attempt) -> None:
        if all(posterior.puzzle is not attempt.puzzle for posterior in found):
            found.append(read(attempt, False))

    names = likeliest([attempt for attempt in attempts if not found or attempt is not first], READ_IN_FULL)
    for name in names:
        read_quickly(_in_fewest_letters(attempts)[name])
    best_name = next(iter(shares(found)))
    for attempt in attempts:
        if attempt.puzzle.language.name == best_name:
            read_quickly(attempt)
    share = shares(found)
    best = min(found, key=nats_per_letter)
    if best.reading().probability <= MOST_UNREAD and finds_language:
        best = found[0]  # if it is in none, what else it may be is told beside the first
    if _is_stuck(best):
        best = read(next(attempt for attempt in attempts if attempt.puzzle is best.puzzle), True)
    return replace(best, languages=share if finds_language else {})


def _is_stuck(posterior: KeyPosterior) -> bool:
    """Whether a search that was not patient might have gone on."""
    settings = posterior.puzzle.language.letter_search
    spaced = " " in posterior.problem.ngram.alphabet
    return posterior.evidence == "characters" or posterior.nats_per_symbol > settings.stuck_above(spaced)


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


def likeliest(attempts: Sequence[Attempt], most: int) -> list[str]:
    """The names of the languages in which a text costs least, by quick searches; of spellings the one in fewest letters
    stands for all.
    """
    by_name = _in_fewest_letters(attempts)
    if len(by_name) <= most:
        return list(by_name)
    cost = {name: _quick_nats(attempt) for name, attempt in by_name.items()}
    return sorted(cost, key=lambda name: cost[name])[:most]


def _in_fewest_letters(attempts: Sequence[Attempt]) -> dict[str, Attempt]:
    """For each language, by its name, the attempt in the spelling of the fewest letters."""
    by_size = sorted(attempts, key=lambda attempt: -len(attempt.puzzle.language.letters))
    return {attempt.puzzle.language.name: attempt for attempt in by_size}


def _quick_nats(attempt: Attempt) -> float:
    puzzle, language = attempt.puzzle, attempt.puzzle.language
    ngram = language.ngram("spaced-short" if puzzle.spaced else "unspaced-short")
    pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in attempt.known.items()}
    letters = np.arange(len(language.letters))
    problem = SearchProblem(ngram, [puzzle.words[:_SEARCHED]], len(puzzle.symbols), letters, pinned)
    rng = np.random.default_rng(0)
    noise = language.letter_search.first_key_rank_noise
    first_SR = search.keys_by_frequency(problem, _QUICK.n_keys, noise, rng)
    candidates, _ = search.anneal(problem, first_SR, _QUICK, rng)
    return float(candidates.cost_N[0]) + log_number_of_keys(problem) + _foreign_nats(puzzle, _SEARCHED)


def _foreign_nats(puzzle: Puzzle, n: int) -> float:
    """What the letters cost that an alphabet does not have, which stand for themselves: as much as random ones."""
    if puzzle.kind != "letters":
        return 0.0
    share = share_of_foreign(letters_of(puzzle.cells), puzzle.language)
    return share * min(n, len(puzzle.cells)) * log(len(puzzle.language.letters))


def nats_per_letter(posterior: KeyPosterior) -> float:
    """What it takes to write the text down as a ciphertext of its language."""
    n = posterior.n_letters
    return posterior.description + _foreign_nats(posterior.puzzle, n) / n


def shares(posteriors: Iterable[KeyPosterior]) -> dict[str, float]:
    """How likely each language is, of those that the text was read in; the likeliest first."""
    best: dict[str, tuple[float, int]] = {}
    for posterior in posteriors:
        name = posterior.puzzle.language.name
        cost = nats_per_letter(posterior)
        if name not in best or cost < best[name][0]:
            best[name] = (cost, posterior.n_letters)
    names = sorted(best, key=lambda name: best[name])
    least, n_letters = best[names[0]]
    weight = [np.exp(-INVERSE_TEMPERATURE * (best[name][0] - least) * n_letters) for name in names]
    return {name: float(w / sum(weight)) for name, w in zip(names, weight, strict=True)}
