"""All experiments in order: which ones fit a model, and what is not done twice."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tyro

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments import convergence, plan, uncertainty
from lexinvariant.experiments.plan import Materials, command_of, run_all
from lexinvariant.experiments.rows import read_rows
from lexinvariant.model.params import init
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab, LetterVocab, Vocab, prepare

pytestmark = pytest.mark.usefixtures("compile_quickly")


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
def characters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Materials]:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "text.txt").write_text("a text that is read again and again, " * 400)
    place = str(folder / "text.txt")
    prepare([place], folder / "data", valid=[place], test=[place])
    model = save(folder / "model", CharVocab(), head=True)
    yield Materials(model, None, str(folder / "data"), folder / "out", quick=True)


def test_the_experiments_fit_the_vocabulary(characters: Materials, tmp_path: Path) -> None:
    names = [name for name, _ in plan.plan(characters)]
    assert names == ["convergence", "cipher-key", "uncertainty", "synthetic", "theory"]
    whole = [name for name, _ in plan.plan(Materials(**vars(characters) | {"quick": False}))]
    assert whole == ["convergence", "cipher-key", "uncertainty", "synthetic", "semantic", "theory"]
    letters = Materials(save(tmp_path / "m", LetterVocab(12)), None, "markov12", tmp_path / "out")
    assert [name for name, _ in plan.plan(letters)] == ["convergence", "theory"]


def test_every_step_tells_the_command_that_runs_it_alone(characters: Materials) -> None:
    for name, options in plan.plan(characters):
        words = shlex.split(command_of(name, options))
        assert words[:3] == ["lexinvariant", "experiment", name]
        assert tyro.cli(type(options), args=words[3:]) == options


def test_what_is_done_is_not_done_again(characters: Materials, monkeypatch: pytest.MonkeyPatch) -> None:
    def two_steps(m: Materials) -> Iterator[tuple[str, Any]]:
        common: Any = {"model": m.model, "out": m.out, "seed": m.seed}
        yield "convergence", convergence.Options(data=m.data, sequences=3, window=5, **common)
        yield "uncertainty", uncertainty.Options(text="a zat", truth="b", draws=1, **common)

    monkeypatch.setattr(plan, "plan", two_steps)

    class StoppedError(Exception):
        pass

    def stop(*arguments: object, **named: object) -> None:
        raise StoppedError

    with monkeypatch.context() as interrupted:
        interrupted.setattr(uncertainty, "run", stop)
        with pytest.raises(StoppedError):
            run_all(characters, say=lambda line: None)
    said: list[str] = []
    run_all(characters, said.append)
    assert said[:2] == ["[1/2] convergence: done before", "[2/2] uncertainty"]
    rows = read_rows(characters.out)
    assert {row["experiment"] for row in rows} == {"convergence", "uncertainty"}

    said.clear()
    run_all(characters, said.append)
    assert said == ["[1/2] convergence: done before", "[2/2] uncertainty: done before"]
    assert read_rows(characters.out) == rows

    said.clear()
    run_all(Materials(**vars(characters) | {"seed": 1}), said.append)
    assert said[0] == "[1/2] convergence"
    assert len(read_rows(characters.out)) > len(rows)


def test_a_pair_that_does_not_fit_is_told_before_any_work(characters: Materials, tmp_path: Path) -> None:
    pair = Materials(**vars(characters) | {"baseline": save(tmp_path / "twin", CharVocab())})
    with pytest.raises(UserError, match="lexinvariant itself"):
        run_all(pair, say=lambda line: None)
