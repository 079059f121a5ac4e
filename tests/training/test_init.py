"""Training that goes on from exported weights, and what a finished run says of itself."""

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from lexinvariant import presets
from lexinvariant.cli.main import main
from lexinvariant.cli.train import summary
from lexinvariant.config import LexiconConfig
from lexinvariant.model.weights import load_weights, save_model
from lexinvariant.text import CharVocab, LetterVocab, prepare
from lexinvariant.training.init import initial_params, with_settings_of
from lexinvariant.training.metrics import read_metrics
from tests.tiny_models import TINY, random_params

SHAPE = replace(TINY, vocab_size=12, context=16, readout="seen", recall_width=4)
FEW = shlex.split(
    "--data markov12 --steps 2 --batch-size 8 --run.eval-sequences 8 --run.log-every 1 --sharding.data 1 "
    "--run.no-tensorboard"
)


def save(folder: Path, kind: str, **changes: Any) -> str:
    config = replace(SHAPE, lexicon=LexiconConfig(kind=kind, gaussian_share=0.1), **changes)
    vocab = LetterVocab(12) if config.vocab_size == 12 else CharVocab()
    save_model(folder, config, random_params(config, 0.1), vocab)
    return str(folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save(tmp_path_factory.mktemp("init") / "model", "annealed")


def test_settings_are_the_models_and_the_curriculum_is_over(trained: str) -> None:
    config = with_settings_of(presets.preset("finetune"), trained)
    assert config.model == replace(SHAPE, lexicon=LexiconConfig(kind="permuted", gaussian_share=0.1))
    assert (config.init, config.optimizer) == (trained, presets.preset("finetune").optimizer)


def test_a_run_starts_with_the_weights_and_says_what_it_changed(
    trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["train", *FEW, "--init", trained, "--out", str(run)]) == 0  # in any order
    out = capsys.readouterr().out
    rows = [row for row in read_metrics(run / "metrics.jsonl") if row["kind"] == "valid"]
    assert [row["step"] for row in rows] == [0, 2]
    before, after = (f"{row['tail_perplexity']:.2f}" for row in rows)
    assert f"Before: perplexity {before} at the end of the context. After: perplexity {after} at" in out
    start = jax.tree.leaves(load_weights(trained).params)
    params = initial_params(with_settings_of(presets.preset("finetune"), trained))
    assert all(np.array_equal(a, b) for a, b in zip(start, jax.tree.leaves(params), strict=True))
    end = jax.tree.leaves(load_weights(run / "model").params)
    # The rate is low and still rising: nothing is far from where it was.
    distance = max(float(np.abs(a - b).max()) for a, b in zip(start, end, strict=True))
    assert 0 < distance < 2e-4
    assert json.loads((run / "config.json").read_text())["init"] == trained


@pytest.mark.parametrize(
    ("kind", "changes", "options", "sentence"),
    [
        ("learned", {}, "", "is a standard model: give --standard to continue it as one"),
        (
            "mixed",
            {},
            "",
            "is a standard model that was regularised: give --regularise mixed to go on so, or --standard to go on",
        ),
        ("token-permuted", {}, "", "that was regularised: give --regularise token-permuted to go on so"),
        (
            "permuted",
            {},
            "--regularise mixed",
            "is a lexinvariant model and the run trains a standard one: leave out --regularise",
        ),
        (
            "permuted",
            {},
            "--standard",
            "is a lexinvariant model and the run trains a standard one: leave out --standard",
        ),
        (
            "permuted",
            {"vocab_size": 128},
            "",
            "reads the vocabulary char128 and markov12 was prepared with letters12",
        ),
        (
            "permuted",
            {},
            "--model.hidden 64",
            "do not fit the run's settings (layers.up_DF: (1, 16, 32), not (1, 16, 64))",
        ),
        ("permuted", {}, "--model.decipher-head", "(decipher.up_DP: missing, not"),
    ],
)
def test_weights_that_do_not_fit(
    kind: str,
    changes: dict[str, Any],
    options: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = save(tmp_path / "model", kind, readout="seen" if kind == "permuted" else "full", **changes)
    argv = ["train", "finetune", "--init", place, *FEW, *options.split(), "--out", str(tmp_path / "run")]
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "kind", "p"),
    [
        ("--regularise mixed", "mixed", 0.35),
        ("--regularise mixed --p 0.1", "mixed", 0.1),
        ("--regularise token-permuted", "token-permuted", 0.35),
        ("--standard", "learned", 0.35),
    ],
)
def test_a_regularised_model_goes_on_as_it_was_trained_unless_told_otherwise(
    options: str, kind: str, p: float, tmp_path: Path
) -> None:
    config = replace(SHAPE, lexicon=LexiconConfig(kind="mixed", p=0.35, unit="type"), readout="full")
    place, run = tmp_path / "model", tmp_path / "run"
    save_model(place, config, random_params(config, 0.1), LetterVocab(12))
    assert main(["train", "--init", str(place), *FEW, *options.split(), "--out", str(run)]) == 0
    lexicon = load_weights(run / "model").config.lexicon
    assert (lexicon.kind, lexicon.p, lexicon.unit) == (kind, p, "type")


def test_data_of_a_larger_vocabulary_are_told_that_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A larger vocabulary for the model would help nobody: its weights have none."""
    place = save(tmp_path / "model", "permuted")
    (tmp_path / "text.txt").write_text("some words\n" * 500)
    prepare([str(tmp_path / "text.txt")], tmp_path / "data", progress=False)
    few = [*FEW, "--data", str(tmp_path / "data"), "--out", str(tmp_path / "run")]
    assert main(["train", "--init", place, *few]) == 2
    assert "reads the vocabulary letters12 and" in capsys.readouterr().err


def test_folders_that_hold_no_model(trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(trained, damaged)
    weights = damaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    for place, sentence in (
        (str(damaged), "model.safetensors is missing or damaged"),
        (str(tmp_path), "holds no model"),
        ("./nowhere", "There is no folder ./nowhere"),
    ):
        assert main(["train", "finetune", "--init", place, *FEW, "--out", str(tmp_path / "run")]) == 2
        assert sentence in capsys.readouterr().err


def valid_row(step: int, loss: float, **rest: float) -> dict[str, Any]:
    counting = {"tail_counting_loss": 3.0, "tail_counting_named": 0.3}
    return {"step": step, "tail_loss": loss, "tail_perplexity": 2.0, **counting, **rest}


def test_a_run_says_when_it_was_too_short() -> None:
    (line,) = summary([valid_row(10, 3.1)], "char128")
    assert line.startswith(
        "It has not learned to infer what symbols mean: at the end of the context it predicts no better"
    )
    assert "nats per symbol). Train with more --steps into another --out" in line
    assert line.endswith("or start from a model that has learned it (train --init bundled).")
    (line,) = summary([valid_row(10, 3.1)], "letters12")
    assert "more --steps into another --out" in line and "bundled" not in line, "which reads no letters12"
    (line,) = summary([valid_row(10, 2.5, tail_deciphered=0.2)], "char128")
    assert "names 20% of the symbols, and frequency analysis 30%" in line
    assert summary([valid_row(10, 3.1), valid_row(20, 2.0, tail_deciphered=0.9)], "char128") == []
    short = {"step": 10, "tail_loss": 3.0, "tail_perplexity": 2.0}
    assert summary([short], "char128") == [] == summary([], "char128")
