"""What lexinvariance as a regulariser does to a standard model: loss, symbol tasks, robustness, rare words."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import Estimate, Share
from lexinvariant.results.naming import RANKS
from lexinvariant.results.prose import Prose
from lexinvariant.results.regularised_model import (
    LEXINVARIANT,
    NO_REGULARISER,
    OCCURRENCE,
    PERTURBATIONS,
    Occurrence,
    Perturbation,
    RegularisedModel,
)
from lexinvariant.results.rows import Rows, group_by
from lexinvariant.results.section import Column, Section, Table, make_table, present, slug
from lexinvariant.results.text_sums import TextSums

TASKS: tuple[str, ...] = ("LookUp", "Permutation")
words = Prose("regulariser")
ROWS = (RegularisedModel,)
Measure = Callable[[RegularisedModel], Estimate | None]
Part = Callable[[RegularisedModel], TextSums | None]


def section(rows: Rows) -> Section | None:
    """The newest measurement of every model, corpus by corpus."""
    found = rows.latest_of_each(RegularisedModel, lambda row: (row.label, row.model.hash))
    if not found:
        return None
    figures: list[Figure] = []
    tables: list[Table] = []
    for label, unsorted in group_by(found, lambda row: row.label).items():
        members = sorted(unsorted, key=_order)
        figures += present(_by_p(label, members), _by_rank(label, members), _by_pass(label, members))
        tables += [
            _overview(label, members),
            *present(_robustness_table(label, members)),
            _rank_table(label, members),
        ]
    return Section("Lexinvariance as a regulariser", words.paragraphs(), figures, tables)


def _order(row: RegularisedModel) -> tuple[bool, bool, str, float, int]:
    regulariser = row.regulariser
    return (
        regulariser.kind != NO_REGULARISER,
        regulariser.kind == LEXINVARIANT,
        regulariser.name,
        regulariser.p,
        row.training_seed,
    )


def _unregularised(row: RegularisedModel, members: list[RegularisedModel]) -> RegularisedModel | None:
    """The model that it is compared with, on the same texts: of the same seed, or the first. Of those without a
    regulariser the first is compared with none, and the others with it, which tells how far seeds lie apart."""
    plain = [
        other
        for other in members
        if other.regulariser.kind == NO_REGULARISER and _texts_of(other) == _texts_of(row)
    ]
    if row.regulariser.kind == NO_REGULARISER:
        return plain[0] if row is not plain[0] else None
    same_seed = [other for other in plain if other.training_seed == row.training_seed]
    return next(iter(same_seed or plain), None)


def _texts_of(row: RegularisedModel) -> tuple[object, ...]:
    return row.origin.data_hash, row.origin.seed, row.split, row.sequences, row.context


def _loss(row: RegularisedModel) -> TextSums:
    return row.loss


def _share(task: str) -> Callable[[RegularisedModel], Share | None]:
    return lambda row: row.tasks.get(task)


def _task(name: str) -> Measure:
    def measure(row: RegularisedModel) -> Estimate | None:
        share = _share(name)(row)
        return None if share is None else Estimate(share.value, share.low, share.high)

    return measure


def _increase(perturbation: Perturbation, *, elsewhere: bool) -> Part:
    def part(row: RegularisedModel) -> TextSums | None:
        found = row.robustness.get(perturbation)
        if found is None:
            return None
        return found.increase_elsewhere if elsewhere else found.increase

    return part


def _new_word(perturbation: Perturbation, occurrence: Occurrence) -> Part:
    def part(row: RegularisedModel) -> TextSums | None:
        found = row.robustness.get(perturbation)
        return None if found is None else found.new_word[occurrence]

    return part


def _rank(bin_name: str, occurrence: Occurrence) -> Part:
    def part(row: RegularisedModel) -> TextSums | None:
        return row.by_rank[bin_name][occurrence] if bin_name in row.by_rank else None

    return part


def _own(part: Part) -> Measure:
    def measure(row: RegularisedModel) -> Estimate | None:
        sums = part(row)
        return None if sums is None else sums.estimate()

    return measure


def _against_none(part: Part, members: list[RegularisedModel]) -> Measure:
    """Less the same of the model without a regulariser, on the same texts: far surer than the number itself."""

    def measure(row: RegularisedModel) -> Estimate | None:
        other = _unregularised(row, members)
        ours, theirs = part(row), None if other is None else part(other)
        return None if ours is None or theirs is None else ours.minus(theirs)

    return measure


def _over_seeds(measure: Measure, rows: list[RegularisedModel]) -> Estimate | None:
    """The mean of the seeds, with an interval that spans theirs."""
    found = present(*map(measure, rows))
    if not found:
        return None
    return Estimate(mean(e.value for e in found), min(e.low for e in found), max(e.high for e in found))


def _by_p(label: str, members: list[RegularisedModel]) -> Figure | None:
    parts: list[tuple[str, str, Part]] = [
        ("a made-up word, second time", "nats per word", _new_word("made-up words", "second")),
        *((name, "nats per character", _increase(name, elsewhere=False)) for name in PERTURBATIONS),
        *(
            (f"around {name}", "nats per character", _increase(name, elsewhere=True))
            for name in PERTURBATIONS
        ),
    ]
    panels = [
        _panel("held-out text", "nats per token, against none", _against_none(_loss, members), members),
        *(_panel(task, "accuracy", _task(task), members, is_difference=False) for task in TASKS),
        *(
            _panel(title, f"{unit}, against none", _against_none(part, members), members)
            for title, unit, part in parts
        ),
    ]
    if not any(panel.marks for panel in panels):
        return None
    caption, size = words("by_p", label=label), (13.0, 10.0)
    return Figure(f"regulariser-{slug(label)}", caption, panels, columns=4, size=size)


def _panel(
    title: str, unit: str, measure: Measure, members: list[RegularisedModel], *, is_difference: bool = True
) -> Panel:
    """One line a regulariser, from the model without one on; points where p fell to 0."""
    by_name = group_by(members, lambda row: row.regulariser.name)
    start = _over_seeds(measure, by_name.pop(NO_REGULARISER, []))
    if is_difference:  # from nothing; its interval is how far seeds lie apart
        spread = 0.0 if start is None else abs(start.value)
        start = Estimate(0.0, -spread, spread)
    marks: list[Mark] = []
    for name, rows in by_name.items():
        by_p = {
            p: _over_seeds(measure, group)
            for p, group in group_by(rows, lambda row: row.regulariser.p).items()
        }
        if name == LEXINVARIANT:
            # Of its losses there is nothing to be seen beside the others': they are those of another kind of model.
            marks += [] if is_difference else [Reference(name, at=e.value) for e in present(*by_p.values())]
            continue
        is_line = not rows[0].regulariser.p_anneal_share
        points = [(p, e) for p, e in by_p.items() if e is not None]
        if points and is_line and start is not None:
            points.insert(0, (0.0, start))
        if points:
            marks.append(_line(name, [p for p, _ in points], [e for _, e in points], line=is_line))
    tried = sorted({0.0, *(row.regulariser.p for row in members if row.regulariser.kind != LEXINVARIANT)})
    named: list[float] = []  # with room between them
    for p in tried:
        named += [p] if not named or p - named[-1] > 0.15 else []
    ticks = {p: f"{p:g}" if p in named else "" for p in tried}
    y = Axis(unit, limits=_limits(marks)) if is_difference else Axis(unit)
    return Panel(title, marks, Axis("p", ticks=ticks), y)


def _limits(marks: list[Mark]) -> tuple[float | None, float | None]:
    """Of what lies below p = 1: models that were told nothing of tokens in training lie far off."""
    lines = [(mark.x, mark.low, mark.high) for mark in marks if isinstance(mark, Line)]
    points = np.concatenate([np.array(line, float).T for line in lines]) if lines else np.empty((0, 3))
    below = points[points[:, 0] < 1]
    if len(below) == len(points):
        return None, None
    low, high = below[:, 1].min(initial=0.0), below[:, 2].max(initial=0.0)
    margin = 0.1 * (high - low) or 0.1
    return float(low - margin), float(high + margin)


def _line(name: str, x: list[float], estimates: list[Estimate], *, line: bool = True) -> Line:
    return Line(
        name,
        x,
        [e.value for e in estimates],
        [e.low for e in estimates],
        [e.high for e in estimates],
        interval="bars",
        every_marker=True,
        line=line,
    )


def _ranks(members: list[RegularisedModel]) -> dict[str, str]:
    """Bins that have tokens, and their short names."""
    names = zip(RANKS.names, RANKS.short_names, strict=True)
    return {name: short for name, short in names if any(name in row.by_rank for row in members)}


def _at_papers_p(members: list[RegularisedModel]) -> dict[str, list[RegularisedModel]]:
    """The models of each regulariser, at the paper's p or the nearest there is."""
    by_name = group_by(members, lambda row: row.regulariser.name)
    for name, rows in by_name.items():
        p = min((row.regulariser.p for row in rows), key=lambda p: abs(p - paper.REGULARISER_P))
        by_name[name] = [row for row in rows if row.regulariser.p == p]
    return by_name


def _by_rank(label: str, members: list[RegularisedModel]) -> Figure | None:
    panels = []
    for occurrence in OCCURRENCE:
        marks: list[Mark] = [Reference("no regulariser", at=0.0)]
        for name, rows in _at_papers_p(members).items():
            points = [
                (x, _over_seeds(_against_none(_rank(bin_name, occurrence), members), rows))
                for x, bin_name in enumerate(_ranks(members))
            ]
            there = [(x, e) for x, e in points if e is not None]
            if there and name not in (NO_REGULARISER, LEXINVARIANT):
                marks.append(_line(rows[0].name, [x for x, _ in there], [e for _, e in there]))
        if len(marks) > 1:
            x = Axis("rank in the training text", names=list(_ranks(members).values()))
            panels.append(
                Panel(f"{occurrence} in its context", marks, x, Axis("nats per token, against none"))
            )
    if not panels:
        return None
    return Figure(f"regulariser-rank-{slug(label)}", words("by_rank", label=label), panels, size=(15.0, 4.6))


def _by_pass(label: str, members: list[RegularisedModel]) -> Figure | None:
    """One seed of each: the first."""
    first = [rows[0] for rows in _at_papers_p(members).values()]
    runs = [(row.name, row.by_pass) for row in first if row.by_pass is not None]
    if not runs:
        return None
    known = all(by_pass.steps_a_pass is not None for _, by_pass in runs)
    lines = [
        Line(name, by_pass.passes if known else by_pass.step, by_pass.loss, every_marker=True)
        for name, by_pass in runs
    ]
    x = Axis("passes over the training text" if known else "step")
    panel = Panel(label, lines, x, Axis("loss on held-out text (nats per token)"))
    return Figure(f"regulariser-passes-{slug(label)}", words("by_pass"), [panel])


def _overview(label: str, members: list[RegularisedModel]) -> Table:
    columns: list[Column[RegularisedModel]] = [
        *_about(),
        Column("Loss", _own(_loss)),
        Column("Against none", _against_none(_loss, members)),
        *(Column(task, _share(task)) for task in TASKS),
        *(
            Column(f"Made-up word, {occurrence}", _own(_new_word("made-up words", occurrence)))
            for occurrence in OCCURRENCE
        ),
        Column("Contexts", lambda row: f"{row.sequences:,} of {row.context:,} tokens"),
    ]
    return make_table(words("overview", label=label), members, columns)


def _about() -> list[Column[RegularisedModel]]:
    return [
        Column("Model", "model.name"),
        Column("Regulariser", "name"),
        Column("Seed", "training_seed"),
    ]


def _robustness_table(label: str, members: list[RegularisedModel]) -> Table | None:
    measured = [name for name in PERTURBATIONS if any(name in row.robustness for row in members)]
    if not measured:
        return None
    columns = _about()
    for name in measured:
        columns += [
            Column(name[0].upper() + name[1:], _own(_increase(name, elsewhere=False))),
            Column("Unchanged words", _own(_increase(name, elsewhere=True))),
        ]
    some = [row for row in members if row.robustness]
    texts = "; ".join(
        f"{name} {found.texts} texts, {found.changed_share:.0%} of characters changed"
        for name, found in some[0].robustness.items()
    )
    return make_table(words("robustness", label=label, texts=texts), some, columns)


def _rank_table(label: str, members: list[RegularisedModel]) -> Table:
    def value(part: Part) -> Callable[[RegularisedModel], float | None]:
        return lambda row: None if (estimate := _own(part)(row)) is None else estimate.value

    columns = _about()
    for bin_name in _ranks(members):
        for occurrence in OCCURRENCE[:2]:
            columns.append(Column(f"{bin_name}, {occurrence}", value(_rank(bin_name, occurrence)), ".2f"))
    return make_table(words("ranks", label=label), members, columns)
