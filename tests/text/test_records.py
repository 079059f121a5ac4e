"""Made-up records: the same everywhere, as long as a context, and such that what repeats can be worked out."""

import random
from itertools import count, islice

import pytest

from lexinvariant.errors import UserError
from lexinvariant.text import records
from lexinvariant.text.sources import read_documents, size_on_disk


def test_documents_fill_a_context_and_do_not_depend_on_how_many_are_made() -> None:
    documents = list(read_documents("records:300"))
    assert documents[:20] == list(read_documents("records:20"))
    assert {len(document.text) for document in documents} == {records.LENGTH}
    assert len({document.text for document in documents}) == 300
    assert documents[7].source == "records:7"
    assert size_on_disk("records:300") is None


def test_a_key_keeps_its_value_and_comes_back() -> None:
    words = map(str, count())
    record = records._paired(random.Random(0), lambda: next(words))
    pairs = [(*key, *value) for key, value in islice(iter(record, None), 60)]
    value_of = dict(pairs)
    assert 2 <= len(value_of) <= 8
    assert all(value_of[key] == value for key, value in pairs)
    assert len(dict(pairs[: len(value_of)])) == len(value_of), "each stands once before any comes back"


@pytest.mark.parametrize("seed", range(5))
def test_all_records_of_a_table_repeat_their_fields_in_one_order(seed: int) -> None:
    words = map(str, count())
    record = records._repeated(random.Random(seed), lambda: next(words))
    (first, again), (second, answer) = record(), record()
    assert not set(first) & set(second)
    assert answer == [second[first.index(word)] for word in again]


@pytest.mark.parametrize("place", ["records:", "records:0", "records:-1", "records:many"])
def test_a_number_is_asked_for(place: str) -> None:
    with pytest.raises(UserError, match="such as records:16000"):
        list(read_documents(place))
    with pytest.raises(UserError, match="did you mean records:N"):
        list(read_documents("records"))
