"""The report: one HTML page that carries its figures inside, readable in light and dark and without sight
of them.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from pathlib import Path

from lexinvariant.errors import UserError
from lexinvariant.experiments.rows import Row, read_rows
from lexinvariant.report import (
    ablation,
    cipher_key,
    convergence,
    decipher,
    semantic,
    synthetic,
    theory,
    training,
    uncertainty,
)
from lexinvariant.report.figures import Saved, save
from lexinvariant.report.section import Section, Table

SECTIONS: list[Callable[[list[Row]], Section | None]] = [
    training.section,
    ablation.section,
    convergence.section,
    cipher_key.section,
    decipher.section,
    uncertainty.section,
    semantic.section,
    synthetic.section,
    theory.section,
]
"""The report, in order. An experiment adds its section by adding one function here."""


def write_report(rows_dir: Path) -> Path:
    """Write report.html and the figures beside the rows; returns the page."""
    if not rows_dir.is_dir():
        raise UserError(
            f"There is no folder {rows_dir}: run `lexinvariant experiment` with --out there first."
        )
    rows = read_rows(rows_dir)
    sections = [section for make in SECTIONS if (section := make(rows)) is not None]
    if not sections:
        raise UserError(
            f"{rows_dir} holds no rows of a known experiment: run `lexinvariant experiment` first."
        )
    body = "\n".join(_section(section, rows_dir / "figures") for section in sections)
    page = rows_dir / "report.html"
    draft = page.with_suffix(".html.part")
    draft.write_text(_PAGE.replace("{{body}}", body).replace("{{runs}}", _runs(rows)), encoding="utf-8")
    draft.replace(page)
    return page


def _section(section: Section, folder: Path) -> str:
    parts = [f"<section><h2>{html.escape(section.title)}</h2>"]
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += [_table(table) for table in section.tables]
    parts += [_figure(save(drawing, folder)) for drawing in section.drawings]
    return "\n".join([*parts, "</section>"])


def _figure(saved: Saved) -> str:
    def address(svg: bytes) -> str:
        return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()

    return (
        "<figure><picture>"
        f'<source media="(prefers-color-scheme: dark)" srcset="{address(saved.svg_dark)}">'
        f'<img src="{address(saved.svg_light)}" alt="{html.escape(saved.drawing.alt, quote=True)}">'
        f"</picture><figcaption>{html.escape(saved.drawing.caption)}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in table.header)
    rows = "\n".join(
        f'<tr><th scope="row">{html.escape(first)}</th>'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in table.rows
    )
    caption = html.escape(table.caption)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(table.caption, quote=True)}">'
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _runs(rows: list[Row]) -> str:
    """Every run the page draws on, with what is needed to repeat it."""
    runs: dict[str, Row] = {row["run"]: row for row in rows}
    cells = [
        (
            row["experiment"],
            row["time"],
            row["version"],
            str(row["seed"]),
            row["model_hash"] or "none",
            row["data_hash"] or "none",
            "none" if row["draws"] is None else str(row["draws"]),
            row["command"],
        )
        for _, row in sorted(runs.items())
    ]
    header = ("Experiment", "Finished (UTC)", "Version", "Seed", "Model", "Data", "Draws", "Command")
    return _table(Table("Where the numbers come from", header, cells))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lexinvariant language models: results</title>
<style>
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --soft: #5a5a5a; --line: #d4d4d4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #16181d; --soft: #a8adb5; --line: #3a3f48; }
}
body { margin: 0 auto; padding: 1.5rem; max-width: 60rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
figure { margin: 2rem 0; } img { width: 100%; height: auto; }
figcaption, caption { color: var(--soft); text-align: left; font-size: .92rem; padding: .4rem 0; }
.wide { overflow-x: auto; margin: 1.5rem 0; } .wide:focus-visible { outline: 2px solid currentColor; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem .35rem 0; text-align: left; border-bottom: 1px solid var(--line); vertical-
align: top; } </style> </head> <body> <main> <h1>Lexinvariant language models: results</h1> {{body}}
<section><h2>Provenance</h2> {{runs}} </section> </main> </body> </html>
"""
