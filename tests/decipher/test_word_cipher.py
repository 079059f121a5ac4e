"""Ciphers of words: one made-up word for each, and everything else as it was."""

import re

import pytest

from lexinvariant.decipher.word_cipher import encipher_words, like
from lexinvariant.errors import UserError

TEXT = "The dog saw THE cat; \"I don't,\" said the dog's owner, 17 times.\nThe cat\u2019s gone \u2013 l\u00e9ger."


def test_each_word_has_one_made_up_word_and_no_two_share_it() -> None:
    enciphered = encipher_words(TEXT)
    words = ["the", "dog", "saw", "cat", "i", "don", "said", "owner", "times", "gone", "l\u00e9ger"]
    assert list(enciphered.key.values()) == words
    assert len(enciphered.key) == len(words)
    assert not set(enciphered.key) & set(words)
    written = {word: made_up for made_up, word in enciphered.key.items()}
    undone = re.sub(
        r"[^\W\d_]+",
        lambda match: like(match[0], enciphered.key.get(match[0].lower(), match[0])),
        enciphered.ciphertext,
    )
    assert undone == TEXT  # capitals, marks, numbers, line ends and endings such as 's stand where they stood
    assert enciphered.ciphertext.startswith(like("The", written["the"]) + " " + written["dog"])
    assert f" {written['the'].upper()} " in enciphered.ciphertext


def test_the_seed_makes_the_words() -> None:
    assert encipher_words(TEXT, 3) == encipher_words(TEXT, 3)
    assert not set(encipher_words(TEXT, 3).key) & set(encipher_words(TEXT, 4).key)


def test_a_text_of_thousands_of_words_has_enough_of_them() -> None:
    many = " ".join("".join(chr(97 + n // 26**i % 26) for i in range(3)) for n in range(3000))
    assert len(encipher_words(many).key) == 3000


def test_a_text_without_words() -> None:
    with pytest.raises(UserError, match="no word in this text"):
        encipher_words("17, 18!")
