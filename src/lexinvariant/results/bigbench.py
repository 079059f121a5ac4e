"""BIG-bench: every task's newest score, and which tasks improve or get worse from one model to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.bigbench_scores import (
    FEWEST_CHANGED,
    THRESHOLD,
    Count,
    Sample,
    Score,
    TaskScored,
    TaskSkipped,
    by_keyword,
    by_setting,
    count,
)
from lexinvariant.results.figure import Axis, Bars, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import wilson
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Rows, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, present, slug

ROWS = (TaskScored, TaskSkipped)
FEWEST_TASKS = 2
"""A keyword of fewer tasks has no bar."""
LONGEST_PROMPT = 400
"""Characters of a prompt that the table shows: its end."""
SERIES = {"improved": 0, "harmed": 1, "within noise": 5}
NOT_REGULARISED = "learned"
"""The lexicon of a plain standard model."""
words = Prose("bigbench")


def section(rows: Rows) -> Section | None:
    """BIG-bench, where its rows are there: each task's newest for every pair of models and number of shots."""
    scored = rows.latest_of_each(TaskScored, lambda row: (row.tasks, row.pair, row.shots, row.task))
    if not scored:
        return None
    scored.sort(key=lambda row: (row.tasks, row.pair, row.shots, row.task))
    skipped = rows.latest_of_each(TaskSkipped, lambda row: (row.tasks, row.task))
    run = {(row.tasks, row.task) for row in scored}
    skipped = [row for row in skipped if (row.tasks, row.task) not in run]
    pairs = [row for row in scored if row.difference]
    settings = group_by(scored, lambda row: (row.tasks, row.pair))
    most_tasks = max(len(own) for own in by_setting(scored).values())
    return Section(
        "Regularised models on BIG-bench",
        words.paragraphs(
            pairs=pairs,
            tasks=len({row.task for row in scored}),
            paper=paper,
            converted=len({row.task for row in scored if not row.as_published}),
            shots=listed((row.shots for row in scored), " and "),
            examples=max(row.examples for row in scored),
            by_luck=most_tasks / 20,
            threshold=THRESHOLD,
            fewest=FEWEST_CHANGED,
            fewer_shots=sum(row.fewer_shots for row in scored),
            cut=sum(row.cut for row in scored),
            answered=sum(row.examples for row in scored),
            skipped=len(skipped),
        ),
        [figure for own in settings.values() for figure in _figures(own)],
        [
            *([_count_table(pairs), _keyword_table(pairs)] if pairs else []),
            _task_table(scored),
            *present(_sample_table(scored)),
            *([_skipped_table(skipped)] if skipped else []),
        ],
        _findings(pairs),
    )


def _findings(rows: Sequence[TaskScored]) -> list[Finding]:
    """The paper's number stands beside models that were regularised as its own was, all pairs of a kind together."""
    shot = [row for row in rows if row.shots == paper.BIGBENCH_SHOTS]
    nets = {lexicon: _nets(own) for lexicon, own in group_by(shot, lambda row: row.lexicon).items()}
    unregularised = [f"{net:+.0%}" for net, _ in nets.get(NOT_REGULARISED, [])]
    findings = []
    for lexicon, found in nets.items():
        if not found or not lexicon.endswith(f"p = {paper.REGULARISER_P:g}"):
            continue
        changed = sum(n for _, n in found)
        net = sum(net * n for net, n in found) / changed
        # Pairs have their tasks in common: several are hardly more evidence than one.
        low, high = (2 * end - 1 for end in wilson((1 + net) / 2, changed // len(found)))
        about = f"by pair of models: {', '.join(f'{net:+.0%}' for net, _ in found)}"
        about += f"; two plain models differ by {', '.join(unregularised)}" if unregularised else ""
        measure = (
            f"Tasks improved minus harmed, of those that change ({lexicon}, {paper.BIGBENCH_SHOTS} shots)"
        )
        findings.append(Finding(measure, paper.BIGBENCH_NET, net, "+.0%", low, high, about=about))
    return findings


def _nets(rows: Sequence[TaskScored]) -> list[tuple[float, int]]:
    """Of each pair of models, tasks improved less harmed, of how many that change."""
    counts = [count(name, own) for name, own in by_setting(rows).items()]
    return [(found.paper_net, found.up + found.down) for found in counts if found.paper_net is not None]


def _count_columns(header: str) -> list[Column[Count]]:
    return [
        Column(header, "name"),
        Column("Tasks", "tasks"),
        Column("Above chance (either model)", "beyond_chance"),
        Column("Improved beyond noise", "improved"),
        Column("Harmed beyond noise", "harmed"),
        Column("Net, of all", "net", "+.0%"),
        Column(f"Better by {100 * THRESHOLD:.0f} point", "up"),
        Column(f"Worse by {100 * THRESHOLD:.0f} point", "down"),
        Column("Net, of those changed (as in the paper)", "paper_net", "+.0%", missing="none changed"),
    ]


def _count_table(rows: Sequence[TaskScored]) -> Table:
    counts = []
    for name, own in by_setting(rows).items():
        counts.append(count(name, own))
        published = [row for row in own if row.as_published]
        if 0 < len(published) < len(own):
            counts.append(count(f"{name}, tasks as published", published))
    return make_table("Tasks improved and tasks harmed", counts, _count_columns("Models, shots"))


def _keyword_table(rows: Sequence[TaskScored]) -> Table:
    counts = [
        count(f"{keyword} ({name})", few)
        for name, own in by_setting(rows).items()
        for keyword, few in by_keyword(own).items()
    ]
    return make_table("By keyword", counts, _count_columns("Keyword (models, shots)"))


def _task_table(rows: Sequence[TaskScored]) -> Table:
    def others(row: TaskScored) -> str:
        both = [row.others, row.baseline_others] if row.baseline else [row.others]
        return ", ".join(
            f"{name} {' / '.join(f'{100 * own[name]:.1f}' for own in both)}" for name in row.others
        )

    columns = [
        Column[TaskScored]("Task", "task"),
        Column("Models", "pair"),
        Column("Shots", "shots"),
        Column("Metric", "metric"),
        Column("Examples", "examples", ","),
        Column("Chance", lambda row: 100 * row.chance, ".1f"),
        Column("Model", "score"),
        Column("Baseline", "baseline_score"),
        Column("Above chance", "beyond_chance"),
        Column("Difference", "difference"),
        Column("Verdict", "verdict"),
        Column("By other metrics", others),
        Column("Fewer shots", "fewer_shots"),
        Column("Cut", "cut"),
        Column("Form", lambda row: "as published" if row.as_published else "converted"),
        Column("Notes", lambda row: " ".join(row.notes)),
    ]
    return make_table("Every task, from 0 to 100 with 95% intervals", rows, columns)


def _sample_table(rows: Sequence[TaskScored]) -> Table | None:
    """The questions after the fewest shots, of rows that have them."""
    first = [own[0] for own in group_by(rows, lambda row: (row.tasks, row.pair, row.task)).values()]
    shown = [(row, row.sample) for row in first if row.sample]
    if not shown:
        return None

    def shorten(prompt: str) -> str:
        return prompt if len(prompt) <= LONGEST_PROMPT else f"[...] {prompt[-LONGEST_PROMPT:]}"

    def answer(sample: Sample, index: int) -> str | None:
        return sample.answers[index] if index < len(sample.answers) else None

    columns = [
        Column[tuple[TaskScored, Sample]]("Task", lambda both: f"{both[0].task}, {both[0].shots} shots"),
        Column("Prompt", lambda both: shorten(both[1].prompt)),
        Column("Right", lambda both: " or ".join(both[1].right)),
        Column("Model", lambda both: answer(both[1], 0)),
        Column("Baseline", lambda both: answer(both[1], 1)),
    ]
    return make_table("The first question of each task and the models' answers", shown, columns)


def _skipped_table(rows: Sequence[TaskSkipped]) -> Table:
    return make_table(
        "Tasks that were skipped", rows, [Column[TaskSkipped]("Task", "task"), Column("Why", "reason")]
    )


def _figures(rows: Sequence[TaskScored]) -> list[Figure]:
    """Of one pair of models, or of one model alone."""
    by_shots: dict[int, list[TaskScored]] = group_by(rows, lambda row: row.shots)
    name, row = f"bigbench-{slug(rows[0].pair)}", rows[0]
    if row.baseline is None:
        return [_score_figure(f"{name}-scores", by_shots)]
    keywords = _keyword_figure(f"{name}-keywords", by_shots)
    differences = _difference_figure(f"{name}-differences", by_shots)
    return [*([keywords] if keywords else []), differences, _score_figure(f"{name}-scores", by_shots)]


def _tall(names: Sequence[str], panels: int) -> tuple[float, float]:
    return 3.0 + 3.6 * panels, 1.8 + 0.24 * len(names)


def _difference_figure(name: str, by_shots: Mapping[int, Sequence[TaskScored]]) -> Figure:
    """A dot and an interval for each task, in the order of the most shots."""
    last = sorted(by_shots[max(by_shots)], key=lambda row: -row.difference.value if row.difference else 0.0)
    names = list(dict.fromkeys(row.task for rows in (last, *by_shots.values()) for row in rows))
    gaps = [row.difference for rows in by_shots.values() for row in rows if row.difference]
    reach = 105 * max(0.01, *(max(-gap.low, gap.high) for gap in gaps))
    axis = Axis("difference in score (points)", limits=(-reach, reach))
    panels = []
    for shots, rows in by_shots.items():
        marks: list[Mark] = []
        by_verdict = group_by(rows, lambda row: row.verdict)
        for verdict, series in SERIES.items():
            few = by_verdict.get(verdict, [])
            marks.append(_dots(verdict, names, {row.task: row.difference for row in few}, series))
        marks.append(Reference("no difference", at=0.0, axis="x", dash="solid"))
        panels.append(Panel(f"{shots} shots", marks, axis, Axis(names=names)))
    row = last[0]
    return Figure(name, words("differences", row=row), panels, size=_tall(names, len(panels)), share_y=True)


def _score_figure(name: str, by_shots: Mapping[int, Sequence[TaskScored]]) -> Figure:
    """Both models and chance, in the order of the model's score after the most shots."""
    last = sorted(by_shots[max(by_shots)], key=lambda row: -row.score.value)
    names = list(dict.fromkeys(row.task for rows in (last, *by_shots.values()) for row in rows))
    panels = []
    for shots, rows in by_shots.items():
        model, baseline = rows[0].model, rows[0].baseline
        marks: list[Mark] = [_dots(str(model), names, {row.task: row.score for row in rows}, 0, -0.15)]
        if baseline:
            theirs = {row.task: row.baseline_score for row in rows}
            marks.append(_dots(str(baseline), names, theirs, 1, 0.15))
        chance = {row.task: Score(row.chance, row.chance, row.chance) for row in rows if row.chance}
        marks.append(_dots("chance", names, chance, 5))
        axis = Axis("score (0 to 100)", limits=(-3, 103))
        panels.append(Panel(f"{shots} shots", marks, axis, Axis(names=names)))
    return Figure(name, words("scores", row=last[0]), panels, size=_tall(names, len(panels)), share_y=True)


def _dots(
    name: str,
    names: Sequence[str],
    estimates: Mapping[str, Score | None],
    series: int,
    offset: float = 0.0,
) -> Line:
    here = [(names.index(task), each) for task, each in estimates.items() if each is not None]
    x, low, high = 100 * np.array([(each.value, each.low, each.high) for _, each in here]).reshape(-1, 3).T
    y = np.array([place for place, _ in here]) + offset
    return Line(name, x, y, low, high, interval="bars", across=True, line=False, series=series)


def _keyword_figure(name: str, by_shots: Mapping[int, Sequence[TaskScored]]) -> Figure | None:
    """The net share of tasks improved: beyond noise, and as the paper counts."""
    every = {shots: {"all tasks": list(rows), **by_keyword(rows)} for shots, rows in by_shots.items()}
    most = every[max(every)]
    keywords = [keyword for keyword, rows in most.items() if len(rows) >= FEWEST_TASKS]
    if len(keywords) < 2:  # nothing but all tasks
        return None
    ways: dict[str, Callable[[Count], float | None]] = {
        "Beyond noise, of all tasks": lambda counted: counted.net,
        "As in the paper, of the tasks that change": lambda counted: counted.paper_net,
    }
    width = 0.8 / len(every)
    panels = []
    for title, net in ways.items():
        marks: list[Mark] = []
        for index, (shots, found) in enumerate(every.items()):
            here = [(place, count(word, found[word])) for place, word in enumerate(keywords) if word in found]
            heights = [net(counted) for _, counted in here]
            places = np.array([place for place, _ in here]) + width * (index - (len(every) - 1) / 2)
            points = [np.nan if height is None else 100 * height for height in heights]
            marks.append(Bars(f"{shots} shots", places, points, 0.9 * width, across=True))
        marks.append(Reference("as many improved as harmed", at=0.0, axis="x", dash="solid"))
        names = [f"{keyword} ({len(most[keyword])})" for keyword in keywords]
        axis = Axis("improved minus harmed (%)", limits=(-105, 105))
        panels.append(Panel(title, marks, axis, Axis(names=names)))
    row = next(iter(by_shots.values()))[0]
    size = (11.0, 1.8 + 0.3 * len(keywords))
    return Figure(name, words("keywords", row=row, threshold=THRESHOLD), panels, size=size, share_y=True)
