"""The synthetic reasoning tasks: the newest run of every corpus and vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Bars, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import Share, percents
from lexinvariant.results.measured_model import ROLES, MeasuredModel, Role
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, present, slug

TaskName = Literal["LookUp", "Permutation"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
Drawn = Literal["even", "frequency"]
DRAWN: dict[Drawn, str] = {"even": "drawn uniformly", "frequency": "drawn by frequency"}
STANDS_FOR = {"wiki": "Wiki-40B", "code": "Github"}
"""The paper's corpus beside which training data stands whose name begins so; all other stands beside the Pile."""
LINE_END = "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"
RIGHT = "answer symbols right (%)"
BAR = 0.2
words = Prose("synthetic")


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
        return f"{self.label}, {self.model.symbols}".lstrip(", ")


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
    groups = rows.latest_groups(TaskResult, lambda row: row.group)
    tasks = [row for group in groups.values() for row in group]
    if not tasks:
        return None
    sweeps = rows.latest_groups(SweepResult, lambda row: row.group)
    taught = {row.group: row.model.records_share for row in tasks if row.model.records_share > 0}
    return Section(
        "Synthetic reasoning tasks",
        words.paragraphs(
            settings=listed((f"{row.task}: {row.setting}" for row in tasks), "; "),
            symbols=listed((f"{row.symbols:,} of {row.model.symbols}" for row in tasks), "; "),
            draws=listed(row.origin.draws or 1 for row in tasks),
            taught="; ".join(f"{share:.1%} for {group}" for group, share in taught.items()),
        ),
        [_bars(groups), *map(_sweep, sweeps.values())],
        [*_accuracy_tables(groups), _position_table(tasks), _written_table(tasks)],
        _findings(tasks, groups),
    )


def _beside(row: Result, drawn: Drawn) -> paper.TaskAccuracy:
    """The paper's line for the corpus that ours stands in for, with the same kind of vocabulary."""
    corpus = row.label.split()[0] if row.label else ""  # "wiki alone" is Wikipedia too
    wanted = STANDS_FOR.get(corpus, "Pile"), "char" if row.model.characters else "32k"
    return next(line for line in paper.SYNTHETIC[drawn] if (line.corpus, line.vocab) == wanted)


def _find(rows: Iterable[TaskResult], task: TaskName, drawn: Drawn, role: Role) -> Share | None:
    """The accuracy measured, if it was."""
    wanted = (task, drawn, role)
    return next((row.accuracy for row in rows if (row.task, row.drawn, row.model.role) == wanted), None)


def _ratio(ours: Share | None, theirs: Share | None) -> float | None:
    """Lexinvariant accuracy over standard, where both are there; a multiple of next to nothing would tell nothing."""
    return ours.value / theirs.value if ours and theirs and theirs.value >= 0.01 else None


def _ratios(groups: Iterable[list[TaskResult]], task: TaskName, drawn: Drawn) -> list[float]:
    return present(*(_ratio(*(_find(rows, task, drawn, role) for role in ROLES)) for rows in groups))


def _findings(tasks: list[TaskResult], groups: dict[str, list[TaskResult]]) -> list[Finding]:
    ours = [row for row in tasks if (row.drawn, row.model.role) == ("even", "lexinvariant")]
    return [*map(_finding, ours), *present(_mean_ratio(list(groups.values())))]


def _finding(row: TaskResult) -> Finding:
    ours, line = row.accuracy, _beside(row, "even")
    taught = (
        "made-up tables in the training text have the form of the task" if row.model.records_share else ""
    )
    lines = "pairs" if row.setting.pairs else "demonstrations"
    about = f"beside {line.corpus}, {line.vocab}; {lines}: {row.setting.lines} (not given in the paper)"
    measure = f"{row.task} accuracy ({row.label or 'text'}; vocabulary of {row.model.vocab_size:,})"
    theirs = line.accuracy(row.task, "lexinvariant") / 100
    return Finding(measure, theirs, ours.value, ".1%", ours.low, ours.high, about=about, unlike=taught)


def _mean_ratio(groups: list[list[TaskResult]]) -> Finding | None:
    """The paper's "4X" is over both tasks."""
    ratios = {task: found for task in TASKS if (found := _ratios(groups, task, "even"))}
    if not ratios:
        return None
    unlike = ""
    if len(ratios) < len(TASKS):
        [task] = ratios
        theirs = np.mean([line.ratio(task) for line in paper.SYNTHETIC["even"]])
        unlike = (
            f"{task} alone, where the paper's mean is {theirs:.1f}; the standard model cannot do the other"
        )
    measure = "Accuracy as a multiple of the standard model's, mean"
    mean = float(np.mean([ratio for found in ratios.values() for ratio in found]))
    return Finding(measure, paper.SYNTHETIC_RATIO, mean, ".1f", unlike=unlike)


def _accuracy_tables(groups: dict[str, list[TaskResult]]) -> list[Table]:
    """Ours and the paper's lines, a table a way of drawing symbols."""
    kinds = ("standard", "lexinvariant", "ratio")
    header = ("Trained on, vocabulary", *(f"{task} {kind}" for task in TASKS for kind in kinds))
    tables = []
    for drawn, how in DRAWN.items():
        measured = {name: rows for name, rows in groups.items() if any(row.drawn == drawn for row in rows)}
        lines = paper.SYNTHETIC[drawn]
        cells = [(f"ours: {name}", *_each_task(_ours, rows, drawn)) for name, rows in measured.items()]
        cells += [(f"paper: {line.corpus}, {line.vocab}", *_each_task(_theirs, line)) for line in lines]
        cells.append(("mean ratio", *_each_task(_mean_ratios, list(measured.values()), drawn)))
        if measured:
            tables.append(Table(f"Accuracy with symbols {how}, ours and the paper's", header, cells))
    return tables


def _each_task(cells: Callable[..., tuple[str, str, str]], *given: object) -> list[str]:
    return [cell for task in TASKS for cell in cells(task, *given)]


def _ours(task: TaskName, rows: list[TaskResult], drawn: Drawn) -> tuple[str, str, str]:
    ours, theirs = (_find(rows, task, drawn, role) for role in ROLES)
    ratio = _ratio(ours, theirs)
    told = "" if not (ours and theirs) else "no finite ratio" if ratio is None else f"{ratio:.1f}x"
    return str(theirs or "not measured"), str(ours or "not measured"), told


def _theirs(task: TaskName, line: paper.TaskAccuracy) -> tuple[str, str, str]:
    standard, ours = (f"{line.accuracy(task, role):.2f}%" for role in ("standard", "lexinvariant"))
    return standard, ours, f"{line.ratio(task):.1f}x"


def _mean_ratios(task: TaskName, groups: list[list[TaskResult]], drawn: Drawn) -> tuple[str, str, str]:
    ours, theirs = _ratios(groups, task, drawn), [line.ratio(task) for line in paper.SYNTHETIC[drawn]]
    return "", "", f"paper {np.mean(theirs):.1f}x" + (f", ours {np.mean(ours):.1f}x" if ours else "")


def _position_table(tasks: list[TaskResult]) -> Table:
    def at(place: int) -> Column[TaskResult]:
        return Column(f"symbol {place + 1}", lambda row: next(iter(row.by_position[place:]), None), ".1%")

    columns = [
        Column("Task, symbols, model", lambda row: f"{row.task}, {DRAWN[row.drawn]}, {row.model}"),
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
    panels = [_bar_panel(name, rows, "" if i else RIGHT) for i, (name, rows) in enumerate(groups.items())]
    size = (max(8.0, 5.0 * len(groups)), 4.8)
    return Figure("synthetic-accuracy", words("bars"), panels, size=size, share_y=True)


def _bar_panel(name: str, rows: list[TaskResult], label: str) -> Panel:
    """Four bars a task and way of drawing: each model and the paper's; a place is kept for what was not measured."""
    measured = {(row.task, row.drawn) for row in rows}
    pairs = [(task, drawn) for drawn in DRAWN for task in TASKS if (task, drawn) in measured]
    marks: list[Mark] = []
    for index, role in enumerate(ROLES):
        places = np.arange(len(pairs)) + (2 * index - 1.5) * BAR
        found = [(x, _find(rows, *pair, role)) for x, pair in zip(places, pairs, strict=True)]
        ours = {x: share for x, share in found if share is not None}
        if ours:
            height, low, high = percents(ours.values())
            marks.append(Bars(role, list(ours), height, BAR, low, high, _labels(height), series=index))
        theirs = [_beside(rows[0], drawn).accuracy(task, role) for task, drawn in pairs]
        about: Any = {"labels": _labels(theirs), "hatched": True, "series": index}
        marks.append(Bars(f"{role}, paper", places + BAR, theirs, BAR, **about))
    x = Axis(names=[f"{task}\n{drawn}" for task, drawn in pairs])
    return Panel(name, marks, x, Axis(label, limits=(0, 105)))


def _labels(heights: Iterable[float]) -> list[str]:
    return [f"{height:.1f}" for height in heights]


def _sweep(rows: list[SweepResult]) -> Figure:
    lookup = [row for row in rows if row.task == "LookUp"]
    panels = [_sweep_panel("LookUp", "lines in the table", lookup, lambda row: row.model.role)]
    for role in sorted({row.model.role for row in rows}):
        mine = [row for row in rows if (row.task, row.model.role) == ("Permutation", role)]
        panels.append(_sweep_panel(f"Permutation, {role}", "demonstrations", mine, _size))
    name, size = f"synthetic-sweep-{slug(rows[0].group)}", (4.2 * len(panels), 5.4)
    return Figure(name, words("sweep", first=rows[0]), panels, size=size, legend="under", share_y=True)


def _size(row: SweepResult) -> str:
    return f"{row.setting.length} symbols, answer of {row.setting.answer}"


def _sweep_panel(title: str, x: str, rows: list[SweepResult], name_of: Callable[[SweepResult], str]) -> Panel:
    """Accuracy by lines before the question, a curve a name."""
    rows = sorted(rows, key=lambda row: (row.model.role, row.setting.length or 0, row.setting.lines))
    marks: list[Mark] = []
    for name, members in group_by(rows, name_of).items():
        y, low, high = percents(row.accuracy for row in members)
        marks.append(Line(name, [row.setting.lines for row in members], y, low, high, interval="bars"))
    ticks = sorted({row.setting.lines for row in rows})
    is_first = title == "LookUp"
    if is_first and ticks:
        guess = [100 / n for n in ticks]
        marks.append(Reference("any value in the table", x=ticks, y=guess, dash="short"))
    return Panel(title, marks, Axis(x, "log2", ticks), Axis(RIGHT if is_first else "", limits=(-2, 102)))
