"""The semantic experiment, from a model with a tokenizer on disk to rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lexinvariant.experiments.rows import Row, read_rows

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import open_model
from lexinvariant.experiments.semantic import (
    Options,
    ask,
    encode,
    option_scores,
    passage_budget,
    run,
    summary,
)
from lexinvariant.experiments.semantic_passages import LIKE_THE_PAPERS, PASSAGES
from lexinvariant.experiments.semantic_prompts import make_questions, question_text
from lexinvariant.model.scoring import score_tokens
from lexinvariant.text import CharVocab, train_tokenizer
from tests.tiny_models import save_random_model

pytestmark = pytest.mark.usefixtures("compile_quickly")
CONTEXT = 120


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
def measured(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Options, list[Row]]:
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
    rows = run(options, command="lexinvariant experiment semantic", say=said.append)
    assert said[0].startswith("9 questions; ")
    return options, rows


def of_kind(rows: list[Row], kind: str, lexinvariant: bool = True) -> list[Row]:
    return [row for row in rows if row["kind"] == kind and row["lexinvariant"] == lexinvariant]


def test_rows_tell_accuracy_questions_and_examples_of_both_models(
    measured: tuple[Options, list[Row]],
) -> None:
    options, rows = measured
    assert read_rows(options.out / "semantic.jsonl") == rows
    for lexinvariant in (True, False):
        [accuracy] = of_kind(rows, "accuracy", lexinvariant)
        questions = of_kind(rows, "question", lexinvariant)
        assert len(questions) == accuracy["questions"] == 9
        right = [row["chosen"] == row["right"] for row in questions]
        assert accuracy["accuracy"]["mean"] == pytest.approx(np.mean(right))
        low, high = accuracy["interval"]["mean"]
        assert low <= accuracy["accuracy"]["mean"] <= high
        for groups in (accuracy["by_category"], accuracy["by_count"]):
            assert sum(group["questions"] for group in groups.values()) == 9
        assert accuracy["skipped"] >= 1  # the passage about one cat
        assert sum(accuracy["chosen_by_place"]) == pytest.approx(1)
    assert [row["example"] for row in of_kind(rows, "example")] == ["paper", "ours"]
    paper, ours = of_kind(rows, "example")
    assert paper["fits"]
    assert paper["options"] == ["restaurants", "music", "coffee", "father"]
    assert not ours["fits"]  # the whole passage is longer than this model's context
    assert rows[0]["data_hash"]
    assert not rows[0]["characters"]


def test_an_option_is_scored_as_its_tokens_after_the_prompt(measured: tuple[Options, list[Row]]) -> None:
    """Against scoring of whole texts; a standard model draws no lexicon, so that both must agree."""
    options, _ = measured
    evaluated = open_model(str(options.baseline))
    model = evaluated.model
    made = make_questions(["the dog drank the water in the red house."], 2, 0)
    logp_QO, n_QO = option_scores(evaluated, made.questions, options)
    for q, question in enumerate(made.questions):
        for o, option in enumerate(question.options):
            tail = encode(model.vocab, " " + option)
            whole = np.concatenate([encode(model.vocab, question.prompt), tail])
            [logp_T] = score_tokens(model.params, model.config, [whole])
            assert n_QO[q, o] == len(tail)
            assert logp_QO[q, o] == pytest.approx(logp_T[-len(tail) :].sum(), rel=1e-4)


def test_batch_size_changes_nothing(measured: tuple[Options, list[Row]]) -> None:
    options, rows = measured
    evaluated = open_model(options.model)
    asked, _ = ask(options, evaluated)
    logp_QO, _ = option_scores(evaluated, asked.questions, replace(options, batch_size=5))
    np.testing.assert_allclose(logp_QO, [row["logp"] for row in of_kind(rows, "question")], rtol=1e-4)


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
    assert all(row["characters"] for row in rows)
    for row in of_kind(rows, "question"):
        assert row["tokens"] == [len(option) + 1 for option in row["options"]]
        assert len(row["written"].replace("[new]", "_")) == 1


def test_a_scorer_that_knows_is_always_right_and_one_that_does_not_care_has_a_quarter() -> None:
    questions = make_questions(list(PASSAGES), 30, 0).questions
    n_QO = np.ones((30, 4), int)
    knows_QO = np.array([[float(o == q.right) for o in range(4)] for q in questions]) - 5
    knows = summary(questions, knows_QO, n_QO, [f" - {q.answer}. and" for q in questions])
    assert knows["accuracy"] == {"mean": 1.0, "sum": 1.0}
    assert (knows["free_right"], knows["free_named"]) == (1.0, 1.0)
    assert all(group["accuracy"] == 1.0 for group in knows["by_category"].values())
    even = summary(questions, np.full((30, 4), -7.0), n_QO, [" nothing"] * 30)
    assert even["accuracy"] == {"mean": 0.25, "sum": 0.25}
    assert (even["free_right"], even["free_named"]) == (0.0, 0.0)


def test_long_options_are_not_punished_by_the_mean_token() -> None:
    questions = make_questions(list(PASSAGES), 8, 0).questions
    right_Q = np.array([q.right for q in questions])
    n_QO = np.ones((8, 4), int)
    n_QO[np.arange(8), right_Q] = 3
    logp_QO = -2.0 * np.ones((8, 4))
    logp_QO[np.arange(8), right_Q] = -4.5  # -1.5 a token
    told = summary(questions, logp_QO, n_QO, [""] * 8)
    assert told["accuracy"] == {"mean": 1.0, "sum": 0.0}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompts": 0}, "prompts and draws at least 1"),
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
