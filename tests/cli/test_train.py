"""`lexinvariant train`: its presets, its standard twin, and what a full disk does to it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.api import load
from lexinvariant.cli.main import main
from lexinvariant.model.weights import read_description
from lexinvariant.presets import PRESETS
from lexinvariant.text import LetterVocab
from lexinvariant.text.toy import MarkovPieces
from lexinvariant.training.checkpoint import read_notes

SMALL = shlex.split(
    "--model.context 16 --model.width 16 --model.n-heads 2 --model.head-dim 8 --model.hidden 32 --batch-size 8 "
    "--model.n-layers 1 --sharding.data 1 --run.eval-sequences 8 --run.log-every 1"
)


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_without_a_preset_all_presets_are_listed(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *argv]) == 0
    out = capsys.readouterr().out
    for name, one in PRESETS.items():
        assert f"  {name} " in out
        assert one.note in out


def test_help_of_a_preset_shows_its_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "char-tiny", "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    for option in ("--model.lexicon.kind", "--data STR", "--out PATH", "--optimizer.rate", "--standard"):
        assert option in out
    assert "runs/char-tiny" in out


@pytest.mark.parametrize(("wrong", "right"), [("tinny", "tiny"), ("paper-chr", "paper-char")])
def test_an_unknown_preset_is_answered_with_the_likely_one(
    wrong: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", wrong]) == 2
    assert capsys.readouterr().err == f"lexinvariant: There is no preset {wrong!r}: did you mean {right!r}?\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--model.n-heads", "3"], "The heads do not divide the width: 3 heads x 16 is 48, not 64"),
        (["--model.n-layers", "0"], "model.n_layers is 0: give a number of at least 1"),
        (["--accumulate", "5"], "A batch of 32 cannot be accumulated in 5 equal parts"),
        (["--sharding.fsdp", "5", "--batch-size", "5"], "--sharding.fsdp 5 does not divide the width 64"),
        (["--batch-size", "12"], "A batch of 12 in 1 part(s) cannot be split over 8 devices"),
        (["--model.lexicon.p", "1.5"], "lexicon.p is a probability, so 1.5 is out of range"),
        (["--regularise", "mixed", "--p", "-0.1"], "lexicon.p is a probability, so -0.1 is out of range"),
        (["--p", "0.2"], "--p is the share of tokens that --regularise randomises: give --regularise too"),
        (
            ["--regularise", "mixed", "--p", "0.3", "--model.lexicon.p=0.1"],
            "--p 0.3 is short for --model.lexicon.p, which is 0.1: give one of them",
        ),
        (
            ["--regularise", "mixed", "--model.lexicon.kind", "token-permuted"],
            "--regularise mixed trains another lexicon than --model.lexicon.kind token-permuted: give one of them",
        ),
        (  # which tiny has anyway
            ["--regularise=token-permuted", "--model.lexicon.kind=permuted"],
            "--regularise token-permuted trains another lexicon than --model.lexicon.kind permuted: give one",
        ),
        (
            ["--model.lexicon.kind", "gaussian", "--regularise", "mixed"],
            "--regularise mixed trains another lexicon than --model.lexicon.kind gaussian: give one of them",
        ),
        (
            ["--regularise", "mixed", "--no-standard"],
            "--regularise trains a standard model, and --no-standard none: give one of them",
        ),
        (["--data.weights", "code=2"], "markov12 has no tags to weigh: leave out --data.weights"),
        (["--model.lexicon.exempt", "12"], "lexicon.exempt has 12 and the vocabulary 12 tokens, from 0"),
    ],
)
def test_settings_that_cannot_be_are_told_in_one_sentence(
    options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tiny", "--out", str(tmp_path / "run"), *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"lexinvariant: {sentence}")
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_standard_twin_has_a_learned_table_and_all_else_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["train", "tiny", *SMALL, "--steps", "2", "--standard", "--out", str(run)]) == 0
    assert capsys.readouterr().out.startswith(f"Done: the model is in {run}/model")
    config = json.loads((run / "config.json").read_text())
    assert (config["model"]["lexicon"]["kind"], config["model"]["readout"]) == ("learned", "full")
    assert (config["model"]["smeared_keys"], config["optimizer"]["rate"]) == (True, 3e-3)
    first, second = load(run / "model").score(["abacab", "cbcacb"])
    assert first.sum() != second.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kind", "p"),
    [
        ("--regularise token-permuted --p 0.1", "token-permuted", 0.1),
        ("--regularise mixed", "mixed", 0.2),
        ("--regularise mixed --model.lexicon.kind mixed --standard --model.lexicon.p 0.4", "mixed", 0.4),
        ("--standard --model.lexicon.kind mixed --model.lexicon.p 0.5", "mixed", 0.5),
    ],
)
def test_a_regularised_model_is_a_standard_one_trained_with_noise(
    options: str, kind: str, p: float, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert main(["train", "tiny", *SMALL, "--steps", "2", *options.split(), "--out", str(run)]) == 0
    model = load(run / "model")
    lexicon = model.config.lexicon
    assert (lexicon.kind, lexicon.p, model.config.readout) == (kind, p, "full")
    first, second = model.score(["abacab", "cbcacb"])
    assert first.sum() != second.sum(), "symbols have names: it is no lexinvariant model"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "says"),
    [
        (MarkovPieces, "batch", "Stopped and saved at step 1: give the same command"),
        (LetterVocab, "save", "Stopped before the first step"),
    ],
    ids=["in the first step", "before it"],
)
def test_ctrl_c_before_anything_is_logged_is_no_error(
    where: type,
    name: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    original = getattr(where, name)

    def interrupted(*args: Any) -> Any:
        for _ in range(
            2
        ):  # one request may arrive twice: from a scheduler, and from the parent that it was sent to
            os.kill(os.getpid(), signal.SIGINT)
        return original(*args)

    run = tmp_path / "run"
    command = ["train", "tiny", *SMALL, "--run.log-every", "10", "--steps", "30", "--out", str(run)]
    with monkeypatch.context() as patch:
        patch.setattr(where, name, interrupted)
        assert main(command) == 0
    said = capsys.readouterr()
    assert said.out.startswith(says) and "lexinvariant:" not in said.err
    assert (run / "metrics.jsonl").read_text() == ""
    assert len(list((run / "checkpoints").glob("step_*"))) == (1 if name == "batch" else 0)


@pytest.mark.slow
def test_own_tokenizer_from_text_to_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, words, corpus, run = (tmp_path / name for name in ("text.txt", "words", "corpus", "run"))
    text.write_text("".join(f"the cat number {i} sat on the mat number {i * i}\n" for i in range(400)))
    assert main(["tokenizer", "train", str(text), str(words), "--size", "300"]) == 0
    assert "300 tokens" in capsys.readouterr().out
    assert main(["data", "prepare", str(text), str(corpus), "--vocab", str(words)]) == 0

    command = ["train", "char-tiny", *SMALL, "--data", str(corpus), "--out", str(run), "--steps", "2"]
    assert main(command) == 2
    assert "--model.vocab-size 300" in capsys.readouterr().err
    assert main([*command, "--model.vocab-size", "300"]) == 0
    capsys.readouterr()

    assert list(read_description(run / "model")["notes"]["tokens_by_tag"]) == ["file"]
    sentence = "the cat sat on the mat"
    assert main(["score", str(run / "model"), sentence, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    n_tokens = len(load(run / "model").vocab.encode(sentence))
    assert n_tokens < len(sentence) / 2
    assert len(row["tokens"]) == n_tokens
    assert row["total"] == pytest.approx(sum(row["tokens"]))
    assert main(["generate", str(run / "model"), "the cat", "--n-tokens", "5"]) == 0
    assert capsys.readouterr().out.startswith("the cat")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 600 kB: room for a few checkpoints."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if (
        os.geteuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small tmpfs is not possible here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_told_in_one_sentence_and_costs_no_checkpoint(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small_disk / "run"
    command = ["train", "tiny", *SMALL, "--steps", "30", "--run.save-every", "1", "--run.keep-last", "30"]
    command += ["--run.eval-every", "30", "--model.lexicon.kind", "gaussian", "--out", str(run)]
    assert main(command) == 2
    [sentence] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lexinvariant: ")]
    assert "No space left on device" in sentence or "The disk is full" in sentence
    saved = sorted((run / "checkpoints").glob("step_*"))
    assert 1 <= len(saved) < 30
    read_notes(run / "checkpoints")

    subprocess.run(["mount", "-o", "remount,size=32m", str(small_disk)], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a damaged checkpoint would be a warning
        assert main(command) == 0
    assert f"going on from step {int(saved[-1].name[-9:])} " in capsys.readouterr().err
    assert (run / "model" / "model.safetensors").exists()
