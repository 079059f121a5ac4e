"""`lexinvariant score` and `lexinvariant generate`, on models that were never trained."""

import io
import json
import math
import re
import sys
from pathlib import Path

import pytest

from lexinvariant.api import load
from lexinvariant.cli.main import main
from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model import params as model_params
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab

PAIR = ("a big banana", "e cop cekeke")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("score") / "model"
    lexicon = LexiconConfig(kind="permuted")
    config = ModelConfig(
        context=128, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=32, lexicon=lexicon, readout="seen"
    )
    save_model(folder, config, model_params.init(config, 0), CharVocab())
    return str(folder)


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_texts_that_differ_in_names_only_have_the_same_score(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", model, *PAIR, "--draws", "3", "--json"]) == 0
    first, second = rows(capsys)
    assert (first["text"], second["text"]) == PAIR
    assert first["tokens"] == second["tokens"]
    [expected] = load(model).score(PAIR[0], draws=3)
    assert first["tokens"] == expected.tolist()
    assert first["total"] == pytest.approx(expected.sum())


def test_a_line_a_text_for_people(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    long = "abcdefghij" * 7
    assert main(["score", model, PAIR[0], long]) == 0
    first, second = capsys.readouterr().out.splitlines()
    [score] = load(model).score(PAIR[0])
    assert f"{score.sum():.4f} nats" in first
    assert f"{math.exp(-score.mean()):.3f}" in first
    assert first.endswith("'a big banana'")
    assert second.endswith(f"'{long[:57]}...'")


def test_a_file_and_standard_input_are_scored_as_their_text_is(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text(PAIR[0])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PAIR[0].encode())))
    assert main(["score", model, PAIR[0], "--file", str(tmp_path / "text.txt"), "-", "--json"]) == 0
    given, from_file, from_stdin = rows(capsys)
    assert given == from_file == from_stdin


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is empty"),
        (b"a\xff", "is not UTF-8 text: byte 0xff at offset 1"),
    ],
)
def test_a_file_that_cannot_be_scored(
    model: str, tmp_path: Path, content: bytes | None, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    assert main(["score", model, "--file", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path} {sentence}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "There is nothing to score"),
        ([""], "Text 0 is empty"),
        (["a", "--draws", "0"], "at least one draw"),
    ],
)
def test_nothing_to_score(
    model: str, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", model, *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_the_bundled_model_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("score", "generate"):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        out = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert f"lexinvariant {command} bundled" in out
        assert "(default: bundled)" in out
        assert "STR" not in out.partition("options")[0]
    assert main(["score", "only one text"]) == 2
    assert 'lexinvariant score bundled "a text"' in capsys.readouterr().err


def test_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("score", "generate"):
        assert main([command, str(tmp_path / "nowhere"), "a"]) == 2
        assert "There is no folder" in capsys.readouterr().err
        assert main([command, str(tmp_path), "a"]) == 2
        assert "holds no model" in capsys.readouterr().err


def test_a_continuation_begins_with_its_prompt_and_depends_on_the_seed_alone(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for seed in ("1", "1", "2"):
        assert main(["generate", model, "a big ", "--n-tokens", "20", "--seed", seed]) == 0
        outputs.append(capsys.readouterr().out)
    assert all(output.startswith("a big ") and len(output) == len("a big ") + 20 + 1 for output in outputs)
    assert outputs[0] == outputs[1] != outputs[2]


def test_the_most_likely_symbol_leaves_no_choice(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = set()
    for temperature in ("0.5", "2.0"):
        command = [
            "generate",
            model,
            "abcabc",
            "--n-tokens",
            "10",
            "--top-k",
            "1",
            "--temperature",
            temperature,
        ]
        assert main(command) == 0
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 1


@pytest.mark.parametrize("option", ["n-tokens", "temperature", "top-k"])
def test_settings_that_cannot_generate(model: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", model, "a", f"--{option}", "0"]) == 2
    assert re.search(rf"{option.replace('-', '_')} is 0(\.0)?: give a number", capsys.readouterr().err)
