"""What a part of the report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lexinvariant.report.figures import Drawing


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first column names the row. Paper's numbers stand beside ours where it
    has any.
    """

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Section:
    """One part of the report."""

    title: str
    paragraphs: list[str]
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
