from collections import Counter

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.text import Corpus, Pieces, prepare
from lexinvariant.text.mixture import ChosenPieces, WeightedPieces
from lexinvariant.text.tags import has_tag, parse_weights
from tests.text.test_prepare import write_lines

LENGTH = 8


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Documents of three kinds, whose letters tell the kind: 40 of a, 20 of b and 10 of c, two pieces each."""
    folder = tmp_path_factory.mktemp("mixture")
    kinds = {"a": ("code-c", 40), "b": ("code-rust", 20), "c": ("maths", 10)}
    records = [
        {"text": letter * 2 * LENGTH, "source": f"{tag}:{i}"}
        for letter, (tag, n) in kinds.items()
        for i in range(n)
    ]
    source = write_lines(folder / "all.jsonl", records)
    prepare([source], folder / "out", valid=[source], test=[source], shard_tokens=200)
    return Corpus.open(folder / "out", verify=True)


@pytest.fixture
def pieces(corpus: Corpus) -> Pieces:
    return corpus.split("train", LENGTH)


def letters_read(pieces: WeightedPieces, batches: int, size: int) -> Counter[str]:
    rows = np.concatenate([pieces.batch(0, step, size).tok_BT[:, 0] for step in range(batches)])
    return Counter(map(chr, rows))


@pytest.mark.parametrize("packed", [False, True])
def test_pieces_know_their_kind(corpus: Corpus, packed: bool) -> None:
    pieces = corpus.split("train", LENGTH, packed=packed)
    by_tag = pieces.pieces_by_tag
    assert {tag: len(found) for tag, found in by_tag.items()} == {"code-c": 80, "code-rust": 40, "maths": 20}
    assert sorted(np.concatenate([*by_tag.values()])) == list(range(len(pieces)))
    for tag, letter in zip(by_tag, "abc", strict=True):
        part = ChosenPieces(pieces, by_tag[tag])
        assert set(part[np.arange(len(part))].tok_BT.ravel()) == {ord(letter)}


def test_a_weight_says_how_often_a_kind_is_read(pieces: Pieces) -> None:
    weighted = WeightedPieces(pieces, {"code": 0.5, "maths": 3.0, "code-rust": 0.0})
    # 40 places for a, 60 for c and none for b: two epochs are ten batches of 20.
    assert letters_read(weighted, 10, 20) == {"a": 80, "c": 120}


def test_all_of_a_kind_are_read_before_one_comes_back(pieces: Pieces) -> None:
    weighted = WeightedPieces(pieces, {"code-c": 0.5, "maths": 1.5})
    seen = np.concatenate([weighted.batch(3, step, 11).piece_B for step in range(20)])
    for tag, found in pieces.pieces_by_tag.items():
        times = [np.count_nonzero(seen == piece) for piece in found]
        # An epoch's places are shuffled among each other, so at its end counts may differ by one more.
        assert max(times) - min(times) <= 2, tag


def test_a_batch_is_a_function_of_its_address(pieces: Pieces) -> None:
    weighted, again = (WeightedPieces(pieces, {"maths": 2.5}) for _ in range(2))
    whole = weighted.batch(1, 40, 16)
    again.batch(1, 7, 16)
    np.testing.assert_array_equal(again.batch(1, 40, 16).piece_B, whole.piece_B)
    halves = [weighted.batch(1, 40, 16, rows).piece_B for rows in (slice(0, 8), range(8, 16))]
    np.testing.assert_array_equal(np.concatenate(halves), whole.piece_B)
    assert (weighted.batch(2, 40, 16).piece_B != whole.piece_B).any()


def test_weights_that_cannot_be(pieces: Pieces) -> None:
    with pytest.raises(UserError, match="weight for 'wiki', but the tags of the train split"):
        WeightedPieces(pieces, {"wiki": 2.0})
    with pytest.raises(UserError, match=r"all tags .* have the weight 0"):
        WeightedPieces(pieces, {"code": 0.0, "maths": 0.0})
    for written in ("code", "code=", "=2", "code=-1", "code=nan", "code=two", "", "code=2,,maths=1"):
        with pytest.raises(UserError, match="is not TAG=NUMBER"):
            parse_weights(written)
    with pytest.raises(UserError, match="'a' has the weights 2 and 3"):
        parse_weights("a=2,a=3")
    assert parse_weights("code=2, maths=1.5") == {"code": 2.0, "maths": 1.5}


def test_tags_choose_whole_words() -> None:
    source = "log:loghub/Apache/Apache_2k.log#0"
    assert has_tag(source, "log") and has_tag(source, "log:loghub") and has_tag(source, source)
    assert not has_tag(source, "lo") and not has_tag(source, "log:log") and not has_tag(source, "loghub")
    assert has_tag("code-rust:serde/lib.rs", "code") and not has_tag("codec:x", "code")
