"""Spaces put back, as an n-gram that knows them would have them."""

from itertools import product

from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.ngram import assemble, backoff_levels, count_ngrams
from lexinvariant.decipher.spacing import put_spaces


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
