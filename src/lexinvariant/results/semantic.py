"""Semantic deciphering: the newest run of every text and vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import Share, percents
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows, beside
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, slug

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
    category: str
    options: list[str]
    right: int
    counts: list[int]
    """How often each option occurs in the passage."""
    logp: list[float]
    """Of each option, in nats."""
    tokens: list[int]
    written: str
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

    @property
    def group(self) -> str:
        return f"{self.text}, {self.model.vocab}"


@dataclass(frozen=True, kw_only=True)
class Accuracy(Measured, experiment="semantic", kind="accuracy"):
    """One model's answers together."""

    by_mean_token: Share
    """Right by the likelihood of the mean token of each option."""
    by_whole_option: Share
    free_right: Share
    """What the model wrote freely begins with the right option."""
    free_named: float
    """... with any option."""
    most_frequent: float
    """The share that the option that occurs most in the passage would have right."""
    by_category: dict[str, Share]
    by_times: dict[str, Share]
    """By occurrences of the right word."""
    chosen_by_place: list[float]
    passages: int
    skipped: int


@dataclass(frozen=True, kw_only=True)
class QuestionAnswered(Measured, experiment="semantic", kind="question"):
    """One question."""

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
    groups = rows.latest_groups(Accuracy, lambda row: row.group)
    accuracies = [row for group in groups.values() for row in group]
    if not accuracies:
        return None
    examples = beside(rows.latest_of_each(ExampleAnswered, lambda row: row.group), accuracies)
    spelled = listed((row.model.name for row in accuracies if row.model.characters), " and ")
    return Section(
        "Semantic deciphering",
        words.paragraphs(rows=accuracies, spelled=spelled),
        list(map(_figure, groups.values())),
        [_accuracy_table(accuracies), _example_table(examples), _place_table(accuracies)],
        [_finding(row) for row in accuracies if row.model.role == "lexinvariant"],
    )


def _finding(row: Accuracy) -> Finding:
    share = row.by_mean_token
    measure = f"Semantic multiple choice, four options ({row.group})"
    note = f"chance: {CHANCE:.0%}; the paper asks one such question, and its model is right"
    return Finding(measure, None, share.value, ".1%", share.low, share.high, note=note)


def _accuracy_table(rows: list[Accuracy]) -> Table:
    columns = [
        Column[Accuracy]("Model, text", lambda row: f"{row.model}, {row.group}"),
        Column("Questions", "by_mean_token.trials", ","),
        Column("By the mean token", "by_mean_token"),
        Column("By the whole option", "by_whole_option"),
        Column("Freely written: right", "free_right"),
        Column("Freely written: an option", "free_named", ".1%"),
        Column("The most frequent option", "most_frequent", ".1%"),
        Column("Chance", lambda row: CHANCE, ".0%"),
    ]
    return make_table("Questions answered rightly, with Wilson's 95% intervals", rows, columns)


def _example_table(rows: list[ExampleAnswered]) -> Table:
    header = ("Model, passage", "Log-probability of each option (nats a token)", "Answer", "Writes")
    theirs = ("the paper's model, the paper's passage", "not told")
    cells = [(*theirs, paper.SEMANTIC_ANSWER, repr(paper.SEMANTIC_CONTINUATION))]
    for row in rows:
        who, answer = f"{row.model}, {PASSAGES[row.example]}", row.answer
        if answer is None:
            cells.append((who, f"does not fit the context ({row.prompt_tokens:,} tokens)", "", ""))
            continue
        each = zip(answer.options, answer.nats_per_token, strict=True)
        told = ", ".join(f"{option} {nats:.2f}" for option, nats in each)
        cells.append((who, told, answer.options[answer.chosen], repr(answer.written)))
    return Table("The paper's one example: which of the four is a drink? Right is coffee.", header, cells)


def _place_table(rows: list[Accuracy]) -> Table:
    def chosen(place: int) -> Column[Accuracy]:
        return Column(PLACES[place], lambda row: row.chosen_by_place[place], ".1%")

    columns = [Column[Accuracy]("Model, text", lambda row: f"{row.model.name}, {row.group}")]
    columns += map(chosen, range(len(PLACES)))
    return make_table("Which place of the list is chosen (right answers are placed evenly)", rows, columns)


def _figure(rows: list[Accuracy]) -> Figure:
    categories = sorted({name for row in rows for name in row.by_category})
    times = [name for name in TIMES if any(name in row.by_times for row in rows)]
    panels = [
        _dots("By category asked for", categories, {str(row.model): row.by_category for row in rows}),
        _dots("By occurrences of the right word", times, {str(row.model): row.by_times for row in rows}),
    ]
    name, caption = f"semantic-{slug(rows[0].group)}", words("dots", group=rows[0].group)
    return Figure(name, caption, panels, size=(9.5, 4.8), widths=(5, 4))


def _dots(title: str, names: Sequence[str], models: Mapping[str, Mapping[str, Share]]) -> Panel:
    """One line a name, one dot and interval a model."""
    marks: list[Mark] = []
    for index, (model, shares) in enumerate(models.items()):
        places = [place for place, name in enumerate(names) if name in shares]
        x, low, high = percents(shares[names[place]] for place in places)
        y = np.array(places) + 0.18 * (index - (len(models) - 1) / 2)
        marks.append(Line(model, x, y, low, high, interval="bars", across=True, line=False))
    marks.append(Reference("chance", at=100 * CHANCE, axis="x", dash="short"))
    trials = [max(shares[name].trials for shares in models.values() if name in shares) for name in names]
    labels = [f"{name} ({n})" for name, n in zip(names, trials, strict=True)]
    return Panel(title, marks, Axis("questions answered rightly (%)", limits=(-2, 102)), Axis(names=labels))
