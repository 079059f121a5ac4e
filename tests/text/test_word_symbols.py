"""Words as symbols: one word, one symbol throughout a piece and another in the next; the order of the text stays."""

import re
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.text import Corpus, prepare
from lexinvariant.text.formats import Document
from lexinvariant.text.sources import read_documents
from lexinvariant.text.splits import place_of
from lexinvariant.text.tags import TagFilter
from lexinvariant.text.word_symbols import LENGTH, SYMBOLS, words_as_symbols

LINES = [f'key_{n % 7} = {n % 7 + 100}; the {n % 5}th of them, "{n % 3}"\n' for n in range(60)]
TEXT = "".join(LINES)
NEW_WORDS = " ".join("".join(chr(97 + n // 26**k % 26) for k in range(3)) for n in range(400))


def test_a_piece_has_its_text_s_order_under_other_names() -> None:
    pieces = list(words_as_symbols(Document(TEXT, "config:a")))
    assert {piece.source for piece in pieces} == {"words:config:a"}
    assert [len(piece.text) for piece in pieces[:-1]] == [LENGTH] * (len(pieces) - 1)
    words = [
        re.findall(pattern, TEXT)
        for pattern in (r"[A-Za-z]+|\d+|\s+|[^\sA-Za-z0-9]", r" ?(?:[A-Za-z]+|\d+|[^\sA-Za-z0-9])|\s+")
    ]
    [spelled] = [way for way in words if sum(len(piece.text) for piece in pieces) == len(way)]
    at = 0
    for piece in pieces:
        pairs = set(zip(spelled[at : at + len(piece.text)], piece.text, strict=True))
        assert len({word for word, _ in pairs}) == len({symbol for _, symbol in pairs}) == len(pairs)
        at += len(piece.text)
    assert pieces[0].text[:20] != pieces[1].text[:20]


def test_a_piece_ends_where_the_symbols_do() -> None:
    pieces = list(words_as_symbols(Document(NEW_WORDS, "a")))
    assert len(pieces) > 3
    assert all(len(set(piece.text)) == len(SYMBOLS) for piece in pieces[:-1])


def test_documents_are_the_same_on_every_reading_and_short_ones_are_left_out() -> None:
    assert list(words_as_symbols(Document(TEXT, "a"))) == list(words_as_symbols(Document(TEXT, "a")))
    assert next(words_as_symbols(Document(TEXT, "a"))) != next(words_as_symbols(Document(TEXT, "b")))
    assert list(words_as_symbols(Document("too short to say anything", "a"))) == []


def test_they_stay_in_the_split_of_their_text_and_are_left_out_with_it() -> None:
    assert place_of("words:config:a#3") == place_of("config:a#4")
    documents = [Document(TEXT, source) for source in ("log:b", "words:log:b", "words:config:a")]
    assert [one.source for one in TagFilter(excluded=["log"])(documents)] == ["words:config:a"]
    assert [one.source for one in TagFilter(wanted=["words"])(documents)] == ["words:log:b", "words:config:a"]


def test_they_are_a_source(tmp_path: Path) -> None:
    file = tmp_path / "table.txt"
    file.write_text(TEXT)
    assert next(one.source for one in read_documents(f"{file}?fold=words")).startswith("words:file:")
    manifest = prepare([str(file), f"{file}?fold=words"], tmp_path / "out", progress=False)
    assert set(manifest.tokens_by_tag) == {"file", "words"}
    pieces = Corpus.open(tmp_path / "out").split("train", 64)
    batch = pieces[np.arange(len(pieces))]
    np.testing.assert_array_equal(np.flatnonzero(~batch.named_B), pieces.pieces_by_tag["words"])
    packed = Corpus.open(tmp_path / "out").split("train", 64, packed=True)
    assert not packed[[len(packed) - 1]].named_B.any() and packed[[0]].named_B.all()


@pytest.mark.parametrize("text", ["", " \n\t ", "\u00e9\u00e8" * 90, "\U0001f600 " * 50, "a" * 10_000])
def test_any_text_may_come(text: str) -> None:
    assert all(set(piece.text) <= set(SYMBOLS) for piece in words_as_symbols(Document(text, "a")))
