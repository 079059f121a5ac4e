"""`lexinvariant report DIR`: draw the rows of experiments as figures and one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Arguments:
    """Turn the rows of experiments (*.jsonl in DIR) into figures and one self-contained page, DIR/report.html.

    examples:
      lexinvariant report runs/report --markdown
      lexinvariant report docs/rows --fill docs/results.md
    """

    rows: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Folder with the rows of one or more experiments."""
    markdown: bool = False
    """Also write all tables as Markdown, DIR/report.md."""
    fill: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Only rewrite the tables of this Markdown document, between `<!-- table: NAME -->` and `<!-- end -->`."""


def main(argv: list[str]) -> int:
    """Write the report and say where it is."""
    options = tyro.cli(Arguments, args=argv, prog="lexinvariant report")
    from lexinvariant.report.markdown import fill_document, write_markdown
    from lexinvariant.report.page import write_report

    if options.fill is not None:
        print(f"Filled {fill_document(options.rows, options.fill)} tables of {options.fill}")
        return 0
    print(f"Wrote {write_report(options.rows)}")
    if options.markdown:
        print(f"Wrote {write_markdown(options.rows)}")
    return 0
