"""The report: one HTML page that carries its figures inside, readable in light and dark, on a phone, in print and
without sight of the figures.
"""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from lexinvariant.errors import UserError
from lexinvariant.experiments.registry import EXPERIMENTS, read_all_rows
from lexinvariant.report.draw import save
from lexinvariant.results.rows import Rows
from lexinvariant.results.section import Finding, Section, slug

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_OPEN_TABLE = 14
"""Tables with more rows are folded."""


def write_report(folder: Path) -> Path:
    """Write report.html and the figures beside the rows; returns the page."""
    rows, sections = read_sections(folder)
    template = _environment().get_template("report.html")
    text = template.render(
        style=Markup((TEMPLATES / "style.css").read_text("utf-8")),
        verdicts=Counter(finding.verdict for section in sections for finding in section.findings),
        sections=sections,
        drawn=[[save(figure, folder / "figures") for figure in section.figures] for section in sections],
        runs=sorted({row.origin.run: row.origin for row in rows}.values(), key=lambda origin: origin.run),
        longest_open_table=LONGEST_OPEN_TABLE,
        thumbnail=thumbnail,
    )
    page = folder / "report.html"
    draft = page.with_suffix(".html.part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(page)
    return page


def read_sections(folder: Path) -> tuple[Rows, list[Section]]:
    """The rows of a folder, and the sections that they make."""
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}: run `lexinvariant experiment` with --out there first.")
    rows = read_all_rows(folder)
    sections = [section for experiment in EXPERIMENTS if (section := experiment.section(rows)) is not None]
    if not sections:
        raise UserError(f"{folder} holds no rows of a known experiment: run `lexinvariant experiment` first.")
    return rows, sections


def _environment() -> Environment:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)
    environment.filters |= {
        "slug": slug,
        "written": lambda number, finding: format(number, finding.format),
        "data_address": lambda svg: "data:image/svg+xml;base64," + base64.b64encode(svg).decode(),
    }
    return environment


@dataclass(frozen=True)
class Thumbnail:
    """Places of a small drawing, 144 wide and 42 high: a curve over the paper's number, or a bar beside the paper's."""

    points: str = ""
    paper_y: float = 0.0
    ours_width: float = 0.0
    paper_width: float = 0.0


def thumbnail(finding: Finding) -> Thumbnail:
    paper, curve = finding.paper, np.asarray(finding.curve, float)
    if len(curve) < 2:
        ours, theirs = abs(finding.ours), abs(paper)
        widest = 104 / max(ours, theirs, 1e-12)
        return Thumbnail(ours_width=ours * widest, paper_width=theirs * widest)
    levels = np.append(curve, paper)
    up = 36 / max(np.ptp(levels), 1e-12)
    at = np.unique(np.linspace(0, len(curve) - 1, 60).astype(int))
    y = 39 - (curve[at] - levels.min()) * up
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(144 * at / (len(curve) - 1), y, strict=True))
    return Thumbnail(points, 39 - (paper - levels.min()) * up)
