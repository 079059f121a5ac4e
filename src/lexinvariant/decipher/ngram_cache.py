"""Tables of n-grams in memory: those that were used last. All of fifteen languages would take 1.8 GB, and a text that
is none of them is tried in each.
"""

from collections import OrderedDict
from collections.abc import Hashable
from pathlib import Path
from threading import Lock

from lexinvariant.decipher import ngram
from lexinvariant.decipher.ngram import NGram

MOST_BYTES = 768 << 20
"""Enough for one text in every language, with spaces or without: reading the tables takes longer than the text."""


class NGramCache:
    """Reads tables, and forgets those that were not used for longest when there are too many."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._ngrams: OrderedDict[Hashable, NGram] = OrderedDict()
        self._lock = Lock()

    def read(self, key: Hashable, path: Path) -> NGram:
        """The table at `path`, which is read unless it was not long ago under this key."""
        with self._lock:
            if key in self._ngrams:
                self._ngrams.move_to_end(key)
                return self._ngrams[key]
        table = ngram.read(path)  # not under the lock: what two threads read at once is the same
        with self._lock:
            self._ngrams[key] = table
            while len(self._ngrams) > 1 and self._size() > self._most_bytes:
                self._ngrams.popitem(last=False)
        return table

    def _size(self) -> int:
        return sum(table.cost_G.nbytes for table in self._ngrams.values())
