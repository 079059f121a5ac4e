"""Recovering substitution ciphers: the newest run, and older ones that only differ in what names the symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, BlankRows, Figure, HeatMap, Line, Mark, Marks, Panel, Reference
from lexinvariant.results.rows import Row, Rows, group_by
from lexinvariant.results.section import Column, Finding, Section, Table, make_table, percent, visible

NAMERS = {"head": "joint head", "hindsight": "joint head, in hindsight", "probe": "frozen probe"}
OTHERS = "+"
"""Name of the column for all symbols that are no letters of the key."""
ERROR_TICKS = [0.1, 0.2, 0.4, 1, 2, 5, 10, 20, 50, 100]


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


@dataclass(frozen=True)
class Share:
    """A mean share over texts with its 95% confidence interval; None where too few texts count."""

    mean: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return percent(self.mean, self.low, self.high, digits=2)


@dataclass(frozen=True, kw_only=True)
class Precision(Named, experiment="cipher-key", kind="precision"):
    """The share of letters that the vote in a window names rightly, by where the window begins."""

    start: list[int]
    precision: list[Share]
    symbols_seen: float
    last_by_text: list[float | None]
    """Of each text; None where its last window has no letter."""
    last_all_symbols: Share
    named_rightly: float

    @property
    def last(self) -> Share:
        return self.precision[-1]

    def at(self, start: int) -> Share:
        return self.precision[self.start.index(start)]


@dataclass(frozen=True, kw_only=True)
class WholeKey(Named, experiment="cipher-key", kind="key"):
    """The whole key, voted on by the last windows of all texts."""

    named: list[str | None]
    right: int
    votes: list[list[int]]
    votes_for_others: list[int]
    confused_with: list[str | None]


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
    measured = {row.origin.run for row in rows.of(Precision)}  # an interrupted run has none
    setups = [row for row in rows.of(Setup) if row.origin.run in measured]
    if not setups:
        return None
    setup = max(setups, key=lambda row: row.origin.run)
    runs = {row.origin.run for row in setups if row.identity == setup.identity}
    rows = Rows(row for row in rows if row.origin.run in runs)
    precision = rows.latest_of_each(Precision, lambda row: row.namer)
    keys = rows.latest_of_each(WholeKey, lambda row: row.namer)
    soft = rows.latest_of_each(KeyProbabilities, lambda row: row.namer)
    figures = [_curves(setup, precision)]
    figures += [_matrices(setup, keys)] if keys else []
    figures += [_soft_matrices(setup, soft)] if soft else []
    tables = [_results(setup, precision, keys), _by_start(precision)]
    tables += [_letters(setup, keys)] if keys else []
    tables += [_soft_table(soft)] if soft else []
    return Section(
        "Recovering substitution ciphers",
        _paragraphs(setup, rows.of(ProbeTraining), any(row.namer == "hindsight" for row in precision)),
        figures,
        tables,
        _findings(setup, precision, keys),
    )


def _findings(setup: Setup, precision: list[Precision], keys: list[WholeKey]) -> list[Finding]:
    named = [
        Finding(
            f"Letters of a cipher's key named rightly in the last {setup.window} symbols ({row.by})",
            paper.KEY_PRECISION,
            row.last.mean,
            ".1%",
            low=row.last.low,
            high=row.last.high,
            curve=[share.mean for share in row.precision if share.mean is not None],
            note=f"{setup.sequences:,} texts, not the paper's; the paper used a probe",
        )
        for row in precision
        if row.last.mean is not None
    ]
    note = f"of {len(setup.symbols)}; the paper's figure shows nearly all"
    whole = [
        Finding(f"Letters of the whole key right ({row.by})", None, row.right, ".0f", note=note)
        for row in keys
    ]
    return named + whole


def _paragraphs(setup: Setup, probes: list[ProbeTraining], in_hindsight: bool) -> list[str]:
    keys = "each text has a key of its own" if setup.fresh_keys else "all with the same key"
    paragraphs = [
        f"{setup.sequences:,} texts of {setup.context} symbols have their lowercase letters enciphered, {keys}. The "
        f"model {setup.model} has to reckon with all permutations of its {setup.vocab_size} symbols, not only of the "
        "letters. At each position the symbol just read is named from the model's final state, by a head trained along "
        "with the model or by a probe trained afterwards; each cipher letter in a window is then given the name that "
        "most of its occurrences in the window were given (if two are even, the one given last).",
        "Precision is the share of the cipher letters seen in the window that are named rightly; it is averaged over "
        "texts, those without a letter in the window left out, with a 95% confidence interval (normal approximation). "
        "To a lexinvariant model all keys are the same, and these numbers do not depend on which was drawn.",
    ]
    if in_hindsight:
        paragraphs.append(
            "In hindsight the same head names symbols by states that know all of the text up to the end of the window, "
            "and nothing after it; the paper's probe, like the head as it reads, knows what came before a symbol."
        )
    for row in probes[-1:]:
        paragraphs.append(
            "The probe is the paper's: two layers and an output table of its own, on the frozen model. It was trained "
            f"for {row.config.steps:,} steps of {row.config.batch_size} sequences (paper: 10,000 steps) with AdamW at "
            f"{row.config.rate:g}, and at its last step named {row.metrics['tail_deciphered']:.1%} of the symbols at "
            "the end of the context rightly."
        )
    return paragraphs


def _curves(setup: Setup, precision: list[Precision]) -> Figure:
    rising: list[Mark] = []
    falling: list[Mark] = []
    for row in precision:
        mean, low, high = (
            100 * np.array([(share.mean, share.low, share.high) for share in row.precision], float).T
        )
        wrong = np.where(mean < 100, 100 - mean, np.nan)  # no error at all has no place on a log axis
        if not np.isnan(mean).all():
            rising.append(Line(row.by, row.start, mean, low, high))
        if not np.isnan(wrong).all():
            falling.append(Line(row.by, row.start, wrong, np.maximum(100 - high, 1e-3), 100 - low))
    papers = 100 * paper.KEY_PRECISION
    rising.append(Reference("paper, last window", papers, dash="dotted"))
    falling.append(Reference("paper, last window", 100 - papers, dash="dotted"))
    # Down to below the paper's error and below ours, where ours is not zero.
    means = [share.mean or 0 for row in precision for share in row.precision if share.mean != 1]
    lowest = 60 * (1 - max([paper.KEY_PRECISION, *means]))
    errors = Axis("letters named wrongly (%, log scale)", "log", ERROR_TICKS, (lowest, 100))
    precisions = Axis(f"precision in {setup.window} symbols (%)", limits=(0, 102))
    where = Axis("start of the window (symbols read before it)")
    first_last = [(row.by, *(percent(row.precision[i].mean, digits=2) for i in (0, -1))) for row in precision]
    ends = "; ".join(f"{by}: {first} at the start, {last} at the end" for by, first, last in first_last)
    return Figure(
        "cipher-key-precision",
        f"Two curves over the start of the window. Left, precision of the voted key rises towards 100%: {ends}. "
        f"Right, the same as errors on a log scale, beside the paper's {1 - paper.KEY_PRECISION:.1%}.",
        f"Precision of the key voted on in a window of {setup.window} symbols, by where the window begins; mean of "
        f"{setup.sequences:,} texts, band: 95% confidence interval. Dotted: the paper's {paper.KEY_PRECISION:.1%} for "
        "the last window.",
        [
            Panel("Letters of the key named rightly", rising, where, precisions),
            Panel("The same, as errors", falling, where, errors),
        ],
        size=(10.0, 4.4),
    )


def _matrix_panel(setup: Setup, title: str, marks: Sequence[Mark], monospace: float, first: bool) -> Panel:
    """A key matrix: cipher letters down, what they stand for across, as in the paper."""
    down = "letter stood for" if setup.fresh_keys else "cipher letter"
    x, y = Axis("stands for", names=[*setup.symbols, OTHERS]), Axis(down * first, names=list(setup.symbols))
    return Panel(title, marks, x, y, square=True, monospace=monospace)


def _matrices(setup: Setup, keys: list[WholeKey]) -> Figure:
    column = {letter: place for place, letter in enumerate(setup.symbols)}

    def marks(named: list[str | None]) -> list[Mark]:
        def at(look: Literal["right", "wrong"], rows: list[int]) -> Marks:
            return Marks(look, look, [column.get(named[y] or "", len(column)) for y in rows], rows)

        right = [y for y, name in enumerate(named) if name == setup.truth[y]]
        wrong = [y for y, name in enumerate(named) if name not in (None, setup.truth[y])]
        unseen = [y for y, name in enumerate(named) if name is None]
        return [at("right", right), at("wrong", wrong), BlankRows("in no last window", unseen)]

    found = "; ".join(f"{row.by}: {row.right} of {len(setup.symbols)} right" for row in keys)
    what = "What each letter is taken for, all keys together" if setup.fresh_keys else "The whole key"
    return Figure(
        "cipher-key-matrices",
        f"Key matrices side by side, cipher letters down and letters across: the truth, and the vote. {found}.",
        f"{what}, voted on by the last windows of all {setup.sequences:,} texts (each text has one vote a letter), "
        f"beside the truth. Column {OTHERS}: anything that is no lowercase letter. {found}.",
        [
            _matrix_panel(setup, "Truth", marks(list(setup.truth)), 8, True),
            *(_matrix_panel(setup, f"Majority vote, {row.by}", marks(row.named), 8, False) for row in keys),
        ],
        size=(4.6 * (1 + len(keys)), 5.2),
    )


def _soft_matrices(setup: Setup, soft: list[KeyProbabilities]) -> Figure:
    by_namer = list(group_by(soft, lambda row: row.by).values())
    across = max(map(len, by_namer))
    panels: list[Panel] = []
    for members in by_namer:
        for row in members:
            cells = np.column_stack([np.array(row.matrix, float), np.array(row.others, float)])
            heat_map = HeatMap(cells, divider=len(setup.symbols))
            panels.append(_matrix_panel(setup, f"symbols {row.span}", [heat_map], 6.5, row is members[0]))
        panels += [Panel("", [])] * (across - len(members))
    temperatures = " and ".join(sorted({f"{row.temperature:g}" for row in soft}))
    path = ", ".join(f"{row.on_truth:.2f} from {row.start}" for row in by_namer[0])
    return Figure(
        "cipher-key-soft",
        "Key matrices as heat maps, one a window: at first spread out, then one strong cell a row. Mean probability of "
        f"the truth ({soft[0].by}): {path}.",
        f"The key as probabilities at temperature {temperatures}, as in the paper: logits averaged over a cipher "
        f"letter's occurrences in the window, softmax over all {setup.vocab_size} symbols, mean of the texts that have "
        f"the letter there. Column {OTHERS}: all symbols that are no lowercase letters, together. Grey rows: a letter "
        "in none of the windows.",
        panels,
        across,
        (3.0 * across + 1.0, 3.5 * len(by_namer)),
        legend="none",
        colour_bar="probability",
        row_titles=[members[0].by for members in by_namer] if len(by_namer) > 1 else (),
    )


def _results(setup: Setup, precision: list[Precision], keys: list[WholeKey]) -> Table:
    goal = paper.KEY_PRECISION
    right = {row.namer: f"{row.right} of {len(setup.symbols)}" for row in keys}
    flop, paper_flop = setup.training_flop, paper.training_flop()
    compute = "unknown" if flop is None else f"{flop:.1e} ({flop / paper_flop:.1%} of the paper's)"
    parameters, paper_parameters = (
        f"{n / 1e6:.0f}M" for n in (setup.matrix_parameters, paper.TRAINING.model.n_matmul_parameters)
    )

    def first_as_good(row: Precision) -> str:
        found = (start for start in row.start if (row.at(start).mean or 0) >= goal)
        return f"{next(found, 'nowhere')}"

    def texts(row: Precision, is_counted: Callable[[float], bool]) -> str:
        shares = [share for share in row.last_by_text if share is not None]
        return f"{sum(map(is_counted, shares)):,} of {len(shares):,}"

    measures = [
        Column[Precision](f"Precision of the last window of {setup.window}", "last", paper=f"{goal:.1%}"),
        Column(f"First start with the paper's {goal:.1%}", first_as_good),
        Column("Texts whose last window is all right", lambda row: texts(row, lambda p: p == 1)),
        Column("Texts whose last window is mostly wrong", lambda row: texts(row, lambda p: p < 0.5)),
        Column(
            "Letters of the whole key right",
            lambda row: right.get(row.namer, "none"),
            paper="nearly all (a figure)",
        ),
        Column("The same precision over every symbol seen, not only lowercase letters", "last_all_symbols"),
        Column(f"Symbols of the last {setup.window} named rightly, every occurrence", "named_rightly", ".2%"),
        Column("Texts", lambda row: setup.sequences, ",", paper=f"{paper.KEY_SEQUENCES:,}"),
        Column("Parameters in the layers' matrices", lambda row: parameters, paper=paper_parameters),
        Column("Compute of the model's training (FLOP)", lambda row: compute, paper=f"{paper_flop:.1e}"),
    ]
    caption = (
        "Recovering the key, with 95% confidence intervals. FLOP: 6N + 12 layers x width x context a token for both, "
        "layers of hindsight counted, readout and head or probe not. The texts are not the paper's."
    )
    header = ("Measure", *(f"Ours, {row.by}" for row in precision), "Paper, probe")
    cells = [(measure.header, *map(measure.cell, precision), measure.paper) for measure in measures]
    return Table(caption, header, cells)


def _by_start(precision: list[Precision]) -> Table:
    shared = sorted(set.intersection(*(set(row.start) for row in precision)))
    last = shared[-1]
    name = {start: f"{start}" for start in shared if start % 100 == 0} | {last: f"{last} (last)"}
    cells = [(name[start], *(f"{row.at(start)}" for row in precision)) for start in sorted(name)]
    header = ("Start of the window", *(f"Ours, {row.by}" for row in precision))
    return Table("Precision by where the window begins; the paper shows its curve as a figure", header, cells)


def _letters(setup: Setup, keys: list[WholeKey]) -> Table:
    found: list[tuple[int, tuple[str, ...]]] = []
    for row in keys:
        for c, true in enumerate(setup.truth):
            seen = sum(row.votes[c]) + row.votes_for_others[c]
            right = row.votes[c][setup.symbols.index(true)]
            if right < seen:
                letter = true if setup.fresh_keys else f"{true} (written {setup.symbols[c]})"
                mistaken = visible(row.confused_with[c] or "")
                cells = (letter, row.by, f"{seen:,}", percent(right / seen, digits=2), mistaken)
                found.append((seen - right, cells))
    found.sort(key=lambda item: -item[0])
    caption = "Letters that last windows get wrong, most errors first; the others are always right."
    header = ("Letter", "Named by", "Last windows that have it", "Named rightly", "Most often mistaken for")
    return Table(caption, header, [cells for _, cells in found])


def _soft_table(soft: list[KeyProbabilities]) -> Table:
    columns = [
        Column[KeyProbabilities]("Symbols", "span"),
        Column("Named by", "by"),
        Column("Temperature", "temperature", "g"),
        Column("Probability of the truth", "on_truth", ".3f"),
    ]
    return make_table("Mean probability that the soft keys give to what a letter stands for", soft, columns)
