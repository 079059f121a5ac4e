import json
import resource
import signal
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.locks import staging_folder
from lexinvariant.text import SPLITS, Corpus, Document, Manifest, prepare
from lexinvariant.text.splits import assign, book_of


def write_lines(path: Path, records: list[dict[str, str]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def some_documents(n: int) -> list[dict[str, str]]:
    return [{"text": f"document {i} " * (1 + i % 7), "source": f"tag{i % 3}:{i}"} for i in range(n)]


def read_back(corpus: Corpus, split: str) -> list[str]:
    """Every document of a split, straight from the files."""
    documents = []
    for shard in corpus.manifest.splits[split]:
        tokens = np.fromfile(corpus.folder / shard.tokens_file, corpus.manifest.dtype)
        offsets = np.fromfile(corpus.folder / shard.documents_file, "<i8")
        documents += [corpus.vocab.decode(tokens[a:b]) for a, b in pairwise(offsets)]
    return documents


def test_every_document_is_kept_once_and_whole(tmp_path: Path) -> None:
    records = some_documents(500)
    manifest = prepare([write_lines(tmp_path / "a.jsonl", records)], tmp_path / "out", shard_tokens=2000)
    corpus = Corpus.open(tmp_path / "out", verify=True)
    assert corpus.manifest == manifest
    kept = [text for split in SPLITS for text in read_back(corpus, split)]
    assert sorted(kept) == sorted(record["text"] for record in records)
    assert len(manifest.splits["train"]) > 5 and all(manifest.splits[split] for split in SPLITS)
    assert manifest.bytes_in == sum(len(record["text"]) for record in records)
    assert sum(manifest.tokens_by_tag.values()) == sum(manifest.tokens(split) for split in SPLITS)
    assert set(manifest.tokens_by_tag) == {"tag0", "tag1", "tag2"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out"]


def test_split_depends_on_the_source_name_alone() -> None:
    documents = [Document("x", f"book:{i}#{k}") for i in range(300) for k in range(3)]
    sides: dict[str, set[str]] = {}
    for split, document in assign(documents, 0.1, 0.1):
        sides.setdefault(book_of(document.source), set()).add(split)
    assert all(len(found) == 1 for found in sides.values())
    reordered = {book_of(document.source): {split} for split, document in assign(documents[::-1], 0.1, 0.1)}
    assert reordered == sides
    counts = {split: sum(found == {split} for found in sides.values()) for split in SPLITS}
    assert 15 < counts["valid"] < 45 and 15 < counts["test"] < 45


@pytest.mark.parametrize("n", [3, 4, 10, 50])
def test_a_small_corpus_still_has_all_splits(n: int) -> None:
    documents = [Document("x", f"file:{i}") for i in range(n)]
    assert {split for split, _ in assign(documents, 0.01, 0.01)} == set(SPLITS)


@pytest.mark.parametrize("n", [1, 2])
def test_one_long_text_is_split_within(n: int) -> None:
    text = "".join(f"line {i}\n" for i in range(5000))
    parts = list(assign([Document(text, f"file:{i}") for i in range(n)], 0.05, 0.1))
    assert "".join(document.text for _, document in parts) == text * n
    assert [split for split, _ in parts] == ["train", "valid", "test"] * n
    assert all(document.text.endswith("\n") for _, document in parts)
    assert len(parts[1][1].text) == pytest.approx(0.05 * len(text), rel=0.05)
    assert [split for split, _ in assign([Document(text, "file:a")], 0.1, 0.0)] == ["train", "valid"]


def test_explicit_held_out_sources(tmp_path: Path) -> None:
    train = write_lines(tmp_path / "train.jsonl", some_documents(50))
    (tmp_path / "valid.txt").write_text("held out")
    (tmp_path / "test.txt").write_text("tested on")
    held_out = {"valid": [str(tmp_path / "valid.txt")], "test": [str(tmp_path / "test.txt")]}
    prepare([train], tmp_path / "out", **held_out)
    corpus = Corpus.open(tmp_path / "out")
    assert read_back(corpus, "valid") == ["held out"] and read_back(corpus, "test") == ["tested on"]
    assert corpus.manifest.documents("train") == 50


def test_dropped_characters_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("naïve 漢字 text\n" * 100)
    manifest = prepare([str(tmp_path / "a.txt")], tmp_path / "out")
    assert manifest.dropped_characters == 200
    assert manifest.bytes_in == len("naïve 漢字 text\n".encode()) * 100
    with pytest.raises(UserError, match="no text to train on"):
        (tmp_path / "b.txt").write_text("漢字")
        prepare([str(tmp_path / "b.txt")], tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


def test_fingerprint_tells_corpora_apart(tmp_path: Path) -> None:
    a, b = some_documents(20), some_documents(21)
    first = prepare([write_lines(tmp_path / "a.jsonl", a)], tmp_path / "1")
    same = prepare([write_lines(tmp_path / "copy.jsonl", a)], tmp_path / "2")
    other = prepare([write_lines(tmp_path / "b.jsonl", b)], tmp_path / "3")
    assert first.fingerprint == same.fingerprint != other.fingerprint


def test_overwriting(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", some_documents(20))
    prepare([source], tmp_path / "out")
    with pytest.raises(UserError, match="holds a prepared corpus already"):
        prepare([source], tmp_path / "out")
    more = write_lines(tmp_path / "b.jsonl", some_documents(40))
    prepare([more], tmp_path / "out", overwrite=True)
    assert sum(Manifest.read(tmp_path / "out").documents(split) for split in SPLITS) == 40
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="will not be touched"):
        prepare([source], tmp_path / "mine", overwrite=True)
    (tmp_path / "new").mkdir()
    prepare([source], tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) & 0o500 == 0o500


@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_half_way_leaves_nothing_behind(tmp_path: Path, existing: bool) -> None:
    good = write_lines(tmp_path / "good.jsonl", some_documents(100))
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\nbroken\n')
    if existing:
        prepare([good], tmp_path / "out")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(UserError, match="line 2"):
        prepare([good, str(tmp_path / "bad.jsonl")], tmp_path / "out", shard_tokens=500, overwrite=True)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    if existing:
        Corpus.open(tmp_path / "out", verify=True)


KILLED = """
import os, signal, sys
from pathlib import Path
from lexinvariant.text import prepare, vocab
vocab.CharVocab.save = lambda self, folder: os.kill(os.getpid(), signal.SIGKILL)
prepare([sys.argv[1]], Path(sys.argv[2]))
"""


def test_what_a_kill_left_is_removed_and_the_work_of_others_is_not(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", some_documents(20))
    with staging_folder(tmp_path / "out") as of_another:
        killed = subprocess.run([sys.executable, "-c", KILLED, source, str(tmp_path / "out")], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(list(tmp_path.glob(".out.partial-*"))) == 2
        prepare([source], tmp_path / "out")
        assert list(tmp_path.glob(".out.partial-*")) == [of_another]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out"]


def test_a_kill_while_a_corpus_is_replaced_loses_neither(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", some_documents(20))
    prepare([source], tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.old-123")
    with pytest.raises(UserError, match="holds a prepared corpus already"):
        prepare([source], tmp_path / "out")
    Corpus.open(tmp_path / "out", verify=True)
    assert not (tmp_path / ".out.old-123").exists()


def test_full_disk(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", some_documents(2000))
    prepare([source], tmp_path / "out")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # bytes of a file
    try:
        with pytest.raises(UserError, match=r"no room left to write .*free some space"):
            prepare([source], tmp_path / "out", overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out"]
    Corpus.open(tmp_path / "out", verify=True)


def test_unwritable_place(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", some_documents(5))
    with pytest.raises(UserError, match=r"cannot write .*Not a directory"):
        prepare([source], Path(source) / "out")


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no source to prepare"):
        prepare([], tmp_path / "out")
    with pytest.raises(UserError, match="leave nothing to train on"):
        prepare(["stdlib"], tmp_path / "out", valid_fraction=0.5, test_fraction=0.5)
    with pytest.raises(UserError, match="fraction for testing is nan: give a finite number"):
        prepare(["stdlib"], tmp_path / "out", test_fraction=float("nan"))


def test_many_tags_are_bounded(tmp_path: Path) -> None:
    records = [{"text": "x", "source": f"t{i}:{i}"} for i in range(200)]
    manifest = prepare([write_lines(tmp_path / "a.jsonl", records)], tmp_path / "out")
    assert len(manifest.tokens_by_tag) <= 65 and manifest.tokens_by_tag["other"] == 136


PEAK = """
import resource, sys
from pathlib import Path
from lexinvariant.text import prepare
prepare([sys.argv[1]], Path(sys.argv[2]), shard_tokens=1 << 22)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("suffix", [".txt", ".jsonl"])
def test_memory_stays_flat(tmp_path: Path, suffix: str) -> None:
    def peak(megabytes: int) -> int:
        source = tmp_path / f"{megabytes}{suffix}"
        text = "words of some length " * 500
        line = text + "\n" if suffix == ".txt" else json.dumps({"text": text}) + "\n"
        with source.open("w") as file:
            for _ in range(megabytes * 100):
                file.write(line)
        command = [sys.executable, "-c", PEAK, str(source), str(tmp_path / f"out{megabytes}")]
        unit = 1 if sys.platform == "darwin" else 1024
        return int(subprocess.run(command, check=True, capture_output=True).stdout) * unit

    assert peak(100) < peak(45) + 10e6


def test_tags_choose_what_is_taken(tmp_path: Path) -> None:
    records = [
        {"text": f"{tag} {i} ", "source": f"{tag}/{i}"}
        for tag in ("log:hub", "log:own", "wiki:a")
        for i in range(9)
    ]
    source = write_lines(tmp_path / "a.jsonl", records)

    def taken(**choice: list[str]) -> set[str]:
        prepare([source], tmp_path / "out", valid=[source], test=[source], overwrite=True, **choice)
        corpus = Corpus.open(tmp_path / "out", verify=True)
        kinds = {split: {text.split()[0] for text in read_back(corpus, split)} for split in SPLITS}
        assert kinds["train"] == kinds["valid"] == kinds["test"]
        return kinds["train"]

    assert taken(exclude_tags=["log:hub"]) == {"log:own", "wiki:a"}
    assert taken(tags=["log"]) == {"log:hub", "log:own"}
    assert taken(tags=["log"], exclude_tags=["log:own"]) == {"log:hub"}
    before = Corpus.open(tmp_path / "out").fingerprint
    with pytest.raises(
        UserError,
        match="no document has the tag 'log:loghub': the tags of these sources are log, wiki; leave it out",
    ):
        taken(exclude_tags=["log:loghub"])
    assert Corpus.open(tmp_path / "out").fingerprint == before


def test_a_corpus_of_an_older_release_has_no_tags_and_can_be_read(tmp_path: Path) -> None:
    prepare([write_lines(tmp_path / "a.jsonl", some_documents(50))], tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("tags")
    for shards in manifest["splits"].values():
        for shard in shards:
            (tmp_path / "out" / f"{shard['name']}.tags").unlink()
            shard.pop("tags_sha256")
    path.write_text(json.dumps(manifest))
    pieces = Corpus.open(tmp_path / "out", verify=True).split("train", 4)
    assert len(pieces.batch(0, 0, 8).tok_BT) == 8
    with pytest.raises(UserError, match=r"prepared by an older release.*: prepare it again"):
        pieces.pieces_by_tag  # noqa: B018


@pytest.mark.parametrize("below", ["", "corpus"])
def test_links_that_lead_in_a_circle_are_told(below: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match=r"leads in a circle|Too many levels of symbolic links"):
        prepare(["sums:9"], tmp_path / "loop" / below, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


def test_of_two_preparations_at_once_the_second_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "corpus"
    write = Manifest.write

    def slow(self: Manifest, folder: Path) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Manifest, "write", write)
            prepare(["sums:30"], out, progress=False)
        write(self, folder)

    monkeypatch.setattr(Manifest, "write", slow)
    with pytest.raises(UserError, match="holds a prepared corpus already"):
        prepare(["sums:60"], out, progress=False)
    assert Corpus.open(out, verify=True).manifest.sources == ("sums:30",)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
