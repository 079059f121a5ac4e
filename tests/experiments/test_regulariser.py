"""Regularised models side by side: from models on disk to rows, against what is counted by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.api import load
from lexinvariant.config import LexiconConfig, TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import held_out, open_model
from lexinvariant.experiments.naming_passage import PASSAGE
from lexinvariant.experiments.options import PairOptions
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.experiments.regulariser import Options, Written, by_rank, prepare_texts, text_sums
from lexinvariant.model.scoring import score_tokens
from lexinvariant.model.weights import save_model
from lexinvariant.report.draw import draw
from lexinvariant.results.regularised_model import OCCURRENCE, PERTURBATIONS, RegularisedModel
from lexinvariant.results.regulariser import section
from lexinvariant.settings import to_json
from lexinvariant.text import HuggingFaceVocab, open_data, prepare, train_tokenizer
from tests.experiments.test_perturbations import JAVA
from tests.tiny_models import TINY, random_params

CONTEXT, SEQUENCES = 320, 4
LEXICONS = {
    "plain": (LexiconConfig("learned"), 0),
    "mixed": (LexiconConfig("mixed", p=0.2), 0),
    "permuted": (LexiconConfig("token-permuted", p=0.5, unit="type", p_anneal_share=0.2), 1),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("regulariser")
    (root / "prose.txt").write_text(PASSAGE * 4)
    (root / "code.txt").write_text(JAVA * 6)
    texts = [str(root / "prose.txt"), str(root / "code.txt")]
    vocab = train_tokenizer(texts, root / "words", size=400)
    prepare(texts, root / "data", vocab=str(root / "words"), valid=texts, test=texts)
    for name, (lexicon, seed) in LEXICONS.items():
        config = replace(TINY, vocab_size=vocab.size, context=CONTEXT, lexicon=lexicon)
        save_model(
            root / name,
            config,
            random_params(config, 0.2),
            vocab,
            notes={"config": {"seed": seed, "batch_size": 2}},
        )
    return {name: str(root / name) for name in (*LEXICONS, "data", "words")}


@pytest.fixture(scope="module")
def options(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Options:
    return Options(
        models=tuple(places[name] for name in LEXICONS),
        data=places["data"],
        sequences=SEQUENCES,
        examples=6,
        batch_size=1,
        out=tmp_path_factory.mktemp("rows"),
    )


@pytest.fixture(scope="module")
def rows(options: Options) -> list[RegularisedModel]:
    return find_experiment("regulariser").run(options)  # type: ignore[return-value]


def test_a_lexinvariant_model_is_measured_under_one_lexicon(
    places: dict[str, str], options: Options, tmp_path: Path
) -> None:
    vocab = open_data(places["data"]).vocab
    config = replace(TINY, vocab_size=vocab.size, context=CONTEXT, lexicon=LexiconConfig("permuted"))
    save_model(tmp_path / "model", config, random_params(config, 0.2), vocab)
    alone = replace(options, models=(str(tmp_path / "model"),), out=tmp_path / "rows", seed=-1)
    [row] = find_experiment("regulariser").run(alone)
    assert isinstance(row, RegularisedModel)
    assert (row.regulariser.kind, row.regulariser.p) == ("lexinvariant", 1.0)
    evaluated = open_model(str(tmp_path / "model"))
    text = held_out(evaluated, options.data, "test", SEQUENCES)
    read = evaluated.forward(text.tok_ST, text.piece_S, PairOptions(seed=-1), 0)
    nats = -np.concatenate([np.asarray(output.logp_BT, np.float64) for _, output in read])
    assert row.loss.estimate().value == pytest.approx(nats.mean(), rel=1e-5)


def test_a_models_own_configuration_tells_how_it_was_regularised(rows: list[RegularisedModel]) -> None:
    assert [(row.name, row.training_seed) for row in rows] == [
        ("none", 0),
        ("mixed, p = 0.2", 0),
        ("token-permuted by type, p = 0.5 falling to 0", 1),
    ]
    assert {row.regulariser.p_anneal_share for row in rows} == {0.0, 0.2}


def test_loss_and_its_parts_are_those_of_the_model(options: Options, rows: list[RegularisedModel]) -> None:
    evaluated = open_model(options.models[0])
    text = held_out(evaluated, options.data, "test", SEQUENCES)
    nats_ST = -np.stack(score_tokens(evaluated.model.params, evaluated.model.config, list(text.tok_ST)))
    estimate = rows[0].loss.estimate()
    assert estimate is not None and estimate.value == pytest.approx(nats_ST.mean(), rel=1e-3)
    assert estimate.low <= estimate.value <= estimate.high
    parts = [part for row in rows[0].by_rank.values() for part in row.values()]
    assert np.sum([part.nats for part in parts]) == pytest.approx(nats_ST.sum(), rel=1e-3)
    assert np.sum([part.units for part in parts]) == nats_ST.size
    assert rows[1].loss == rows[0].loss, "with equal parameters noise that is off changes nothing"


def test_ranks_and_occurrences_are_counted_apart() -> None:
    """Ranks 1, 1, 1, 50, 50: the second of rank 50 cost 7 nats."""
    found = by_rank(np.array([[1.0, 2, 3, 5, 7]]), np.array([[1, 1, 1, 50, 50]]), np.array([[1, 2, 3, 1, 2]]))
    assert list(found) == ["1-10", "31-100"]
    assert [found["1-10"][one].nats for one in OCCURRENCE] == [[1.0], [2.0], [3.0]]
    assert [found["31-100"][one].nats for one in OCCURRENCE] == [[5.0], [7.0], [0.0]]
    assert found["31-100"]["later"].estimate() is None


def test_texts_are_kept_in_groups_that_sum_up_to_all() -> None:
    nats, units = np.arange(120.0), np.full(120, 2)
    found = text_sums(nats, units)
    assert len(found.nats) == len(found.units) == 50
    assert found.nats[:2] == [0 + 50 + 100, 1 + 51 + 101] and found.units[-1] == 4.0
    estimate = found.estimate()
    assert estimate is not None and estimate.value == pytest.approx(nats.mean() / 2)


def test_added_nats_are_those_of_both_texts_scored_by_themselves(
    options: Options, rows: list[RegularisedModel]
) -> None:
    """Whole texts, words that were changed, and the rest: all three add up."""
    evaluated = open_model(options.models[0])
    texts = prepare_texts(evaluated, options)
    assert set(rows[0].robustness) == set(texts.perturbed) == set(PERTURBATIONS)
    for name, (some, too_long) in texts.perturbed.items():
        found = rows[0].robustness[name]
        assert (found.texts, found.too_long) == (len(some), too_long)
        for i, text in enumerate(some):
            clean, changed = ("".join(getattr(p, part) for p in text.pieces) for part in ("clean", "written"))
            before, after = (-score for score in evaluated.model.score([clean, changed]))
            assert found.increase.nats[i] == pytest.approx(after.sum() - before.sum(), abs=0.01)
            assert found.increase.units[i] == len(clean)
            is_new = [piece.word is not None for piece in text.pieces]
            inside = text.written.changed_piece([len(p.written) for p in text.pieces], is_new) >= 0
            spent = sum(found.new_word[one].nats[i] for one in OCCURRENCE)
            assert spent == pytest.approx(after[inside].sum(), abs=0.01)
            assert sum(found.new_word[one].units[i] for one in OCCURRENCE) == sum(is_new)
            unchanged = sum(len(p.clean) for p in text.pieces if p.word is None)
            assert found.increase_elsewhere.units[i] == unchanged
    share = rows[0].robustness["made-up words"].changed_share
    assert 0.05 < share < 0.4


def test_a_token_belongs_to_the_word_that_it_writes(places: dict[str, str]) -> None:
    """The blank before a word is part of its token, and the mark after it is not."""
    vocab = HuggingFaceVocab.from_file(Path(places["words"]) / "tokenizer.json")
    pieces = ["The ", "mother", ", and the rest"]
    written = Written.of(vocab, "".join(pieces))
    piece_T = written.changed_piece([len(piece) for piece in pieces], [False, True, False])
    assert vocab.decode(written.tok_T[piece_T == 1]) == " mother"
    assert set(piece_T.tolist()) == {-1, 1}


def test_rows_are_read_back_and_drawn(options: Options, rows: list[RegularisedModel]) -> None:
    found = section(read_all_rows(options.out))
    assert found is not None
    assert [len(table.rows) for table in found.tables] == [3, 3, 3]
    for figure in found.figures:
        draw(figure, "light")


def test_loss_by_pass_is_that_of_the_runs_own_metrics(places: dict[str, str], tmp_path: Path) -> None:
    run, model, data = tmp_path / "run", load(places["plain"]), open_data(places["data"])
    config = TrainConfig(model=model.config, batch_size=2)
    notes = {"data": data.fingerprint, "config": {"seed": 3, "batch_size": 2}}
    save_model(run / "model", model.config, model.params, model.vocab, notes=notes)
    (run / "config.json").write_text(to_json(config))
    metrics = [
        {"kind": kind, "step": step, "loss": 1 / step, "tail_loss": 0.5}
        for step in (3, 6)
        for kind in ("train", "valid")
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))
    options = Options(
        models=(str(run / "model"),), data=places["data"], sequences=1, examples=0, batch_size=1, out=tmp_path
    )
    [row] = find_experiment("regulariser").run(options)
    assert isinstance(row, RegularisedModel) and row.by_pass is not None
    assert (row.model.name, row.training_seed, row.tasks) == ("run", 3, {})
    assert row.by_pass.loss == pytest.approx([1 / 3, 1 / 6], rel=1e-6)
    steps_a_pass = len(data.split("train", CONTEXT)) / 2
    assert row.by_pass.passes == pytest.approx([3 / steps_a_pass, 6 / steps_a_pass])


def test_models_that_cannot_be_compared_are_refused(places: dict[str, str], tmp_path: Path) -> None:
    def run(*models: str) -> None:
        find_experiment("regulariser").run(Options(models=models, data=places["data"], out=tmp_path))

    with pytest.raises(UserError, match="There are no models to measure: give --models"):
        run()
    model = load(places["plain"])
    save_model(tmp_path / "short", replace(model.config, context=16), model.params, model.vocab)
    with pytest.raises(UserError, match="short and plain differ in vocabulary or context"):
        run(places["plain"], str(tmp_path / "short"))
    for name in ("one", "other"):
        save_model(tmp_path / name, model.config, model.params, model.vocab, notes={"data": name})
    with pytest.raises(UserError, match="other was trained on other data than one"):
        run(str(tmp_path / "one"), str(tmp_path / "other"))
    assert not (tmp_path / "regulariser.jsonl").exists()
