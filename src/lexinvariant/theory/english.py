"""Real text as a language: restrict it to an alphabet, and fit a smoothed character n-gram with no zero in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.text import read_documents
from lexinvariant.text.stdlib import read_topics
from lexinvariant.theory.languages import Floats, Ints, NGramLanguage

LETTERS_AND_SPACE = "abcdefghijklmnopqrstuvwxyz "
MAX_TABLE = 27**5


def stdlib_text() -> str:
    """English that is on every machine: the reference topics that ship with Python."""
    return "\n".join(document.text for document in read_topics())


def read_text(source: Path | str, most: int | None = None) -> str:
    """A text file, JSON Lines or any other source of text as one text; no document begins after `most` characters."""
    documents: list[str] = []
    size = 0
    for document in read_documents(str(source)):
        documents.append(document.text)
        size += len(document.text)
        if most is not None and size >= most:
            break
    return "\n".join(documents)


def most_frequent(text: str, d: int) -> str:
    """The d most frequent symbols of a text, most frequent first."""
    counts = Counter(text)
    if len(counts) < d:
        raise UserError(f"The text has only {len(counts)} different symbols, fewer than the {d} asked for.")
    return "".join(symbol for symbol, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:d])


def encode(text: str, alphabet: str) -> Ints:
    """Symbol numbers of an ASCII text; symbols outside the alphabet are dropped."""
    number = np.full(256, -1, dtype=np.int64)
    number[np.frombuffer(alphabet.encode("ascii"), dtype=np.uint8)] = np.arange(len(alphabet))
    symbol_T = number[np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)]
    return symbol_T[symbol_T >= 0]


def check_order(d: int, order: int) -> None:
    if order < 1:
        raise UserError("The n-gram order must be at least 1.")
    if d**order > MAX_TABLE:
        raise UserError(f"An order-{order} table over {d} symbols is too large: lower --order.")


def fit_ngram(symbol_T: Ints, d: int, order: int) -> NGramLanguage:
    """A Witten-Bell interpolated n-gram: each table falls back on the next shorter one, the shortest on uniform."""
    check_order(d, order)
    if len(symbol_T) < order:
        raise UserError("The text to fit is shorter than the n-gram order.")
    tables: list[Floats] = []
    shorter_CV = np.full((1, d), 1 / d)
    code_T = np.zeros(len(symbol_T), dtype=np.int64)
    for length in range(order):  # length of the context
        windows = len(symbol_T) - length
        code_T = code_T[:windows] * d + symbol_T[length:] if length else symbol_T.copy()
        count_CV = np.bincount(code_T, minlength=d ** (length + 1)).reshape(-1, d).astype(np.float64)
        kinds_C1 = (count_CV > 0).sum(axis=1, keepdims=True)
        # A context never seen has no followers: one follower's worth of the shorter context keeps it defined.
        mass_C1 = np.maximum(kinds_C1, 1)
        backed_CV = np.tile(shorter_CV, (len(count_CV) // len(shorter_CV), 1))
        shorter_CV = (count_CV + mass_C1 * backed_CV) / (count_CV.sum(axis=1, keepdims=True) + mass_C1)
        tables.append(shorter_CV.reshape((d,) * (length + 1)))
    return NGramLanguage(tables)
