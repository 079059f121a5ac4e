"""The synthetic reasoning experiment, from models on disk to rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.experiments.synthetic import Options, token_counts
from lexinvariant.report.draw import draw
from lexinvariant.results.intervals import wilson
from lexinvariant.results.rows import Rows
from lexinvariant.results.synthetic import Result, SweepResult, TaskResult
from lexinvariant.text import CharVocab, LetterVocab, open_data, prepare
from tests.tiny_models import save_random_model

CONTEXT = 48


def run(options: Options, **rest: Any) -> list[Result]:
    return Rows(find_experiment("synthetic").run(options, **rest)).of(Result)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("synthetic")
    (root / "text.txt").write_text("aaaa bb c -> d\n" * 400)
    prepare([str(root / "text.txt")], root / "data", valid_fraction=0, test_fraction=0, progress=False)
    models = {"ours": ("permuted", "seen"), "standard": ("learned", "full")}
    notes = {"tokens_by_tag": {"wiki": 300, "records": 100}}
    places = {
        name: save_random_model(root / name, CharVocab(), *kind, context=CONTEXT, notes=notes)
        for name, kind in models.items()
    }
    return places | {"data": str(root / "data")}


@pytest.fixture(scope="module")
def measured(
    places: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Options, list[Result]]:
    options = Options(
        model=places["ours"],
        baseline=places["standard"],
        data=places["data"],
        out=tmp_path_factory.mktemp("rows"),
        examples=10,
        batch_size=4,
        pairs=2,
        sweep=True,
        sweep_examples=6,
        sweep_pairs=(2, 50),
        sweep_demonstrations=(1,),
        sweep_lengths=(3,),
    )
    said: list[str] = []
    rows = run(options, command="lexinvariant experiment synthetic", log=said.append)
    assert any("left out: LookUp(pairs=50) does not fit the context of 48" in line for line in said)
    return options, rows


def test_every_model_task_and_way_of_drawing_has_a_row(measured: tuple[Options, list[Result]]) -> None:
    options, rows = measured
    assert list(read_all_rows(options.out)) == rows
    tasks = {(row.task, row.drawn, row.model.role) for row in rows if isinstance(row, TaskResult)}
    assert len(tasks) == 8
    sizes = {str(row.setting) for row in rows if isinstance(row, SweepResult)}
    assert sizes == {"pairs 2", "demonstrations 1, length 3, answer 2"}
    for row in rows:
        assert row.accuracy.low <= row.accuracy.value <= row.accuracy.high
        assert len(row.by_position) == (row.setting.answer or 1)
        assert row.accuracy.value == pytest.approx(np.mean(row.by_position))
        assert row.origin.model_hash and row.origin.data_hash
        assert row.model.records_share == 0.25
        assert row.shown[0].prompt.endswith("->")
    assert {row.symbols for row in rows if row.drawn == "frequency"} == {4}
    assert {row.symbols for row in rows if row.drawn == "even"} == {92}
    ours = {row.model.hash for row in rows if row.model.role == "lexinvariant"}
    assert ours == {rows[0].origin.model_hash}


def test_the_section_is_drawn_from_what_was_written(
    measured: tuple[Options, list[Result]], tmp_path: Path
) -> None:
    made = find_experiment("synthetic").section(read_all_rows(measured[0].out))
    assert made is not None
    assert [figure.name for figure in made.figures] == [
        "synthetic-accuracy",
        "synthetic-sweep-data-128-characters",
    ]
    for figure in made.figures:
        assert draw(figure, "light").axes
    assert [table.rows[0][0] for table in made.tables[:2]] == ["ours: data, 128 characters"] * 2
    assert [finding.measure.split()[0] for finding in made.findings][:2] == ["LookUp", "Permutation"]


def test_batch_size_changes_nothing(measured: tuple[Options, list[Result]], tmp_path: Path) -> None:
    options, rows = measured
    _, again = run(replace(options, batch_size=7, sweep=False, out=tmp_path, data=None, baseline=None))
    [before] = [
        row
        for row in rows
        if (row.kind, row.drawn, row.model.role, row.task) == ("task", "even", "lexinvariant", "Permutation")
    ]
    assert (again.shown, again.by_position) == (before.shown, before.by_position)


def test_a_model_that_solves_the_tasks_is_given_full_marks(
    places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_value(self: EvaluatedModel, prompts: list[np.ndarray], n: int, *_: object) -> np.ndarray:
        """Right where the table has one pair only."""
        return np.stack(prompts)[:, 3 : 3 + n]

    monkeypatch.setattr(EvaluatedModel, "continue_greedily", first_value)
    row, _ = run(Options(model=places["ours"], out=tmp_path, examples=20, pairs=1))
    assert (row.accuracy.value, row.with_separators, row.whole, row.accuracy.high) == (1.0, 1.0, 1.0, 1.0)
    assert row.accuracy.low == pytest.approx(wilson(1.0, 20)[0])


def test_tokens_are_counted_in_the_train_split(places: dict[str, str]) -> None:
    count_V = token_counts(open_data(places["data"]))
    assert count_V.sum() == 400 * len("aaaa bb c -> d\n")
    assert {chr(i): n for i, n in enumerate(count_V) if n and chr(i).isalpha()} == {
        "a": 1600,
        "b": 800,
        "c": 400,
        "d": 400,
    }


def test_symbols_that_stand_for_words_are_not_counted(places: dict[str, str], tmp_path: Path) -> None:
    """They are drawn at random, and would make rare letters look frequent."""
    (tmp_path / "text.txt").write_text("aaaa bb c -> d\n" * 400)
    kept = {"valid_fraction": 0, "test_fraction": 0, "progress": False}
    text = str(tmp_path / "text.txt")
    prepare([text], tmp_path / "text", **kept)
    prepare([text, f"{text}?fold=words"], tmp_path / "both", **kept)
    counts = [token_counts(open_data(str(tmp_path / name))) for name in ("text", "both")]
    np.testing.assert_array_equal(*counts)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pairs": 9}, r"LookUp takes 50 tokens and the context of ours has 48: give a smaller --pairs"),
        ({"demonstrations": 4}, r"Permutation takes 55 tokens .* smaller --demonstrations or --length"),
        ({"pairs": 0}, "nothing to look up"),
        ({"answer": 4}, "--answer from 1 to"),
        ({"examples": 0}, "--examples is 0: give at least 1"),
        ({"data": "markov12"}, "prepared with the vocabulary letters12"),
        ({"baseline": "ours"}, "is lexinvariant itself"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(
    places: dict[str, str], changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    if "baseline" in changes:
        changes = {"baseline": places[changes["baseline"]]}
    with pytest.raises(UserError, match=sentence):
        run(Options(**{"model": places["ours"], "out": tmp_path, "examples": 2} | changes))
    assert not (tmp_path / "synthetic.jsonl").exists()


def test_models_that_do_not_fit_are_refused(places: dict[str, str], tmp_path: Path) -> None:
    letters = save_random_model(tmp_path / "letters", LetterVocab(12), "permuted", "seen", context=CONTEXT)
    with pytest.raises(UserError, match="letters12 cannot write '->'"):
        run(Options(model=letters, out=tmp_path))
    other = save_random_model(tmp_path / "other", CharVocab(), "learned", "full", context=32)
    with pytest.raises(UserError, match="differ in vocabulary or context"):
        run(Options(model=places["ours"], baseline=other, out=tmp_path))
