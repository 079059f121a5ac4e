"""The semantic experiment, from a model with a tokenizer on disk to rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import open_model
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.experiments.semantic import Options, ask, encode, option_scores, passage_budget, summary
from lexinvariant.experiments.semantic_passages import LIKE_THE_PAPERS, PASSAGES
from lexinvariant.experiments.semantic_prompts import make_questions, question_text
from lexinvariant.model.scoring import score_tokens
from lexinvariant.report.draw import draw
from lexinvariant.results.measured_model import ROLES, MeasuredModel, Role
from lexinvariant.results.rows import Provenance, Rows
from lexinvariant.results.semantic import Accuracy, Answer, ExampleAnswered, Measured, QuestionAnswered
from lexinvariant.text import CharVocab, train_tokenizer
from tests.tiny_models import save_random_model

pytestmark = pytest.mark.usefixtures("compile_quickly")
CONTEXT = 120


def run(options: Options, **rest: Any) -> Rows:
    return Rows(find_experiment("semantic").run(options, **rest))


def silent(folder: Path) -> Recorder:
    return Recorder(folder / "rows.jsonl", Provenance("semantic", 0, ""), lambda line: None)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("semantic")
    (root / "text.txt").write_text("\n".join([*PASSAGES, question_text("drink", ["a"])] * 3))
    words = train_tokenizer([str(root / "text.txt")], root / "words", size=700)
    with (root / "simple.jsonl").open("w") as file:
        for text in (*PASSAGES[:4], "The cat sat."):
            file.write(json.dumps({"text": text.upper(), "source": "own"}) + "\n")
    paper = LIKE_THE_PAPERS[:80] + "\n" + question_text("drink", ("restaurants", "music", "coffee", "father"))
    (root / "paper.tex").write_text(
        "\\section{Semantic Deciphering Full Example}\n\\texttt{" + paper + "}\n\nExample prediction\n"
    )
    return {
        "ours": save_random_model(root / "ours", words, "permuted", "seen", context=CONTEXT),
        "standard": save_random_model(root / "standard", words, "learned", "full", context=CONTEXT),
        "characters": save_random_model(root / "characters", CharVocab(), "permuted", "seen", context=300),
        "text": str(root / "simple.jsonl"),
        "paper": str(root / "paper.tex"),
    }


@pytest.fixture(scope="module")
def measured(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Options, Rows]:
    options = Options(
        model=places["ours"],
        baseline=places["standard"],
        data_text=places["text"],
        paper_tex=Path(places["paper"]),
        out=tmp_path_factory.mktemp("rows"),
        prompts=9,
        batch_size=8,
        continuation=3,
    )
    said: list[str] = []
    rows = run(options, command="lexinvariant experiment semantic", log=said.append)
    assert said[0].startswith("9 questions; ")
    return options, rows


MeasuredT = TypeVar("MeasuredT", bound=Measured)


def of_kind(rows: Rows, kind: type[MeasuredT], role: Role = "lexinvariant") -> list[MeasuredT]:
    return [row for row in rows.of(kind) if row.model.role == role]


def test_rows_tell_accuracy_questions_and_examples_of_both_models(measured: tuple[Options, Rows]) -> None:
    options, rows = measured
    assert list(read_all_rows(options.out)) == list(rows)
    for role in ROLES:
        [accuracy] = of_kind(rows, Accuracy, role)
        questions = of_kind(rows, QuestionAnswered, role)
        assert len(questions) == accuracy.by_mean_token.trials == 9
        right = [row.answer.chosen == row.answer.right for row in questions]
        assert accuracy.by_mean_token.value == pytest.approx(np.mean(right))
        assert accuracy.by_mean_token.low <= accuracy.by_mean_token.value <= accuracy.by_mean_token.high
        for groups in (accuracy.by_category, accuracy.by_times):
            assert sum(share.trials for share in groups.values()) == 9
        assert accuracy.skipped >= 1  # the passage about one cat
        assert sum(accuracy.chosen_by_place) == pytest.approx(1)
    paper, ours = of_kind(rows, ExampleAnswered)
    assert [paper.example, ours.example] == ["paper", "ours"]
    assert paper.answer is not None
    assert paper.answer.options == ["restaurants", "music", "coffee", "father"]
    assert ours.answer is None  # the whole passage is longer than this model's context
    assert paper.origin.data_hash
    assert not paper.model.characters


def test_the_section_is_drawn_from_what_was_written(measured: tuple[Options, Rows], tmp_path: Path) -> None:
    made = find_experiment("semantic").section(read_all_rows(measured[0].out))
    assert made is not None
    [figure] = made.figures
    assert draw(figure, "light").axes
    assert [len(table.rows) for table in made.tables] == [2, 5, 2]
    assert len(made.findings) == 1


def test_an_option_is_scored_as_its_tokens_after_the_prompt(
    measured: tuple[Options, Rows], tmp_path: Path
) -> None:
    """Against scoring of whole texts; a standard model draws no lexicon, so that both must agree."""
    options, _ = measured
    evaluated = open_model(str(options.baseline))
    model = evaluated.model
    made = make_questions(["the dog drank the water in the red house."], 2, 0)
    logp_QO, n_QO = option_scores(evaluated, made.questions, options, silent(tmp_path))
    for q, question in enumerate(made.questions):
        for o, option in enumerate(question.options):
            tail = encode(model.vocab, " " + option)
            whole = np.concatenate([encode(model.vocab, question.prompt), tail])
            [logp_T] = score_tokens(model.params, model.config, [whole])
            assert n_QO[q, o] == len(tail)
            assert logp_QO[q, o] == pytest.approx(logp_T[-len(tail) :].sum(), rel=1e-4)


def test_batch_size_changes_nothing(measured: tuple[Options, Rows], tmp_path: Path) -> None:
    options, rows = measured
    evaluated = open_model(options.model)
    asked, _ = ask(options, evaluated)
    again = replace(options, batch_size=5)
    logp_QO, _ = option_scores(evaluated, asked.questions, again, silent(tmp_path))
    before = [row.answer.logp for row in of_kind(rows, QuestionAnswered)]
    np.testing.assert_allclose(logp_QO, before, rtol=1e-4)


@pytest.mark.parametrize("name", ["ours", "characters"])
def test_passages_are_cut_so_that_question_and_answer_fit_the_context(
    places: dict[str, str], name: str
) -> None:
    evaluated = open_model(places[name])
    vocab, context = evaluated.model.vocab, evaluated.model.config.context
    options = Options(continuation=3, prompts=500)
    asked, _ = ask(options, evaluated)
    longest = max(
        len(encode(vocab, question.prompt)) + max(3, *(len(encode(vocab, " " + o)) for o in question.options))
        for question in asked.questions
    )
    assert context / 2 < longest <= context
    assert asked.passages > len(PASSAGES)  # they had to be cut
    assert passage_budget(evaluated, options) < context


def test_a_model_of_characters_spells_its_options(places: dict[str, str], tmp_path: Path) -> None:
    rows = run(Options(model=places["characters"], out=tmp_path, prompts=2, continuation=1))
    assert all(row.model.characters for row in rows.of(Measured))
    questions = of_kind(rows, QuestionAnswered)
    assert len(questions) == 2
    for row in questions:
        assert row.answer.tokens == [len(option) + 1 for option in row.answer.options]
        assert len(row.answer.written.replace("[new]", "_")) == 1


def summed_up(logp_QO: np.ndarray, n_QO: np.ndarray, written: str) -> Accuracy:
    """Of questions about our passages, with these likelihoods; {} in `written` is the right word."""
    asked = make_questions(list(PASSAGES), len(logp_QO), 0)
    answers = [
        Answer(
            q.passage_number,
            q.category,
            list(q.options),
            q.right,
            list(q.counts),
            logp.tolist(),
            n.tolist(),
            text,
        )
        for q, logp, n, text in zip(
            asked.questions, logp_QO, n_QO, [written.format(q.answer) for q in asked.questions], strict=True
        )
    ]
    return summary(MeasuredModel("ours", "", "lexinvariant", "words", 700, False), "text", asked, answers)


def right_of(n: int) -> np.ndarray:
    return np.array([question.right for question in make_questions(list(PASSAGES), n, 0).questions])


def test_a_scorer_that_knows_is_always_right_and_one_that_does_not_care_has_a_quarter() -> None:
    n_QO = np.ones((30, 4), int)
    knows_QO = np.eye(4)[right_of(30)] - 5
    knows = summed_up(knows_QO, n_QO, " - {}. and")
    assert knows.by_mean_token.value == knows.by_whole_option.value == 1.0
    assert (knows.free_right.value, knows.free_named) == (1.0, 1.0)
    assert all(share.value == 1.0 for share in knows.by_category.values())
    even = summed_up(np.full((30, 4), -7.0), n_QO, " nothing")
    assert even.by_mean_token.value == even.by_whole_option.value == 0.25
    assert (even.free_right.value, even.free_named) == (0.0, 0.0)


def test_long_options_are_not_punished_by_the_mean_token() -> None:
    right_QO = np.eye(4, dtype=bool)[right_of(8)]
    told = summed_up(np.where(right_QO, -4.5, -2.0), np.where(right_QO, 3, 1), "")  # right: -1.5 a token
    assert (told.by_mean_token.value, told.by_whole_option.value) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompts": 0}, "--prompts is 0: give at least 1"),
        ({"data_text": "poor"}, "None of the 1 passages has words of 4 categories"),
        ({"paper_tex": "poor"}, "does not hold the paper's semantic example"),
        ({"model": "short"}, "which leaves 0 for a passage: give a model with at least"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(
    places: dict[str, str], changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "poor.txt").write_text("The cat sat. " * 3)
    short = save_random_model(tmp_path / "short", CharVocab(), "permuted", "seen", context=64)
    real = {"poor": str(tmp_path / "poor.txt"), "short": short}
    chosen: dict[str, Any] = {name: real.get(value, value) for name, value in changes.items()}
    if "paper_tex" in chosen:
        chosen["paper_tex"] = Path(chosen["paper_tex"])
    with pytest.raises(UserError, match=sentence):
        run(Options(**{"model": places["ours"], "out": tmp_path / "out", "prompts": 2} | chosen))
