"""What a language is written in, by its text: letters, capitals, other characters, and these written in letters."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lexinvariant.decipher.language import Language, load_language
from lexinvariant.errors import UserError

MAX_LETTERS, MAX_CHARACTERS = 100, 200
MIN_LETTER_SHARE, MIN_CHARACTER_SHARE = 1e-4, 1e-5  # rarer ones are not taken to be of the language
MAX_FOREIGN_SHARE = 0.1  # of the text's letters: the alphabet is then the wrong one
WITHOUT_STROKE = {"ł": "l", "ø": "o", "đ": "d", "ı": "i", "œ": "oe", "æ": "ae"}
"""How letters are written in others that Unicode does not take apart."""
_ACUTE = "\u0301"
_KINDS_OF_ACUTE = str.maketrans({"\u0300": _ACUTE, "\u0342": _ACUTE})  # in Greek the grave and the circumflex


def describe_language(
    name: str,
    documents: Sequence[str],
    letters: str | None,
    capitals: str | None,
    given_folds: Mapping[str, str],
    model: str | None,
) -> Language:
    """English with another alphabet. `given_folds` are how letters are written in others, where not without accents."""
    count: Counter[str] = Counter()
    for text in documents:
        count.update(text)
    of_letters = Counter({character: n for character, n in count.items() if character.isalpha()})
    total = max(1, of_letters.total())
    if letters is None:
        small: Counter[str] = Counter()
        for character, n in of_letters.items():
            small[character.lower()] += n
        common = [letter for letter, n in small.items() if n >= MIN_LETTER_SHARE * total and len(letter) == 1]
        letters = "".join(sorted(common))
    if len(letters) > MAX_LETTERS:
        raise UserError(
            f"The text has {len(letters)} different letters and a language may have {MAX_LETTERS}: give --alphabet."
        )
    capitals = capitals or "".join(_capital(letter, letters) for letter in letters)
    language = replace(
        load_language(), name=name, letters=letters, capitals=capitals, folds={}, characters="", model=model
    )
    cased = {form for c in of_letters for form in (c, c.lower(), c.upper()) if len(form) == 1}
    folded = {c: _fold(c, letters, given_folds) for c in sorted(cased) if language.letter(c) is None}
    folds = {character: fold for character, fold in folded.items() if fold is not None}
    foreign = Counter({c: n for c, n in of_letters.items() if language.letter(c) is None and c not in folds})
    if foreign.total() > MAX_FOREIGN_SHARE * total:
        shown = "".join(character for character, _ in foreign.most_common(10))
        raise UserError(
            f"{foreign.total() / total:.0%} of the text's letters ({shown}) are not in the alphabet {letters}: give "
            "--alphabet the letters of this language."
        )
    frequent = {c for c, n in count.most_common(MAX_CHARACTERS) if n >= MIN_CHARACTER_SHARE * count.total()}
    possible = {*frequent, *letters, *capitals, " "}
    # A mark that modifies the character before is no character by itself.
    printable = {c for c in possible if c.isprintable() and not unicodedata.combining(c)}
    return replace(language, folds=folds, characters="".join(sorted(printable)) + "\n")


def _capital(letter: str, letters: str) -> str:
    capital = letter.upper()
    return capital if len(capital) == 1 and capital.lower() == letter and capital not in letters else letter


def _fold(character: str, letters: str, given_folds: Mapping[str, str]) -> str | None:
    """The letters that a character can be written in: its small form, as given or without (some) accents."""
    small = character.lower()
    parts = unicodedata.normalize("NFKD", character.casefold())
    forms = (
        given_folds.get(small, small),
        character.casefold(),
        unicodedata.normalize("NFC", _without_marks(parts.translate(_KINDS_OF_ACUTE), but=_ACUTE)),
        _without_marks(parts),
        "".join(WITHOUT_STROKE.get(c, c) for c in _without_marks(parts)),
    )
    return next((form for form in forms if form and set(form) <= set(letters)), None)


def _without_marks(parts: str, but: str = "") -> str:
    return "".join(c for c in parts if not unicodedata.combining(c) or c == but)
