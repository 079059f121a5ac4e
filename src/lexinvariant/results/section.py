"""What a part of the report is made of: figures, tables and findings, as data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar

from lexinvariant.results.figure import Figure

Item = TypeVar("Item")
Verdict = Literal["reached", "within noise", "not reached", "not comparable"]


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first column names the row."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Column(Generic[Item]):
    """One column of a table of rows: its header, the field (`curve.loss`) or function that gives its value, how it is
    written (None as `missing`), and what the paper has for it, in a table whose rows are measures."""

    header: str
    value: str | Callable[[Item], Any]
    format: str = ""
    missing: str = ""
    paper: str = "not given"

    def cell(self, item: Item) -> str:
        value = (self.value if callable(self.value) else attrgetter(self.value))(item)
        return self.missing if value is None else format(value, self.format)


def make_table(caption: str, items: Iterable[Item], columns: Sequence[Column[Item]]) -> Table:
    """A row for each item."""
    cells = [tuple(column.cell(item) for column in columns) for item in items]
    return Table(caption, tuple(column.header for column in columns), cells)


@dataclass(frozen=True)
class Finding:
    """One line of the report's first screen: a number that the paper gives, and ours. What it gives no number for is
    in the tables of its section."""

    measure: str
    paper: float
    ours: float
    format: str
    """How both are written."""
    low: float | None = None
    high: float | None = None
    """The interval of ours, where there is one."""
    at_least: bool = True
    """Whether more is better."""
    curve: Sequence[float] = ()
    """Drawn small beside the numbers: ours by context length, say. Without one, two bars."""
    about: str = ""
    """What else there is to know about it."""
    unlike: str = ""
    """Why the two cannot be compared, if they cannot: another vocabulary, or help that the paper's model had not."""

    @property
    def note(self) -> str:
        return "; ".join(part for part in (self.unlike, self.about) if part)

    @property
    def verdict(self) -> Verdict:
        """Within noise: behind the paper's number, and the interval of ours reaches it."""
        if self.unlike:
            return "not comparable"
        sign = 1 if self.at_least else -1
        best = self.high if self.at_least else self.low
        if sign * self.ours >= sign * self.paper:
            return "reached"
        return "not reached" if best is None or sign * best < sign * self.paper else "within noise"


@dataclass(frozen=True)
class Section:
    """One part of the report; its title is the paper's, where it is about a part of the paper."""

    title: str
    paragraphs: list[str]
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def present(*items: Item | None) -> list[Item]:
    """Those that are there."""
    return [item for item in items if item is not None]


def percent(share: float | None, low: float | None = None, high: float | None = None, digits: int = 1) -> str:
    """A share, with its interval where there is one."""
    if share is None:
        return "none"
    interval = "" if low is None or high is None else f" ({low:.{digits}%} to {high:.{digits}%})"
    return f"{share:.{digits}%}{interval}"


def short(number: float) -> str:
    """A whole number, and one below 10 with two digits that say something."""
    if number == 0 or number >= 10:
        return f"{number:,.0f}"
    return f"{number:.{1 - math.floor(math.log10(number))}f}"


def slug(name: str) -> str:
    """A name as part of a file's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "text"


def visible(character: str) -> str:
    """A character as it can be seen."""
    marks = {" ": "␣", "\n": "↵", "\t": "⇥"}
    return marks.get(character, character if character.isprintable() else f"{ord(character):#04x}")
