"""Perplexity by context length, with models whose perplexity is known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.cli import experiment
from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments.convergence import Options, losses
from lexinvariant.experiments.evaluated_model import held_out, open_model
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.weights import save_model
from lexinvariant.report.draw import draw
from lexinvariant.results.convergence import Curve, Gap, SeenAndNew
from lexinvariant.results.perplexity import AVERAGINGS, smoothed_perplexity
from lexinvariant.results.rows import Provenance, Row, Rows
from lexinvariant.text import LetterVocab, open_data
from lexinvariant.text.frequency import counting_losses
from lexinvariant.training.evaluate import evaluate
from tests.tiny_models import random_params

V, T = 12, 20
OURS = ModelConfig(
    vocab_size=V,
    context=T,
    n_layers=1,
    width=8,
    n_heads=2,
    head_dim=4,
    hidden=12,
    lexicon=LexiconConfig("gaussian"),
)
THEIRS = replace(OURS, lexicon=LexiconConfig("learned"))
UNIFORM, RANDOM = 0.0, 1.0


def save(folder: Path, config: ModelConfig, scale: float, data: str = "markov") -> str:
    """A model of random parameters; all-zero ones make every logit 0, so that every symbol is equally likely."""
    vocab = LetterVocab(config.vocab_size)
    save_model(folder, config, random_params(config, scale), vocab, notes={"data": data})
    return str(folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "uniform": save(folder / "uniform", OURS, UNIFORM),
        "uniform-standard": save(folder / "uniform-standard", THEIRS, UNIFORM),
        "random": save(folder / "random" / "model", OURS, RANDOM),
        "standard": save(folder / "standard", THEIRS, RANDOM),
    }


def small(out: Path, model: str, baseline: str | None = None, **changes: Any) -> Options:
    settings = {"data": "markov12", "window": 5, "sequences": 6, "batch_size": 4} | changes
    return Options(model=model, baseline=baseline, out=out, **settings)


def run(options: Options, **rest: Any) -> list[Row]:
    return find_experiment("convergence").run(options, **rest)


def silent(folder: Path) -> Recorder:
    return Recorder(folder / "rows.jsonl", Provenance("convergence", 0, ""), lambda line: None)


def test_a_uniform_model_has_the_perplexity_of_its_vocabulary_everywhere(
    models: dict[str, str], tmp_path: Path
) -> None:
    said: list[str] = []
    options = small(tmp_path, models["uniform"], models["uniform-standard"], draws=2)
    rows = run(options, command="lexinvariant experiment convergence", log=said.append)
    assert list(read_all_rows(tmp_path)) == rows
    curves, [gap] = Rows(rows).of(Curve), Rows(rows).of(Gap)
    assert [(row.model.role, row.model.name) for row in curves] == [
        ("lexinvariant", "uniform"),
        ("standard", "uniform-standard"),
    ]
    for row in curves:
        np.testing.assert_allclose(row.nats, [np.log(V)] * T, rtol=1e-5)
        for averaging in AVERAGINGS:
            curve = row.curves[averaging]
            for values in (curve.mean, curve.low, curve.high):
                np.testing.assert_allclose(values, [V] * (T - 5 + 1), rtol=1e-5)
            assert row.start(averaging) == pytest.approx(row.end(averaging)) == pytest.approx(V)
        assert row.last_symbol_perplexity == pytest.approx(V)
        assert (row.sequences, row.window, row.label, row.origin.draws) == (6, 5, "markov12", 2)
    np.testing.assert_allclose(gap.curves["geometric"].mean, 0, atol=1e-5)
    assert gap.end("arithmetic") == pytest.approx(0, abs=1e-6)
    assert curves[0].model.hash == gap.origin.model_hash != curves[1].model.hash
    tok_ST = held_out(open_model(models["uniform"]), "markov12", "test", 6).tok_ST
    counting = np.exp(counting_losses(tok_ST, V)[:, -5:].mean())
    assert [row.counting_perplexity for row in curves] == [pytest.approx(counting), None]
    assert any(
        "uniform: perplexity 12.00 over the first 5 symbols, 12.00 over the last" in line for line in said
    )
    # Two models alike: one as many times the other, in the line on all tokens and in that on the seen ones.
    assert any("perplexity falls from 1.00 to 1.00 times the standard model's" in line for line in said)
    assert any("where perplexity is 1.00 times the standard model's" in line for line in said)


def test_nothing_depends_on_the_batch_size(models: dict[str, str], tmp_path: Path) -> None:
    both = [
        run(small(tmp_path / str(size), models["random"], models["standard"], batch_size=size))
        for size in (4, 6)
    ]
    for one, other in zip(*both, strict=True):
        if isinstance(one, SeenAndNew) or isinstance(other, SeenAndNew):
            continue
        assert isinstance(one, Curve | Gap) and isinstance(other, Curve | Gap)
        for averaging in AVERAGINGS:
            mine, theirs = one.curves[averaging], other.curves[averaging]
            for name in ("mean", "low", "high"):
                np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-4)
    (ours, standard), [gap] = Rows(both[0]).of(Curve), Rows(both[0]).of(Gap)
    # Rows keep seven digits of a number.
    assert gap.end() == pytest.approx(ours.end() / standard.end() - 1, abs=1e-6)
    # The row is enough to draw the curve again, with this window or another.
    again = smoothed_perplexity(np.array([ours.nats]), 5)
    np.testing.assert_allclose(again, ours.curves["geometric"].mean, rtol=1e-6)


def test_losses_are_those_of_the_evaluation(models: dict[str, str], tmp_path: Path) -> None:
    evaluated = open_model(models["random"])
    options = small(tmp_path, models["random"])
    text = held_out(evaluated, "markov12", "test", 6)
    nats_ST = losses(evaluated, text, options, silent(tmp_path))
    pieces = open_data("markov12").split("test", T)
    expected = evaluate(evaluated.model.params, OURS, pieces, sequences=6, batch_size=4)
    np.testing.assert_allclose(nats_ST.mean(axis=0), expected.loss_by_position, atol=2e-4)


def test_draws_average_probabilities(models: dict[str, str], tmp_path: Path) -> None:
    evaluated = open_model(models["random"])
    text = held_out(evaluated, "markov12", "test", 4)
    first_KS = np.array(
        [
            np.concatenate(
                [
                    np.asarray(reading.logp_BT)[:, 0]
                    for _, reading in forward_batches(
                        evaluated.model.params, OURS, text.tok_ST, text.piece_S, draw=draw
                    )
                ]
            )
            for draw in range(3)
        ]
    )
    nats_ST = losses(evaluated, text, small(tmp_path, models["random"], draws=3), silent(tmp_path))
    np.testing.assert_allclose(np.exp(-nats_ST[:, 0]), np.exp(first_KS).mean(axis=0), rtol=1e-4)


def test_without_a_baseline_there_is_one_curve(models: dict[str, str], tmp_path: Path) -> None:
    rows = Rows(run(small(tmp_path, models["uniform"], label="toy", split="valid")))
    [row], [parts] = rows.of(Curve), rows.of(SeenAndNew)
    assert (row.label, row.split, row.model.name) == ("toy", "valid", "uniform")
    assert len(rows) == 2 and parts.seen_difference is None


def test_losses_on_seen_and_new_tokens_add_up(models: dict[str, str], tmp_path: Path) -> None:
    rows = Rows(run(small(tmp_path, models["random"], models["standard"])))
    [row] = rows.of(SeenAndNew)
    tok_ST = held_out(open_model(models["random"]), "markov12", "test", 6).tok_ST
    is_new_ST = np.array([[t not in tok_T[:i] for i, t in enumerate(tok_T)] for tok_T in tok_ST])
    assert row.new_share[0] == pytest.approx(is_new_ST[:, :5].mean())
    assert row.new_share[-1] == pytest.approx(is_new_ST[:, -5:].mean())
    for curve, apart in zip(rows.of(Curve), row.losses, strict=True):
        for i in (0, len(row.new_share) - 1):
            seen, new = apart.seen.mean[i] or 0.0, apart.new.mean[i] or 0.0
            together = (1 - row.new_share[i]) * seen + row.new_share[i] * new
            assert np.exp(together) == pytest.approx(curve.geometric.mean[i], rel=1e-4)
    ours, theirs = (apart.seen.mean[-1] or 0.0 for apart in row.losses)
    assert row.seen_ratio == pytest.approx(np.exp(ours - theirs), rel=1e-5)
    assert 1 <= row.floor[-1] < row.floor[0] < V


def test_a_context_of_2048_stands_beside_a_shorter_one(models: dict[str, str], tmp_path: Path) -> None:
    long = save(tmp_path / "long", replace(OURS, context=2048, readout="seen"), RANDOM)
    for model, window in ((models["random"], 5), (long, None)):
        run(small(tmp_path / "out", model, sequences=2, window=window))
    part = find_experiment("convergence").section(read_all_rows(tmp_path / "out"))
    assert part is not None
    names = ["markov12, context 20", "markov12, context 2,048"]
    assert [panel.title for panel in part.figures[0].panels] == names
    assert [row[0] for row in part.tables[0].rows] == names


def test_the_section_is_drawn_from_what_was_written(models: dict[str, str], tmp_path: Path) -> None:
    run(small(tmp_path, models["random"], models["standard"]))
    run(small(tmp_path, models["random"], label="another"))
    part = find_experiment("convergence").section(read_all_rows(tmp_path))
    assert part is not None
    for figure in part.figures:
        assert draw(figure, "light").axes
    assert [figure.name for figure in part.figures] == [
        "convergence",
        "convergence-corpora",
        "convergence-gap",
        "convergence-seen",  # of twenty symbols some are still new
    ]
    assert [row[0] for row in part.tables[0].rows] == ["markov12", "markov12", "another"]
    assert len(part.findings) == 1  # a ratio, which is not compared: the vocabulary is another


def test_the_window_of_a_short_context_is_a_quarter_of_it(models: dict[str, str], tmp_path: Path) -> None:
    [row] = Rows(run(small(tmp_path, models["uniform"], window=None))).of(Curve)
    assert row.window == T // 4


def test_what_cannot_be_measured_is_said_in_one_sentence(models: dict[str, str], tmp_path: Path) -> None:
    def fails(match: str, model: str, baseline: str | None = None, **changes: Any) -> None:
        with pytest.raises(UserError, match=match):
            run(small(tmp_path / "out", model, baseline, **changes))

    fails("window of 21 symbols does not fit the model's context of 20", models["random"], window=21)
    fails("window of 0 symbols", models["random"], window=0)
    fails("at least 1", models["random"], sequences=0)
    fails("at least 1", models["random"], draws=0)
    fails("not a lexinvariant model", models["standard"])
    fails("is lexinvariant itself", models["random"], models["uniform"])
    other = save(tmp_path / "other-data", THEIRS, UNIFORM, data="another")
    fails("trained on other data", models["random"], other)
    fewer = save(tmp_path / "fewer", replace(OURS, vocab_size=5), UNIFORM)
    fails("vocabulary of 12 symbols and fewer one of 5", fewer)
    fewer = save(tmp_path / "fewer-standard", replace(THEIRS, vocab_size=5), UNIFORM)
    fails("fewer-standard .*differ in vocabulary or context", models["random"], fewer)
    longer = save(tmp_path / "longer", replace(THEIRS, context=30), UNIFORM)
    fails("longer .*differ in vocabulary or context", models["random"], longer)
    assert not (tmp_path / "out").exists()  # nothing is written before all is well


def test_the_command_line_explains_and_runs_it(
    models: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        experiment.main(["convergence", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "example: lexinvariant experiment convergence" in printed
    assert "tighter confidence band" in printed
    arguments = ["--model", models["uniform"], "--data", "markov12", "--window", "5", "--sequences", "4"]
    assert experiment.main(["convergence", *arguments, "--batch-size", "4", "--out", str(tmp_path)]) == 0
    row, *_ = read_all_rows(tmp_path)
    assert row.origin.command.endswith(f"--batch-size 4 --out {tmp_path}")
