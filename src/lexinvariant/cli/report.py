"""`lexinvariant report DIR`: draw the rows of experiments as figures and one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class ReportOptions:
    """Turn result rows (*.jsonl in DIR) into figures and one self-contained page, DIR/report.html.

    Example: lexinvariant report runs/theory
    """

    rows: tyro.conf.Positional[Path]
    """Folder with the rows of one or more experiments."""


def main(argv: list[str]) -> int:
    """Write the report and say where it is."""
    options = tyro.cli(ReportOptions, args=argv, prog="lexinvariant report")
    from lexinvariant.report.page import write_report

    print(f"Wrote {write_report(options.rows)}")
    return 0
