"""Learning curves against compute."""

from __future__ import annotations

import re

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from lexinvariant.experiments.rows import Row, latest_of_each
from lexinvariant.report.figures import Drawing, Theme, label, series_style, shared_legend
from lexinvariant.report.section import Section, Table


def section(rows: list[Row]) -> Section | None:
    """Every group of runs, in the order in which they were compared."""
    groups: dict[str, list[Row]] = {}
    for row in latest_of_each(rows, "training", "run", "group"):
        groups.setdefault(row["group"], []).append(row)
    if not groups:
        return None
    paragraphs = [
        "Loss at the end of the context on held-out text, every symbol re-drawn for lexinvariant models, against "
        "the floating-point operations spent on training (6N + 12 L H hd T a token)."
    ]
    drawings = [_by_compute(group, members) for group, members in groups.items()]
    tables = [_table(group, members) for group, members in groups.items()]
    return Section("Training", paragraphs, drawings, tables)


def _by_compute(group: str, rows: list[Row]) -> Drawing:
    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for index, row in enumerate(rows):
            style = series_style(index, theme) | {"markevery": 1}
            axes.loglog(row["flop"], np.exp(row["tail_loss"]), label=row["name"], **style)
        lowest = min(min(row["tail_loss"]) for row in rows)
        highest = max(max(row["tail_loss"]) for row in rows)
        ticks = [
            t for t in (2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 50) if lowest - 0.2 < np.log(t) < highest + 0.2
        ]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.yaxis.set_minor_locator(NullLocator())
        label(axes, group, "training compute (FLOP)", "perplexity at the end of the context")
        shared_legend(figure)

    best = min(rows, key=lambda row: row["tail_loss"][-1])
    return Drawing(
        "training-" + re.sub(r"\W+", "-", group.lower()).strip("-"),
        f"Held-out perplexity against training compute for {len(rows)} runs; {best['name']} ends lowest, at "
        f"{np.exp(best['tail_loss'][-1]):.2f}.",
        "Perplexity at the end of the context on held-out text against training compute; each line is one run with its "
        "own rate schedule, so only the last point of a line is the best it could do with that compute.",
        draw,
    )


def _table(group: str, rows: list[Row]) -> Table:
    cells = [
        (
            row["name"],
            f"{row['parameters'] / 1e6:.0f}M",
            row["optimizer"],
            f"{row['step'][-1]:,}",
            f"{row['flop'][-1]:.2g}",
            f"{row['loss'][-1]:.3f}",
            f"{row['tail_loss'][-1]:.3f}",
            f"{np.exp(row['tail_loss'][-1]):.2f}",
            "" if row["tail_deciphered"][-1] is None else f"{row['tail_deciphered'][-1]:.1%}",
        )
        for row in rows
    ]
    header = (
        "Run",
        "Parameters",
        "Optimiser",
        "Steps",
        "FLOP",
        "Loss",
        "Loss, end of context",
        "Perplexity there",
        "Deciphered there",
    )
    return Table(f"Runs compared: {group} (held-out text, nats a token)", header, cells)
