"""Which language a ciphertext is in.

Its letters rule most out: a text with an ą in it is Polish, or nobody's. Under each language that is left, a quick
search with short n-grams finds what the text costs at best, and what comes close is then read in full. Languages are
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
from lexinvariant.decipher.features import is_flat
from lexinvariant.decipher.language import Effort, Language
from lexinvariant.decipher.search import SearchProblem
from lexinvariant.decipher.verdict import MOST_UNREAD, SHORT

ENOUGH = 0.9
"""A reading in the first language that is so likely to be one, and costs what texts in it do, is not compared with
others: a language may look much like another."""
PREFERENCE = 6.0
"""Nats by which a text must cost less in another language than in the first, to be taken for that."""
CLOSE = 16.0
"""Nats beyond the best quick search within which a text is also read in full..."""
READ_IN_FULL = 5
"""... in so many languages and spellings at most."""
MOST_FOREIGN = 0.03
"""Of a text's letters: where more are not of an alphabet, the text is not written in it."""
INVERSE_TEMPERATURE = 0.3
"""From differences of nats to probabilities: well below 1, since n-grams are surer than they should be."""
_LOOKED_AT = 20_000  # characters, to see which letters there are
_SEARCHED = 240  # symbols
_QUICK = Effort(n_keys=64, n_swaps=1000, start_inverse_temperature=0.3)


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

    The first attempt is enough if it reads the text well and its language has no other spelling, or if the text is so
    short that it could be in any language.
    """
    language = first.puzzle.language
    found: list[KeyPosterior] = []
    if len(language.spellings) == 1:
        found = [read(first, not finds_language)]
        p = found[0].reading().probability
        if not finds_language or (p >= ENOUGH and not _is_stuck(found[0])):
            return replace(found[0], languages={language.name: p} if finds_language else {})
    is_short = bool(found) and found[0].n_letters <= SHORT
    rest = [] if is_short else [other for other in others if not _is_flat(other.puzzle)]
    preferred, attempts = found.copy(), [first, *rest]
    if not rest:
        return found[0] if found and not _is_stuck(found[0]) else read(first, True)
    cost = _quick_costs([attempt for attempt in attempts if attempt.puzzle.kind != "ascii"])
    close = [
        attempt for attempt in attempts if cost.get(attempt.puzzle, np.inf) <= min(cost.values()) + CLOSE
    ]
    for attempt in sorted(close, key=lambda attempt: cost[attempt.puzzle])[:READ_IN_FULL]:
        if all(posterior.puzzle is not attempt.puzzle for posterior in found):
            found.append(read(attempt, False))
    least = min(map(nats_per_letter, found))
    beyond = {posterior: (nats_per_letter(posterior) - least) * found[0].n_letters for posterior in found}
    if preferred:
        beyond[preferred[0]] -= PREFERENCE
    best = min(found, key=lambda posterior: beyond[posterior])
    share = _shares(beyond, cost)
    if best.reading().probability <= MOST_UNREAD and finds_language:
        best = found[0]  # if it is in none, what else it may be is told beside the first
    if _is_stuck(best):
        best = read(next(attempt for attempt in attempts if attempt.puzzle is best.puzzle), True)
    return replace(best, languages=share if finds_language else {})


def _is_flat(puzzle: Puzzle) -> bool:
    """Whether symbols are too evenly distributed for the letters of the language: it need not be tried."""
    return is_flat(puzzle.count_S, puzzle.language.letter_frequencies)


def _is_stuck(posterior: KeyPosterior) -> bool:
    """Whether it costs so much that a patient search would go on."""
    settings = posterior.puzzle.language.letter_search
    spaced = " " in posterior.problem.ngram.alphabet
    return posterior.evidence != "characters" and posterior.nats_per_symbol > settings.stuck_above(spaced)


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


def _quick_costs(attempts: Sequence[Attempt]) -> dict[Puzzle, float]:
    """What a text costs at best, by quick searches: in the spelling of fewest letters of every language, and in the
    other spellings of those languages that come close.
    """
    by_size = sorted(attempts, key=lambda attempt: -len(attempt.puzzle.language.letters))
    fewest = {attempt.puzzle.language.name: attempt for attempt in by_size}
    nats = {name: _quick_nats(attempt) for name, attempt in fewest.items()}
    close = {name for name, cost in nats.items() if cost <= min(nats.values()) + CLOSE}
    cost = {attempt.puzzle: nats[name] for name, attempt in fewest.items()}
    for attempt in attempts:
        if attempt.puzzle not in cost and attempt.puzzle.language.name in close:
            cost[attempt.puzzle] = _quick_nats(attempt)
    return cost


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


def _shares(beyond: Mapping[KeyPosterior, float], quick: Mapping[Puzzle, float]) -> dict[str, float]:
    """How likely each language is, the likeliest first: by the nats that the text costs beyond its best reading, or
    beyond the best quick one where it was not read in full.
    """
    nats: dict[str, float] = {}
    for puzzle, cost in quick.items():
        name = puzzle.language.name
        nats[name] = min(cost - min(quick.values()), nats.get(name, np.inf))
    nats |= {posterior.puzzle.language.name: np.inf for posterior in beyond}
    for posterior, cost in beyond.items():
        name = posterior.puzzle.language.name
        nats[name] = min(cost, nats[name])
    weight = {name: float(np.exp(-INVERSE_TEMPERATURE * cost)) for name, cost in nats.items()}
    total = sum(weight.values())
    return {name: weight[name] / total for name in sorted(weight, key=lambda name: -weight[name])}
