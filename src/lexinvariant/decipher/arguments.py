"""What a caller may ask of the solver: of wrong types it would make a reading, or a traceback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from lexinvariant.checks import whole_number
from lexinvariant.decipher.alphabet import Alphabet
from lexinvariant.decipher.language import Language
from lexinvariant.decipher.notation import Notation
from lexinvariant.errors import UserError

if TYPE_CHECKING:
    from lexinvariant.decipher.decipherment import Decipherment

MOST_QUOTED = 20  # characters of a symbol, as notes show it


def check_language(language: object) -> None:
    """Of `Solver`: a name would be taken for a language."""
    if language is not None and not isinstance(language, Language):
        raise UserError(
            f"Give the language that `load_language(NAME)` returns, not a value of type {type(language).__name__}."
        )


def check_arguments(
    texts: object,
    *,
    cribs: object,
    crib_text: object,
    crib_words: object,
    alphabet: object,
    unspaced: object,
    notation: object,
    top: object,
) -> None:
    """Raise the sentence that says which argument of `Solver.read` cannot be."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
        raise UserError(f"Give a list of texts to read, not a value of type {type(texts).__name__}.")
    for text in texts:
        symbols = () if isinstance(text, str) else text if isinstance(text, Sequence) else (text,)
        if wrong := [symbol for symbol in symbols if not isinstance(symbol, str)]:
            raise UserError(
                f"Give a text, or a list of symbols that are str, not a value of type {type(wrong[0]).__name__}."
            )
    if cribs is not None and not (
        isinstance(cribs, Mapping) and all(isinstance(s, str) for pair in cribs.items() for s in pair)
    ):
        raise UserError('Give cribs as a mapping from symbol to character, such as {"X": "e"}.')
    if crib_text is not None and not isinstance(crib_text, str):
        raise UserError(f"Give crib_text as str, not a value of type {type(crib_text).__name__}.")
    if (
        isinstance(crib_words, str)  # one word would be as many words as it has letters
        or not isinstance(crib_words, Sequence)
        or not all(isinstance(word, str) for word in crib_words)
    ):
        raise UserError('Give crib_words as a list of words, such as ["lighthouse"].')
    choices: tuple[tuple[str, object, Any], ...] = (
        ("alphabet", alphabet, Alphabet),
        ("notation", notation, Notation),
    )
    for name, value, of in choices:
        if value not in get_args(of):
            raise UserError(f"There is no {name} {value!r}: it is one of {', '.join(get_args(of))}.")
    if not isinstance(unspaced, bool):
        raise UserError(f"unspaced is of type {type(unspaced).__name__}: give True or False.")
    whole_number(top, "top", least=0)


def note_on_cribs(
    found: Decipherment, cribs: Mapping[str, str] | None = None, crib_words: Sequence[str] = ()
) -> str | None:
    """A sentence on what was known of one text and did not help; None where nothing is to be said."""
    tells_case = any(symbol != symbol.lower() for symbol in found.symbol_of.values())  # else they are letters
    named = str if tells_case else str.upper
    present = {named(name) for pair in found.symbol_of.items() for name in pair}
    absent = [repr(symbol[:MOST_QUOTED]) for symbol in cribs or {} if named(symbol) not in present]
    if absent:
        return f"The text has no {' or '.join(absent)}: a crib for that changes nothing."
    if crib_words and found.verdict.status != "read" and found.spaced is None:
        return (
            "The known words were put in as whole words: leave out what may be wrong, or only a part of one."
        )
    return None
