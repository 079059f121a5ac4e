"""Uncertainty over lexical permutations: the paper's four texts together, and each other text alone."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from lexinvariant.results.figure import Axis, Figure, HeatMap, Panel
from lexinvariant.results.paper_texts import PAPER_TEXTS
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, slug, visible

LETTERS = string.ascii_lowercase
CODE = ":{"
"""The two candidates of the paper's code texts."""
NOTICEABLE = 0.02
"""A character that any occurrence gives this much gets a column of its own."""
MOST_COLUMNS = 34
MOST_ROWS_NAMED = 40
LONGEST_LINE_SHOWN = 24
OTHERS = "rest"
words = Prose("uncertainty")
PAPER_SAYS = {text.name: text.paper_says for text in PAPER_TEXTS}

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CipheredText:
    """A text with one symbol to decipher."""

    label: str
    text: str
    symbol: str
    truth: str | None
    """What the symbol stands for, where that is known."""
    temperature: float

    @property
    def positions(self) -> list[int]:
        """Where the symbol stands."""
        return [i for i, character in enumerate(self.text) if character == self.symbol]


@dataclass(frozen=True, kw_only=True)
class Posterior(CipheredText, Row, experiment="uncertainty", kind="posterior"):
    """What a model takes the symbol to be at each occurrence, O of them, over all V characters."""

    name: str
    """The model's."""
    namer: str
    untempered: list[list[float]]
    """p_OV, averaged over lexicons."""

    @property
    def p_OV(self) -> Floats:
        """At the text's temperature."""
        return tempered(np.array(self.untempered), self.temperature)

    @property
    def words(self) -> list[str]:
        return [shown_word(self.text, position) for position in self.positions]

    @property
    def paper_says(self) -> str | None:
        """What the paper reports of its own model, where the text is one of the paper's."""
        return PAPER_SAYS.get(self.label)

    @property
    def summary(self) -> str:
        last_V = self.p_OV[-1]
        line = (
            f"{self.label}, T={self.temperature:g}: at the last of {len(self.positions)} occurrences {self.symbol!r} "
            f"is {chr(last_V.argmax())!r} with probability {last_V.max():.2f}"
        )
        if self.truth is not None:
            first, last = self.p_OV[[0, -1], ord(self.truth)]
            line += f"; the truth, {self.truth!r}, goes from {first:.2f} to {last:.2f}"
        return line


ROWS = (Posterior,)


def tempered(p_OV: Floats, temperature: float) -> Floats:
    """p^(1/T), normalised: of one draw the same as dividing its logits by T."""
    with np.errstate(divide="ignore"):
        log_OV = np.log(p_OV)
    return np.exp(log_softmax(log_OV / temperature, axis=1))


def shown_word(text: str, position: int) -> str:
    """The line an occurrence stands in if it is short (code), or else its word."""
    line = text[text.rfind("\n", 0, position) + 1 :].split("\n", 1)[0]
    if len(line.strip()) <= LONGEST_LINE_SHOWN:
        return line.strip()
    words_before = text[: position + 1].split()
    return (words_before[-1] + text[position + 1 :].partition("\n")[0].partition(" ")[0])[:LONGEST_LINE_SHOWN]


def section(rows: Rows) -> Section | None:
    """Uncertainty over lexical permutations, where its rows are there."""
    mine = rows.latest_of_each(Posterior, lambda row: row.label)
    if not mine:
        return None
    papers = [row for row in mine if row.paper_says]
    figures = [_figure("uncertainty", papers)] if papers else []
    figures += [_figure(f"uncertainty-{slug(row.label)}", [row]) for row in mine if not row.paper_says]
    namers = listed((f"the {row.namer} of {row.name}" for row in mine), " and ")
    paragraphs = words.paragraphs(namers=namers, draws=listed(row.origin.draws or 1 for row in mine))
    tables = [_first_and_last(mine), _every_occurrence(mine)]
    return Section("Uncertainty over lexical permutations", paragraphs, figures, tables, _findings(papers))


def _findings(papers: list[Posterior]) -> list[Finding]:
    """The paper gives no probabilities, but says that its model ends with the truth in all of its texts."""
    if not papers:
        return []
    last = {row.label: (row.p_OV[-1], ord(row.truth or "")) for row in papers}
    resolved = sum(int(p_V.argmax()) == truth for p_V, truth in last.values())
    told = ", ".join(f"{label} {p_V[truth]:.2f}" for label, (p_V, truth) in last.items())
    measure = "Texts of the paper's figure whose symbol is named correctly at the end"
    return [Finding(measure, len(papers), resolved, ".0f", about=f"probability of the truth: {told}")]


def columns_of(row: Posterior) -> list[str]:
    """The candidates shown: letters (or the paper's two for code), the truth, and all that is noticeable."""
    about_letters = row.truth is None or row.truth in LETTERS
    shown = set(LETTERS if about_letters else CODE) | set(row.truth or "")
    highest_V = row.p_OV.max(axis=0)[:128]
    for code in np.argsort(-highest_V):
        if highest_V[code] < NOTICEABLE or len(shown) >= MOST_COLUMNS:
            break
        shown.add(chr(code))
    return sorted(shown, key=lambda character: (character not in LETTERS, character))


def _panel(row: Posterior, is_first: bool) -> Panel:
    """Of panels side by side the first one names the axis."""
    columns = columns_of(row)
    shown_OC = row.p_OV[:, [ord(character) for character in columns]]
    others_O = np.maximum(1 - shown_OC.sum(axis=1), 0)
    framed = columns.index(row.truth) if row.truth else None
    heat_map = HeatMap(np.column_stack([shown_OC, others_O]), divider=len(columns), framed=framed)
    places = [f"{word}  {at + 1:>3}" for word, at in zip(row.words, row.positions, strict=True)]
    every = math.ceil(len(places) / MOST_ROWS_NAMED)
    stands = f"{visible(row.symbol)} stands for {visible(row.truth)}, " if row.truth else ""
    x = Axis("candidate", names=[*map(visible, columns), OTHERS])
    y = Axis(
        "occurrence, symbols read" * is_first,
        names=[p if o % every == 0 else "" for o, p in enumerate(places)],
    )
    return Panel(f"{row.label}: {stands}T = {row.temperature:g}", [heat_map], x, y, monospace=8.5)


def _figure(name: str, rows: list[Posterior]) -> Figure:
    across = min(2, len(rows))
    tallest = min(max(len(row.positions) for row in rows), MOST_ROWS_NAMED)
    size = (7.2 * across, (0.31 * tallest + 1.3) * math.ceil(len(rows) / across))
    caption = words("heat_maps", rows=rows, others=OTHERS)
    panels = [_panel(row, number % across == 0) for number, row in enumerate(rows)]
    return Figure(name, caption, panels, across, size, legend="none", colour_bar="probability")


def _best(p_V: Floats) -> str:
    """The three most likely."""
    return ", ".join(f"{visible(chr(code))} {p_V[code]:.2f}" for code in np.argsort(-p_V)[:3])


def _first_and_last(rows: list[Posterior]) -> Table:
    columns = [
        Column[Posterior]("Text", "label"),
        Column("Truth", lambda row: visible(row.truth) if row.truth else None, missing="not given"),
        Column("T", "temperature", "g"),
        Column("First occurrence", lambda row: _best(row.p_OV[0])),
        Column("Last occurrence", lambda row: _best(row.p_OV[-1])),
        Column("Paper's model", "paper_says", missing="none"),
    ]
    return make_table("What the symbol is taken for, first and last", rows, columns)


def _every_occurrence(rows: list[Posterior]) -> Table:
    at = "P(truth) at T"
    header = ("Text", "Word or line", "Symbols read", "Three most likely", at, f"{at} = 1")
    cells = []
    for row in rows:
        each = zip(row.words, row.positions, row.p_OV, row.untempered, strict=True)
        for word, position, p_V, plain_V in each:
            truths = [f"{p[ord(row.truth)]:.3f}" if row.truth else "not given" for p in (p_V, plain_V)]
            cells.append((row.label, word, f"{position + 1}", _best(p_V), *truths))
    return Table("Every occurrence", header, cells)
