"""The report's tables as Markdown, for documents that live beside the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from lexinvariant.errors import UserError
from lexinvariant.files import read_small_file, write_whole
from lexinvariant.report.page import read_sections
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, slug
from lexinvariant.text.formats import decode_utf8

NUMBER = re.compile(r"[-+]?\d")
BLOCK = re.compile(r"(<!-- table: (?P<name>[a-z0-9-]+) -->\r?\n).*?(<!-- end -->)", re.DOTALL)


def write_markdown(folder: Path) -> Path:
    """Write report.md beside the rows: all findings and tables."""
    _, sections = read_sections(folder)
    parts = ["# Lexinvariant language models: results"]
    parts += [_table(summary(sections))] if any(section.findings for section in sections) else []
    for section in sections:
        parts += [f"## {section.title}", *(f"{table.caption}\n\n{_table(table)}" for table in section.tables)]
    path = folder / "report.md"
    write_whole(path, "\n\n".join(parts) + "\n")
    return path


def fill_document(folder: Path, document: Path) -> int:
    """Rewrite every block between `<!-- table: NAME -->` and `<!-- end -->` of a document; returns how many.

    NAME is `summary`, or a section's title and the number of its table: `training-1`.
    """
    _, sections = read_sections(folder)
    tables = {"summary": summary(sections)}
    tables |= {
        f"{slug(section.title)}-{number}": table
        for section in sections
        for number, table in enumerate(section.tables, start=1)
    }
    text = decode_utf8(read_small_file(document, "give a Markdown document."), document)
    wanted = [match["name"] for match in BLOCK.finditer(text)]
    if not wanted:
        raise UserError(
            f"{document} has no place for a table: put `<!-- table: summary -->` and `<!-- end -->` where it belongs."
        )
    if missing := sorted(set(wanted) - set(tables)):
        raise UserError(
            f"{document} asks for the table {missing[0]!r} and {folder} has {', '.join(tables)}: run that experiment, "
            "or change the name."
        )

    def block(match: re.Match[str]) -> str:
        end = "\r\n" if match[1].endswith("\r\n") else "\n"  # a document keeps the ends of its lines
        return match[1] + _table(tables[match["name"]]).replace("\n", end) + end + match[3]

    write_whole(document, BLOCK.sub(block, text))
    return len(wanted)


def summary(sections: Iterable[Section]) -> Table:
    """The first screen as a table."""

    columns = [
        Column[tuple[str, Finding]]("Part", lambda line: line[0]),
        Column("Measure", lambda line: line[1].measure),
        Column("Paper", lambda line: format(line[1].paper, line[1].format)),
        Column("Ours", lambda line: format(line[1].ours, line[1].format)),
        Column("Verdict", lambda line: line[1].verdict),
        Column("Note", lambda line: line[1].note),
    ]
    lines = [
        (section.title if i == 0 else "", finding)  # named once
        for section in sections
        for i, finding in enumerate(section.findings)
    ]
    return make_table("Does it reproduce the paper?", lines, columns)


def _table(table: Table) -> str:
    columns = [[row[i] for row in table.rows if row[i]] for i in range(1, len(table.header))]
    rule = ["---", *("---:" if _are_numbers(cells) else "---" for cells in columns)]
    return "\n".join(_line(cells) for cells in (table.header, rule, *table.rows))


def _are_numbers(cells: Sequence[str]) -> bool:
    """Most of them, that is: such columns are flush right."""
    return 2 * sum(NUMBER.match(cell) is not None for cell in cells) > len(cells)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
