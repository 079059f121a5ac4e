"""Readings of all characters compared as letters."""

import numpy as np
import pytest

from lexinvariant.decipher import search
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.rank_by_letters import letter_nats, rank_by_judged_letters, rank_by_letters
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


def test_capitals_are_found_by_the_words_they_begin() -> None:
    alphabet = ENGLISH.characters
    indifferent = NGram(alphabet, 1, np.full(len(alphabet), 16, np.uint8))
    plain = "Nothing happened. Quickly he went on. Very little was left. January came."
    symbols = sorted(set(plain))
    truth = numbers("".join(symbols), alphabet).astype(np.int32)
    known = {number: int(truth[number]) for number, symbol in enumerate(symbols) if not symbol.isupper()}
    row = numbers(plain, "".join(symbols))
    problem = SearchProblem(indifferent, [row], len(symbols), np.arange(len(alphabet)), known)
    wrong = truth.copy()
    for own, other in ("QX", "JW", "NB", "VZ"):
        wrong[symbols.index(own)] = alphabet.index(other)
    start = Candidates(wrong[None], search.costs(problem, wrong[None]))

    def n_right(ranked: Candidates) -> int:
        # Whether a letter is a capital is nothing that letters tell.
        found = [alphabet[plain].lower() for plain in ranked.key_NS[0]]
        return sum(found[symbols.index(own)] == own.lower() for own in "QJNV")

    assert n_right(rank_by_letters(ENGLISH, problem, start, 0.0)) == 0
    ranked = rank_by_letters(ENGLISH, problem, start, 1.0)
    assert n_right(ranked) >= 3
    assert (np.diff(ranked.cost_N) >= 0).all()


def test_what_is_known_stays_as_it_is() -> None:
    characters = ENGLISH.ngram("characters")
    row = numbers("abcab", "abc")
    pinned = {0: characters.alphabet.index("~"), 1: characters.alphabet.index("^")}
    problem = SearchProblem(characters, [row], 3, np.arange(characters.size), pinned)
    key = np.array([[*pinned.values(), characters.alphabet.index("x")]], np.int32)
    ranked = rank_by_letters(ENGLISH, problem, Candidates(key, search.costs(problem, key)), 1.0)
    assert {tuple(found) for found in ranked.key_NS[:, :2].tolist()} == {tuple(pinned.values())}


def test_the_judge_knows_names_that_the_n_gram_does_not() -> None:
    characters, judge = ENGLISH.ngram("characters"), ENGLISH.judge
    assert judge is not None
    plain = "In the year 1805 she wrote to Gertrude and to Frederick. "
    plain += "Of the two, Frederick was the elder, and he had been in Persia, where he knew the Shah. "
    plain *= 2  # longer than what the judge reads in one piece
    assert len(plain) > judge.max_characters
    symbols = "".join(sorted(set(plain)))
    truth = numbers(symbols, characters.alphabet).astype(np.int32)
    problem = SearchProblem(
        characters, [numbers(plain, symbols)], len(symbols), np.arange(characters.size), {}
    )
    swapped = truth.copy()
    places = [symbols.index("P"), symbols.index("G")]
    swapped[places] = truth[places[::-1]]  # Persia is Gersia, and Gertrude Pertrude
    other = truth.copy()
    other[symbols.index("1")] = characters.alphabet.index("2")  # no letter: the judge has no opinion
    candidates = Candidates(np.stack([swapped, other, truth]), np.array([100.0, 101.0, 103.0]))
    ranked = rank_by_judged_letters(judge, ENGLISH, problem, candidates, 2.0)
    cost = {
        tuple(key): cost for key, cost in zip(ranked.key_NS.tolist(), ranked.cost_N.tolist(), strict=True)
    }
    assert cost[tuple(swapped)] == 100.0
    assert cost[tuple(truth)] < 95.0
    assert cost[tuple(other)] == pytest.approx(cost[tuple(truth)] - 2.0)
    indifferent = rank_by_judged_letters(judge, ENGLISH, problem, candidates, 0.0)
    assert indifferent.cost_N.tolist() == candidates.cost_N.tolist()
