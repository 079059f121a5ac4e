"""Words that are known to stand somewhere in the plaintext: where they fit best, and what that says of the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import WORD_BREAK, Puzzle
from lexinvariant.decipher.language import Effort, Table
from lexinvariant.decipher.search import SearchProblem
from lexinvariant.errors import UserError

MOST_TRIED = 100
"""Places that are searched; where a word fits at more, those that suit the letters' frequencies best."""
MOST_COMPARED = 4
"""Of these the best are searched again, with long n-grams."""
MOST_QUOTED = 40  # characters of a word, as errors show it
LONGEST = 400
"""Symbols of the text's beginning on which places are compared."""
_QUICK = Effort(n_keys=16, n_swaps=300, start_inverse_temperature=0.3)
_CAREFUL = Effort(n_keys=96, n_swaps=900, start_inverse_temperature=0.4)
_TABLES: dict[bool, tuple[Table, Table]] = {
    True: ("spaced-short", "spaced"),
    False: ("unspaced-short", "unspaced"),
}
"""By whether words are to be seen."""

Pinned = dict[int, str]


def pinned_by_words(puzzle: Puzzle, known: Mapping[int, str], words: Sequence[str]) -> Pinned:
    """What is known, and what the words say at the places where they fit best, the longest word first."""
    if puzzle.kind == "ascii":
        raise UserError(
            "Words can be placed where letters were enciphered alone: give cribs symbol by symbol."
        )
    if puzzle.is_homophonic:
        raise UserError(
            "A known word fits anywhere in a homophonic cipher, whose letters have several symbols: give cribs symbol "
            "by symbol, or the known beginning."
        )
    pinned = dict(known)
    placed: dict[str, Pinned] = {}
    for word in sorted(words, key=len, reverse=True):
        letters = puzzle.language.unspaced(word)
        if not letters:
            raise UserError(
                f"The word {word[:MOST_QUOTED]!r} has no letters of {puzzle.language.name}: give another one."
            )
        tried = places(puzzle, pinned, letters)
        if not tried:
            raise UserError(_what_is_in_the_way(puzzle, word, letters, known, placed))
        placed[word] = pinned = _best_place(puzzle, tried)
    return pinned


def _what_is_in_the_way(
    puzzle: Puzzle, word: str, letters: str, known: Mapping[int, str], placed: Mapping[str, Pinned]
) -> str:
    """Of a word that has no place; `placed` says what was pinned after each earlier word."""
    quoted = repr(word[:MOST_QUOTED])
    if not places(puzzle, {}, letters):
        return f"The word {quoted} fits nowhere in the text: give another one."
    if not places(puzzle, known, letters):
        return f"The word {quoted} contradicts the cribs wherever it fits: leave it or a crib out."
    earlier = next(earlier for earlier, pinned in placed.items() if not places(puzzle, pinned, letters))
    return (
        f"The word {quoted} no longer fits once {earlier[:MOST_QUOTED]!r} has its place: leave one of them out, and "
        "give whole words where spaces are kept."
    )


def places(puzzle: Puzzle, pinned: Mapping[int, str], word: str) -> list[Pinned]:
    """What the word says of the key at every place where it can stand; whole words only, where any fits."""
    row = puzzle.words
    whole: list[Pinned] = []
    inside: list[Pinned] = []
    for start in range(len(row) - len(word) + 1):
        piece = row[start : start + len(word)].tolist()
        says = _agreed(piece, word, pinned)
        if says is None:
            continue
        before = start == 0 or row[start - 1] == WORD_BREAK
        after = start + len(word) == len(row) or row[start + len(word)] == WORD_BREAK
        (whole if puzzle.spaced and before and after else inside).append(says)
    unique = {tuple(sorted(says.items())): says for says in whole or inside}
    return list(unique.values())


def _agreed(piece: Sequence[int], word: str, pinned: Mapping[int, str]) -> Pinned | None:
    if WORD_BREAK in piece:
        return None
    says = dict(pinned)
    taken = {letter: symbol for symbol, letter in pinned.items()}
    for symbol, letter in zip(piece, word, strict=True):
        if says.setdefault(symbol, letter) != letter or taken.setdefault(letter, symbol) != symbol:
            return None
    return says


def _best_place(puzzle: Puzzle, tried: Sequence[Pinned]) -> Pinned:
    language = puzzle.language
    share_S = puzzle.count_S / puzzle.count_S.sum()
    frequency = dict(zip(language.letters, language.letter_frequencies, strict=True))

    def surprise(says: Pinned) -> float:
        return sum(abs(float(share_S[s]) - frequency[letter]) for s, letter in says.items())

    tried = sorted(tried, key=surprise)[:MOST_TRIED]
    short, long = _TABLES[puzzle.spaced]
    for table, effort, most in ((short, _QUICK, MOST_COMPARED), (long, _CAREFUL, 1)):
        if len(tried) > 1:
            costs = [_cost(puzzle, says, table, effort) for says in tried]
            tried = [tried[i] for i in np.argsort(costs, kind="stable")[:most]]
    return tried[0]


def _cost(puzzle: Puzzle, pinned: Pinned, table: Table, effort: Effort) -> float:
    """What the text costs at best, with these letters pinned."""
    ngram = puzzle.language.ngram(table)
    n_symbols = len(puzzle.symbols)
    problem = SearchProblem(
        ngram,
        [puzzle.words[:LONGEST]],
        n_symbols,
        np.arange(len(puzzle.language.letters)),
        {symbol: ngram.alphabet.index(letter) for symbol, letter in pinned.items()},
    )
    rng = np.random.default_rng(0)
    noise = puzzle.language.letter_search.first_key_rank_noise
    first_SR = search.keys_by_frequency(problem, effort.n_keys, noise, rng)
    candidates, _ = search.anneal(problem, first_SR, effort, rng)
    return float(candidates.cost_N[0])
