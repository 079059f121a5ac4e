"""Learning curves, from the metrics.jsonl of runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.report.draw import save
from lexinvariant.results.figure import Axis, Figure, Line, Mark, Panel, Reference
from lexinvariant.text import MarkovLanguage
from lexinvariant.training.metrics import read_metrics

Metrics = list[dict[str, Any]]
SIZE = (10.0, 4.2)
WINDOW = 20
"""Rows of a long run that are drawn as one: single training batches are noisy."""
_DRAWN = {"train": {"tail_loss"}, "valid": {"loss", "tail_loss", "tail_perplexity", "loss_by_position"}}


def run_figure(folder: Path) -> Path:
    """Draws one run beside its metrics, as curves.svg and .png; returns the picture's path."""
    return save(run_curves(folder), folder).png


def demo_figure(folder: Path) -> Path:
    """Draws the demo's two runs side by side; returns the picture's path."""
    return save(demo_curves(folder), folder).png


def run_curves(folder: Path) -> Figure:
    """One run: losses by step, and the newest held-out perplexity by position."""
    train, valid = _read(folder)
    if not train:
        raise UserError(
            f"{folder} has no metrics.jsonl with training steps in it: give a run's --out folder."
        )
    learning = [_line("training, end of context", _smoothed(train, "tail_loss"), "tail_loss")]
    reading, last = [], ""
    if valid:
        learning.append(_line("held out, all positions", valid, "loss"))
        learning.append(_line("held out, end of context", valid, "tail_loss"))
        nats = np.array(valid[-1]["loss_by_position"])
        reading.append(Line("", np.arange(1, len(nats) + 1), np.exp(nats), series=1))
        last = f" Perplexity at the end of the context: {valid[-1]['tail_perplexity']:.2f}."
    perplexity = Axis("perplexity (log scale)", "log" if valid else "linear")
    panels = [
        Panel("Learning", learning, Axis("step"), Axis("loss (nats per token)", limits=(0, None))),
        Panel("Reading held-out text", reading, Axis("position in the context"), perplexity),
    ]
    return Figure("curves", f"The run in {folder.name}.{last}", panels, size=SIZE, legend="panels")


def demo_curves(folder: Path) -> Figure:
    """The demo's two runs: losses by step, and the lexinvariant model's by position beside what can be known."""
    (tiny, tiny_valid), (standard, _) = (_read(folder / name) for name in ("tiny", "standard"))
    language = MarkovLanguage()
    nats = tiny_valid[-1]["loss_by_position"]
    learning = [
        _line("lexinvariant, 12 symbols", tiny, "tail_loss"),
        _line("standard, stdlib", standard, "tail_loss"),
    ]
    reading: list[Mark] = [
        Line("lexinvariant model", np.arange(len(nats)), nats, series=0),
        Reference("knowing only how often symbols occur", at=language.unigram_entropy),
        Reference("knowing the language and every name", at=language.entropy_rate, dash="short"),
    ]
    loss = Axis("loss at the end of the context (nats)", limits=(0, None))
    panels = [
        Panel("Learning", learning, Axis("step"), loss),
        Panel("Reading one renamed sequence", reading, Axis("position"), replace(loss, label="loss (nats)")),
    ]
    caption = "The further a lexinvariant model reads, the better it knows what the symbols stand for."
    return Figure("learning", caption, panels, size=SIZE, legend="panels")


def _read(folder: Path) -> tuple[Metrics, Metrics]:
    """What was measured in training, and on held-out text; rows that a bad disk has spoilt are left out."""
    rows = read_metrics(folder / "metrics.jsonl")
    train, valid = (
        [row for row in rows if row["kind"] == kind and _DRAWN[kind] <= row.keys()] for kind in _DRAWN
    )
    return train, valid


def _line(name: str, rows: Metrics, metric: str) -> Line:
    points = [(row["step"], row[metric]) for row in rows if metric in row]
    return Line(name, [step for step, _ in points], [value for _, value in points])


def _smoothed(rows: Metrics, metric: str) -> Metrics:
    """Means of consecutive groups of rows, where there are many."""
    size = WINDOW if len(rows) > 10 * WINDOW else 1
    groups = [rows[i : i + size] for i in range(0, len(rows), size)]
    return [{"step": g[-1]["step"], metric: float(np.mean([row[metric] for row in g]))} for g in groups]
