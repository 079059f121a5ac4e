"""All experiments in order: which ones fit a model, and what is not done twice."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tyro

from lexinvariant.cli.help_text import joined_docstrings
from lexinvariant.cli.main import main
from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments import ablation, reproduce, uncertainty
from lexinvariant.experiments.registry import EXPERIMENTS, Pair, find_experiment, read_all_rows
from lexinvariant.experiments.reproduce import run_all
from lexinvariant.model.params import init
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab, LetterVocab, Vocab, prepare
from lexinvariant.training import loop
from lexinvariant.training.loop import Outcome


def save(folder: Path, vocab: Vocab, *, kind: Any = "permuted", head: bool = False, seed: int = 0) -> str:
    config = ModelConfig(
        vocab_size=vocab.size,
        context=40,
        n_layers=1,
        width=8,
        n_heads=2,
        head_dim=4,
        hidden=12,
        lexicon=LexiconConfig(kind),
        decipher_head=head,
        decipher_hidden=8,
    )
    save_model(folder, config, init(config, seed), vocab)
    return str(folder)


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "text.txt").write_text("a text that is read again and again, " * 400)
    place = str(folder / "text.txt")
    prepare([place], folder / "data", valid=[place], test=[place])
    model = save(folder / "model", CharVocab(), head=True)
    yield Pair(model, str(folder / "data"), folder / "out", quick=True)


def names(pair: Pair) -> list[str]:
    return [experiment.name for experiment in EXPERIMENTS if experiment.suits(pair)]


def test_the_experiments_fit_the_vocabulary(characters: Pair, tmp_path: Path) -> None:
    assert names(characters) == ["convergence", "cipher-key", "uncertainty", "synthetic", "theory"]
    whole = ["convergence", "cipher-key", "uncertainty", "synthetic", "semantic", "theory"]
    assert names(replace(characters, quick=False)) == whole
    assert names(replace(characters, runs=(tmp_path,)))[0] == "training"
    letters = Pair(save(tmp_path / "m", LetterVocab(12)), "markov12", tmp_path / "out")
    assert names(letters) == ["convergence", "theory"]


def test_every_step_tells_the_command_that_runs_it_alone(characters: Pair) -> None:
    for pair in (characters, replace(characters, quick=False, runs=(Path("a"), Path("b")))):
        for name in names(pair):
            experiment = find_experiment(name)
            options = experiment.options_for(pair)
            words = shlex.split(experiment.command(options))
            assert words[:3] == ["lexinvariant", "experiment", name]
            with joined_docstrings():  # tyro remembers what it has parsed, for the help too
                assert tyro.cli(experiment.Options, args=words[3:]) == options


def test_counts_below_the_least_are_refused_with_the_option_s_name(characters: Pair) -> None:
    for name in names(characters):
        experiment = find_experiment(name)
        options = experiment.options_for(characters)
        if hasattr(options, "batch_size"):
            with pytest.raises(UserError, match="--batch-size is 0: give at least 1"):
                experiment.run(replace(options, batch_size=0))
    assert not characters.out.exists()


def test_a_training_that_was_stopped_is_told_by_what_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Outcome(0, False, tmp_path, None)
    monkeypatch.setattr(loop, "train", lambda *_: stopped)
    monkeypatch.setattr(ablation, "train", lambda *_: stopped)
    assert main(["reproduce", "tiny", "--out", str(tmp_path)]) == 2
    told = "Training the lexinvariant model was stopped at step 0: give the same command to continue."
    assert capsys.readouterr().err == f"lexinvariant: {told}\n"
    assert main(["experiment", "ablation", "--preset", "tiny", "--out", str(tmp_path)]) == 2
    assert "lexinvariant: Training the variant 'the recipe' was stopped at step 0" in capsys.readouterr().err


def test_what_is_done_is_not_done_again(characters: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    two = [
        replace(find_experiment("convergence"), quick={"sequences": 3}),
        replace(find_experiment("uncertainty"), quick={"text": "a zat", "truth": "b", "draws": 1}),
    ]
    monkeypatch.setattr(reproduce, "EXPERIMENTS", two)

    class StoppedError(Exception):
        pass

    def stop(*arguments: object, **named: object) -> None:
        raise StoppedError

    with monkeypatch.context() as interrupted:
        interrupted.setattr(uncertainty, "run", stop)
        with pytest.raises(StoppedError):
            run_all(characters, log=lambda line: None)
    said: list[str] = []
    run_all(characters, said.append)
    assert said[:2] == ["[1/2] convergence: done before", "[2/2] uncertainty"]
    rows = list(read_all_rows(characters.out))
    assert {row.experiment for row in rows} == {"convergence", "uncertainty"}

    said.clear()
    run_all(characters, said.append)
    assert said == ["[1/2] convergence: done before", "[2/2] uncertainty: done before"]
    assert list(read_all_rows(characters.out)) == rows

    said.clear()
    run_all(replace(characters, seed=1), said.append)
    assert said[0] == "[1/2] convergence"
    assert len(read_all_rows(characters.out)) > len(rows)

    (characters.out / "uncertainty.jsonl").unlink()
    said.clear()
    run_all(replace(characters, seed=1), said.append)
    assert said[:2] == ["[1/2] convergence: done before", "[2/2] uncertainty"]

    text = Path(characters.data).with_name("text.txt")
    text.write_text("another text that is read again and again, " * 400)
    prepare([text], characters.data, valid=[text], test=[text], overwrite=True)
    said.clear()
    run_all(replace(characters, seed=1), said.append)
    assert said[0] == "[1/2] convergence"


def test_a_pair_that_does_not_fit_is_told_before_any_work(characters: Pair, tmp_path: Path) -> None:
    pair = replace(characters, baseline=save(tmp_path / "twin", CharVocab()))
    with pytest.raises(UserError, match="lexinvariant itself"):
        run_all(pair, log=lambda line: None)
