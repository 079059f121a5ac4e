"""`lexinvariant data`: from a folder of texts to a checked corpus, and the ways in which it fails."""

import json
from pathlib import Path

import pytest

from lexinvariant.cli.main import main
from lexinvariant.errors import UserError
from lexinvariant.text import Corpus, LetterVocab


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(20):
        (folder / f"{i}.txt").write_text(f"This is text number {i}.\n" * 50)
    return folder


@pytest.fixture
def corpus(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "corpus"
    assert main(["data", "prepare", str(texts), str(folder), "--valid-fraction", "0.2"]) == 0
    assert f"Wrote {folder}: train " in capsys.readouterr().out
    return folder


def test_a_prepared_folder_holds_every_character(corpus: Path, texts: Path) -> None:
    manifest = Corpus.open(corpus).manifest
    characters = sum(len(path.read_text()) for path in texts.iterdir())
    assert sum(manifest.tokens(split) for split in ("train", "valid", "test")) == characters
    assert min(manifest.documents(split) for split in ("train", "valid", "test")) >= 1


def test_a_whole_corpus_passes_the_check(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", str(corpus)]) == 0
    assert capsys.readouterr().out.startswith(f"{corpus} is whole: train ")


def test_one_changed_bit_is_found(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = next(corpus.glob("train-*.tokens"))
    data = bytearray(shard.read_bytes())
    data[100] ^= 1
    shard.write_bytes(data)
    assert main(["data", "check", str(corpus)]) == 2
    error = capsys.readouterr().err
    assert f"{shard} is corrupt, its hash does not match the manifest" in error
    assert error.count("\n") == 1


def test_a_shortened_and_a_missing_shard_are_found(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = next(corpus.glob("train-*.tokens"))
    shard.write_bytes(shard.read_bytes()[:-1])
    assert main(["data", "check", str(corpus)]) == 2
    assert "is corrupt" in capsys.readouterr().err
    shard.unlink()
    assert main(["data", "check", str(corpus)]) == 2
    assert f"{shard} is missing" in capsys.readouterr().err


def test_the_vocabulary_of_something_else_is_found(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Training would have gone on with it, and the model would have read its texts with it."""
    LetterVocab(12).save(corpus)
    assert main(["data", "check", str(corpus)]) == 2
    error = capsys.readouterr().err
    assert (
        f"{corpus / 'vocab.json'} belongs to something else, it has the vocabulary letters12 of 12" in error
    )
    assert "the manifest char128 of 128" in error and error.count("\n") == 1
    with pytest.raises(UserError, match="belongs to something else"):
        Corpus.open(corpus)
    (corpus / "vocab.json").unlink()
    assert main(["data", "check", str(corpus)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_no_corpus_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert main(["data", "check", str(tmp_path)]) == 2
    assert "is not a prepared corpus" in capsys.readouterr().err


def test_a_missing_source(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "corpus"
    assert main(["data", "prepare", str(texts / "0.tx"), str(out)]) == 2
    error = capsys.readouterr().err
    assert "0.txt" in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_an_empty_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.txt").write_text("")
    assert main(["data", "prepare", str(tmp_path / "empty.txt"), str(tmp_path / "corpus")]) == 2
    assert capsys.readouterr().err.startswith("lexinvariant: ")
    assert not (tmp_path / "corpus").exists()


def test_one_path_is_not_enough(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "prepare", str(texts)]) == 2
    assert "Give at least one source and the folder to write" in capsys.readouterr().err


def test_a_corpus_is_replaced_only_when_asked(
    corpus: Path, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Corpus.open(corpus).fingerprint
    (texts / "new.txt").write_text("something new\n" * 50)
    assert main(["data", "prepare", str(texts), str(corpus)]) == 2
    assert "holds a prepared corpus already" in capsys.readouterr().err
    assert Corpus.open(corpus).fingerprint == before
    assert main(["data", "prepare", str(texts), str(corpus), "--overwrite"]) == 0
    assert Corpus.open(corpus).fingerprint != before


def test_held_out_sources_can_be_named(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "held.txt").write_text("held out\n" * 10)
    out = tmp_path / "corpus"
    command = ["data", "prepare", str(texts), str(out), "--valid", str(tmp_path / "held.txt")]
    assert main([*command, "--test-fraction", "0"]) == 0
    assert capsys.readouterr().err == ""  # whoever names one document wants one
    corpus = Corpus.open(out)
    assert corpus.manifest.tokens("valid") == 90
    assert corpus.manifest.tokens("test") == 0


def test_a_split_of_few_documents_is_told(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "prepare", str(texts), str(tmp_path / "few")]) == 0
    few = capsys.readouterr().err.splitlines()
    for line, split in zip(few, ("valid", "test"), strict=True):
        assert line.startswith(f"lexinvariant: warning: the {split} split has 1 of 20 documents")
    assert "give --valid-fraction 0.2, or held-out text with --valid SOURCE" in few[0]
    fractions = ["--valid-fraction", "0.4", "--test-fraction", "0.4"]
    assert main(["data", "prepare", str(texts), str(tmp_path / "many"), *fractions]) == 0
    assert capsys.readouterr().err == ""


def test_more_text_is_asked_for_where_the_share_is_as_large_as_it_can_be(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in sorted(texts.iterdir())[8:]:
        path.unlink()
    command = ["data", "prepare", str(texts), str(tmp_path / "few"), "--valid-fraction", "0.2"]
    assert main(command) == 0
    valid, test = capsys.readouterr().err.splitlines()
    assert valid.endswith("give more text, or held-out text with --valid SOURCE.")
    assert test.endswith("give --test-fraction 0.2, or held-out text with --test SOURCE.")


def test_a_part_of_one_text_is_held_out_with_a_warning_only_where_it_is_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "one.txt"
    text.write_text("a line of some book\n" * 30_000)
    assert main(["data", "prepare", str(text), str(tmp_path / "long")]) == 0
    assert capsys.readouterr().err == ""
    text.write_text("a line of some book\n" * 1_500)
    assert main(["data", "prepare", str(text), str(tmp_path / "short")]) == 0
    valid, test = capsys.readouterr().err.splitlines()
    assert "the valid split has 300 of 30,000 tokens, too few for a loss to rely on" in valid
    assert "give --valid-fraction 0.17, or held-out text" in valid
    assert "the test split has 300 of" in test
    text.write_text("ab\n")
    assert main(["data", "prepare", str(text), str(tmp_path / "tiny")]) == 0
    valid, test = capsys.readouterr().err.splitlines()
    assert (
        "the valid split has 0 of 1 documents, too few for a loss to rely on: give more text, or held"
        in valid
    )
    nothing = ["--valid-fraction", "0", "--test-fraction", "0"]
    assert main(["data", "prepare", str(text), str(tmp_path / "none"), *nothing]) == 0
    assert capsys.readouterr().err == ""


def test_dropped_characters_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mixed.txt").write_text("latin " * 100 + "漢字")
    assert main(["data", "prepare", str(tmp_path / "mixed.txt"), str(tmp_path / "corpus")]) == 0
    said = capsys.readouterr()
    assert "2 characters had no place in the vocabulary and were dropped" in said.out
    assert "dropped" not in said.err, "a few are no reason to worry"


def test_text_of_another_script_is_told_about_tokenizers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "corpus"
    text.write_text("latin letters " * 100 + "слово " * 30)
    assert main(["data", "prepare", str(text), str(out)]) == 0
    said = capsys.readouterr().err
    assert (
        "warning: 9% of the characters have no place in char128 and were dropped: to keep them, give a tok"
        in said
    )
    text.write_text("русские слова " * 100)
    assert main(["data", "prepare", str(text), str(out), "--overwrite"]) == 2
    said = capsys.readouterr().err
    assert "86% of the characters have no place in char128: give a tokenizer" in said and "--vocab" in said
    assert "latin" in (out / "train-00000.tokens").read_text(), "the corpus that was there stays"


def test_a_kind_of_text_that_is_not_held_out_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "text.jsonl"
    text = "some text\n" * 50
    lines = [{"text": text, "source": f"{'rare' if i == 0 else 'usual'}:{i}"} for i in range(300)]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [
        "data",
        "prepare",
        str(source),
        str(tmp_path / "out"),
        "--overwrite",
        "--valid-fraction",
        "0.1",
    ]
    assert main([*command, "--test-fraction", "0"]) == 0
    assert capsys.readouterr().err.startswith(
        "lexinvariant: warning: the valid split has nothing of rare: give a larger"
    )
    assert main([*command, "--test-fraction", "0", "--exclude-tags", "rare"]) == 0
    assert capsys.readouterr().err == ""


def test_text_that_is_trained_on_is_no_held_out_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("some text to read. " * 200)
    source = str(tmp_path / "a.txt")
    assert main(["data", "prepare", source, str(tmp_path / "out"), "--valid", source]) == 0
    assert "is trained on and is the valid split too" in capsys.readouterr().err


def test_tags_that_leave_nothing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.dumps({"text": "words " * 50, "source": f"{tag}:{tag}"}) for tag in ("code", "wiki")]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    tags = ["--exclude-tags", "code", "wiki"]
    assert main(["data", "prepare", str(tmp_path / "a.jsonl"), str(tmp_path / "out"), *tags]) == 2
    assert "the tags leave no document: those of these sources are code, wiki" in capsys.readouterr().err


def test_a_list_that_is_given_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--exclude-tags", "wiki", "--exclude_tags=code"]
    assert main(["data", "prepare", "stdlib", str(tmp_path / "out"), *twice]) == 2
    assert "--exclude-tags is given 2 times: give all of its values after one" in capsys.readouterr().err
    assert main(["experiment", "naming", "--words", "one", "--words", "two"]) == 2
    assert "--words is given 2 times" in capsys.readouterr().err
    assert main(["score", "bundled", "--file", "one.txt", "--file", "two.txt"]) == 2
    assert "--file is given 2 times" in capsys.readouterr().err
    assert main(["data", "collect", str(tmp_path), str(tmp_path / "out"), "--megabytes", "0"]) == 2
    assert "megabytes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
