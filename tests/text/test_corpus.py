import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.errors import UserError
from lexinvariant.text import Corpus, Data, open_data, prepare


def make(folder: Path, texts: list[str], shard_tokens: int = 1 << 20) -> Corpus:
    source = folder / "source.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    prepare([str(source)], folder / "corpus", valid_fraction=0, test_fraction=0, shard_tokens=shard_tokens)
    return Corpus.open(folder / "corpus")


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.text("abcdef", min_size=1, max_size=40), min_size=1, max_size=20),
    length=st.integers(1, 12),
    shard_tokens=st.integers(1, 100),
)
def test_pieces_rebuild_the_documents(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], length: int, shard_tokens: int
) -> None:
    texts.append("f" * length)  # never shorter than one sequence
    corpus = make(tmp_path_factory.mktemp("corpus"), texts, shard_tokens)
    pieces = corpus.split("train", length)
    expected = [text[at : at + length] for text in texts for at in range(0, len(text), length)]
    batch = pieces[np.arange(len(pieces))]
    assert [
        corpus.vocab.decode(tok[mask]) for tok, mask in zip(batch.tok_BT, batch.mask_BT, strict=True)
    ] == expected
    assert not batch.tok_BT[~batch.mask_BT].any()
    assert (np.diff(batch.mask_BT.astype(int), axis=1) <= 0).all()  # padding only at the end

    packed = corpus.split("train", length, packed=True)
    stream = "".join(texts)
    batch = packed[np.arange(len(packed))]
    assert len(packed) == len(stream) // length and batch.mask_BT.all()
    assert corpus.vocab.decode(batch.tok_BT.ravel()) == stream[: len(packed) * length]


def test_batches(tmp_path: Path) -> None:
    corpus = make(tmp_path, [f"document number {i} " * 5 for i in range(60)], shard_tokens=500)
    pieces = corpus.split("train", 16)
    batch = pieces.batch(seed=3, step=5, size=8)
    assert batch.tok_BT.shape == (8, 16) and batch.tok_BT.dtype == np.int32
    assert batch.mask_BT.dtype == np.bool_ and batch.piece_B.dtype == np.int64
    again = Corpus.open(tmp_path / "corpus").split("train", 16)
    rows = [again.batch(3, 5, 8, range(k, k + 2)) for k in (0, 2, 4, 6)]
    assert np.array_equal(np.concatenate([row.tok_BT for row in rows]), batch.tok_BT)
    assert np.array_equal(again[batch.piece_B].tok_BT, batch.tok_BT)
    epoch = np.concatenate([pieces.batch(3, step, 1).piece_B for step in range(len(pieces))])
    assert sorted(epoch) == list(range(len(pieces))) and list(epoch) != sorted(epoch)


def test_wrong_indices(tmp_path: Path) -> None:
    pieces = make(tmp_path, ["abc"] * 5).split("train", 3)
    for index in (-1, 5):
        with pytest.raises(IndexError):
            pieces[[index]]
    with pytest.raises(ValueError, match="rows"):
        pieces.batch(0, 0, 4, range(3, 6))


def test_too_little_text(tmp_path: Path) -> None:
    corpus = make(tmp_path, ["abcde", "fgh"])
    with pytest.raises(UserError, match=r"train split of .* has 8 tokens, fewer than one sequence of 512"):
        corpus.split("train", 512)
    with pytest.raises(UserError, match=r"has 0 tokens.*larger valid share"):
        corpus.split("valid", 4)
    with pytest.raises(UserError, match="8 tokens, that is 3 sequences of 4, fewer than one batch of 64"):
        corpus.split("train", 4).batch(0, 0, 64)
    with pytest.raises(UserError, match="no split 'dev'"):
        corpus.split("dev", 4)
    with pytest.raises(UserError, match="length of 1"):
        corpus.split("train", 0)


def test_corrupt_shards(tmp_path: Path) -> None:
    make(tmp_path, ["some text"] * 50)
    shard = tmp_path / "corpus" / "train-00000.tokens"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"train-00000\.tokens is corrupt, it has 449 bytes and not 450"):
        Corpus.open(tmp_path / "corpus")
    shard.write_bytes(b"S" + whole[1:])
    Corpus.open(tmp_path / "corpus")
    with pytest.raises(UserError, match=r"train-00000\.tokens is corrupt, its hash"):
        Corpus.open(tmp_path / "corpus", verify=True)
    shard.unlink()
    with pytest.raises(UserError, match=r"train-00000\.tokens is missing"):
        Corpus.open(tmp_path / "corpus")


def test_wrong_folders_and_manifests(tmp_path: Path) -> None:
    make(tmp_path, ["some text"])
    with pytest.raises(UserError, match=r"did you mean .*corpus\?.*data prepare"):
        open_data(str(tmp_path / "corups"))
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match=r"no manifest\.json"):
        Corpus.open(tmp_path / "other")
    manifest = tmp_path / "corpus" / "manifest.json"
    record = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**record, "version": 99}))
    with pytest.raises(UserError, match="format 99"):
        Corpus.open(tmp_path / "corpus")
    for damaged in ("{", "[]", json.dumps({**record, "splits": 3}), json.dumps({**record, "extra": 1})):
        manifest.write_text(damaged)
        with pytest.raises(
            UserError, match=r"manifest\.json is (damaged|not valid JSON|not a JSON object).* again"
        ):
            Corpus.open(tmp_path / "corpus")


def test_open_data_gives_what_training_needs(tmp_path: Path) -> None:
    make(tmp_path, ["some text"])
    data: Data = open_data(tmp_path / "corpus")
    assert data.vocab.name == "char128" and data.vocab_size == 128 and len(data.fingerprint) == 64
    assert data.split("train", 4).length == 4


@pytest.mark.parametrize("suffix", ["tokens", "documents"])
def test_a_shard_with_wrong_bytes_is_refused_before_it_is_used(tmp_path: Path, suffix: str) -> None:
    make(tmp_path, ["some text", "and more of it"])
    open_data(tmp_path / "corpus")  # was whole, and is noted to be
    shard = tmp_path / "corpus" / f"train-00000.{suffix}"
    shard.write_bytes(shard.read_bytes()[::-1])
    with pytest.raises(UserError, match=f"{suffix} is corrupt, its hash does not match"):
        open_data(tmp_path / "corpus")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("suffix", ["tokens", "documents"])
def test_a_shard_that_loses_its_end_while_it_is_read_is_told(
    tmp_path: Path, suffix: str, packed: bool
) -> None:
    pieces = make(tmp_path, ["some text"] * 50).split("train", 4, packed)
    shard = tmp_path / "corpus" / f"train-00000.{suffix}"
    os.truncate(shard, 0)  # to read it now would be the end of this process
    with pytest.raises(UserError, match=f"{suffix} has lost its end while it was in use"):
        pieces.batch(0, 0, 2)


def test_a_shard_that_is_replaced_while_it_is_read_is_read_on(tmp_path: Path) -> None:
    pieces = make(tmp_path, ["some text"] * 50).split("train", 4)
    before = pieces.batch(0, 0, 2)
    shard = tmp_path / "corpus" / "train-00000.tokens"
    shard.unlink()
    np.testing.assert_array_equal(pieces.batch(0, 0, 2).tok_BT, before.tok_BT)
    (tmp_path / "other").touch()
    (tmp_path / "other").rename(shard)
    np.testing.assert_array_equal(pieces.batch(0, 0, 2).tok_BT, before.tok_BT)


def test_hashes_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, ["some text"])
    open_data(tmp_path / "corpus")
    monkeypatch.setattr(Corpus, "verify", lambda corpus: pytest.fail("compared again"))
    open_data(tmp_path / "corpus")


def test_tokens_and_offsets_out_of_range_are_refused_whatever_the_hashes_say(tmp_path: Path) -> None:
    corpus = make(tmp_path, ["some text", "and more of it"])
    tokens, documents = (tmp_path / "corpus" / f"train-00000.{kind}" for kind in ("tokens", "documents"))
    whole = documents.read_bytes()
    for wrong in ((1, 9, 23), (0, 9, 22), (0, 24, 23)):
        documents.write_bytes(np.array(wrong, "<i8").tobytes())
        with pytest.raises(UserError, match=r"documents is corrupt, its documents do not follow"):
            corpus.split("train", 4)
    documents.write_bytes(whole)
    tokens.write_bytes(b"\xf0" * tokens.stat().st_size)
    for packed in (False, True):
        with pytest.raises(UserError, match="tokens outside its vocabulary"):
            corpus.split("train", 4, packed)[np.arange(2)]


@pytest.mark.parametrize(
    "change",
    [
        {"vocab_size": "many"},
        {"vocab_size": 0},
        {"dtype": "object"},
        {"splits": {"train": []}},
        {"tokens_by_tag": {"a": "b"}},
    ],
)
def test_a_manifest_of_wrong_types_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    make(tmp_path, ["some text"])
    manifest = tmp_path / "corpus" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    with pytest.raises(UserError, match=r"manifest\.json is damaged"):
        Corpus.open(tmp_path / "corpus")


def test_a_shard_cannot_lie_outside_its_folder(tmp_path: Path) -> None:
    make(tmp_path, ["some text"])
    manifest = tmp_path / "corpus" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"train-00000"', '"../train-00000"'))
    for file in (tmp_path / "corpus").glob("train-*"):
        file.rename(tmp_path / file.name)
    with pytest.raises(UserError, match="a shard lies outside the folder"):
        Corpus.open(tmp_path / "corpus")
