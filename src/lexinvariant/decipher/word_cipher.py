"""Ciphers of words: every word of a text is written as a made-up one, the same wherever it stands.

Small and capital letters are one word, and what stands between words is kept.
"""

import random
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from lexinvariant.checks import check_seed, given_text
from lexinvariant.errors import UserError

_LETTER = r"[^\W\d_]"
# An ending such as 's is a token of its own to byte-level tokenizers, and no word.
_ENDING = rf"(?<={_LETTER})['\u2019](?:[stmd]|re|ve|ll)(?!{_LETTER})"
WORDS = re.compile(rf"{_ENDING}|(?P<blank> ?)(?P<word>{_LETTER}+)")
"""Words with the blank before them, which is part of their token; an ending matches without a word."""
WORDS_AND_MARKS = re.compile(rf"(?P<blank> ?)(?P<word>{_LETTER}+|\d+|[^\w\s]|_)")
"""The same of every number and mark as well."""

LIKELY = 0.1
"""A guess that is less likely than this is not put into the text."""

_ONSETS = (
    *"bdfghjklmnprstvwz",
    "bl",
    "br",
    "cl",
    "dr",
    "fl",
    "gr",
    "pl",
    "qu",
    "sh",
    "sn",
    "sp",
    "st",
    "th",
    "tr",
)
_VOWELS = (*"aeiouaeiou", "ee", "oo", "ou")
_ENDS = ("", "", *"bdgklmnprstx", "ck", "mp", "nd", "nk", "nt", "rd", "rk", "rn", "sk")


@dataclass(frozen=True)
class WordCipher:
    """A text in made-up words, and what each of them stands for."""

    ciphertext: str
    key: dict[str, str]
    """Made-up word to true one, both in small letters."""


def encipher_words(text: str, seed: int = 0) -> WordCipher:
    """Every word replaced by a made-up one that can be said aloud; the same seed gives the same words."""
    check_seed(seed)
    words = WORDS.finditer(given_text(text, "text"))
    plain = dict.fromkeys(match["word"].lower() for match in words if match["word"])
    if not plain:
        raise UserError("There is no word in this text: give one with words to replace.")
    chance, taken, written = random.Random(seed), set(plain), {}
    for word in plain:
        written[word] = made_up_word(chance, taken)
        taken.add(written[word])
    ciphertext = "".join(piece for piece, _ in replace_words(WORDS, text, written))
    return WordCipher(ciphertext, {made_up: word for word, made_up in written.items()})


def made_up_word(chance: random.Random, taken: Collection[str] = ()) -> str:
    """A word that can be said aloud and is none of those taken."""
    while True:
        word = "".join(_syllable(chance) for _ in range(chance.choice((1, 1, 2, 2, 2, 3))))
        word += chance.choice(_ENDS)
        if word not in taken:
            return word


def _syllable(chance: random.Random) -> str:
    return chance.choice(_ONSETS) + chance.choice(_VOWELS)


def replace_words(
    pattern: re.Pattern[str], text: str, written: Mapping[str, str]
) -> Iterator[tuple[str, str | None]]:
    """The text in pieces, each word (in small letters) as it is to be written, capitals where they were; beside each
    piece the word that stood there, None of what lies between."""
    end = 0
    for match in pattern.finditer(text):
        word = match["word"]
        if word is not None:
            yield text[end : match.start("word")], None
            yield like(word, written[word.lower()]), word.lower()
            end = match.end()
    yield text[end:], None


def like(pattern: str, word: str) -> str:
    """The word in capitals, with a capital or without, as the pattern is."""
    if pattern.isupper() and len(pattern) > 1:
        return word.upper()
    return word[0].upper() + word[1:] if pattern[0].isupper() else word
