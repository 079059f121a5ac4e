"""Semantic deciphering: the newest run of every text, vocabulary and number of solved questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import Share, percents
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows, beside, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, slug

Sort = Literal["stories", "templates"]
SORTS: tuple[Sort, ...] = get_args(Sort)
Kind = Literal["paper's wording", "class", "frame", "opposite", "part and whole"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Reading = Literal["plain", "enciphered"]
"""Whether a model reads the text, or one in which every token has been replaced by another."""
CHANCE = 0.25
TIMES = ("once", "twice", "3 times or more")
PLACES = ("first", "second", "third", "fourth")
PASSAGES = {"paper": "the paper's passage", "ours": "a passage of our own, same options"}
words = Prose("semantic")


@dataclass(frozen=True)
class Answer:
    """One model's answer to one question."""

    passage: int
    """Its number; -1 for an example."""
    asked: Kind
    category: str
    """What is asked for, or the relation in which it stands."""
    options: list[str]
    right: int
    counts: list[int]
    """How often each option occurs in the passage."""
    logp: list[float]
    """Of each option, in nats."""
    tokens: list[int]
    above_mean: list[float] | None = None
    """The same, less that of the option's mean probability over the questions for each of the options."""
    head: list[float] | None = None
    """How probable the deciphering head finds it that each option is one of the words meant: logarithms."""
    written: str | None = None
    """What the model wrote freely."""

    @property
    def nats_per_token(self) -> list[float]:
        return [logp / n for logp, n in zip(self.logp, self.tokens, strict=True)]

    @property
    def chosen(self) -> int:
        return int(np.argmax(self.nats_per_token))


@dataclass(frozen=True, kw_only=True)
class Measured(Row):
    """What all kinds of row have in common."""

    model: MeasuredModel
    text: str
    """Where the passages come from."""
    shots: int
    """Solved questions before the one that is asked."""
    reading: Reading

    @property
    def who(self) -> str:
        return f"{self.model}{', enciphered text' if self.reading == 'enciphered' else ''}"

    @property
    def setting(self) -> str:
        """What figures are made for."""
        return f"{self.model.symbols}{f', {self.shots} solved questions first' if self.shots else ''}"

    @property
    def group(self) -> str:
        return f"{self.text}, {self.setting}"


@dataclass(frozen=True, kw_only=True)
class Accuracy(Measured, experiment="semantic", kind="accuracy"):
    """One model's answers to one kind of question."""

    sort: Sort
    asked: Kind
    by_mean_token: Share
    """Right by the likelihood of the mean token of each option."""
    by_whole_option: Share
    by_calibrated: Share | None
    """Right by how much likelier an option is than after the questions for the other options."""
    by_head: Share | None
    """Right by the deciphering head, where the model has one that names words."""
    free_right: Share | None
    """What the model wrote freely begins with the right option."""
    free_named: float | None
    """... with any option."""
    most_frequent: float
    """The share that the option that occurs most in the passage would have right."""
    by_category: dict[str, Share]
    by_times: dict[str, Share]
    """By occurrences of the right word."""
    chosen_by_place: list[float]
    passages: int
    skipped: int

    @property
    def question(self) -> str:
        return f"{self.sort}, {self.asked}"


@dataclass(frozen=True, kw_only=True)
class QuestionAnswered(Measured, experiment="semantic", kind="question"):
    """One question."""

    sort: Sort
    answer: Answer


@dataclass(frozen=True, kw_only=True)
class ExampleAnswered(Measured, experiment="semantic", kind="example"):
    """The paper's one question, about its own passage or one like it."""

    example: Literal["paper", "ours"]
    prompt_tokens: int
    answer: Answer | None
    """None: it does not fit the context."""


ROWS = (Accuracy, QuestionAnswered, ExampleAnswered)


def section(rows: Rows) -> Section | None:
    """Semantic deciphering, where its rows are there."""
    accuracies = rows.latest_of_each(Accuracy, lambda row: row.group)
    if not accuracies:
        return None
    # Models side by side.
    accuracies.sort(key=lambda row: (row.setting, SORTS.index(row.sort), row.text, KINDS.index(row.asked)))
    examples = beside(rows.latest_of_each(ExampleAnswered, lambda row: row.group), accuracies)
    stories = [
        row for row in accuracies if row.sort == "stories" and row.shots == 0 and row.reading == "plain"
    ]
    return Section(
        "Semantic deciphering",
        words.paragraphs(
            stories=stories,
            spelled=listed((row.model.name for row in accuracies if row.model.characters), " and "),
            sorts={row.sort for row in accuracies},
            shots=listed(row.shots for row in accuracies if row.shots),
            twin=any(row.model.role == "standard" for row in accuracies),
            calibrated=any(row.by_calibrated for row in accuracies),
            head=any(row.by_head for row in accuracies),
        ),
        [_figure(group) for group in group_by(accuracies, lambda row: row.setting).values()],
        [
            _accuracy_table(accuracies),
            _category_table(accuracies),
            _example_table(examples),
            _place_table(accuracies),
        ],
        _findings(accuracies, examples),
    )


def pooled(shares: Iterable[Share]) -> Share:
    """All trials together."""
    shares = list(shares)
    trials = sum(share.trials for share in shares)
    return Share(sum(share.value * share.trials for share in shares) / trials, trials)


def _findings(rows: list[Accuracy], examples: list[ExampleAnswered]) -> list[Finding]:
    """The paper asks one question, about one story, and its model is right."""
    findings = []
    for example in examples:
        answer, asked = example.answer, (example.model, example.reading, example.shots)
        kind = example.example, example.model.role, example.reading
        if kind != ("paper", "lexinvariant", "plain") or answer is None:
            continue
        about = f"it answers {answer.options[answer.chosen]}"
        like_it = [
            row for row in rows if (row.model, row.reading, row.shots) == asked and row.asked == answer.asked
        ]
        if like_it:
            share = pooled(row.by_mean_token for row in like_it)
            about += f"; {share.value:.0%} of {share.trials} questions like it are right, chance {CHANCE:.0%}"
        measure = f"The paper's one question (which of four words is a drink?) right, {example.setting}"
        findings.append(Finding(measure, 1, float(answer.chosen == answer.right), ".0f", about=about))
    return findings


def _accuracy_table(rows: list[Accuracy]) -> Table:
    columns = [
        Column[Accuracy]("Model, text", lambda row: f"{row.who}, {row.group}"),
        Column("Question", "question"),
        Column("Questions", "by_mean_token.trials", ","),
        Column("By likelihood per token", "by_mean_token"),
        Column("By that of the whole option", "by_whole_option"),
        Column("Calibrated", "by_calibrated"),
        Column("By the deciphering head", "by_head"),
        Column("Freely written: right", "free_right"),
        Column("Freely written: an option", "free_named", ".1%"),
        Column("The most frequent option", "most_frequent", ".1%"),
        Column("Chance", lambda row: CHANCE, ".0%"),
    ]
    return make_table("Questions answered correctly, with Wilson's 95% intervals", rows, columns)


def _category_table(rows: list[Accuracy]) -> Table:
    """Categories down, models and sorts across."""
    across = {
        (who, sort): _by_category(own)
        for (who, sort), own in group_by(rows, lambda row: (f"{row.who}, {row.setting}", row.sort)).items()
    }
    names = sorted({name for shares in across.values() for name in shares})
    header = ("Category", *(f"{who}, {sort}" for who, sort in across))
    cells = [
        (name, *(str(shares[name]) if name in shares else "" for shares in across.values())) for name in names
    ]
    return Table("By category (likelihood per token), all kinds of question together", header, cells)


def _by_category(rows: Sequence[Accuracy]) -> dict[str, Share]:
    names = sorted({name for row in rows for name in row.by_category})
    return {name: pooled(row.by_category[name] for row in rows if name in row.by_category) for name in names}


def _example_table(rows: list[ExampleAnswered]) -> Table:
    header = (
        "Model, passage",
        "Log-probability of each option (nats per token)",
        "Answer",
        "By the deciphering head",
        "Writes",
    )
    theirs = ("the paper's model, the paper's passage", "not given")
    cells = [(*theirs, paper.SEMANTIC_ANSWER, "", repr(paper.SEMANTIC_CONTINUATION))]
    for row in rows:
        who, answer = f"{row.who}, {PASSAGES[row.example]}", row.answer
        if answer is None:
            cells.append((who, f"does not fit the context ({row.prompt_tokens:,} tokens)", "", "", ""))
            continue
        each = zip(answer.options, answer.nats_per_token, strict=True)
        told = ", ".join(f"{option} {nats:.2f}" for option, nats in each)
        by_head = answer.options[int(np.argmax(answer.head))] if answer.head else ""
        written = "" if answer.written is None else repr(answer.written)
        cells.append((who, told, answer.options[answer.chosen], by_head, written))
    return Table("The paper's one example: which of the four is a drink? Coffee is right.", header, cells)


def _place_table(rows: list[Accuracy]) -> Table:
    def chosen(place: int) -> Column[Accuracy]:
        return Column(PLACES[place], lambda row: row.chosen_by_place[place], ".1%")

    listing = [row for row in rows if row.asked == "paper's wording"]
    columns = [Column[Accuracy]("Model, text", lambda row: f"{row.who}, {row.group}")]
    columns += map(chosen, range(len(PLACES)))
    caption = "Which place in the list is chosen, in the paper's wording (right answers are spread evenly)"
    return make_table(caption, listing, columns)


def _figure(rows: list[Accuracy]) -> Figure:
    """All that was measured in one setting: by kind of question, and by category and sort."""
    questions = list(dict.fromkeys(row.question for row in rows))
    by_question: dict[str, dict[str, Share]] = {}
    for row in rows:
        measures = {
            row.who: row.by_mean_token,
            f"{row.who}, calibrated": row.by_calibrated,
            f"{row.who}, by its deciphering head": row.by_head,
        }
        for name, share in measures.items():
            if share is not None:
                by_question.setdefault(name, {})[row.question] = share
    panels = [_dots("By kind of question", questions, by_question)]
    for sort, own in group_by(rows, lambda row: row.sort).items():
        by_category = {who: _by_category(few) for who, few in group_by(own, lambda row: row.who).items()}
        categories = sorted({name for shares in by_category.values() for name in shares})
        panels.append(_dots(f"{sort.capitalize()}, by category", categories, by_category))
    setting = rows[0].setting
    size = (4.2 * len(panels) + 1, 6.0)
    return Figure(f"semantic-{slug(setting)}", words("dots", setting=setting), panels, size=size)


def _dots(title: str, names: Sequence[str], models: Mapping[str, Mapping[str, Share]]) -> Panel:
    """One line a name, one dot and interval a model."""
    marks: list[Mark] = []
    apart = min(0.18, 0.8 / len(models))  # so that all dots of a name stay on its line
    for index, (model, shares) in enumerate(models.items()):
        places = [place for place, name in enumerate(names) if name in shares]
        x, low, high = percents(shares[names[place]] for place in places)
        y = np.array(places) + apart * (index - (len(models) - 1) / 2)
        marks.append(Line(model, x, y, low, high, interval="bars", across=True, line=False))
    marks.append(Reference("chance", at=100 * CHANCE, axis="x", dash="short"))
    trials = [max(shares[name].trials for shares in models.values() if name in shares) for name in names]
    labels = [f"{name} ({n})" for name, n in zip(names, trials, strict=True)]
    return Panel(title, marks, Axis("questions answered correctly (%)", limits=(-2, 102)), Axis(names=labels))
