"""`lexinvariant semantic`: what it prints, and one sentence for what it cannot read."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from lexinvariant.cli import semantic
from lexinvariant.cli.main import main
from lexinvariant.decipher.word_cipher import WORDS, encipher_words
from lexinvariant.decipher.words import WordReading

PLAIN = "The value of the name is the object, and the object is a value. If an object has a zygote, the name is a name."


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["semantic", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plain_text_is_enciphered_and_read_as_its_cipher_is(
    word_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enciphered = encipher_words(PLAIN, 5)
    shown = told(capsys, PLAIN, "--encipher", "--seed", "5", "--model", str(word_model), "--top", "2")
    assert shown["ciphertext"] == enciphered.ciphertext
    assert shown["n_words"] == 25
    assert {row["word"]: row["truth"] for row in shown["words"]} == enciphered.key
    right = sum(row["count"] for row in shown["words"] if row["name"] == row["truth"])
    assert shown["n_right"] == right
    assert all(len(row["guesses"]) == 2 for row in shown["words"])
    (tmp_path / "cipher.txt").write_text(enciphered.ciphertext + "\n")
    read = told(capsys, "--file", str(tmp_path / "cipher.txt"), "--model", str(word_model))
    assert [row["name"] for row in read["words"]] == [row["name"] for row in shown["words"]]
    assert read["plaintext"] == shown["plaintext"]
    assert "truth" not in read["words"][0]


def test_the_text_comes_first_then_the_words_and_how_sure(
    word_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["semantic", PLAIN, "--encipher", "--model", str(word_model), "--rows", "3", "--likely", "1"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    enciphered = encipher_words(PLAIN)
    assert (
        lines[0] == lines[2] == enciphered.ciphertext
    )  # nothing is certain, so nothing is put into the text
    the = next(made_up for made_up, word in enciphered.key.items() if word == "the")
    assert lines[4].startswith(the)
    assert lines[4].endswith("really the")
    assert "and 9 other words (--rows 12 lists them all)" in shown
    assert "of 25 words are expected to be right" in shown
    assert "of 25 words (1 of them not single tokens of this model, so it cannot name them)" in shown
    assert "\x1b" not in shown


def test_a_terminal_shows_confidence_in_colours() -> None:
    probs = np.array([[0.95, 0.03, 0.02], [0.2, 0.7, 0.1], [0.9, 0.05, 0.05]])
    key = {"ab": "the", "cd": "of", "ef": "a"}
    reading = WordReading("Ab cd, ef!", tuple(key), (1, 1, 1), ("the", "of", "a"), probs, key, WORDS)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    semantic.show(reading, {}, semantic.Arguments(), 0.5, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[32mThe\x1b[0m \x1b[33mof\x1b[0m, \x1b[2mef\x1b[0m!" in shown
    assert "ef    1x  \x1b[1;4;31ma 5%\x1b[0m   or the 90%, of 5%" in shown
    assert "2 of 3 words are expected to be right" in shown


def test_brackets_are_text() -> None:
    key = {"ab": "the"}
    reading = WordReading("[/Ab] [ab] ab", tuple(key), (3,), ("the",), np.array([[1.0]]), key, WORDS)
    console = Console(file=io.StringIO(), width=80)
    semantic.show(reading, {}, semantic.Arguments(), 0.5, console)
    assert console.file.getvalue().startswith("[/The] [the] the\n")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "give a TEXT"),
        (["ab", "--file", "story.txt"], "are both given"),
        (["ab ab cd"], "No model that names words comes with the package"),
        (["ab ab cd", "--model", "./nowhere"], "no folder"),
        (["ab ab cd", "--model", "bundled"], "it reads characters"),
        (["ab ab cd", "--top", "0"], "--top 0 is too few"),
        (["ab ab cd", "--likely", "2"], "not a probability"),
        (["ab ab cd", "--encipher", "--marks-too"], "leave --marks-too out"),
        (["17 + 4", "--encipher"], "no word in this text"),
    ],
)
def test_bad_arguments_in_one_sentence(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["semantic", *arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert len(said.strip().splitlines()) == 1


def test_bad_texts_and_tokenizers_in_one_sentence(
    word_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    shutil.copytree(word_model, model)

    def refused(*arguments: str) -> str:
        assert main(["semantic", *arguments, "--model", str(model)]) == 2
        said = capsys.readouterr().err
        assert len(said.strip().splitlines()) == 1
        return said

    (tmp_path / "latin").write_bytes(b"caf\xe9 caf\xe9 caf\xe9")
    assert "not UTF-8" in refused("--file", str(tmp_path / "latin"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "- is empty" in refused("-")
    assert "has 2 words" in refused("so few")
    described = json.loads((model / "vocab.json").read_text())
    (model / "vocab.json").write_text(json.dumps(described | {"size": 32_000}))
    assert "and vocab.json beside it says 32000" in refused(PLAIN)
    (model / "tokenizer.json").unlink()
    assert "holds no tokenizer.json" in refused(PLAIN)
