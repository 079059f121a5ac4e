"""The synthetic reasoning tasks: the newest run of every corpus and vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Bars, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import ROLES, MeasuredModel, Role
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, slug

TaskName = Literal["LookUp", "Permutation"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
Drawn = Literal["even", "frequency"]
DRAWN: dict[Drawn, str] = {"even": "drawn evenly", "frequency": "drawn by frequency"}
STANDS_FOR = {"wiki": "Wiki-40B", "code": "Github"}
"""The paper's corpus that training data of this name is compared with; all other data with the Pile."""
LINE_END = "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"
RIGHT = "answer symbols right (%)"
BAR = 0.2


@dataclass(frozen=True)
class Setting:
    """The size of a task's examples: `pairs` for LookUp, the others for Permutation."""

    pairs: int | None = None
    demonstrations: int | None = None
    length: int | None = None
    answer: int | None = None

    @property
    def lines(self) -> int:
        """Before the question."""
        return self.pairs or self.demonstrations or 0

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in vars(self).items() if value is not None)


@dataclass(frozen=True)
class Shown:
    """One example, and what a model wrote."""

    prompt: str
    answer: str
    written: str


@dataclass(frozen=True, kw_only=True)
class Result(Row):
    """One model's answers to one task."""

    model: MeasuredModel
    label: str
    """The training data."""
    task: TaskName
    setting: Setting
    drawn: Drawn
    symbols: int
    """How many can be drawn."""
    prompt_tokens: int
    accuracy: Share
    """An example is one trial: the symbols of one answer are not independent of each other."""
    by_position: list[float]
    with_separators: float
    whole: float
    copied: float
    from_prompt: float
    shown: list[Shown]

    @property
    def group(self) -> str:
        return f"{self.label}, {self.model.vocab}".lstrip(", ")


@dataclass(frozen=True, kw_only=True)
class TaskResult(Result, experiment="synthetic", kind="task"):
    """At the sizes of the paper's examples."""


@dataclass(frozen=True, kw_only=True)
class SweepResult(Result, experiment="synthetic", kind="sweep"):
    """At another size."""


ROWS = (TaskResult, SweepResult)
ResultT = TypeVar("ResultT", bound=Result)


def section(rows: Rows) -> Section | None:
    """The synthetic reasoning tasks, where their rows are there."""
    tasks = rows.latest_of_each(TaskResult, lambda row: row.group)
    if not tasks:
        return None
    groups = group_by(tasks, lambda row: row.group)
    sweeps = group_by(rows.latest_of_each(SweepResult, lambda row: row.group), lambda row: row.group)
    return Section(
        "Synthetic reasoning tasks",
        _paragraphs(tasks),
        [_bars(groups), *map(_sweep, sweeps.values())],
        [*_accuracy_tables(groups), _position_table(tasks), _written_table(tasks)],
        _findings(tasks, groups),
    )


def _beside(row: Result, drawn: Drawn) -> paper.TaskAccuracy:
    """The paper's line for the corpus that ours stands in for, with the same kind of vocabulary."""
    wanted = STANDS_FOR.get(row.label, "Pile"), "char" if row.model.characters else "32k"
    return next(line for line in paper.SYNTHETIC[drawn] if (line.corpus, line.vocab) == wanted)


def _find(rows: Iterable[ResultT], task: TaskName, drawn: Drawn, role: Role) -> ResultT | None:
    wanted = (task, drawn, role)
    return next((row for row in rows if (row.task, row.drawn, row.model.role) == wanted), None)


def _ratios(groups: Iterable[list[TaskResult]], task: TaskName, drawn: Drawn) -> list[float]:
    """Lexinvariant accuracy over standard, of every group that has both."""
    pairs = [tuple(_find(rows, task, drawn, role) for role in ROLES) for rows in groups]
    return [a.accuracy.value / b.accuracy.value for a, b in pairs if a and b and b.accuracy.value > 0]


def _findings(tasks: list[TaskResult], groups: dict[str, list[TaskResult]]) -> list[Finding]:
    ours = [row for row in tasks if (row.drawn, row.model.role) == ("even", "lexinvariant")]
    findings = [_finding(row, _beside(row, "even")) for row in ours]
    ratios = [ratio for task in TASKS for ratio in _ratios(groups.values(), task, "even")]
    if ratios:
        measure = "Accuracy as a multiple of the standard model's, mean over tasks"
        findings.append(Finding(measure, paper.SYNTHETIC_RATIO, float(np.mean(ratios)), ".1f"))
    return findings


def _finding(row: TaskResult, line: paper.TaskAccuracy) -> Finding:
    ours, theirs = row.accuracy, line.accuracy(row.task, "lexinvariant") / 100
    taught = "; records among the training text teach the task" if row.model.records_share else ""
    note = f"the paper: {line.corpus}, {line.vocab}, sizes not told{taught}"
    measure = f"{row.task} accuracy ({row.group})"
    return Finding(measure, theirs, ours.value, ".1%", low=ours.low, high=ours.high, note=note)


def _paragraphs(tasks: list[TaskResult]) -> list[str]:
    settings = sorted({f"{row.task}: {row.setting}" for row in tasks})
    symbols = sorted({f"{row.symbols:,} of {row.model.vocab}" for row in tasks})
    draws = sorted({row.origin.draws or 1 for row in tasks})
    taught = {row.group: row.model.records_share for row in tasks if row.model.records_share > 0}
    paragraphs = [
        "In LookUp a table of arrows is given (A->2, C->4, G->5, one a line) and then a key again (C->), and its value "
        "should follow. In Permutation sequences are rewritten in one and the same way (A 2 C->C A), and one more is "
        "to be (4 1 D->). The symbols mean nothing, so that nothing but the context can help. The model writes its "
        "answer greedily, token by token and with the separators; the accuracy is the share of the answers' symbols "
        "that are right at their place, separators not counted. A wrong symbol stays in the text and can spoil those "
        "after it.",
        "The paper gives no table sizes and no numbers of demonstrations. Used here are those of the examples that it "
        f"prints ({'; '.join(settings)}), so the numbers stand side by side but are not of the same test; the sweep "
        "shows how much the sizes matter. All LookUp accuracies of the paper are multiples of 0.05%, as if 2,000 "
        "tokens had been counted in its 1,000 examples, where this form of the task has one symbol an answer; should "
        "the second have been the line end, its numbers compare to the column with separators.",
        f"Symbols ({'; '.join(symbols)}) are printable and have no character of a separator; keys of a table differ, "
        "and so do the symbols of a sequence, while values are drawn freely. Intervals are Wilson's at 95%, and an "
        f"example counts as one trial. Lexicons averaged over: {' or '.join(map(str, draws))}.",
    ]
    if taught:
        shares = "; ".join(f"{share:.1%} for {group}" for group, share in taught.items())
        paragraphs.append(
            f"Made-up records were part of the text that some models were trained on ({shares}). They teach the form "
            "of both tasks, so that these models' accuracies do not tell what a model of text picks up by itself, as "
            "the paper's do."
        )
    return paragraphs


def _times(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.1f}x" if theirs > 0 else "no finite ratio"


def _accuracy_tables(groups: dict[str, list[TaskResult]]) -> list[Table]:
    """Ours and the paper's lines, a table a way of drawing symbols."""
    kinds = ("standard", "lexinvariant", "ratio")
    header = ("Trained on, vocabulary", *(f"{task} {kind}" for task in TASKS for kind in kinds))
    tables = []
    for drawn, words in DRAWN.items():
        measured = {name: rows for name, rows in groups.items() if any(row.drawn == drawn for row in rows)}
        cells = [
            (f"ours: {name}", *(cell for task in TASKS for cell in _ours(rows, task, drawn)))
            for name, rows in measured.items()
        ]
        for line in paper.SYNTHETIC[drawn]:
            pairs = [(line.accuracy(task, "standard"), line.accuracy(task, "lexinvariant")) for task in TASKS]
            theirs = [cell for s, li in pairs for cell in (f"{s:.2f}%", f"{li:.2f}%", _times(li, s))]
            cells.append((f"paper: {line.corpus}, {line.vocab}", *theirs))
        means = [cell for task in TASKS for cell in ("", "", _mean_ratios(measured, task, drawn))]
        if measured:
            cells.append(("mean ratio", *means))
            tables.append(Table(f"Accuracy with symbols {words}, ours and the paper's", header, cells))
    return tables


def _ours(rows: list[TaskResult], task: TaskName, drawn: Drawn) -> tuple[str, str, str]:
    ours, theirs = (_find(rows, task, drawn, role) for role in ROLES)
    ratio = _times(ours.accuracy.value, theirs.accuracy.value) if ours and theirs else ""
    told = [str(row.accuracy) if row else "not measured" for row in (theirs, ours)]
    return told[0], told[1], ratio


def _mean_ratios(groups: dict[str, list[TaskResult]], task: TaskName, drawn: Drawn) -> str:
    theirs = [
        line.accuracy(task, "lexinvariant") / line.accuracy(task, "standard")
        for line in paper.SYNTHETIC[drawn]
    ]
    ours = _ratios(groups.values(), task, drawn)
    return f"paper {np.mean(theirs):.1f}x" + (f", ours {np.mean(ours):.1f}x" if ours else "")


def _position_table(tasks: list[TaskResult]) -> Table:
    def at(place: int) -> Column[TaskResult]:
        def share(row: TaskResult) -> float | None:
            return row.by_position[place] if place < len(row.by_position) else None

        return Column(f"symbol {place + 1}", share, ".1%")

    columns = [
        Column[TaskResult](
            "Task, symbols, model", lambda row: f"{row.task}, {DRAWN[row.drawn]}, {row.model}"
        ),
        *(at(place) for place in range(max(len(row.by_position) for row in tasks))),
        Column("all symbols of the answer", "whole", ".1%"),
        Column("with separators", "with_separators", ".1%"),
        Column("symbols taken from the prompt", "from_prompt", ".1%"),
        Column("wrong: another line's answer", "copied", ".1%"),
    ]
    return make_table("Accuracy by position in the answer, and of whole answers", tasks, columns)


def _written_table(tasks: list[TaskResult]) -> Table:
    cells = [
        (f"{row.task}, {row.model.name}", *(text.replace("\n", LINE_END) for text in vars(shown).values()))
        for row in tasks
        if row.drawn == "even"
        for shown in row.shown[:3]
    ]
    header = ("Task, model", "Prompt", "Right answer", "Written")
    return Table(f"The first examples ({LINE_END} is a line end)", header, cells)


def _bars(groups: dict[str, list[TaskResult]]) -> Figure:
    said = "; ".join(
        f"{row.model.name} {row.task} {DRAWN[row.drawn]} {row.accuracy.value:.1%}"
        for rows in groups.values()
        for row in rows
    )
    return Figure(
        "synthetic-accuracy",
        f"Bars of the accuracy of each model in LookUp and Permutation, beside the paper's. Ours: {said}.",
        "Accuracy in LookUp and Permutation, with symbols drawn evenly or by frequency, with 95% intervals; hatched "
        "bars are the paper's (the corpus that ours stands in for, the same kind of vocabulary), whose table sizes and "
        "numbers of demonstrations are not known.",
        [_bar_panel(name, rows, "" if i else RIGHT) for i, (name, rows) in enumerate(groups.items())],
        size=(max(8.0, 5.0 * len(groups)), 4.8),
        share_y=True,
    )


def _bar_panel(name: str, rows: list[TaskResult], label: str) -> Panel:
    """Four bars a task and way of drawing: each model and the paper's; a place is kept for what was not measured."""
    pairs = [
        (task, drawn)
        for drawn in DRAWN
        for task in TASKS
        if any((row.task, row.drawn) == (task, drawn) for row in rows)
    ]
    marks: list[Mark] = []
    for index, role in enumerate(ROLES):
        places = np.arange(len(pairs)) + (2 * index - 1.5) * BAR
        found = [(x, _find(rows, *pair, role)) for x, pair in zip(places, pairs, strict=True)]
        ours = [(x, row.accuracy) for x, row in found if row is not None]
        if ours:
            x_N, (height_N, low_N, high_N) = [x for x, _ in ours], _percents(share for _, share in ours)
            labels = [f"{height:.1f}" for height in height_N]
            marks.append(Bars(role, x_N, height_N, BAR, low_N, high_N, labels, series=index))
        theirs = [_beside(rows[0], drawn).accuracy(task, role) for task, drawn in pairs]
        labels = [f"{height:.1f}" for height in theirs]
        marks.append(
            Bars(f"{role}, paper", places + BAR, theirs, BAR, labels=labels, hatched=True, series=index)
        )
    x = Axis(names=[f"{task}\n{drawn}" for task, drawn in pairs])
    return Panel(name, marks, x, Axis(label, limits=(0, 105)))


def _percents(shares: Iterable[Share]) -> np.ndarray:
    """Values, lower and upper ends."""
    return 100 * np.array([(share.value, share.low, share.high) for share in shares]).T


def _sweep(rows: list[SweepResult]) -> Figure:
    lookup = [row for row in rows if row.task == "LookUp"]
    panels = [_sweep_panel("LookUp", "lines of the table", lookup, lambda row: row.model.role)]
    for role in sorted({row.model.role for row in rows}):
        mine = [row for row in rows if (row.task, row.model.role) == ("Permutation", role)]
        panels.append(_sweep_panel(f"Permutation, {role}", "demonstrations", mine, _size))
    ends = "; ".join(f"{row.model.name} {row.task} {row.setting}: {row.accuracy.value:.0%}" for row in rows)
    return Figure(
        f"synthetic-sweep-{slug(rows[0].group)}",
        f"Accuracy in LookUp by lines of the table and in Permutation by demonstrations. {ends}.",
        f"How the sizes that the paper leaves open change the accuracy ({rows[0].group}; {rows[0].accuracy.trials} "
        "examples a point, symbols drawn evenly, 95% intervals). Dotted: what guessing among the table's values "
        "would give.",
        panels,
        size=(4.2 * len(panels), 5.4),
        legend="under",
        share_y=True,
    )


def _size(row: SweepResult) -> str:
    return f"{row.setting.length} symbols, answer of {row.setting.answer}"


def _sweep_panel(title: str, x: str, rows: list[SweepResult], name_of: Callable[[SweepResult], str]) -> Panel:
    """Accuracy by lines before the question, a curve a name."""
    rows = sorted(rows, key=lambda row: (row.model.role, row.setting.length or 0, row.setting.lines))
    marks: list[Mark] = []
    for name, members in group_by(rows, name_of).items():
        y, low, high = _percents(row.accuracy for row in members)
        marks.append(Line(name, [row.setting.lines for row in members], y, low, high, interval="bars"))
    ticks = sorted({row.setting.lines for row in rows})
    is_first = title == "LookUp"
    if is_first and ticks:
        guess = [100 / n for n in ticks]
        marks.append(Reference("any value of the table", x=ticks, y=guess, dash="short"))
    return Panel(title, marks, Axis(x, "log2", ticks), Axis(RIGHT if is_first else "", limits=(-2, 102)))
