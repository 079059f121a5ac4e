import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.errors import UserError
from lexinvariant.text import Corpus, HuggingFaceVocab, load_vocab, prepare, read_documents, train_tokenizer


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tokenizer") / "own"
    train_tokenizer(["stdlib:code?limit=40"], out, size=600)
    return out


def test_training_writes_a_tokenizer_of_the_asked_size(trained: Path) -> None:
    vocab = load_vocab(trained)
    assert vocab.size == 600
    assert [path.name for path in trained.iterdir()] == ["tokenizer.json"]
    ids = vocab.encode("def function(self):\n    return None\n")
    assert ids.dtype == np.uint16 and len(ids) < 25


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_comes_back(trained: Path, text: str) -> None:
    vocab = load_vocab(trained)
    assert vocab.decode(vocab.encode(text)) == text


def test_round_trip_of_awkward_text(trained: Path) -> None:
    vocab = load_vocab(trained / "tokenizer.json")
    text = " leading,\ttabs\r\n\n   runs   of spaces, naïve 漢字 🙂 <s> [PAD] "
    assert vocab.decode(vocab.encode(text)) == text
    assert vocab.decode(vocab.encode("half a pair: \ud83d")) == "half a pair: ?"


def test_training_is_deterministic(trained: Path, tmp_path: Path) -> None:
    again = train_tokenizer(["stdlib:code?limit=40"], tmp_path / "again.json", size=600)
    assert (tmp_path / "again.json").read_bytes() == (trained / "tokenizer.json").read_bytes()
    assert again.name == load_vocab(trained).name


def test_max_bytes_bounds_what_is_read(tmp_path: Path) -> None:
    lines = [json.dumps({"text": "ab " * 100}), json.dumps({"text": "ab " * 100}), "not json at all"]
    (tmp_path / "some.jsonl").write_text("\n".join(lines))
    train_tokenizer([str(tmp_path / "some.jsonl")], tmp_path / "t.json", size=300, max_bytes=500)
    with pytest.raises(UserError, match="line 3"):
        train_tokenizer([str(tmp_path / "some.jsonl")], tmp_path / "u.json", size=300)
    assert not (tmp_path / "u.json").exists()


@pytest.mark.parametrize("most", [0, -5])
def test_training_on_nothing_is_refused(most: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"on {most} bytes of text"):
        train_tokenizer(["sums:9"], tmp_path, size=300, max_bytes=most)


def test_training_refuses_to_overwrite_and_tiny_sizes(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        train_tokenizer(["stdlib:code?limit=1"], trained)
    with pytest.raises(UserError, match="at least 257"):
        train_tokenizer(["stdlib:code?limit=1"], tmp_path / "t", size=100)
    with pytest.raises(UserError, match="at most 10,000,000 tokens"):
        train_tokenizer(["stdlib:code?limit=1"], tmp_path / "t", size=10**20)
    train_tokenizer(["stdlib:code?limit=1"], tmp_path / "t", size=300)
    train_tokenizer(["stdlib:code?limit=2"], tmp_path / "t", size=300, overwrite=True)


def test_size_counts_gaps_between_ids(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 70_000}, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(1)
    vocab = HuggingFaceVocab(tokenizer)
    assert vocab.size == 70_001
    ids = vocab.encode("b a b")
    assert ids.dtype == np.uint32 and ids.tolist() == [70_000, 0, 70_000]


def test_a_text_is_the_same_tokens_each_time(trained: Path, tmp_path: Path) -> None:
    tokenizer = json.loads((trained / "tokenizer.json").read_text())
    tokenizer["model"]["dropout"] = 0.5
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    text = "def function(return)"
    ids = load_vocab(trained).encode(text).tolist()
    assert [load_vocab(tmp_path).encode(text).tolist() for _ in range(9)] == [ids] * 9


def test_a_corpus_carries_its_tokenizer(trained: Path, tmp_path: Path) -> None:
    prepare(["stdlib:code?limit=20"], tmp_path / "corpus", vocab=str(trained), progress=False)
    corpus = Corpus.open(tmp_path / "corpus", verify=True)
    assert corpus.vocab_size == 600 and corpus.manifest.dtype == "uint16"
    assert corpus.vocab.name == corpus.manifest.vocab == load_vocab(trained).name
    text = corpus.vocab.decode(corpus.split("train", 64)[[0]].tok_BT[0])
    assert any(document.text.startswith(text) for document in read_documents("stdlib:code?limit=20"))
