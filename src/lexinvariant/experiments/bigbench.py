"""BIG-bench: does regularisation by lexinvariance help or harm a standard model, task by task?

The paper compares a model trained with B_p at p = 0.2 with a standard one, and counts the tasks that improve and those
that get worse. Here both models answer the same examples after the same shots, so that differences are paired; only
those beyond noise are counted, and the paper's way of counting stands beside that. Any two models can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.bigbench_answers import choice_log_probabilities, write_answers
from lexinvariant.experiments.bigbench_files import TASK_FILE, read_tasks
from lexinvariant.experiments.bigbench_metrics import (
    bootstrap,
    choice_credit,
    interval,
    statistics,
    total_score,
)
from lexinvariant.experiments.bigbench_prompts import (
    MOST_SHOTS,
    Fitted,
    Question,
    answer_tokens,
    find_answer,
    fit_questions,
    pick_questions,
)
from lexinvariant.experiments.bigbench_tasks import CHOICE_METRIC, Task
from lexinvariant.experiments.evaluated_model import EvaluatedModel, open_model
from lexinvariant.experiments.options import Count, PairOptions
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.results.bigbench_scores import Sample, Score, TaskScored, TaskSkipped
from lexinvariant.results.intervals import wilson
from lexinvariant.results.rows import hash_files

BY_MEAN_TOKEN = "by the mean token"


@dataclass(frozen=True, kw_only=True)
class Options(PairOptions):
    """Run BIG-bench's JSON tasks, both multiple choice and free answers: one model against chance, or two against each
    other.

    example: lexinvariant experiment bigbench --model runs/mixed/model --baseline runs/standard/model --tasks bigbench
    """

    tasks: Path
    """A folder with a TASK/task.json or TASK/SUBTASK/task.json for each task, or a tar archive of such a folder."""
    baseline: str | None = None
    """The model to compare with, such as one trained the same way without regularisation."""
    only: tuple[str, ...] = ()
    """Run only these tasks, given by name or keyword."""
    examples: Count = 200
    """Most examples of a task, drawn at random and as evenly as possible from its subtasks."""
    shots: tuple[int, ...] = (0, 3)
    """Solved examples before each question, 0 to 3; every number given is measured."""
    answer_tokens: Count = 128
    """Most tokens that a model may write; fewer where the right answers are short."""


@dataclass(frozen=True)
class Answered:
    """One model's answers to the questions of a task."""

    statistics: dict[str, np.ndarray]
    """By metric, one row a question; the one that counts comes first."""
    first: str
    """Its answer to the first question."""


def run(options: Options, recorder: Recorder) -> None:
    """A row for each task and number of shots, and one for each task that cannot be run."""
    if not options.shots or not all(0 <= shots <= MOST_SHOTS for shots in options.shots):
        raise UserError(f"--shots takes numbers from 0 to {MOST_SHOTS}, not {list(options.shots)}.")
    places = [options.model] if options.baseline is None else [options.model, options.baseline]
    models = [open_model(place) for place in places]
    if len({evaluated.trained_on for evaluated in models} - {None}) > 1:
        recorder.log(
            "The two models were trained on different data: differences are not those of regularisation alone."
        )
    tasks, skipped = read_tasks(options.tasks, options.examples + 1 + MOST_SHOTS, options.seed)
    tasks, skipped = _wanted(options, tasks, skipped)
    source = options.tasks
    files = [source] if source.is_file() else sorted(source.rglob(TASK_FILE))
    recorder.measured_on(model_hash=models[0].hash, data_hash=hash_files(files))
    for name, reason in skipped.items():
        recorder.log(f"{name} was skipped: {reason}")
        recorder.write(TaskSkipped(tasks=source.name, task=name, reason=reason))
    asked = [(task, pick_questions(task, options.examples, options.seed)) for task in tasks]
    total = len(models) * len(options.shots) * sum(len(questions) for _, questions in asked)
    with recorder.progress("examples answered", total) as advance:
        for task, questions in asked:
            for shots in options.shots:
                row = measure(task, questions, shots, models, options)
                recorder.write(row)
                recorder.log(str(row))
                advance(len(models) * len(questions))


def _wanted(
    options: Options, tasks: list[Task], skipped: dict[str, str]
) -> tuple[list[Task], dict[str, str]]:
    """Those that `--only` names; of an unreadable task no keyword is known."""
    if not options.only:
        return tasks, skipped
    known = {task.name for task in tasks} | set(skipped) | {word for task in tasks for word in task.keywords}
    if unknown := sorted(set(options.only) - known):
        raise UserError(
            f"No task in {options.tasks} has the name or keyword {unknown[0]!r}: give another to --only."
        )
    only = set(options.only)
    return (
        [task for task in tasks if task.name in only or only & set(task.keywords)],
        {name: reason for name, reason in skipped.items() if name in only},
    )


def measure(
    task: Task, questions: Sequence[Question], shots: int, models: Sequence[EvaluatedModel], options: Options
) -> TaskScored | TaskSkipped:
    """Every model on the questions that all of them can read."""
    room = [_room(task, questions, evaluated, options) for evaluated in models]
    fitted = [
        fit_questions(questions, shots, evaluated.model.vocab, evaluated.model.config.context, most)
        for evaluated, most in zip(models, room, strict=True)
    ]
    together = [
        each for each in zip(questions, *fitted, strict=True) if all(part is not None for part in each)
    ]
    if not together:
        reason = f"None of its examples fits the context with {shots} shots."
        return TaskSkipped(tasks=options.tasks.name, task=task.name, reason=reason)
    asked = [each[0] for each in together]
    read = [[each[1 + m] for each in together] for m in range(len(models))]
    answers = [
        _answer_choices(evaluated, asked, own, options)
        if task.by_choice
        else _answer_freely(evaluated, task, asked, own, n_tokens, options)
        for evaluated, own, n_tokens in zip(models, read, room, strict=True)
    ]
    metric = task.metrics[0]
    statistics_MES = np.stack([answered.statistics[metric] for answered in answers])
    resampled_MR = bootstrap(metric, statistics_MES, options.seed)
    scores = [_estimate(metric, *each) for each in zip(statistics_MES, resampled_MR, strict=True)]
    others = [
        {
            name: float(total_score(name, each.sum(axis=0), len(asked)))
            for name, each in answered.statistics.items()
            if name != metric
        }
        for answered in answers
    ]
    first, pair = asked[0], len(models) > 1
    unread = len(questions) - len(asked)
    return TaskScored(
        tasks=options.tasks.name,
        task=task.name,
        keywords=list(task.keywords),
        as_published=task.as_published,
        subtasks=len(task.subtasks),
        shots=shots,
        metric=metric,
        examples=len(asked),
        chance=float(np.mean([np.mean(each.example.scores) for each in asked])) if task.by_choice else 0.0,
        model=models[0].measured,
        lexicon=_lexicon(models[0]),
        score=scores[0],
        others=others[0],
        baseline=models[1].measured if pair else None,
        baseline_score=scores[1] if pair else None,
        baseline_others=others[1] if pair else {},
        difference=_difference(scores, resampled_MR) if pair else None,
        changed=int((statistics_MES[0] != statistics_MES[-1]).any(axis=1).sum()),
        fewer_shots=sum(part.shots < shots for part in read[0]),
        cut=sum(part.is_cut for part in read[0]),
        notes=[
            *task.notes,
            *([f"{unread} examples do not fit the context or vocabulary."] if unread else []),
        ],
        sample=Sample(
            prompt=first.prompt(min(shots, len(first.pool))),
            right=first.example.best_choices if task.by_choice else list(first.example.targets),
            answers=[answered.first for answered in answers],
        ),
    )


def _room(task: Task, questions: Sequence[Question], evaluated: EvaluatedModel, options: Options) -> int:
    """Tokens to write, of which a short context leaves at least half to the prompt."""
    if task.by_choice:
        return 0
    most = min(options.answer_tokens, evaluated.model.config.context // 2)
    return answer_tokens(questions, evaluated.model.vocab, most)


def _answer_choices(
    evaluated: EvaluatedModel, asked: Sequence[Question], read: Sequence[Fitted], options: Options
) -> Answered:
    logps = choice_log_probabilities(evaluated, read, options)
    per_token = [
        logp_C / [len(tail) for tail in part.tails] for logp_C, part in zip(logps, read, strict=True)
    ]
    grades = {
        name: np.array([[choice_credit(each, q.example.scores)] for each, q in zip(nats, asked, strict=True)])
        for name, nats in ((CHOICE_METRIC, logps), (BY_MEAN_TOKEN, per_token))
    }
    return Answered(grades, asked[0].example.choices[int(np.argmax(logps[0]))])


def _answer_freely(
    evaluated: EvaluatedModel,
    task: Task,
    asked: Sequence[Question],
    read: Sequence[Fitted],
    n_tokens: int,
    options: Options,
) -> Answered:
    written = write_answers(evaluated, read, n_tokens, options)
    found = [find_answer(question.subtask, text) for question, text in zip(asked, written, strict=True)]
    by_metric = {
        metric: np.stack(
            [statistics(metric, answer, q.example.targets) for answer, q in zip(found, asked, strict=True)]
        )
        for metric in task.metrics
    }
    return Answered(by_metric, found[0])


def _estimate(metric: str, statistics_ES: np.ndarray, resampled_R: np.ndarray) -> Score:
    """Wilson's interval for what is a mean of numbers from 0 to 1, since a bootstrap of equal ones has no width."""
    n = len(statistics_ES)
    value = float(total_score(metric, statistics_ES.sum(axis=0), n))
    is_share = metric != "bleu" and statistics_ES.min() >= 0 and statistics_ES.max() <= 1
    return Score(value, *(wilson(value, n) if is_share else interval(resampled_R)))


def _difference(scores: Sequence[Score], resampled_MR: np.ndarray) -> Score:
    return Score(scores[0].value - scores[1].value, *interval(resampled_MR[0] - resampled_MR[1]))


def _lexicon(evaluated: EvaluatedModel) -> str:
    """The kind of lexicon that the model was trained with, and how much of it is random."""
    lexicon = evaluated.model.config.lexicon
    return (
        f"{lexicon.kind}, p = {lexicon.p:g}" if lexicon.kind in ("mixed", "token-permuted") else lexicon.kind
    )
