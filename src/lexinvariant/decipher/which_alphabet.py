"""Which characters were enciphered, where that cannot be seen beforehand: in a note full of numbers and signs, in text
turned round (whose capitals end words), in code. What a text looks like is tried first; then its letters alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from lexinvariant.decipher.alphabet import Alphabet, Puzzle
from lexinvariant.decipher.decipherment import KeyPosterior
from lexinvariant.decipher.notation import OF_CHARACTERS
from lexinvariant.decipher.text_reading import Solution
from lexinvariant.decipher.verdict import KINDS_IN_ORDER
from lexinvariant.decipher.which_language import (
    CERTAIN,
    ENOUGH,
    LIKELY,
    Attempt,
    Search,
    read_by_few_keys,
    read_in_best_language,
)

_LEAST_LETTERS, _MOST_INNER_CAPITALS = 0.5, 0.1
"""Shares of the visible characters, and of pairs of letters: of text whose letters alone may have been enciphered. Of
all of ASCII permuted a quarter of the pairs and more are a small letter and a capital."""
_LOOKED_AT = 20_000


def may_be_letters(puzzle: Puzzle, alphabet: Alphabet) -> bool:
    """Whether the letters alone may have been enciphered, though the text does not look so."""
    if alphabet != "auto" or puzzle.kind == "letters" or puzzle.notation not in OF_CHARACTERS:
        return False
    cells = puzzle.cells[:_LOOKED_AT]
    visible = [cell for cell in cells if not cell.isspace()]
    n_letters = sum(puzzle.language.letter(cell) is not None for cell in visible)
    pairs = [(a, b) for a, b in pairwise(cells) if a.isalpha() and b.isalpha()]
    n_inner = sum(a.islower() and b.isupper() for a, b in pairs)
    return n_letters >= _LEAST_LETTERS * len(visible) and n_inner <= _MOST_INNER_CAPITALS * len(pairs)


@dataclass(frozen=True)
class Others:
    """The same text, taken apart otherwise."""

    letters: Sequence[Attempt]
    """With its letters enciphered alone, in every spelling of every language."""
    characters: Attempt | None
    """With all of its characters enciphered."""


def read_in_best_alphabet(
    first: Attempt, spellings: Iterable[Attempt], others: Others, search_keys: Search, finds_language: bool
) -> Solution:
    """The best reading of a text whose letters alone may have been enciphered, or more."""
    few = list(_by_few_keys(chain(others.letters[:1], [others.characters])))

    def alone(solution: Solution) -> Solution:
        shares = {solution.puzzle.language.name: solution.reading().probability} if finds_language else {}
        return replace(solution, languages=shares)

    def shortest(solution: Solution) -> Solution:
        """A key of every character, chosen among so many, must describe the text shorter than one of few keys does."""
        alike = [other for other in few if other.evidence == "characters" == solution.evidence]
        best = min([solution, *alike], key=lambda other: other.description)
        return solution if best is solution else alone(best)

    def search_hastily(attempt: Attempt, patient: bool) -> KeyPosterior:
        """Patience is for the end, where the letters alone give no reading either."""
        return search_keys(attempt, False)

    for solution in few:
        if solution.reading().probability >= CERTAIN:
            return alone(solution)
    found = [shortest(alone(read_in_best_language(first, (), search_hastily, False)))]
    if found[0].kind in KINDS_IN_ORDER and found[0].reading().probability >= LIKELY:
        return found[0]  # few keys do not fit by chance
    if found[0].reading().probability < ENOUGH and others.letters:
        letters, *more = others.letters
        found.append(read_in_best_language(letters, more, search_keys, finds_language))
    if all(solution.reading().probability < ENOUGH for solution in found):
        found.append(shortest(read_in_best_language(first, spellings, search_keys, finds_language)))
    return max(found, key=lambda solution: solution.reading().probability)


def _by_few_keys(attempts: Iterable[Attempt | None]) -> Iterator[KeyPosterior]:
    for attempt in attempts:
        if attempt is not None and (solution := read_by_few_keys(attempt)) is not None:
            yield solution
