"""Figures and tables of the convergence experiment: the newest run of every corpus (label)."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lexinvariant.experiments.perplexity import PAPER_PERPLEXITY, PAPER_STANDARD_PERPLEXITY
from lexinvariant.experiments.rows import Row, latest_of_each
from lexinvariant.report.figures import GREY, Drawing, Theme, label, series_style, shared_legend
from lexinvariant.report.section import Section, Table

PAPER_GAP_START, PAPER_GAP_END = "9", "under 1"
"""The paper's section on convergence: "shrinks from 9X to less than 1X", characters, the Pile."""
PAPER_END = {"lexinvariant": PAPER_PERPLEXITY, "standard": PAPER_STANDARD_PERPLEXITY}
SERIES = {"lexinvariant": 0, "standard": 1}
CONTEXT = "context length (symbols)"
PANELS_A_ROW = 3


def section(rows: list[Row]) -> Section | None:
    """Convergence to standard language models, where its rows are there."""
    curves = latest_of_each(rows, "convergence", "curve", "label")
    if not curves:
        return None
    # A gap belongs to the curves beside it: a newer run without a baseline has none.
    shown = {row["run"] for row in curves}
    gaps = [row for row in latest_of_each(rows, "convergence", "gap", "label") if row["run"] in shown]
    drawings = [_panels(curves)]
    if len(_by_label(curves)) > 1:
        drawings.append(_corpora(curves))
    if gaps:
        drawings.append(_gaps(gaps))
    return Section(
        "Convergence to standard language models", _paragraphs(curves), drawings, _tables(curves, gaps)
    )


def _by_label(curves: list[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in curves:
        groups.setdefault(row["label"], []).append(row)
    return groups


def _paragraphs(curves: list[Row]) -> list[str]:
    draws = sorted({row["draws"] for row in curves})
    return [
        "A lexinvariant model begins every text without knowing a single symbol, and should predict ever more like a "
        "standard model as it reads. At each context length i the curves show the perplexity of the symbols that "
        "follow, P(x_(i+1) .. x_(i+k) | x_1 .. x_i)^(-1/k): the paper's moving average inside each sequence (its "
        "formula lacks the minus sign). The last point is so the mean over the last k symbols of the context.",
        "Two averages over sequences are given. The geometric mean is the exponential of the mean loss. The mean of "
        "perplexities weighs hard sequences more; the paper does not say which it used. Bands are 95% confidence "
        "intervals by bootstrap over sequences, the same sequences for both models. Lexicons averaged over for the "
        f"lexinvariant model: {' or '.join(map(str, draws))}.",
    ]


def _window(rows: list[Row]) -> str:
    windows = sorted({row["window"] for row in rows})
    return " or ".join(map(str, windows))


def _plot(axes: Axes, row: Row, name: str, index: int, theme: Theme) -> None:
    """A geometric mean with its band."""
    curve = row["curves"]["geometric"]
    context = np.arange(len(curve["mean"]))
    style = series_style(index, theme)
    axes.fill_between(context, curve["low"], curve["high"], color=style["color"], alpha=0.2, linewidth=0)
    axes.plot(context, curve["mean"], label=name, **style)


def _log_perplexity(axes: Axes, curves: list[Row]) -> None:
    """A log axis with readable numbers on it."""
    low = min(min(row["curves"]["geometric"]["low"]) for row in curves)
    high = max(max(row["curves"]["geometric"]["high"]) for row in curves)
    axes.set_yscale("log")
    axes.set_ylim(low / 1.15, high * 1.15)
    steps = (1, 1.5, 2, 3, 5, 7) if high / low < 30 else (1, 2, 5)
    ticks = [step * 10**power for power in range(6) for step in steps]
    inside = [tick for tick in ticks if low / 1.15 <= tick <= high * 1.15]
    axes.set_yticks(inside, [f"{tick:g}" for tick in inside])
    axes.minorticks_off()


def _panels(curves: list[Row]) -> Drawing:
    """One panel a corpus, lexinvariant against standard."""
    groups = _by_label(curves)
    columns = min(PANELS_A_ROW, len(groups))
    rows = math.ceil(len(groups) / columns)
    comparable = len({row["vocab_size"] for row in curves}) == 1

    def draw(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(rows, columns, squeeze=False)
        for axes, (name, members) in zip(panels.ravel(), groups.items(), strict=False):
            for row in members:
                _plot(axes, row, row["role"], SERIES[row["role"]], theme)
            _log_perplexity(axes, curves if comparable else members)
            label(axes, name, CONTEXT, "")
        for axes in panels.ravel()[len(groups) :]:
            axes.remove()
        for axes in panels[:, 0]:
            axes.set_ylabel(f"perplexity of the next {_window(curves)} symbols")
        # Not every corpus has both models, so the first panel's legend may not be all of it.
        named = [axes.get_legend_handles_labels() for axes in figure.axes]
        handles = {name: handle for pair in named for handle, name in zip(*pair, strict=True)}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))

    each = ", ".join(f"{name}: {members[0]['sequences']}" for name, members in groups.items())
    ends = "; ".join(
        f"{row['label']}, {row['role']}: from {row['start']['geometric']:.1f} to {row['end']['geometric']:.2f}"
        for row in curves
    )
    return Drawing(
        "convergence",
        f"Perplexity by context length on a log axis, one panel a corpus. {ends}.",
        f"Perplexity of the next {_window(curves)} symbols by context length: geometric mean over sequences ({each}) "
        "with its 95% bootstrap band. Log scale.",
        draw,
        (4.2 * columns + 1.4 if columns > 1 else 7.0, 3.9 * rows + 0.5),
    )


def _corpora(curves: list[Row]) -> Drawing:
    """The lexinvariant curves of all corpora together, as in the paper's appendix."""
    ours = [row for row in curves if row["role"] == "lexinvariant"]

    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for index, row in enumerate(ours):
            _plot(axes, row, row["label"], index, theme)
        _log_perplexity(axes, ours)
        label(axes, "Lexinvariant models", CONTEXT, f"perplexity of the next {_window(ours)} symbols")
        shared_legend(figure)

    ends = ", ".join(f"{row['label']} at {row['end']['geometric']:.2f}" for row in ours)
    return Drawing(
        "convergence-corpora",
        f"The lexinvariant perplexity curves of all corpora on one log axis; they end with {ends}.",
        "The lexinvariant curves of all corpora on one axis. The paper finds that code (GitHub) converges "
        "significantly faster than English (Wiki-40B).",
        draw,
        (7.5, 4.6),
    )


def _gaps(gaps: list[Row]) -> Drawing:
    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for index, row in enumerate(gaps):
            _plot(axes, row, row["label"], index, theme)
        axes.axhline(1.0, color=GREY[theme], linestyle=(0, (8, 2)), linewidth=1.2, label="twice the standard")
        lowest = min(min(row["curves"]["geometric"]["low"]) for row in gaps)
        axes.set_ylim(bottom=min(0.0, 1.1 * lowest))
        label(axes, "Gap to the standard model", CONTEXT, "(lexinvariant - standard) / standard")
        shared_legend(figure)

    ends = "; ".join(
        f"{row['label']} from {row['start']['geometric']:.2f} to {row['end']['geometric']:.2f}"
        for row in gaps
    )
    return Drawing(
        "convergence-gap",
        f"The perplexity gap as a multiple of the standard model's perplexity, by context length: {ends}.",
        "The gap in perplexity as a multiple of the standard model's: geometric means, and their 95% bootstrap band. "
        f"The paper's falls from {PAPER_GAP_START} to {PAPER_GAP_END} (characters, the Pile).",
        draw,
        (7.5, 4.6),
    )


def _both(values: dict[str, float]) -> str:
    return f"{values['geometric']:.2f} / {values['arithmetic']:.2f}"


def _tables(curves: list[Row], gaps: list[Row]) -> list[Table]:
    cells = [
        (
            row["label"],
            f"{row['role']}: {row['name']}",
            f"{row['sequences']}",
            f"{row['window']}",
            _both(row["start"]),
            _both(row["end"]),
            f"{row['last_symbol_perplexity']:.2f} ({row['context'] - 1})",
            f"{PAPER_END[row['role']]:.2f} (511)",
        )
        for row in curves
    ]
    header = (
        "Corpus",
        "Model",
        "Sequences",
        "Window",
        "First window",
        "Last window",
        "Last symbol (context)",
        "Paper (context)",
    )
    caption = (
        "Perplexity, geometric mean / mean of perplexities over sequences. The last symbol stands alone, unsmoothed "
        "(geometric mean). The paper: 150M parameters, characters, the Pile, 100 sequences; other corpora and sizes "
        "stand beside it for orientation."
    )
    return [Table(caption, header, cells), *([_gap_table(gaps)] if gaps else [])]


def _gap_table(gaps: list[Row]) -> Table:
    cells = [
        (
            row["label"],
            _both(row["start"]),
            PAPER_GAP_START,
            _both(row["end"]),
            PAPER_GAP_END,
            _both(row["ratio_at_end"]),
            f"{PAPER_PERPLEXITY / PAPER_STANDARD_PERPLEXITY:.2f}",
        )
        for row in gaps
    ]
    header = (
        "Corpus",
        "Gap, first window",
        "Paper",
        "Gap, last window",
        "Paper",
        "Ratio at the end",
        f"Paper ({PAPER_PERPLEXITY:.2f} / {PAPER_STANDARD_PERPLEXITY:.2f})",
    )
    caption = (
        "The gap (lexinvariant - standard) / standard, and the ratio lexinvariant / standard at the end: of "
        "geometric means / of means of perplexities."
    )
    return Table(caption, header, cells)
