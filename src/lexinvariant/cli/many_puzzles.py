"""Many puzzles in one file: each is read, and a table tells what became of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lexinvariant.cli.terminal import visible
from lexinvariant.errors import UserError
from lexinvariant.files import parse_json
from lexinvariant.progress import Progress

if TYPE_CHECKING:
    from lexinvariant.decipher.decipherment import Decipherment
    from lexinvariant.decipher.solve import Solver

BATCH = 128
"""Puzzles that are read on all cores at once; fewer are read one by one."""
LONGEST_SHOWN = 60
WIDTH = 200
"""Of the table where there is no terminal, so that every puzzle has one line."""


@dataclass(frozen=True)
class Puzzle:
    """One of the file's, by its name or its number."""

    name: str
    text: str


def split_puzzles(text: str) -> list[Puzzle]:
    """Puzzles parted by blank lines, or JSON Lines of {"text": ..., "name": ...}."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and all(line.lstrip().startswith("{") for line in lines):
        return [_parsed(line, number) for number, line in enumerate(lines, start=1)]
    parts = [part for part in re.split(r"\n[^\S\n]*\n\s*", text) if part.strip()]
    return [Puzzle(str(number), part.strip("\r\n")) for number, part in enumerate(parts, start=1)]


def _parsed(line: str, number: int) -> Puzzle:
    try:
        value = parse_json(line, "The line", "")
    except UserError:
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise UserError(
            f'Line {number} is not a puzzle: give JSON Lines such as {{"text": "..."}}, or blank lines between texts.'
        )
    return Puzzle(str(value.get("name", number)), value["text"])


def read_many(
    solver: Solver, text: str, options: Mapping[str, Any], console: Console, *, as_json: bool
) -> int:
    """Read and show all puzzles of a text; how many of them were not read."""
    puzzles = split_puzzles(text)
    if not puzzles:
        raise UserError("There is nothing to decipher: give puzzles separated by blank lines.")
    found: list[Decipherment | UserError] = []
    step = BATCH if len(puzzles) >= BATCH else 1

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    with Progress("deciphering", len(puzzles), log) as advance:
        for start in range(0, len(puzzles), step):
            batch = puzzles[start : start + step]
            found += _read(solver, batch, options)
            advance(len(batch))
    if as_json:
        for puzzle, result in zip(puzzles, found, strict=True):
            print(json.dumps({"name": puzzle.name} | _told(result, options), ensure_ascii=False))
    else:
        _show(puzzles, found, console)
    return sum(isinstance(result, UserError) or result.verdict.status == "unread" for result in found)


def _read(
    solver: Solver, batch: Sequence[Puzzle], options: Mapping[str, Any]
) -> list[Decipherment | UserError]:
    try:
        return [*solver.read([puzzle.text for puzzle in batch], **options)]
    except UserError as error:
        if len(batch) == 1:
            return [error]
        return [result for puzzle in batch for result in _read(solver, [puzzle], options)]


def _told(result: Decipherment | UserError, options: Mapping[str, Any]) -> dict[str, Any]:
    """What `--json` answers for one text alone."""
    from lexinvariant.decipher.arguments import note_on_cribs  # not for --help

    if isinstance(result, UserError):
        return {"error": str(result)}
    return result.to_json() | {"note": note_on_cribs(result, options["cribs"], options["crib_words"])}


def _show(puzzles: Sequence[Puzzle], found: Sequence[Decipherment | UserError], console: Console) -> None:
    table = Table(box=None, header_style="", pad_edge=False)
    for column in ("puzzle", "verdict", "right", "plaintext"):
        table.add_column(
            column, justify="right" if column == "right" else "left", no_wrap=column != "plaintext"
        )

    def add(*cells: str) -> None:
        # As Text: in a plain string rich takes [brackets] for its own marks.
        table.add_row(*(Text(visible(cell)) for cell in cells))

    for puzzle, result in zip(puzzles, found, strict=True):
        if isinstance(result, UserError):
            add(puzzle.name, "error", "", str(result))
            continue
        verdict = result.verdict
        kind = verdict.kind if verdict.status == "read" else f"{verdict.status}: {verdict.kind}"
        plain = " ".join((result.spaced or result.plaintext).split())
        shown = plain if len(plain) <= LONGEST_SHOWN else plain[: LONGEST_SHOWN - 1] + "…"
        add(puzzle.name, kind, f"{result.right:.0%}", "" if verdict.status == "unread" else shown)
    Console(width=None if console.is_terminal else WIDTH, file=console.file, highlight=False).print(table)
