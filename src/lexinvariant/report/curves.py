"""Learning curves, from the metrics.jsonl of runs."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lexinvariant.errors import UserError
from lexinvariant.report.figures import Drawing, Theme, label, save, series_style
from lexinvariant.text import MarkovLanguage
from lexinvariant.training.metrics import read_metrics

Rows = list[dict[str, Any]]


def _plot(axes: Axes, rows: Rows, metric: str, name: str, index: int, theme: Theme) -> None:
    points = [(row["step"], row[metric]) for row in rows if metric in row]
    if points:
        axes.plot(*zip(*points, strict=True), label=name, **series_style(index, theme))


def _smoothed(rows: Rows, metric: str, window: int = 20) -> Rows:
    """Means of consecutive groups of rows: single training batches are noisy."""
    groups = (
        [rows[i : i + window] for i in range(0, len(rows), window)]
        if len(rows) > 10 * window
        else [[r] for r in rows]
    )
    return [{"step": g[-1]["step"], metric: float(np.mean([row[metric] for row in g]))} for g in groups]


def run_figure(folder: Path) -> Path:
    """One run: losses by step, and the newest held-out perplexity by position. Writes curves.svg and .png."""
    rows = read_metrics(folder / "metrics.jsonl")
    train = [row for row in rows if row["kind"] == "train"]
    valid = [row for row in rows if row["kind"] == "valid"]
    if not train:
        raise UserError(
            f"{folder} has no metrics.jsonl with training steps in it: give a run's --out folder."
        )

    def draw(figure: Figure, theme: Theme) -> None:
        learning, reading = figure.subplots(1, 2)
        _plot(learning, _smoothed(train, "tail_loss"), "tail_loss", "training, end of context", 0, theme)
        _plot(learning, valid, "loss", "held out, all positions", 1, theme)
        _plot(learning, valid, "tail_loss", "held out, end of context", 2, theme)
        label(learning, "Learning", "step", "loss (nats a token)")
        learning.set_ylim(bottom=0)
        learning.legend()
        if valid:
            by_position = np.array(valid[-1]["loss_by_position"])
            reading.plot(
                np.arange(1, len(by_position) + 1),
                np.exp(by_position),
                **series_style(2, theme) | {"marker": "", "linestyle": "-"},
            )
            reading.set_yscale("log")
        label(reading, "Reading held-out text", "position in the context", "perplexity (log scale)")

    last = f" Perplexity at the end of the context: {valid[-1]['tail_perplexity']:.2f}." if valid else ""
    drawing = Drawing(
        name="curves",
        alt=f"Loss by training step, and held-out perplexity by position in the context.{last}",
        caption=f"The run in {folder.name}.{last}",
        draw=draw,
        size=(10.0, 4.2),
    )
    return save(drawing, folder).png


def demo_figure(folder: Path) -> Path:
    """The demo's two runs side by side; returns the picture's path."""
    tiny = read_metrics(folder / "tiny" / "metrics.jsonl")
    standard = read_metrics(folder / "standard" / "metrics.jsonl")
    language = MarkovLanguage()
    by_position = [row for row in tiny if row["kind"] == "valid"][-1]["loss_by_position"]

    def draw(figure: Figure, theme: Theme) -> None:
        learning, reading = figure.subplots(1, 2)
        for i, (name, rows) in enumerate(
            (("lexinvariant, 12 symbols", tiny), ("standard, stdlib", standard))
        ):
            _plot(learning, [row for row in rows if row["kind"] == "train"], "tail_loss", name, i, theme)
        label(learning, "Learning", "step", "loss at the end of the context (nats)")
        learning.set_ylim(bottom=0)
        learning.legend()

        reading.plot(by_position, label="lexinvariant model", **series_style(0, theme))
        limits = (
            ("knowing only how often symbols occur", language.unigram_entropy),
            ("knowing the language and every name", language.entropy_rate),
        )
        for i, (name, nats) in enumerate(limits, start=2):
            reading.axhline(nats, label=name, **series_style(i, theme) | {"marker": ""})
        label(reading, "Reading one renamed sequence", "position", "loss (nats)")
        reading.set_ylim(bottom=0)
        reading.legend(loc="lower left")

    drawing = Drawing(
        name="learning",
        alt="Loss of the two models by training step, and of the lexinvariant one by position in the sequence.",
        caption="The further a lexinvariant model reads, the better it knows what the symbols stand for.",
        draw=draw,
        size=(10.0, 4.2),
    )
    return save(drawing, folder).png
