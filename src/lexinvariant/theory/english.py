"""Real text as a language: restrict it to an alphabet, and fit a smoothed character n-gram with no zero in it."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.theory.languages import Floats, Ints, NGram

LETTERS_AND_SPACE = "abcdefghijklmnopqrstuvwxyz "
MAX_TABLE = 27**5


def stdlib_text() -> str:
    """English that is on every machine: the reference topics that ship with Python."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def read_text(path: Path) -> list[str]:
    """The documents of a text file, or of JSON lines with a "text" field; either may be compressed with xz."""
    if not path.is_file():
        raise UserError(f"There is no text file at {path}.")
    opener = lzma.open if path.suffix == ".xz" else open
    name = path.name.removesuffix(".xz")
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            if not name.endswith(".jsonl"):
                return [lines.read()]
            return [json.loads(line)["text"] for line in lines if line.strip()]
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, lzma.LZMAError) as error:
        raise UserError(f"{path} is not UTF-8 text or JSON lines with a 'text' field ({error}).") from error


def letters_only(text: str) -> str:
    """Lower case a-z, with every run of anything else as one space: the 27-symbol text that both sides are given."""
    kept = "".join(c if "a" <= c <= "z" else " " for c in text.lower())
    return " ".join(kept.split())


def most_frequent(text: str, d: int) -> str:
    """The d most frequent symbols of a text, most frequent first."""
    counts = Counter(text)
    if len(counts) < d:
        raise UserError(f"The text has only {len(counts)} different symbols, fewer than the {d} asked for.")
    return "".join(symbol for symbol, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:d])


def encode(text: str, alphabet: str) -> Ints:
    """Symbol numbers; symbols outside the alphabet are dropped."""
    number = {symbol: index for index, symbol in enumerate(alphabet)}
    return np.array([number[symbol] for symbol in text if symbol in number], dtype=np.int64)


def fit_ngram(symbol_T: Ints, d: int, order: int) -> NGram:
    """A Witten-Bell interpolated n-gram: each table falls back on the next shorter one, the shortest on uniform."""
    if order < 1:
        raise UserError("The n-gram order must be at least 1.")
    if d**order > MAX_TABLE:
        raise UserError(f"An order-{order} table over {d} symbols is too large: lower --order.")
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
    return NGram(tables)
