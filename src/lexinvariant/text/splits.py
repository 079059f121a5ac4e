"""Which of the splits train, valid and test a document belongs to.

A hash of its source name alone decides, so the split is the same on every machine and in every order of reading, and
all pieces `#k` of one book stay together. Two cases need more care, and are seen from the first documents: one or two
long texts (a single book, a single dump) are each cut into a part for every split, and where a small corpus would leave
a split empty, the document whose hash is nearest goes there.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from lexinvariant.text.formats import Document
from lexinvariant.text.tags import text_of

LOOK_AHEAD = 32 << 20  # characters
_MIN_BOOKS = 3  # below this, every text is cut itself


def book_of(source: str) -> str:
    """The source without its piece number, and of its text: what must not be torn apart."""
    return re.sub(r"#\d+$", "", text_of(source))


def place_of(source: str) -> float:
    """A stable number in [0, 1) for a source name."""
    digest = hashlib.blake2b(book_of(source).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64


def assign(
    documents: Iterable[Document], valid_fraction: float, test_fraction: float
) -> Iterator[tuple[str, Document]]:
    """(split, document) for every document; one or two long ones come as up to three parts each."""
    if valid_fraction == test_fraction == 0:
        yield from (("train", document) for document in documents)
        return
    stream = iter(documents)
    ahead, exhausted = _look_ahead(stream)
    places = {book_of(document.source): place_of(document.source) for document in ahead}
    everything = chain(ahead, stream)
    del ahead  # or it would stay in memory to the end
    if len(places) < _MIN_BOOKS:
        for document in everything:
            yield from _cut(document, valid_fraction, test_fraction)
        return
    splits = {book: _split(place, valid_fraction, test_fraction) for book, place in places.items()}
    if exhausted:
        _fill_empty_splits(splits, places, valid_fraction, test_fraction)
    for document in everything:
        split = splits.get(book_of(document.source)) if exhausted else None
        yield split or _split(place_of(document.source), valid_fraction, test_fraction), document


def _look_ahead(stream: Iterator[Document]) -> tuple[list[Document], bool]:
    ahead: list[Document] = []
    characters = 0
    for document in stream:
        ahead.append(document)
        characters += len(document.text)
        if characters >= LOOK_AHEAD:
            return ahead, False
    return ahead, True


def _split(place: float, valid_fraction: float, test_fraction: float) -> str:
    if place < test_fraction:
        return "test"
    return "valid" if place < test_fraction + valid_fraction else "train"


def _fill_empty_splits(
    splits: dict[str, str], places: dict[str, float], valid_fraction: float, test_fraction: float
) -> None:
    by_place = sorted(places, key=lambda book: (places[book], book))
    if "train" not in splits.values():
        splits[by_place[-1]] = "train"
    for split, fraction in (("test", test_fraction), ("valid", valid_fraction)):
        in_train = [book for book in by_place if splits[book] == "train"]
        if fraction > 0 and split not in splits.values() and len(in_train) > 1:
            splits[in_train[0]] = split


def _cut(document: Document, valid_fraction: float, test_fraction: float) -> Iterator[tuple[str, Document]]:
    """The head of the text to train on, its end to validate and test with, cut at lines if there are any."""
    text = document.text
    first = _line_end(text, round(len(text) * (1 - valid_fraction - test_fraction)))
    second = (
        max(first, _line_end(text, round(len(text) * (1 - test_fraction)))) if test_fraction else len(text)
    )
    for split, part in (("train", text[:first]), ("valid", text[first:second]), ("test", text[second:])):
        if part:
            yield split, Document(part, document.source)


def _line_end(text: str, at: int) -> int:
    """The line end before `at` if one is near, so that a short line stays whole; else `at` itself."""
    newline = text.rfind("\n", max(0, at - 200), at)
    return newline + 1 if newline >= 0 else at
