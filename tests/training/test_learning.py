"""The bar: in two fifths of its steps the tiny preset learns a language that renames its symbols in every sequence."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lexinvariant.api import Model, load
from lexinvariant.config import ShardingConfig
from lexinvariant.presets import preset
from lexinvariant.text import MarkovLanguage
from lexinvariant.training.loop import Outcome, train
from lexinvariant.training.metrics import read_metrics

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compile_fully")]
LANGUAGE = MarkovLanguage()
STEPS = 120


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    tiny = preset("tiny")
    # On one of the eight pretended devices: it learns the same, and faster.
    sharding = ShardingConfig(data=1, fsdp=1)
    config = replace(
        tiny, steps=STEPS, run=replace(tiny.run, eval_every=40, save_every=40), sharding=sharding
    )
    return train(config, tmp_path_factory.mktemp("learning") / "tiny", "tiny")


@pytest.fixture(scope="module")
def trained(outcome: Outcome) -> Model:
    return load(outcome.model_folder)


def held_out_text(length: int = 96) -> str:
    return LANGUAGE.vocab.decode(LANGUAGE.split("test", length)[np.array([7])].tok_BT[0])


def test_it_learns_more_than_how_often_symbols_occur(outcome: Outcome) -> None:
    assert outcome.finished
    assert outcome.evaluation is not None
    tail_loss = outcome.evaluation.metrics["tail_loss"]
    assert LANGUAGE.entropy_rate < tail_loss < 1.95 < LANGUAGE.unigram_entropy


def test_it_predicts_better_the_more_it_has_read(outcome: Outcome) -> None:
    assert outcome.evaluation is not None
    by_position = np.array(outcome.evaluation.loss_by_position)
    quarters = by_position[: 4 * (len(by_position) // 4)].reshape(4, -1).mean(axis=1)
    assert quarters[0] > quarters[1] + 0.1
    assert np.all(np.diff(quarters) < 0)


def test_training_loss_falls(outcome: Outcome) -> None:
    rows = [row for row in read_metrics(outcome.folder / "metrics.jsonl") if row["kind"] == "train"]
    assert [row["step"] for row in rows] == list(range(10, STEPS + 1, 10))
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.2
    assert all(row["tokens_per_second"] > 0 for row in rows if "tokens_per_second" in row)
    assert sum("tokens_per_second" in row for row in rows) > len(rows) / 2


def test_held_out_losses_are_written_as_they_were_returned(outcome: Outcome) -> None:
    assert outcome.evaluation is not None
    rows = [row for row in read_metrics(outcome.folder / "metrics.jsonl") if row["kind"] == "valid"]
    assert [row["step"] for row in rows] == [40, 80, 120]
    assert rows[-1]["tail_loss"] == outcome.evaluation.metrics["tail_loss"] < rows[0]["tail_loss"]
    assert rows[-1]["loss_by_position"] == outcome.evaluation.loss_by_position


def test_tensorboard_has_the_curves(outcome: Outcome) -> None:
    [events] = (outcome.folder / "tensorboard").iterdir()
    data = events.read_bytes()
    assert data.count(b"train/loss") == STEPS // 10
    assert data.count(b"valid/tail_perplexity") == 3


def test_the_model_scores_a_renamed_text_equally_bit_for_bit(trained: Model) -> None:
    text = held_out_text()
    renamed = text.translate(str.maketrans("abcdefghijkl", "lkjihgfedcba"))
    strange = text.translate(str.maketrans("abcdefghijkl", "★☆●○■□▲△◆◇♠♣"))
    assert renamed != text
    first, second, third = trained.score([text, renamed, strange], draws=2)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


def test_the_loaded_model_predicts_as_well_as_the_run_did(trained: Model) -> None:
    texts = [
        LANGUAGE.vocab.decode(row) for row in LANGUAGE.split("test", 96)[np.arange(64, dtype=np.int64)].tok_BT
    ]
    tail_loss = -np.mean([score[-20:] for score in trained.score(texts)])
    assert LANGUAGE.entropy_rate < tail_loss < 1.95


def test_the_model_goes_on_with_a_text_in_its_own_symbols(trained: Model) -> None:
    prompt = "abcdefghijkl" + held_out_text()[:60]  # every symbol occurs, so none is left to chance
    names = str.maketrans("abcdefghijkl", "ABCDEFGHIJKL")
    continuation = trained.generate(prompt, 24, seed=3)
    assert len(continuation) == 24
    assert set(continuation) <= set("abcdefghijkl")
    assert trained.generate(prompt.translate(names), 24, seed=3) == continuation.translate(names)
    assert trained.generate(prompt, 24, seed=4) != continuation


def test_the_best_checkpoint_is_the_last(outcome: Outcome) -> None:
    records = [json.loads(path.read_text()) for path in outcome.folder.glob("checkpoints/*/record.json")]
    assert min(records, key=lambda record: record["metric"])["step"] == STEPS
