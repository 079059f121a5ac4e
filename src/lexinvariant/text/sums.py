"""Sums in words, a line each: `seven plus four is eleven.`

The language is small and closed: a model of less than a million parameters learns it in a minute on a CPU, and in a few
more to read it with every symbol renamed. It makes a first run that shows what a lexinvariant model does.
"""

import random
from collections.abc import Iterator

from lexinvariant.text.formats import Document

LINES = 24
"""Of a document: more than a context holds."""
_SMALL = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_NUMBERS = (*_SMALL, "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen")


def read_sums(n: int) -> Iterator[Document]:
    """The first N documents, on every machine the same."""
    for k in range(n):
        rng = random.Random(f"sums {k}")
        yield Document("".join(_line(rng) for _ in range(LINES)), f"sums:{k}")


def _line(rng: random.Random) -> str:
    a, b = rng.randint(0, 9), rng.randint(0, 9)
    if rng.random() < 0.5:
        return f"{_NUMBERS[a]} plus {_NUMBERS[b]} is {_NUMBERS[a + b]}.\n"
    return f"{_NUMBERS[a + b]} minus {_NUMBERS[a]} is {_NUMBERS[b]}.\n"
