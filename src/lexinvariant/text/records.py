"""Made-up records: short tables in symbols that mean nothing, to be understood from themselves alone.

A document is a sequence of tables of two kinds. In one, a key is followed by its value, the same at each occurrence of
the key; in the other, some fields of a record are repeated at its end, in an order that is the same in all records:

    x=4;k=9;m=7;x=4;            ab-c:cab|xy-k:kxy|

Symbols, separators, widths and orders are drawn anew for each table. A model trained on some records learns to look for
such regularities before it takes a text for English.
"""

import random
from collections.abc import Callable, Iterator

from lexinvariant.text.formats import Document

LENGTH = 512
"""Characters of a document: as many as the presets' contexts have."""
_SYMBOLS = [chr(code) for code in range(32, 127)] + ["\n"]

Word = Callable[[], str]
Record = Callable[[], tuple[list[str], list[str]]]
"""The fields of a record, and what follows from them."""


def read_records(n: int) -> Iterator[Document]:
    """The first N documents, on every machine the same."""
    for k in range(n):
        rng = random.Random(f"records {k}")
        text = ""
        while len(text) < LENGTH:
            text += _table(rng)
        yield Document(text[:LENGTH], f"records:{k}")


def _table(rng: random.Random) -> str:
    symbols = rng.sample(_SYMBOLS, len(_SYMBOLS))

    def separator(least: int, most: int) -> str:
        """Symbols that stand nowhere else in the table."""
        return "".join(symbols.pop() for _ in range(rng.randint(least, most)))

    gap, arrow, end = separator(0, 2), separator(1, 3), separator(1, 2)
    width = rng.choice([1, 1, 1, 2, 3])

    def word() -> str:
        return "".join(rng.choices(symbols, k=width))

    record = rng.choice([_paired, _repeated])(rng, word)
    records = [record() for _ in range(rng.randint(2, 12))]
    return "".join(gap.join(fields) + arrow + gap.join(answer) + end for fields, answer in records)


def _paired(rng: random.Random, word: Word) -> Record:
    """A key and its value. Each key stands once before any comes back: a table is written down, then used."""
    value_of = {word(): word() for _ in range(rng.randint(2, 8))}
    unseen = list(value_of)

    def record() -> tuple[list[str], list[str]]:
        key = unseen.pop() if unseen else rng.choice(list(value_of))
        return [key], [value_of[key]]

    return record


def _repeated(rng: random.Random, word: Word) -> Record:
    """New words in every record, and some of them again in an order that all records have."""
    n = rng.randint(2, 4)
    order = rng.sample(range(n), rng.randint(1, n))

    def record() -> tuple[list[str], list[str]]:
        fields = [word() for _ in range(n)]
        return fields, [fields[k] for k in order]

    return record
