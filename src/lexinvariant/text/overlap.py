"""Text that is known already: documents that repeat it are found by the runs of words they have in common with it.

Layout, indentation and markup do not matter to runs of words, so a copy is found in whatever package it lies and
however it was changed in parts.
"""

import re
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lexinvariant.text import stdlib

RUN = 8
"""Words of a run."""
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>]*>")


class _WordHashes(dict[str, int]):
    """Every word is hashed once."""

    def __missing__(self, word: str) -> int:
        number = self[word] = zlib.crc32(word.encode("utf-8", "replace")) + 1
        return number


class KnownText:
    """The runs of words of some texts, as hashes of 64 bits."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._hash_of = _WordHashes()
        parts = [self._runs(text) for text in texts]
        self._known = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.uint64)

    def share(self, text: str) -> float:
        """The share of the text's runs that are known."""
        runs = self._runs(text)
        if not len(runs) or not len(self._known):
            return 0.0
        at = np.searchsorted(self._known, runs)
        return float((self._known[np.minimum(at, len(self._known) - 1)] == runs).mean())

    def _runs(self, text: str) -> NDArray[np.uint64]:
        words = _WORD.findall(_TAG.sub(" ", text) if "</" in text else text)
        each = np.array([self._hash_of[word] for word in words], np.uint64)
        if len(each) < RUN:
            return each[:0]
        combined = np.zeros(len(each) - RUN + 1, np.uint64)
        for k in range(RUN):
            combined = combined * np.uint64(0x100000001B3) + each[k : len(each) - RUN + 1 + k]
        return combined


def standard_library() -> KnownText:
    """All of Python's own text: its source with the docstrings, tables too, and the pages of its help."""
    return KnownText(
        document.text for part in (stdlib.read_modules(), stdlib.read_topics()) for document in part
    )
