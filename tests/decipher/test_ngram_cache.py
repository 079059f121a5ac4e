"""Tables in memory: read once while they are used, forgotten when others have been used since."""

from pathlib import Path

import numpy as np
import pytest

from lexinvariant.decipher import ngram
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.ngram_cache import NGramCache


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was read from disk."""
    paths: list[Path] = []

    def read(path: Path) -> NGram:
        paths.append(path)
        return NGram("ab", 2, np.zeros(40, np.uint8))

    monkeypatch.setattr(ngram, "read", read)
    return paths


def test_tables_that_were_used_last_stay(reads: list[Path]) -> None:
    cache, a, b, c = NGramCache(most_bytes=100), Path("a"), Path("b"), Path("c")
    assert cache.read("a", a) is cache.read("a", a)
    for path in (b, a, c, a):  # c takes the place of b, which was not used for longest
        cache.read(path.name, path)
    assert reads == [a, b, c]
    cache.read("b", b)
    assert reads == [a, b, c, b]


def test_one_table_stays_however_large_it_is(reads: list[Path]) -> None:
    cache = NGramCache(most_bytes=1)
    assert cache.read("a", Path("a")) is cache.read("a", Path("a"))
    cache.read("b", Path("b"))
    cache.read("a", Path("a"))
    assert len(reads) == 3
