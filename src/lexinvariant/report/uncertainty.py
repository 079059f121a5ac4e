"""Figures and tables of the uncertainty experiment: the paper's four texts together, and each other text alone."""

from __future__ import annotations

import math
import re
import string
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from lexinvariant.experiments.rows import Row, latest_of_each
from lexinvariant.report.figures import COLOURS, INK, Drawing, Theme
from lexinvariant.report.section import Section, Table

LETTERS = string.ascii_lowercase
CODE = ":{"
"""The two candidates of the paper's code texts."""
NOTICEABLE = 0.02
"""A character that any occurrence gives this much gets a column of its own."""
MOST_COLUMNS = 34
MOST_ROWS_NAMED = 40
OTHERS = "rest"
VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥"}
STRONGEST: dict[Theme, str] = {"light": "#00182b", "dark": "#ffffff"}


def section(rows: list[Row]) -> Section | None:
    """Uncertainty over lexical permutations, where its rows are there."""
    mine = latest_of_each(rows, "uncertainty", "posterior", "label")
    if not mine:
        return None
    papers = [row for row in mine if row["paper_says"]]
    others = [row for row in mine if not row["paper_says"]]
    drawings = [_drawing("uncertainty", papers)] if papers else []
    drawings += [_drawing(f"uncertainty-{_slug(row['label'])}", [row]) for row in others]
    return Section("Uncertainty over lexical permutations", _paragraphs(mine), drawings, _tables(mine))


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "text"


def _paragraphs(rows: list[Row]) -> list[str]:
    draws = sorted({row["draws"] for row in rows})
    readers = sorted({f"the {row['reader']} of {row['name']}" for row in rows})
    return [
        "In each text one symbol stands for another character throughout. The model reads the text under random "
        "lexicons, to which all names are alike, and at each occurrence a classifier reads off its state what the "
        "symbol stands for, given the text up to there and no further.",
        f"Read by {' and '.join(readers)}; probabilities averaged over {' or '.join(map(str, draws))} lexicons, then "
        "tempered: p^(1/T), normalised. A temperature above 1 shows doubts that a confident classifier hides, as in "
        "the paper's panels on code.",
    ]


def name_of(character: str) -> str:
    """A character as it can be seen."""
    return VISIBLE.get(character, character if character.isprintable() else f"{ord(character):#04x}")


def columns_of(row: Row) -> list[str]:
    """The candidates shown: letters (or the paper's two for code), the truth, and all that is noticeable."""
    posterior_OV = np.array(row["posterior"])
    about_letters = row["truth"] is None or row["truth"] in LETTERS
    shown = set(LETTERS if about_letters else CODE + row["truth"]) | set(row["truth"] or "")
    highest_V = posterior_OV.max(axis=0)[:128]
    for code in np.argsort(-highest_V):
        if highest_V[code] < NOTICEABLE or len(shown) >= MOST_COLUMNS:
            break
        shown.add(chr(code))
    return sorted(shown, key=lambda character: (character not in LETTERS, character))


def _matrix(row: Row, columns: list[str]) -> NDArray[np.float64]:
    """Probabilities of the columns, and of all other characters together."""
    shown_OC = np.array(row["posterior"])[:, [ord(character) for character in columns]]
    return np.column_stack([shown_OC, np.maximum(1 - shown_OC.sum(axis=1), 0)])


def _title(row: Row) -> str:
    stands = f"{name_of(row['symbol'])} stands for {name_of(row['truth'])}, " if row["truth"] else ""
    return f"{row['label']}: {stands}T = {row['temperature']:g}"


def _drawing(name: str, rows: list[Row]) -> Drawing:
    across = min(2, len(rows))
    down = math.ceil(len(rows) / across)
    tallest = max(len(row["word"]) for row in rows)

    def draw(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(down, across, squeeze=False)
        image: Any = None
        for axes, row in zip(panels.ravel(), rows, strict=False):
            image = _heat_map(axes, row, theme)
        for axes in panels.ravel()[len(rows) :]:
            axes.remove()
        bar = figure.colorbar(image, ax=list(figure.axes), label="probability", shrink=0.8)
        bar.outline.set_linewidth(0.5)

    marked = "The true answer's column is framed. " if any(row["truth"] for row in rows) else ""
    return Drawing(
        name,
        "Heat maps of what the symbol is taken for at each occurrence. " + " ".join(map(_story, rows)),
        "Each row is an occurrence of the symbol, from first to last, with the word or line it stands in and the "
        f"number of symbols read; each column a candidate, {OTHERS!r} all other characters together. {marked}"
        "Numbers are in the table.",
        draw,
        (7.2 * across, (0.31 * min(tallest, MOST_ROWS_NAMED) + 1.3) * down),
    )


def _heat_map(axes: Axes, row: Row, theme: Theme) -> Any:
    columns = columns_of(row)
    matrix_OC = _matrix(row, columns)
    ink, paper = INK[theme]
    colours = LinearSegmentedColormap.from_list(
        "probability", [(0.0, paper), (0.4, COLOURS[theme][0]), (1.0, STRONGEST[theme])]
    )
    image = axes.pcolormesh(
        matrix_OC, cmap=colours, vmin=0.0, vmax=1.0, edgecolors=(*_rgb(ink), 0.08), linewidth=0.4
    )
    axes.axvline(len(columns), color=ink, linewidth=0.8)  # the rest is no candidate
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set_title(_verbatim(_title(row)), loc="left")
    names = [_verbatim(name_of(character)) for character in columns] + [OTHERS]
    axes.set_xticks(np.arange(len(names)) + 0.5, names, family="monospace", fontsize=9)
    axes.get_xticklabels()[-1].set_rotation(90)
    labels = [f"{word}  {at + 1:>3}" for word, at in zip(row["word"], row["position"], strict=True)]
    every = math.ceil(len(labels) / MOST_ROWS_NAMED)
    at_O = np.arange(0, len(labels), every)
    axes.set_yticks(at_O + 0.5, [_verbatim(labels[o]) for o in at_O], family="monospace", fontsize=8.5)
    axes.tick_params(length=0)
    axes.set_xlabel("candidate")
    axes.set_ylabel("occurrence, symbols read")
    if row["truth"]:
        at = columns.index(row["truth"])
        mark = COLOURS[theme][1]
        frame = Rectangle((at, 0), 1, len(labels), fill=False, edgecolor=mark, linewidth=1.8, clip_on=False)
        axes.add_patch(frame)
        axes.get_xticklabels()[at].set(fontweight="bold", color=mark)
    return image


def _verbatim(text: str) -> str:
    """Matplotlib takes text between two dollar signs for mathematics."""
    return text.replace("$", r"\$")


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _best(probability_V: list[float], count: int) -> str:
    order = np.argsort(-np.array(probability_V))[:count]
    return ", ".join(f"{name_of(chr(int(code)))} {probability_V[code]:.2f}" for code in order)


def _story(row: Row) -> str:
    first, last = (_best(row["posterior"][o], 1) for o in (0, -1))
    truth = f" (truth {name_of(row['truth'])})" if row["truth"] else ""
    return f"{row['label']}{truth}: at first {first}, at last {last}."


def _tables(rows: list[Row]) -> list[Table]:
    summary = [
        (
            row["label"],
            name_of(row["truth"]) if row["truth"] else "not given",
            f"{row['temperature']:g}",
            _best(row["posterior"][0], 3),
            _best(row["posterior"][-1], 3),
            row["paper_says"] or "none",
        )
        for row in rows
    ]
    header = ("Text", "Truth", "T", "First occurrence", "Last occurrence", "Paper's model")
    tables = [Table("What the symbol is taken for, first and last", header, summary)]
    cells = [
        (
            row["label"],
            word,
            f"{position + 1}",
            _best(shown, 3),
            f"{shown[ord(row['truth'])]:.3f}" if row["truth"] else "not given",
            f"{plain[ord(row['truth'])]:.3f}" if row["truth"] else "not given",
        )
        for row in rows
        for word, position, shown, plain in zip(
            row["word"], row["position"], row["posterior"], row["untempered"], strict=True
        )
    ]
    header = (
        "Text",
        "Word or line",
        "Symbols read",
        "Three most likely",
        "P(truth) at T",
        "P(truth) at T = 1",
    )
    tables.append(Table("Every occurrence", header, cells))
    return tables
