"""Sums in words: the same everywhere, and right."""

from lexinvariant.text.sources import read_documents
from lexinvariant.text.sums import _NUMBERS


def test_every_sum_is_right_and_every_document_another() -> None:
    documents = list(read_documents("sums:50"))
    assert documents[:5] == list(read_documents("sums:5")) and documents[7].source == "sums:7"
    assert len({document.text for document in documents}) == 50
    value = {word: number for number, word in enumerate(_NUMBERS)}
    for line in "".join(document.text for document in documents).splitlines():
        first, how, second, _, result = line.removesuffix(".").split()
        sign = {"plus": 1, "minus": -1}[how]
        assert value[first] + sign * value[second] == value[result], line
