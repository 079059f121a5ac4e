"""Spaces put back, as an n-gram that knows them would have them."""

from itertools import product

import numpy as np
import pytest

from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.ngram import SCALE, assemble, backoff_levels, count_ngrams
from lexinvariant.decipher.spacing import put_spaces, spaced_nats


def test_spaces_stand_where_the_n_gram_likes_them_best() -> None:
    alphabet = "ab "
    ngram = assemble(alphabet, backoff_levels(count_ngrams(["ab a bba ab ab bba a ab"] * 3, alphabet, 3), 3))
    for letters in ("abab", "abbab", "aabba"):
        ways = product(("", " "), repeat=len(letters) - 1)
        every = ["".join(a + b for a, b in zip(letters, (*way, ""), strict=True)) for way in ways]
        found = put_spaces(letters, ngram)
        assert found.replace(" ", "") == letters
        assert ngram.nats(found) == min(map(ngram.nats, every))


def test_english_words_are_parted() -> None:
    ngram = load_language().ngram("spaced")
    assert put_spaces("thekeeperofthelampwaitedforthem", ngram) == "the keeper of the lamp waited for them"
    assert put_spaces("a", ngram) == "a"
    assert put_spaces("", ngram) == ""


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_rows_of_letters_cost_what_the_best_spaces_between_them_do(begins: bool, ends: bool) -> None:
    alphabet = "ab "
    ngram = assemble(alphabet, backoff_levels(count_ngrams(["ab a bba ab ab bba a ab"] * 3, alphabet, 3), 3))

    def nats(text: str) -> float:
        """What comes after the letters that are only looked back on."""
        padded, skipped = "  " + text, 0 if begins else [i for i, c in enumerate(text) if c != " "][1] + 1
        codes = [[alphabet.index(c) for c in padded[i : i + 3]] for i in range(skipped, len(text))]
        return sum(int(ngram.cost_G[9 * a + 3 * b + c]) for a, b, c in codes) / SCALE

    rows = ["abab", "abba", "aabb"]
    letter_RN = np.array([[alphabet.index(c) for c in row] for row in rows])
    found = spaced_nats(letter_RN, ngram, begins=begins, ends=ends)
    for letters, cost in zip(rows, found, strict=True):
        ways = product(*[("",) if begins else ("", " "), *[("", " ")] * (len(letters) - 1)])
        every = ["".join(map("".join, zip(way, letters, strict=True))) + " " * ends for way in ways]
        assert cost == min(map(nats, every))
