"""What is recorded of BIG-bench's tasks, and how tasks are counted that improve or get worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lexinvariant.results.intervals import Estimate
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.rows import Row, group_by

THRESHOLD = 0.01
"""A task has changed, in the paper's way of counting, if its score has by this much; the paper's own is not told."""
FEWEST_CHANGED = 6
"""Fewer examples on which two models differ, all in one direction, are no evidence at 5% (a sign test: 2 / 2**6)."""


@dataclass(frozen=True)
class Score(Estimate):
    """A score or a difference of two, from 0 to 1, told in hundredths."""

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ({100 * self.low:.1f} to {100 * self.high:.1f})"


@dataclass(frozen=True)
class Sample:
    """The first question of a task: to see what was asked."""

    prompt: str
    right: list[str]
    answers: list[str]
    """The model's and the baseline's."""


@dataclass(frozen=True, kw_only=True)
class TaskSkipped(Row, experiment="bigbench", kind="skipped"):
    """A task that could not be run."""

    tasks: str
    task: str
    reason: str

    def __str__(self) -> str:
        return f"{self.task} was skipped: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class TaskScored(Row, experiment="bigbench", kind="task"):
    """One task after so many shots: a model and, where there is one, the baseline on the same examples."""

    tasks: str
    """The folder or archive."""
    task: str
    keywords: list[str]
    as_published: bool
    """False where prompts had been made of it by somebody else."""
    subtasks: int
    shots: int
    metric: str
    examples: int
    chance: float
    model: MeasuredModel
    lexicon: str
    """What the model was trained with."""
    score: Score
    others: dict[str, float]
    """By other metrics."""
    baseline: MeasuredModel | None
    baseline_score: Score | None
    baseline_others: dict[str, float]
    difference: Score | None
    """Of the model less that of the baseline."""
    changed: int
    """Examples on which the two differ."""
    fewer_shots: int
    """Examples that left no room for all shots."""
    cut: int
    """Examples that lost the beginning of their input."""
    notes: list[str]
    sample: Sample | None
    """None in rows that are passed on without the tasks' own text."""

    @property
    def pair(self) -> str:
        return self.model.name + (f" and {self.baseline.name}" if self.baseline else "")

    @property
    def is_beyond_noise(self) -> bool:
        gap = self.difference
        return gap is not None and self.changed >= FEWEST_CHANGED and (gap.low > 0 or gap.high < 0)

    @property
    def verdict(self) -> str:
        if self.difference is None:
            return ""
        if not self.is_beyond_noise:
            return "within noise"
        return "improved" if self.difference.value > 0 else "harmed"

    @property
    def beyond_chance(self) -> str:
        """Which models do better than chance."""
        scores = {self.model.name: self.score}
        if self.baseline and self.baseline_score:
            scores[self.baseline.name] = self.baseline_score
        above = [name for name, score in scores.items() if score.low > self.chance]
        return ("both" if len(above) == 2 else above[0]) if above else "none"

    def __str__(self) -> str:
        against = f", {self.baseline_score} by the baseline: {self.verdict}" if self.baseline_score else ""
        chance = f"; chance is {100 * self.chance:.1f}" if self.chance else ""
        return f"{self.task}, {self.shots} shots, {self.metric}: {self.score}{against}{chance}"


@dataclass(frozen=True)
class Count:
    """How many of some tasks improve and how many are harmed."""

    name: str
    tasks: int
    beyond_chance: int
    improved: int
    harmed: int
    up: int
    """Better by the threshold or more, noise or not."""
    down: int

    @property
    def net(self) -> float:
        """Improved less harmed, of all."""
        return (self.improved - self.harmed) / self.tasks

    @property
    def paper_net(self) -> float | None:
        """The paper's way: better less worse, of those that changed by the threshold."""
        return (self.up - self.down) / (self.up + self.down) if self.up + self.down else None


def count(name: str, rows: Sequence[TaskScored]) -> Count:
    verdicts = [row.verdict for row in rows]
    gaps = [row.difference.value for row in rows if row.difference]
    return Count(
        name,
        len(rows),
        sum(row.beyond_chance != "none" for row in rows),
        verdicts.count("improved"),
        verdicts.count("harmed"),
        sum(gap >= THRESHOLD for gap in gaps),
        sum(gap <= -THRESHOLD for gap in gaps),
    )


def by_keyword(rows: Sequence[TaskScored]) -> dict[str, list[TaskScored]]:
    """Tasks under each of their keywords, the keywords with most tasks first."""
    found: dict[str, list[TaskScored]] = {}
    for row in rows:
        for keyword in row.keywords or ["no keyword"]:
            found.setdefault(keyword, []).append(row)
    return dict(sorted(found.items(), key=lambda item: (item[0] == "no keyword", -len(item[1]), item[0])))


def by_setting(rows: Sequence[TaskScored]) -> dict[str, list[TaskScored]]:
    return group_by(rows, lambda row: f"{row.tasks}, {row.pair}, {row.shots} shots")
