"""The BIG-bench experiment, from task files and models on disk to rows, tables and figures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.experiments.bigbench import Options
from lexinvariant.experiments.bigbench_answers import (
    choice_log_probabilities,
    padded_length,
    write_answers,
)
from lexinvariant.experiments.bigbench_prompts import Fitted
from lexinvariant.experiments.evaluated_model import open_model
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.scoring import score_tokens
from lexinvariant.report.draw import draw
from lexinvariant.results.bigbench import section
from lexinvariant.results.bigbench_scores import Score, TaskScored, TaskSkipped, by_keyword, count
from lexinvariant.results.rows import Rows
from lexinvariant.text import CharVocab
from tests.tiny_models import save_random_model

CONTEXT = 120


def run(options: Options, **rest: Any) -> Rows:
    return Rows(find_experiment("bigbench").run(options, **rest))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("bigbench")
    odd = [{"input": f"Is {n} odd?", "target_scores": {"yes": n % 2, "no": 1 - n % 2}} for n in range(30)]
    sums = [{"input": f"{n} + 1 =", "target": [str(n + 1)]} for n in range(30)]
    long = [{**each, "input": 12 * f"{each['input']}"} for each in sums]
    files = {
        "odd": {"examples": odd, "metrics": ["multiple_choice_grade"], "keywords": ["arithmetic", "common sense"]},
        "sums/short": {"examples": sums, "metrics": ["exact_str_match", "bleu"], "keywords": ["arithmetic"]},
        "sums/long": {"examples": long, "metrics": ["bleu", "exact_str_match"], "preferred_score": "exact_str_match"},
        "graded": {"examples": sums, "metrics": ["bleurt"]},
        "broken": {},
    }  # fmt: skip
    for name, content in files.items():
        folder = root / "tasks" / name
        folder.mkdir(parents=True)
        (folder / "task.json").write_text(json.dumps(content))
    return {
        "tasks": str(root / "tasks"),
        "ours": save_random_model(root / "ours", CharVocab(), "permuted", "seen", context=CONTEXT),
        "mixed": save_random_model(root / "mixed", CharVocab(), "mixed", "full", context=CONTEXT),
        "standard": save_random_model(root / "standard", CharVocab(), "learned", "full", context=CONTEXT),
    }


def options_for(places: dict[str, str], model: str, baseline: str | None, out: Path, **rest: Any) -> Options:
    return Options(
        model=places[model],
        baseline=places[baseline] if baseline else None,
        tasks=Path(places["tasks"]),
        out=out,
        examples=8,
        **rest,
    )


@pytest.fixture(scope="module")
def measured(
    places: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Options, Rows, list[str]]:
    options = options_for(places, "ours", "standard", tmp_path_factory.mktemp("rows"), shots=(0, 2))
    said: list[str] = []
    return options, run(options, log=said.append), said


def test_every_task_has_a_row_for_each_number_of_shots(measured: tuple[Options, Rows, list[str]]) -> None:
    _, rows, _ = measured
    scored = rows.of(TaskScored)
    assert [(row.task, row.shots) for row in scored] == [("odd", 0), ("odd", 2), ("sums", 0), ("sums", 2)]
    odd, sums = scored[1], scored[3]
    assert (
        odd.metric == "multiple_choice_grade"
        and odd.chance == 0.5
        and list(odd.others) == ["by the mean token"]
    )
    assert sums.metric == "exact_str_match" and sums.chance == 0 and list(sums.others) == ["bleu"]
    assert sums.subtasks == 2 and sums.examples == 8
    # Half of the sums' prompts do not fit with two shots; none of them is longer than the context by itself.
    assert scored[2].fewer_shots == 0 and sums.fewer_shots == 4 and sums.cut == 0
    for row in scored:
        assert row.difference is not None and row.baseline_score is not None
        assert row.difference.value == pytest.approx(row.score.value - row.baseline_score.value, abs=1e-6)
        assert row.difference.low <= row.difference.value <= row.difference.high
    assert odd.sample.prompt.count("odd?") == 3 and odd.sample.right in (["yes"], ["no"])
    assert set(odd.sample.answers) <= {"yes", "no"}


def test_tasks_that_cannot_be_run_are_told_and_the_run_goes_on(
    measured: tuple[Options, Rows, list[str]],
) -> None:
    _, rows, said = measured
    skipped = {row.task: row.reason for row in rows.of(TaskSkipped)}
    assert skipped["broken"] == "It has no list of `examples`."
    assert skipped["graded"].startswith("Its metric bleurt is not known here")
    assert said[0] == "broken was skipped: It has no list of `examples`."


def test_results_do_not_depend_on_batches_or_on_other_tasks(
    places: dict[str, str], measured: tuple[Options, Rows, list[str]], tmp_path: Path
) -> None:
    options, rows, _ = measured
    alone = run(replace(options, out=tmp_path, only=("odd",), shots=(2,), batch_size=3)).of(TaskScored)
    assert alone == [row for row in rows.of(TaskScored) if (row.task, row.shots) == ("odd", 2)]
    by_keyword_ = run(replace(options, out=tmp_path, only=("common sense",), shots=(0,))).of(TaskScored)
    assert [row.task for row in by_keyword_] == ["odd"]
    with pytest.raises(UserError, match="no-such"):
        run(replace(options, only=("odd", "no-such")))
    with pytest.raises(UserError, match="0 to 3"):
        run(replace(options, shots=(4,)))


@pytest.mark.parametrize("model", ["ours", "standard"])
def test_choices_are_scored_and_answers_written_as_elsewhere(places: dict[str, str], model: str) -> None:
    evaluated = open_model(places[model])
    vocab, options = CharVocab(), options_for(places, model, None, Path(), batch_size=2)
    texts = {"The sky is": [" blue", " a sea"], "x" * 70: ["y", "z"], "1 + 1 =": [" 2", " 3"]}
    questions = [
        Fitted(vocab.encode(text).astype(np.int64), [vocab.encode(tail).astype(np.int64) for tail in tails], 0, False)
        for text, tails in texts.items()
    ]  # fmt: skip
    written = write_answers(evaluated, questions, 4, options)
    params, config = evaluated.model.params, evaluated.model.config
    if model == "standard":  # scoring has another draw of the lexicon
        found = choice_log_probabilities(evaluated, questions, options)
        for question, logp_C in zip(questions, found, strict=True):
            whole = [np.concatenate([question.prompt_T, tail]) for tail in question.tails]
            n = len(question.prompt_T)
            expected = [logp_T[n:].sum() for logp_T in score_tokens(params, config, whole)]
            np.testing.assert_allclose(logp_C, expected, rtol=1e-4)
    tok_SN = greedy_tokens(params, config, [question.prompt_T for question in questions], 4)
    assert written == [vocab.decode(tok_N) for tok_N in tok_SN]


def test_draws_are_averaged_by_how_well_they_predict_the_prompt(places: dict[str, str]) -> None:
    """p(choice | prompt) of the mixture is a quotient of two mixtures, and choices of all draws sum below 1."""
    evaluated, vocab = open_model(places["ours"]), CharVocab()
    prompt_T = vocab.encode("abab").astype(np.int64)
    question = Fitted(prompt_T, [np.array([token]) for token in range(128)], 0, False)
    for draws in (1, 3):
        (logp_C,) = choice_log_probabilities(
            evaluated, [question], options_for(places, "ours", None, Path(), draws=draws)
        )
        assert np.exp(logp_C).sum() == pytest.approx(1, abs=1e-4)


def test_few_lengths() -> None:
    assert {padded_length(n, 512) for n in range(1, 513)} == {64, 96, 128, 192, 256, 384, 512}
    assert padded_length(100, 120) == 120


def test_the_section_tells_and_draws_what_was_measured(measured: tuple[Options, Rows, list[str]]) -> None:
    options, _, _ = measured
    shown = section(read_all_rows(options.out))
    assert shown is not None
    counts, keywords, tasks, samples, skipped = shown.tables
    assert [row[0] for row in counts.rows] == [f"tasks, ours and standard, {n} shots" for n in (0, 2)]
    assert [row[0].split(" (")[0] for row in keywords.rows] == ["arithmetic", "common sense"] * 2
    assert (
        len(tasks.rows) == 4
        and len(samples.rows) == 2
        and [row[0] for row in skipped.rows] == ["broken", "graded"]
    )
    assert [figure.name.rsplit("-", 1)[1] for figure in shown.figures] == [
        "keywords",
        "differences",
        "scores",
    ]
    assert "2 shots: all tasks (2)" in shown.figures[0].alt
    for figure in shown.figures:
        draw(figure, "light")
        assert figure.alt
    assert "2 tasks could not be run" in " ".join(shown.paragraphs)


def test_one_model_alone_is_measured_against_chance(places: dict[str, str], tmp_path: Path) -> None:
    rows = run(options_for(places, "standard", None, tmp_path, shots=(0,)))
    assert all(row.difference is None and row.verdict == "" for row in rows.of(TaskScored))
    shown = section(rows)
    assert shown is not None and len(shown.figures) == 1 and not shown.findings


def scored(row: TaskScored, difference: tuple[float, float, float], changed: int, **rest: Any) -> TaskScored:
    return replace(row, difference=Score(*difference), changed=changed, **rest)


def test_only_differences_beyond_noise_are_counted(measured: tuple[Options, Rows, list[str]]) -> None:
    row = replace(measured[1].of(TaskScored)[0], shots=3, lexicon="token-permuted, p = 0.2")
    rows = [
        scored(row, (0.1, 0.05, 0.15), 20, task="a", keywords=["x"]),
        scored(row, (0.1, -0.05, 0.25), 20, task="b", keywords=["x", "y"]),
        scored(row, (0.1, 0.1, 0.1), 5, task="c", keywords=["y"]),
        scored(row, (-0.2, -0.3, -0.1), 20, task="d", keywords=["y"]),
        scored(row, (0.005, 0.001, 0.01), 20, task="e", keywords=[]),
    ]
    assert [each.verdict for each in rows] == ["improved", *["within noise"] * 2, "harmed", "improved"]
    counted = count("all", rows)
    assert (counted.improved, counted.harmed, counted.up, counted.down) == (2, 1, 3, 1)
    assert counted.net == pytest.approx(0.2) and counted.paper_net == pytest.approx(0.5)
    assert {name: len(few) for name, few in by_keyword(rows).items()} == {"y": 3, "x": 2, "no keyword": 1}
    shown = section(Rows(rows))
    assert shown is not None
    (finding,) = shown.findings
    assert finding.paper == 0.25 and finding.ours == pytest.approx(0.5) and finding.verdict == "reached"
    other = replace(row.model, name="other")
    plain = [replace(each, lexicon="learned", model=other) for each in rows]
    assert section(Rows(plain)).findings == []  # type: ignore[union-attr]
    (beside,) = section(Rows([*rows, *plain])).findings  # type: ignore[union-attr]
    assert beside.note == "by pair of models: +50%; two plain models differ by +50%"


def test_a_model_that_was_regularised_says_so(places: dict[str, str], tmp_path: Path) -> None:
    (row,) = run(options_for(places, "mixed", "standard", tmp_path, only=("odd",), shots=(0,))).of(TaskScored)
    assert row.lexicon == "mixed, p = 0.2" and row.model.role == "standard"
