"""From a run to a model on its own."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.api import load
from lexinvariant.cli.main import main
from lexinvariant.config import RunConfig, ShardingConfig
from lexinvariant.errors import UserError
from lexinvariant.presets import preset
from lexinvariant.text import Corpus, prepare
from lexinvariant.training.export import export
from lexinvariant.training.loop import train

TEXT = "abacabadabacaba"
pytestmark = pytest.mark.slow  # for the run that all of it exports


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on four devices, split both ways, that keeps its checkpoints of steps 1 to 4, all evaluated."""
    tiny = preset("tiny")
    config = replace(
        tiny,
        model=replace(tiny.model, context=16, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=32),
        optimizer=replace(tiny.optimizer, rate=0.05, warmup_steps=0),
        sharding=ShardingConfig(data=2, fsdp=2),
        run=RunConfig(eval_every=1, eval_sequences=8, save_every=1, keep_last=4, tensorboard=False),
        steps=4,
        batch_size=8,
    )
    folder = tmp_path_factory.mktemp("export") / "run"
    assert train(config, folder).finished
    return folder


def metrics(run: Path) -> dict[int, float]:
    records = [json.loads(path.read_text()) for path in (run / "checkpoints").glob("*/record.json")]
    return {record["step"]: record["metric"] for record in records}


def test_the_newest_checkpoint_is_the_runs_own_model(run: Path, tmp_path: Path) -> None:
    assert export(run, tmp_path) == 4
    for name in ("model.safetensors", "config.json", "vocab.json"):
        assert (tmp_path / name).read_bytes() == (run / "model" / name).read_bytes()
    [ours], [theirs] = load(tmp_path).score(TEXT, draws=2), load(run / "model").score(TEXT, draws=2)
    np.testing.assert_array_equal(ours, theirs)


def test_lower_precision_is_smaller_and_scores_nearly_the_same(run: Path, tmp_path: Path) -> None:
    sizes, scores = {}, {}
    for precision in ("float32", "bfloat16", "int8", "int6"):
        export(run, tmp_path / precision, precision=precision)
        sizes[precision] = (tmp_path / precision / "model.safetensors").stat().st_size
        [scores[precision]] = load(tmp_path / precision).score(TEXT)
    assert sizes["int6"] < sizes["int8"] < sizes["bfloat16"] < sizes["float32"]
    for precision in ("bfloat16", "int8", "int6"):
        assert not np.array_equal(scores[precision], scores["float32"])
        np.testing.assert_allclose(scores[precision], scores["float32"], atol=0.2)


def test_any_step_can_be_exported(run: Path, tmp_path: Path) -> None:
    found = {step: export(run, tmp_path / str(step), step=step) for step in (1, 2, 3)}
    assert found == {1: 1, 2: 2, 3: 3}
    scores = [load(tmp_path / str(step)).score(TEXT)[0].sum() for step in found]
    assert len(set(scores)) == 3
    assert json.loads((tmp_path / "2" / "config.json").read_text())["notes"]["step"] == 2


def test_the_best_step_is_the_one_with_the_lowest_held_out_loss(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    losses = metrics(copy)
    best = min(losses, key=lambda step: losses[step])
    assert export(copy, tmp_path / "best", step=-1) == best
    shutil.rmtree(copy / "checkpoints" / f"step_{best:09d}")
    del losses[best]
    assert export(copy, tmp_path / "next", step=-1) == min(losses, key=lambda step: losses[step])


@pytest.mark.parametrize("which", ["last", "best", "3"])
def test_the_command_tells_the_step_it_wrote(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], which: str
) -> None:
    losses = metrics(run)
    step = {"last": 4, "best": min(losses, key=lambda step: losses[step]), "3": 3}[which]
    out = tmp_path / "model"
    assert main(["export", str(run), str(out), "--step", which, "--precision", "bfloat16"]) == 0
    assert capsys.readouterr().out == f"Wrote the model of step {step} to {out}.\n"
    assert json.loads((out / "config.json").read_text())["precision"] == "bfloat16"


def test_a_step_that_is_not_there_is_an_error(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"step 9 in .*: there are those of .*3, 4"):
        export(run, tmp_path / "model", step=9)
    assert not (tmp_path / "model").exists()


def test_what_is_not_a_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path), str(tmp_path / "model")]) == 2
    assert "is neither the folder of a run nor that of a model" in capsys.readouterr().err
    (tmp_path / "checkpoints").mkdir()
    assert main(["export", str(tmp_path), str(tmp_path / "model")]) == 2
    assert "There is no readable checkpoint" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_model_is_exported_in_another_precision(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, smaller, direct = tmp_path / "whole", tmp_path / "smaller", tmp_path / "direct"
    export(run, whole)
    assert main(["export", str(whole), str(smaller), "--precision", "int6"]) == 0
    assert capsys.readouterr().out == f"Wrote the model to {smaller}.\n"
    export(run, direct, precision="int6")
    for name in ("model.safetensors", "config.json", "vocab.json"):
        assert (smaller / name).read_bytes() == (direct / name).read_bytes()
    with pytest.raises(UserError, match="no other steps"):
        export(whole, tmp_path / "other", step=2)
    with pytest.raises(UserError, match="over itself"):
        export(whole, whole, precision="int6")


def test_a_folder_of_something_else_is_not_written_into(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, corpus = tmp_path / "texts", tmp_path / "corpus"
    texts.mkdir()
    (texts / "one.txt").write_text("some words\n" * 500)
    prepare([str(texts)], corpus, progress=False)
    both = Path(shutil.copytree(corpus, tmp_path / "both"))
    shutil.copytree(run / "model", both, dirs_exist_ok=True)  # as an older release has left it
    for folder, sentence in (
        (corpus, "is a prepared corpus: choose another folder"),
        (both, "is a prepared corpus: choose another folder"),
        (texts, "is not empty and holds no model: choose another folder"),
        (tmp_path, "is not empty and holds no model: choose another folder"),
    ):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert main(["export", str(run), str(folder)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"lexinvariant: {folder} {sentence}") and error.count("\n") == 1
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert Corpus.open(corpus, verify=True).vocab.name == "char128"


def test_a_model_is_exported_in_place_of_another_and_beside_what_is_hidden(run: Path, tmp_path: Path) -> None:
    killed = tmp_path / ".model.safetensors.partial-1-0a0b0c"
    killed.mkdir()
    (killed / "config.json").write_text("{")
    (tmp_path / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    assert export(run, tmp_path, step=1) == 1
    (tmp_path / "README.md").write_text("What this model is.\n")
    assert export(run, tmp_path, precision="int6") == 4
    assert json.loads((tmp_path / "config.json").read_text())["precision"] == "int6"
    assert {path.name for path in tmp_path.iterdir()} == {
        *(path.name for path in (run / "model").iterdir()),
        ".gitattributes",
        "README.md",
    }


def test_a_config_that_is_no_models_is_not_written_over(run: Path) -> None:
    before = (run / "config.json").read_bytes()
    with pytest.raises(UserError, match=r"a config\.json that is not a model's: choose another folder"):
        export(run, run)
    assert (run / "config.json").read_bytes() == before
    assert not (run / "model.safetensors").exists()
