"""Whatever a file holds, it is read, or refused in a sentence: no traceback, no hang, no flood of memory."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.config import LexiconConfig, ModelConfig, TrainConfig
from lexinvariant.decipher.language import load_language
from lexinvariant.errors import UserError
from lexinvariant.model.folder import read_description
from lexinvariant.model.tensor_file import read_tensors
from lexinvariant.model.weights import load_weights, save_model
from lexinvariant.remote import Lease, RemoteFolder, local_copy
from lexinvariant.remote import folder as remote_folder
from lexinvariant.remote import lease as remote_lease
from lexinvariant.settings import from_dict, to_json
from lexinvariant.text import (
    CharVocab,
    Corpus,
    load_vocab,
    open_data,
    prepare,
    read_documents,
    train_tokenizer,
)
from lexinvariant.training.metrics import read_metrics
from tests.fuzz.damage import VALUES, damaged_bytes, damaged_json
from tests.tiny_models import TINY, random_params

fuzz = settings.get_profile("fuzz")
LINES = (
    b'{"text": "One two.", "source": "wiki:A"}\n{"text": "Three \\u00e9", "meta": {"n": [1, 2.5, null]}}\n'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whole file of each kind."""
    place = tmp_path_factory.mktemp("whole")
    (place / "lines.jsonl").write_bytes(LINES)
    pyarrow.parquet.write_table(
        pyarrow.table({"text": ["one", "two", None] * 9, "source": ["a:1", None, "b"] * 9}),
        place / "rows.parquet",
    )
    prepare([str(place / "lines.jsonl")], place / "corpus", valid_fraction=0, test_fraction=0)
    config = replace(TINY, context=8, lexicon=LexiconConfig(kind="permuted"), readout="seen")
    for precision in ("float32", "int8", "int6"):
        save_model(place / precision, config, random_params(config), CharVocab(), precision=precision)
    (place / "text.txt").write_text("the cat and the hat sat there " * 20)
    train_tokenizer([str(place / "text.txt")], place / "tokenizer.json", size=270)
    shutil.copy(load_language().folder / "language.json", place / "language.json")
    (place / "metrics.jsonl").write_text('{"step": 1, "kind": "train", "loss": 2.5}\n' * 3)
    return place


def refused_or(read: Callable[[], Any]) -> None:
    with suppress(UserError):
        read()


@fuzz
@given(data=st.data(), suffix=st.sampled_from(["", ".zst"]))
def test_json_lines(folder: Path, data: st.DataObject, suffix: str) -> None:
    path = folder / f"bad.jsonl{suffix}"
    packed = zstandard.compress(LINES) if suffix else LINES
    path.write_bytes(data.draw(damaged_bytes(packed) | st.binary(max_size=60)))
    for options in ("", "?errors=replace", "?field=source"):
        refused_or(lambda options=options: list(read_documents(f"{path}{options}")))


@fuzz
@given(records=st.lists(VALUES | st.fixed_dictionaries({"text": VALUES, "source": VALUES}), max_size=3))
def test_lines_of_any_json(folder: Path, records: list[Any]) -> None:
    (folder / "bad.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    refused_or(
        lambda: prepare([str(folder / "bad.jsonl")], folder / "bad-corpus", overwrite=True, progress=False)
    )


@fuzz
@given(data=st.data())
def test_parquet(folder: Path, data: st.DataObject) -> None:
    path = folder / "bad.parquet"
    path.write_bytes(data.draw(damaged_bytes((folder / "rows.parquet").read_bytes())))
    refused_or(lambda: list(read_documents(f"{path}?errors=replace")))


def use(corpus: Corpus) -> None:
    for packed in (False, True):
        pieces = corpus.split("train", 4, packed)
        pieces[np.arange(len(pieces))]


@fuzz
@given(
    data=st.data(),
    name=st.sampled_from(["manifest.json", "vocab.json", "train-00000.tokens", "train-00000.documents"]),
)
def test_a_corpus(folder: Path, data: st.DataObject, name: str) -> None:
    bad = folder / "bad-shards"
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(folder / "corpus", bad)
    whole = (bad / name).read_bytes()
    if name.endswith(".json") and data.draw(st.booleans()):
        (bad / name).write_text(json.dumps(data.draw(damaged_json(json.loads(whole)))), encoding="utf-8")
    else:
        (bad / name).write_bytes(data.draw(damaged_bytes(whole)))
    refused_or(lambda: open_data(bad).vocab)
    refused_or(lambda: use(Corpus.open(bad)))  # whatever the hashes say


@fuzz
@given(data=st.data())
def test_settings(data: st.DataObject) -> None:
    whole = json.loads(to_json(TrainConfig()))
    refused_or(lambda: from_dict(TrainConfig, data.draw(damaged_json(whole))))
    refused_or(lambda: from_dict(ModelConfig, data.draw(VALUES)))


@fuzz
@given(data=st.data(), name=st.sampled_from(["config.json", "vocab.json", "model.safetensors"]))
@pytest.mark.parametrize("precision", ["float32", "int8", "int6"])
def test_a_model(folder: Path, precision: str, data: st.DataObject, name: str) -> None:
    bad = folder / "bad-model"
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(folder / precision, bad)
    whole = (bad / name).read_bytes()
    if name.endswith(".json") and data.draw(st.booleans()):
        (bad / name).write_text(json.dumps(data.draw(damaged_json(json.loads(whole)))), encoding="utf-8")
    elif name.endswith(".json"):
        (bad / name).write_bytes(data.draw(damaged_bytes(whole)))
    else:  # its head above all: what follows are numbers
        n = 8 + int.from_bytes(whole[:8], "little")
        (bad / name).write_bytes(data.draw(damaged_bytes(whole[:n])) + whole[n:])
    refused_or(lambda: read_description(bad))
    refused_or(lambda: read_tensors(bad))
    refused_or(lambda: load_weights(bad))


@fuzz
@given(data=st.data())
def test_a_tokenizer(folder: Path, data: st.DataObject) -> None:
    whole = (folder / "tokenizer.json").read_bytes()
    path = folder / "bad-tokenizer.json"
    if data.draw(st.booleans()):
        path.write_text(json.dumps(data.draw(damaged_json(json.loads(whole)))), encoding="utf-8")
    else:
        path.write_bytes(data.draw(damaged_bytes(whole)))
    text = data.draw(st.text(max_size=20))

    def there_and_back() -> None:
        vocab = load_vocab(path)
        vocab.decode(vocab.encode(text))

    refused_or(there_and_back)


@fuzz
@given(data=st.data())
def test_a_language(folder: Path, data: st.DataObject) -> None:
    whole = (folder / "language.json").read_bytes()
    bad = folder / "bad-language"
    bad.mkdir(exist_ok=True)
    if data.draw(st.booleans()):
        (bad / "language.json").write_text(json.dumps(data.draw(damaged_json(json.loads(whole)))), "utf-8")
    else:
        (bad / "language.json").write_bytes(data.draw(damaged_bytes(whole)))
    refused_or(lambda: load_language(bad))


@fuzz
@given(data=st.data())
def test_metrics(folder: Path, data: st.DataObject) -> None:
    (folder / "bad.jsonl").write_bytes(data.draw(damaged_bytes((folder / "metrics.jsonl").read_bytes())))
    assert all(isinstance(row["step"], int) for row in read_metrics(folder / "bad.jsonl"))


@fuzz
@given(data=st.data())
def test_a_remote_folder(folder: Path, data: st.DataObject) -> None:
    url, lease = (
        f"file://{folder}/store",
        b'{"holder": "a machine (process 3)", "token": "0f", "time": 1.5e9}',
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEXINVARIANT_CACHE", str(folder / "cache"))
        patch.setattr(remote_folder, "FIRST_WAIT", 0.0)
        patch.setattr(remote_lease, "SILENCE", 0.0)
        RemoteFolder(url).upload({"a/metrics.jsonl": folder / "metrics.jsonl", "text": folder / "text.txt"})
        whole = (folder / "store" / "contents.json").read_bytes()
        bad = data.draw(
            damaged_json(json.loads(whole)).map(json.dumps).map(str.encode) | damaged_bytes(whole)
        )
        (folder / "store" / "contents.json").write_bytes(bad)
        (folder / "store" / "lease.json").write_bytes(data.draw(damaged_bytes(lease)))
        refused_or(lambda: local_copy(url))
        with Lease(RemoteFolder(url)) as held:
            held.check()
