"""Readings of all characters compared as letters."""

import numpy as np
import pytest

from lexinvariant.decipher import search
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.rank_by_letters import letter_nats, rank_by_letters
from lexinvariant.decipher.search import Candidates, SearchProblem

ENGLISH = load_language()


def numbers(text: str, alphabet: str) -> np.ndarray:
    return np.array([alphabet.index(character) for character in text])


def test_texts_cost_what_each_would_alone() -> None:
    ngram = ENGLISH.ngram("spaced")
    texts = ["the  cat sat   ", "   a cat  sat.o", "the cat sat on ", "a.............b"]
    letter_NT = np.stack([numbers(text.replace(".", " "), ngram.alphabet) for text in texts])
    alone = [ngram.nats(ENGLISH.letters_only(text)) for text in texts]
    assert letter_nats(ngram, letter_NT).tolist() == pytest.approx(alone)


def test_a_capital_is_found_by_the_word_it_begins() -> None:
    characters = ENGLISH.ngram("characters")
    plain = "Nothing happened. Quickly he went on. Very little was left. Just then a voice came."
    symbols = sorted(set(plain))
    row = numbers(plain, "".join(symbols))
    truth = numbers("".join(symbols), characters.alphabet).astype(np.int32)
    known = {number: int(truth[number]) for number, symbol in enumerate(symbols) if not symbol.isupper()}
    problem = SearchProblem(characters, [row], len(symbols), np.arange(characters.size), known)
    wrong = truth.copy()
    for own, other in ("QX", "JW", "NB", "VZ"):  # letters that the text has not
        wrong[symbols.index(own)] = characters.alphabet.index(other)
    start = Candidates(wrong[None], search.costs(problem, wrong[None]))
    alone = rank_by_letters(ENGLISH, problem, start, 0.0)
    ranked = rank_by_letters(ENGLISH, problem, start, 2.0)

    def right(candidates: Candidates) -> int:
        return int((candidates.key_NS[0] == truth).sum())

    assert right(ranked) >= right(alone) + 2
    assert (np.diff(ranked.cost_N) >= 0).all()


def test_what_is_known_stays_as_it_is() -> None:
    characters = ENGLISH.ngram("characters")
    row = numbers("abcab", "abc")
    pinned = {0: characters.alphabet.index("~"), 1: characters.alphabet.index("^")}
    problem = SearchProblem(characters, [row], 3, np.arange(characters.size), pinned)
    key = np.array([[*pinned.values(), characters.alphabet.index("x")]], np.int32)
    ranked = rank_by_letters(ENGLISH, problem, Candidates(key, search.costs(problem, key)), 1.0)
    assert {tuple(found) for found in ranked.key_NS[:, :2].tolist()} == {tuple(pinned.values())}
