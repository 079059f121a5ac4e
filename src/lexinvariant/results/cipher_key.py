"""Recovering substitution ciphers: the newest run, and older ones that only differ in what names the symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, BlankRows, Figure, HeatMap, Line, Mark, Marks, Panel, Reference
from lexinvariant.results.intervals import MeanShare, mean_share, percents
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows, beside, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, present, short, visible

NAMERS = {"head": "joint head", "hindsight": "joint head, in hindsight", "probe": "frozen probe"}
OTHERS = "+"
"""Name of the column for all symbols that are no letters of the key."""
ERROR_TICKS = [0.1, 0.2, 0.4, 1, 2, 5, 10, 20, 50, 100]
words = Prose("cipher_key")


@dataclass(frozen=True, kw_only=True)
class Setup(Row, experiment="cipher-key", kind="setup"):
    """What is enciphered, with which key, for which model."""

    model: str
    sequences: int
    pieces: list[int]
    context: int
    vocab_size: int
    matrix_parameters: int
    training_flop: float | None
    split: str
    dtype: str
    window: int
    fresh_keys: bool
    symbols: str
    truth: str
    """What each of the symbols stands for."""
    example: str
    kinds: list[str] = field(default_factory=list)
    """The kind of text of each (its tag); none in older rows and in a made-up language."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Runs that agree in this are shown together."""
        where = (self.origin.model_hash, self.origin.data_hash, self.origin.seed)
        return (*where, self.sequences, self.window, self.fresh_keys)


@dataclass(frozen=True)
class ProbeSettings:
    """How a probe was trained, as its own configuration says."""

    steps: int
    batch_size: int
    hidden: int
    rate: float
    seed: int
    dtype: str


@dataclass(frozen=True, kw_only=True)
class ProbeTraining(Row, experiment="cipher-key", kind="probe"):
    """The probe, where one was trained or loaded."""

    config: ProbeSettings
    trained_on: str
    metrics: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Named(Row):
    """What the rows of one namer have in common."""

    namer: str

    @property
    def by(self) -> str:
        return NAMERS.get(self.namer, self.namer)


@dataclass(frozen=True, kw_only=True)
class Precision(Named, experiment="cipher-key", kind="precision"):
    """The share of letters that the vote in a window names rightly, by where the window begins."""

    start: list[int]
    precision: list[MeanShare]
    symbols_seen: float
    last_by_text: list[float | None]
    """Of each text; None where its last window has no letter."""
    last_all_symbols: MeanShare
    named_rightly: float

    @property
    def last(self) -> MeanShare:
        return self.precision[-1]

    def at(self, start: int) -> MeanShare:
        return self.precision[self.start.index(start)]


@dataclass(frozen=True, kw_only=True)
class WholeKey(Named, experiment="cipher-key", kind="key"):
    """The whole key, voted on by the last windows of all texts."""

    named: list[str | None]
    right: int
    votes: list[list[int]]
    votes_for_others: list[int]
    confused_with: list[str | None]

    @property
    def told(self) -> str:
        """A letter that no last window has cannot be read."""
        return f"{self.right} of {sum(name is not None for name in self.named)}"


@dataclass(frozen=True, kw_only=True)
class KeyProbabilities(Named, experiment="cipher-key", kind="soft"):
    """The key as probabilities, from the logits in one window."""

    start: int
    window: int
    temperature: float
    matrix: list[list[float | None]]
    others: list[float | None]
    """What all symbols that are no letters of the key get together."""
    sequences_by_symbol: list[int]
    on_truth: float

    @property
    def span(self) -> str:
        return f"{self.start} to {self.start + self.window - 1}"


ROWS = (Setup, ProbeTraining, Precision, WholeKey, KeyProbabilities)


def section(rows: Rows) -> Section | None:
    """Recovering substitution ciphers, where its rows are there."""
    setups = beside(rows.of(Setup), rows.of(Precision))  # an interrupted run has no precision
    if not setups:
        return None
    setup = max(setups, key=lambda row: row.origin.run)
    rows = Rows(beside(rows, (row for row in setups if row.identity == setup.identity)))
    precision = rows.latest_of_each(Precision, lambda row: row.namer)
    keys = rows.latest_of_each(WholeKey, lambda row: row.namer)
    soft = rows.latest_groups(KeyProbabilities, lambda row: row.by)
    probe = next(reversed(rows.of(ProbeTraining)), None)
    figures = [_matrices(setup, keys) if keys else None, _soft_matrices(setup, soft) if soft else None]
    tables = [_letters(setup, keys) if keys else None, _soft_table(soft) if soft else None]
    return Section(
        "Recovering substitution ciphers",
        words.paragraphs(setup=setup, precision=precision, probe=probe),
        present(_curves(setup, precision), *figures),
        present(_results(setup, precision, keys), _by_kind(setup, precision), _by_start(precision), *tables),
        present(*(_finding(setup, row) for row in precision)),
    )


def _finding(setup: Setup, row: Precision) -> Finding | None:
    if row.last.value is None:
        return None
    measure = f"Letters of the key named correctly in the last {setup.window} symbols ({row.by})"
    curve = present(*(share.value for share in row.precision))
    unlike = (
        "it knows what follows; the paper's probe only knows what came before"
        if row.namer == "hindsight"
        else ""
    )
    about = f"{setup.sequences:,} texts, not the paper's"
    ours = row.last.value, ".1%", row.last.low, row.last.high
    return Finding(measure, paper.KEY_PRECISION, *ours, curve=curve, about=about, unlike=unlike)


def _curves(setup: Setup, precision: list[Precision]) -> Figure:
    rising: list[Mark] = []
    falling: list[Mark] = []
    for row in precision:
        mean, low, high = percents(row.precision)
        wrong = np.where(mean < 100, 100 - mean, np.nan)  # no error at all has no place on a log axis
        if not np.isnan(mean).all():
            rising.append(Line(row.by, row.start, mean, low, high))
        if not np.isnan(wrong).all():
            falling.append(Line(row.by, row.start, wrong, np.maximum(100 - high, 1e-3), 100 - low))
    papers = 100 * paper.KEY_PRECISION
    rising.append(Reference("paper, last window", papers, dash="dotted"))
    falling.append(Reference("paper, last window", 100 - papers, dash="dotted"))
    # Down to below the paper's error and below ours, where ours is not zero.
    means = [share.value or 0 for row in precision for share in row.precision if share.value != 1]
    lowest = 60 * (1 - max([paper.KEY_PRECISION, *means]))
    errors = Axis("letters named wrongly (%, log scale)", "log", ERROR_TICKS, (lowest, 100))
    precisions = Axis(f"precision in {setup.window} symbols (%)", limits=(0, 102))
    where = Axis("start of the window (symbols read before it)")
    panels = [
        Panel("Letters of the key named correctly", rising, where, precisions),
        Panel("The same, as errors", falling, where, errors),
    ]
    caption = words("precision", setup=setup, paper=paper.KEY_PRECISION)
    return Figure("cipher-key-precision", caption, panels, size=(10.0, 4.4))


def _matrix_panel(setup: Setup, title: str, marks: Sequence[Mark], monospace: float, first: bool) -> Panel:
    """A key matrix: cipher letters down, what they stand for across, as in the paper."""
    down = "plain letter" if setup.fresh_keys else "cipher letter"
    x, y = Axis("stands for", names=[*setup.symbols, OTHERS]), Axis(down * first, names=list(setup.symbols))
    return Panel(title, marks, x, y, square=True, monospace=monospace)


def _matrices(setup: Setup, keys: list[WholeKey]) -> Figure:
    column = {letter: place for place, letter in enumerate(setup.symbols)}

    def marks(named: Sequence[str | None]) -> list[Mark]:
        def at(look: Literal["right", "wrong"], rows: list[int]) -> Marks:
            return Marks(look, look, [column.get(named[y] or "", len(column)) for y in rows], rows)

        right = [y for y, name in enumerate(named) if name == setup.truth[y]]
        wrong = [y for y, name in enumerate(named) if name not in (None, setup.truth[y])]
        unseen = [y for y, name in enumerate(named) if name is None]
        return [at("right", right), at("wrong", wrong), BlankRows("in no last window", unseen)]

    panels = [_matrix_panel(setup, "Truth", marks(setup.truth), 8, True)]
    panels += [_matrix_panel(setup, f"Majority vote, {row.by}", marks(row.named), 8, False) for row in keys]
    caption = words("matrices", setup=setup, keys=keys, others=OTHERS)
    return Figure("cipher-key-matrices", caption, panels, size=(4.6 * len(panels), 5.2))


def _soft_matrices(setup: Setup, soft: dict[str, list[KeyProbabilities]]) -> Figure:
    across = max(map(len, soft.values()))
    panels: list[Panel] = []
    for members in soft.values():
        for row in members:
            cells = np.column_stack([np.array(row.matrix, float), np.array(row.others, float)])
            heat_map = HeatMap(cells, divider=len(setup.symbols))
            panels.append(_matrix_panel(setup, f"symbols {row.span}", [heat_map], 6.5, row is members[0]))
        panels += [Panel("", [])] * (across - len(members))
    temperatures = listed((f"{row.temperature:g}" for members in soft.values() for row in members), " and ")
    caption = words("soft", setup=setup, others=OTHERS, temperatures=temperatures)
    size, titles = (3.0 * across + 1.0, 3.5 * len(soft)), list(soft) if len(soft) > 1 else ()
    look: Any = {"legend": "none", "colour_bar": "probability", "row_titles": titles}
    return Figure("cipher-key-soft", caption, panels, across, size, **look)


def _results(setup: Setup, precision: list[Precision], keys: list[WholeKey]) -> Table:
    goal = paper.KEY_PRECISION
    right = {row.namer: row.told for row in keys}
    flop, paper_flop = setup.training_flop, paper.training_flop()
    compute = "unknown" if flop is None else f"{flop:.1e} ({short(100 * flop / paper_flop)}% of the paper's)"
    counts = setup.matrix_parameters, paper.TRAINING.model.n_matmul_parameters
    parameters, paper_parameters = (f"{short(n / 1e6)}M" for n in counts)

    def first_as_good(row: Precision) -> int | None:
        return next((start for start in row.start if (row.at(start).value or 0) >= goal), None)

    def texts(row: Precision, is_counted: Callable[[float], bool]) -> str:
        shares = [share for share in row.last_by_text if share is not None]
        return f"{sum(map(is_counted, shares)):,} of {len(shares):,}"

    def whole_key(row: Precision) -> str:
        return right.get(row.namer, "none")

    measures = [
        Column[Precision](f"Precision of the last window of {setup.window}", "last", paper=f"{goal:.1%}"),
        Column(f"First start with the paper's {goal:.1%}", first_as_good, missing="nowhere"),
        Column("Texts with the whole last window right", lambda row: texts(row, lambda p: p == 1)),
        Column("Texts with most of the last window wrong", lambda row: texts(row, lambda p: p < 0.5)),
        Column(
            "Letters of the whole key right, of those in a last window",
            whole_key,
            paper="nearly all (a figure)",
        ),
        Column("The same precision over every symbol seen, not only lower-case letters", "last_all_symbols"),
        Column(
            f"Symbols of the last {setup.window} named correctly, every occurrence", "named_rightly", ".2%"
        ),
        Column("Texts", lambda row: setup.sequences, ",", paper=f"{paper.KEY_SEQUENCES:,}"),
        Column("Parameters in the layers' matrices", lambda row: parameters, paper=paper_parameters),
        Column("Compute of the model's training (FLOP)", lambda row: compute, paper=f"{paper_flop:.1e}"),
    ]
    header = ("Measure", *(f"Ours, {row.by}" for row in precision), "Paper, probe")
    cells = [(measure.header, *map(measure.cell, precision), measure.paper) for measure in measures]
    return Table(words("results"), header, cells)


def _by_kind(setup: Setup, precision: list[Precision]) -> Table | None:
    texts_of = group_by(range(len(setup.kinds)), setup.kinds.__getitem__)
    if len(texts_of) < 2:
        return None

    def shares(row: Precision, kind: str) -> list[float]:
        return present(*(row.last_by_text[text] for text in texts_of[kind]))

    def mean(row: Precision, kind: str) -> MeanShare:
        return mean_share(shares(row, kind))

    def all_right(row: Precision, kind: str) -> int:
        return shares(row, kind).count(1.0)

    columns = [
        Column[str]("Kind of text", str),
        Column("Texts with a letter", lambda kind: len(shares(precision[0], kind)), ","),
    ]
    for row in precision:
        columns += [
            Column(f"Precision, {row.by}", partial(mean, row)),
            Column(f"All right, {row.by}", partial(all_right, row), ","),
        ]
    return make_table(words("kinds", setup=setup), sorted(texts_of), columns)


def _by_start(precision: list[Precision]) -> Table:
    shared = sorted(set.intersection(*(set(row.start) for row in precision)))
    name = {start: f"{start}" for start in shared if start % 100 == 0} | {shared[-1]: f"{shared[-1]} (last)"}
    columns = [Column[int]("Start of the window", name.__getitem__)]
    columns += [Column(f"Ours, {row.by}", row.at) for row in precision]
    caption = "Precision by the start of the window; the paper shows its curve only as a figure"
    return make_table(caption, sorted(name), columns)


def _letters(setup: Setup, keys: list[WholeKey]) -> Table:
    found: list[tuple[int, tuple[str, ...]]] = []
    for row in keys:
        for c, true in enumerate(setup.truth):
            seen = sum(row.votes[c]) + row.votes_for_others[c]
            right = row.votes[c][setup.symbols.index(true)]
            if right < seen:
                letter = true if setup.fresh_keys else f"{true} (written {setup.symbols[c]})"
                mistaken = visible(row.confused_with[c] or "")
                found.append((right - seen, (letter, row.by, f"{seen:,}", f"{right / seen:.2%}", mistaken)))
    found.sort(key=lambda item: item[0])
    caption = "Letters named wrongly in last windows, most errors first; all others are always right."
    header = ("Letter", "Named by", "Last windows with it", "Named correctly", "Most often mistaken for")
    return Table(caption, header, [cells for _, cells in found])


def _soft_table(soft: dict[str, list[KeyProbabilities]]) -> Table:
    columns = [
        Column[KeyProbabilities]("Symbols", "span"),
        Column("Named by", "by"),
        Column("Temperature", "temperature", "g"),
        Column("Probability of the truth", "on_truth", ".3f"),
    ]
    caption = "Mean probability that the soft keys give to a letter's true name"
    return make_table(caption, [row for members in soft.values() for row in members], columns)
