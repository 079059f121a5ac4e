"""What lexinvariance as a regulariser does to a standard model: loss, symbol tasks, robustness, rare words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from typing import Literal, get_args

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.naming import RANKS
from lexinvariant.results.perplexity import resampled
from lexinvariant.results.prose import Prose
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, present, slug

Perturbation = Literal["characters swapped", "rare words", "made-up words", "identifiers renamed"]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)
Occurrence = Literal["first", "second", "later"]
OCCURRENCE: tuple[Occurrence, ...] = get_args(Occurrence)
"""Of a token or word in its context."""
NO_REGULARISER = "none"
words = Prose("regulariser")


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class TextSums:
    """Nats, and how many tokens, characters or words they were spent on, whose ratio is what is measured; summed over
    groups of texts, which are the same for all models, so that two of them can be compared on the same texts.
    """

    nats: list[float]
    units: list[float]

    def estimate(self) -> Estimate | None:
        """With a bootstrap over groups; None where there is nothing to count."""
        return _bootstrap([self])

    def minus(self, other: TextSums) -> Estimate | None:
        """The difference of two models on the same texts, which are resampled together."""
        return _bootstrap([self, other])


def _bootstrap(parts: list[TextSums]) -> Estimate | None:
    """The first ratio, or its difference from the second."""
    if any(sum(part.units) == 0 for part in parts):
        return None
    weight_RS = np.vstack([np.full(len(parts[0].nats), 1.0), resampled(len(parts[0].nats), seed=0)])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = [weight_RS @ np.array(part.nats) / (weight_RS @ np.array(part.units)) for part in parts]
    value_R = ratios[0] if len(ratios) == 1 else ratios[0] - ratios[1]
    low, high = np.nanquantile(value_R[1:], [0.025, 0.975])
    return Estimate(float(value_R[0]), float(low), float(high))


@dataclass(frozen=True)
class Regulariser:
    """How a model's lexicon was made random in training."""

    kind: str
    """`none`, a kind of lexicon, or `lexinvariant` for a model that stays so when it is used."""
    p: float
    p_anneal_share: float = 0.0
    """The last share of training, over which p fell to 0."""

    @property
    def name(self) -> str:
        return f"{self.kind}, p falls to 0" if self.p_anneal_share else self.kind


@dataclass(frozen=True)
class Perturbed:
    """What it costs a model that texts are written differently, in nats beyond the same texts as they were."""

    texts: int
    too_long: int
    """Texts that no longer fit the context, and were left out."""
    changed_share: float
    """Of the characters."""
    increase: TextSums
    """A character of the clean text."""
    increase_elsewhere: TextSums
    """The same in what was not changed: how much the changed words hurt the reading of the others."""
    new_word: dict[Occurrence, TextSums]
    """Nats of a changed word, at its occurrences."""


@dataclass(frozen=True)
class LossByPass:
    """A run's own evaluations."""

    step: list[int]
    loss: list[float]
    steps_a_pass: float | None
    """None where the training text was not at hand."""

    @property
    def passes(self) -> list[float]:
        return [step / (self.steps_a_pass or 1.0) for step in self.step]


@dataclass(frozen=True, kw_only=True)
class RegularisedModel(Row, experiment="regulariser", kind="model"):
    """All that was measured of one model."""

    label: str
    """The corpus."""
    split: str
    sequences: int
    context: int
    model: MeasuredModel
    regulariser: Regulariser
    training_seed: int
    loss: TextSums
    """Nats a token."""
    tasks: dict[str, Share]
    """Accuracy in LookUp and Permutation, where the vocabulary can write them."""
    by_rank: dict[str, dict[Occurrence, TextSums]]
    """Nats a token, by its place in the training text's order of frequency and its occurrence in the context."""
    robustness: dict[Perturbation, Perturbed]
    by_pass: LossByPass | None

    @property
    def name(self) -> str:
        p = (
            ""
            if self.regulariser.kind in (NO_REGULARISER, "lexinvariant")
            else f", p = {self.regulariser.p:g}"
        )
        return self.regulariser.kind + p + (" falling to 0" if self.regulariser.p_anneal_share else "")


ROWS = (RegularisedModel,)
Measure = Callable[[RegularisedModel], Estimate | None]


def section(rows: Rows) -> Section | None:
    """The newest measurement of every model, corpus by corpus."""
    found = rows.latest_of_each(RegularisedModel, lambda row: (row.label, row.model.hash))
    if not found:
        return None
    figures: list[Figure] = []
    tables: list[Table] = []
    findings: list[Finding] = []
    for label, unsorted in group_by(found, lambda row: row.label).items():
        members = sorted(unsorted, key=_order)
        figures += [_by_p(label, members), *present(_by_rank(label, members), _by_pass(label, members))]
        tables += [
            _overview(label, members),
            *present(_robustness_table(label, members)),
            _rank_table(label, members),
        ]
        findings += _findings(label, members)
    return Section("Lexinvariance as a regulariser", words.paragraphs(), figures, tables, findings)


def _order(row: RegularisedModel) -> tuple[bool, bool, str, float, int]:
    regulariser = row.regulariser
    return (
        regulariser.kind != NO_REGULARISER,
        regulariser.kind == "lexinvariant",
        regulariser.name,
        regulariser.p,
        row.training_seed,
    )


def _unregularised(row: RegularisedModel, members: list[RegularisedModel]) -> RegularisedModel | None:
    """The model that it is compared with: of the same seed, or of any."""
    plain = [other for other in members if other.regulariser.kind == NO_REGULARISER and other is not row]
    same_seed = [other for other in plain if other.training_seed == row.training_seed]
    return next(iter(same_seed or plain), None)


def _task(name: str) -> Measure:
    def measure(row: RegularisedModel) -> Estimate | None:
        share = row.tasks.get(name)
        return None if share is None else Estimate(share.value, share.low, share.high)

    return measure


def _increase(perturbation: Perturbation, *, elsewhere: bool) -> Measure:
    def measure(row: RegularisedModel) -> Estimate | None:
        found = row.robustness.get(perturbation)
        if found is None:
            return None
        return (found.increase_elsewhere if elsewhere else found.increase).estimate()

    return measure


def _new_word(perturbation: Perturbation, occurrence: Occurrence) -> Measure:
    def measure(row: RegularisedModel) -> Estimate | None:
        found = row.robustness.get(perturbation)
        return None if found is None else found.new_word[occurrence].estimate()

    return measure


def _over_seeds(measure: Measure, rows: list[RegularisedModel]) -> Estimate | None:
    """The mean of the seeds, with an interval that spans theirs."""
    found = present(*map(measure, rows))
    if not found:
        return None
    return Estimate(mean(e.value for e in found), min(e.low for e in found), max(e.high for e in found))


def _by_p(label: str, members: list[RegularisedModel]) -> Figure:
    measures: list[tuple[str, str, Measure]] = [
        ("held-out text", "nats a token", lambda row: row.loss.estimate()),
        *((task, "accuracy", _task(task)) for task in ("LookUp", "Permutation")),
        ("a made-up word, second time", "nats a word", _new_word("made-up words", "second")),
        *((name, "nats a character added", _increase(name, elsewhere=False)) for name in PERTURBATIONS),
        *(
            (f"around {name}", "nats a character added", _increase(name, elsewhere=True))
            for name in PERTURBATIONS
        ),
    ]
    panels = [_panel(title, unit, measure, members) for title, unit, measure in measures]
    return Figure(
        f"regulariser-{slug(label)}", words("by_p", label=label), panels, columns=4, size=(15.0, 11.0)
    )


def _panel(title: str, unit: str, measure: Measure, members: list[RegularisedModel]) -> Panel:
    """One line a regulariser, from the model without one on; points where p fell to 0."""
    by_name = group_by(members, lambda row: row.regulariser.name)
    start = _over_seeds(measure, by_name.pop(NO_REGULARISER, []))
    marks: list[Mark] = []
    for name, rows in by_name.items():
        by_p = {
            p: _over_seeds(measure, group)
            for p, group in group_by(rows, lambda row: row.regulariser.p).items()
        }
        if name == "lexinvariant":
            marks += [Reference(name, at=e.value) for e in present(*by_p.values())]
            continue
        is_line = not rows[0].regulariser.p_anneal_share
        points = [(p, e) for p, e in {**({0.0: start} if is_line else {}), **by_p}.items() if e is not None]
        marks.append(_line(name, [p for p, _ in points], [e for _, e in points], line=is_line))
    if not by_name and start is not None:
        marks.append(_line("no regulariser", [0.0], [start], line=False))
    ticks = sorted({0.0, *(row.regulariser.p for row in members if row.regulariser.kind != "lexinvariant")})
    return Panel(title, marks, Axis("p", ticks=ticks), Axis(unit))


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


def _by_rank(label: str, members: list[RegularisedModel]) -> Figure | None:
    """Against the model without a regulariser, at the paper's p (or the nearest there is)."""
    panels = []
    for occurrence in OCCURRENCE:
        marks: list[Mark] = [Reference("no regulariser", at=0.0)]
        for name, rows in group_by(members, lambda row: row.regulariser.name).items():
            if name in (NO_REGULARISER, "lexinvariant"):
                continue
            p = _nearest_p(rows)
            some = [row for row in rows if row.regulariser.p == p]
            points = [
                (x, _over_seeds(_rank_difference(bin_name, occurrence, members), some))
                for x, bin_name in enumerate(_ranks(members))
            ]
            there = [(x, e) for x, e in points if e is not None]
            if there:
                marks.append(_line(f"{name}, p = {p:g}", [x for x, _ in there], [e for _, e in there]))
        if len(marks) > 1:
            x = Axis("rank in the training text", names=list(_ranks(members).values()))
            panels.append(Panel(f"{occurrence} in its context", marks, x, Axis("nats a token added")))
    if not panels:
        return None
    return Figure(f"regulariser-rank-{slug(label)}", words("by_rank", label=label), panels, size=(15.0, 4.6))


def _nearest_p(rows: list[RegularisedModel]) -> float:
    return min((row.regulariser.p for row in rows), key=lambda p: abs(p - paper.REGULARISER_P))


def _rank_difference(bin_name: str, occurrence: Occurrence, members: list[RegularisedModel]) -> Measure:
    def measure(row: RegularisedModel) -> Estimate | None:
        other = _unregularised(row, members)
        if other is None or bin_name not in row.by_rank:
            return None
        return row.by_rank[bin_name][occurrence].minus(other.by_rank[bin_name][occurrence])

    return measure


def _by_pass(label: str, members: list[RegularisedModel]) -> Figure | None:
    runs = [(row, row.by_pass) for row in members if row.by_pass is not None]
    if not runs:
        return None
    known = all(by_pass.steps_a_pass is not None for _, by_pass in runs)
    lines = [
        Line(
            f"{row.name}, seed {row.training_seed}",
            by_pass.passes if known else by_pass.step,
            by_pass.loss,
            every_marker=True,
        )
        for row, by_pass in runs
    ]
    x = Axis("passes over the training text" if known else "step")
    panel = Panel(label, lines, x, Axis("loss on held-out text (nats a token)"))
    return Figure(
        f"regulariser-passes-{slug(label)}", words("by_pass"), [panel], size=(9.0, 5.6), legend="right"
    )


def _overview(label: str, members: list[RegularisedModel]) -> Table:
    def against(row: RegularisedModel) -> Estimate | None:
        other = _unregularised(row, members)
        return None if other is None else row.loss.minus(other.loss)

    columns: list[Column[RegularisedModel]] = [
        *_about(),
        Column("Loss", lambda row: row.loss.estimate()),
        Column("Against none", against),
        Column("LookUp", lambda row: row.tasks.get("LookUp")),
        Column("Permutation", lambda row: row.tasks.get("Permutation")),
        *(
            Column(f"Made-up word, {occurrence} time", _new_word("made-up words", occurrence))
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
            Column(name[0].upper() + name[1:], _increase(name, elsewhere=False)),
            Column("Elsewhere", _increase(name, elsewhere=True)),
        ]
    some = [row for row in members if row.robustness]
    texts = "; ".join(
        f"{name} {found.texts} texts, {found.changed_share:.0%} of characters changed"
        for name, found in some[0].robustness.items()
    )
    return make_table(words("robustness", label=label, texts=texts), some, columns)


def _rank_table(label: str, members: list[RegularisedModel]) -> Table:
    columns = _about()
    for bin_name in _ranks(members):
        for occurrence in OCCURRENCE[:2]:
            columns.append(Column(f"{bin_name}, {occurrence}", _mean_of_rank(bin_name, occurrence), ".2f"))
    return make_table(words("ranks", label=label), members, columns)


def _mean_of_rank(bin_name: str, occurrence: Occurrence) -> Callable[[RegularisedModel], float | None]:
    def value(row: RegularisedModel) -> float | None:
        found = row.by_rank.get(bin_name)
        total = 0.0 if found is None else sum(found[occurrence].units)
        return None if found is None or not total else sum(found[occurrence].nats) / total

    return value


def _findings(label: str, members: list[RegularisedModel]) -> list[Finding]:
    """At the paper's p, what a regulariser costs or gains; the paper has no numbers for these."""
    findings = []
    for name, rows in group_by(members, lambda row: row.regulariser.name).items():
        at_p = [row for row in rows if row.regulariser.p == paper.REGULARISER_P]
        if name in (NO_REGULARISER, "lexinvariant") or not at_p:
            continue
        other = _unregularised(at_p[0], members)
        if other is None:
            continue
        difference = at_p[0].loss.minus(other.loss)
        if difference is not None:
            measure = f"{label}: held-out loss added by {at_p[0].name}"
            about = {"low": difference.low, "high": difference.high, "at_least": False}
            findings.append(Finding(measure, None, difference.value, "+.3f", **about))  # type: ignore[arg-type]
        if (share := at_p[0].tasks.get("LookUp")) and (plain := other.tasks.get("LookUp")):
            measure = f"{label}: LookUp with {at_p[0].name}"
            note = f"{plain.value:.1%} without a regulariser"
            findings.append(Finding(measure, None, share.value, ".1%", share.low, share.high, note=note))
    return findings
