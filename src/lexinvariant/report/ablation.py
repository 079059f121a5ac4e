"""What each part of a recipe is worth: variants side by side, and how they learned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lexinvariant.experiments.rows import Row
from lexinvariant.report.figures import COLOURS, GREY, INK, Drawing, Theme, label
from lexinvariant.report.section import Section, Table


def section(rows: list[Row]) -> Section | None:
    """The newest run of every variant; variants may have been run apart."""
    groups: dict[str, dict[str, Row]] = {}
    for row in rows:
        if (row["experiment"], row["kind"]) == ("ablation", "variant"):
            groups.setdefault(row["group"], {})[row["name"]] = row
    if not groups:
        return None
    compared = {group: _sorted(list(variants.values())) for group, variants in groups.items()}
    paragraphs = [
        "Short runs of one recipe, each with one thing changed and all with as many tokens. Losses are those of whole "
        "contexts of held-out text, at the end of the recipe's own context, as a trained model is used (every symbol "
        "re-drawn). One seed each, so differences of a few hundredths of a nat tell little; and what helps a short run "
        "need not help a long one.",
    ]
    drawings = [_dots(group, variants) for group, variants in compared.items()]
    return Section("Ablations", paragraphs, drawings, [_table(g, v) for g, v in compared.items()])


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["held_out_tail_loss"])


def _recipe(rows: list[Row]) -> Row | None:
    """The one with nothing changed."""
    return next((row for row in rows if not row["settings"]), None)


def _dots(group: str, rows: list[Row]) -> Drawing:
    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        loss_N = np.array([row["held_out_tail_loss"] for row in rows])
        place_N = np.arange(len(rows))[::-1]
        recipe = _recipe(rows)
        if recipe is not None:
            axes.axvline(
                recipe["held_out_tail_loss"], color=GREY[theme], linestyle=(0, (4, 2)), linewidth=1.2
            )
        axes.scatter(loss_N, place_N, color=COLOURS[theme][0], s=42, zorder=3)
        for loss, place in zip(loss_N, place_N, strict=True):
            axes.annotate(
                f"{loss:.3f}",
                (loss, place),
                xytext=(7, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                bbox={
                    "facecolor": INK[theme][1],
                    "edgecolor": "none",
                    "pad": 0.8,
                },  # the line does not cross it
            )
        axes.set_yticks(place_N, [row["name"] for row in rows])
        axes.margins(x=0.12)
        label(axes, group, "loss at the end of the context (nats a token)", "")

    first, last = rows[0], rows[-1]
    return Drawing(
        "ablation-" + re.sub(r"\W+", "-", group.lower()).strip("-"),
        f"Held-out loss of {len(rows)} variants: {first['name']} is lowest at {first['held_out_tail_loss']:.3f}, "
        f"{last['name']} highest at {last['held_out_tail_loss']:.3f}.",
        "Loss at the end of the context on held-out text, the better the further left; the dashed line is the recipe.",
        draw,
        (8.0, 1.2 + 0.32 * len(rows)),
    )


def _table(group: str, rows: list[Row]) -> Table:
    recipe = _recipe(rows)
    base = recipe["held_out_tail_loss"] if recipe else float("nan")
    tasks = sorted({task for row in rows for task in row["tasks"]})
    cells = [
        (
            row["name"],
            _settings(row["settings"]),
            f"{row['curve']['parameters'] / 1e6:.1f}M",
            f"{row['held_out_loss']:.3f}",
            f"{row['held_out_tail_loss']:.3f}",
            "" if recipe is None else f"{row['held_out_tail_loss'] - base:+.3f}",
            f"{np.exp(row['held_out_tail_loss']):.2f}",
            f"{row['held_out_tail_deciphered']:.1%}" if "held_out_tail_deciphered" in row else "",
            *(f"{row['tasks'][task]:.1%}" if task in row["tasks"] else "" for task in tasks),
        )
        for row in rows
    ]
    header = (
        "Variant",
        "Settings changed",
        "Parameters",
        "Loss",
        "Loss, end of context",
        "Against the recipe",
        "Perplexity there",
        "Deciphered there",
        *tasks,
    )
    return Table(f"Ablations: {group} (held-out text, nats a token)", header, cells)


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "none"
