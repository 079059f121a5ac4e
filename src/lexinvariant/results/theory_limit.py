"""The limit for English: the best that a lexinvariant predictor with an n-gram's knowledge can do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Panel
from lexinvariant.results.perplexity import Floats, smoothed_perplexity
from lexinvariant.results.prose import Prose
from lexinvariant.results.rows import Row
from lexinvariant.results.section import Table

CONTEXT = Axis("context length (symbols)")
words = Prose("theory")


@dataclass(frozen=True, kw_only=True)
class Limit(Row, experiment="theory", kind="limit"):
    """The Bayes-optimal lexinvariant predictor on one English text; lists are by position."""

    text: int
    d: int
    order: int
    particles: int
    nats: list[float]
    known_nats: list[float]
    """Of the n-gram that knows the key."""
    l1: list[float]
    key_surprise: list[float]
    log_evidence_error: list[float]
    key_accuracy: float
    fitted_characters: int


@dataclass(frozen=True, kw_only=True)
class ModelCurve(Row, experiment="theory", kind="model"):
    """A trained model on one of the same texts."""

    text: int
    name: str
    nats: list[float]


@dataclass(frozen=True)
class EnglishLimit:
    """What the report shows of it: the limit, the n-gram that knows the key, and a trained model if there is one."""

    rows: list[Limit]
    models: list[ModelCurve]

    @property
    def window(self) -> int:
        """The paper's window, or a quarter of a shorter text."""
        return min(paper.WINDOW, len(self.rows[0].nats) // 4)

    @property
    def losses(self) -> dict[str, Floats]:
        """nats_ST of every text."""
        known = f"Standard: {self.rows[0].order}-gram that knows the key, p"
        losses = {"Lexinvariant limit p'": [row.nats for row in self.rows]}
        losses[known] = [row.known_nats for row in self.rows]
        if self.models:
            losses[f"Trained model {self.models[0].name}"] = [row.nats for row in self.models]
        return {name: np.array(nats) for name, nats in losses.items()}

    @property
    def at_end(self) -> dict[str, float]:
        return {name: float(curve[-1]) for name, curve in self.curves.items()}

    @property
    def curves(self) -> dict[str, Floats]:
        return {name: smoothed_perplexity(nats_ST, self.window) for name, nats_ST in self.losses.items()}

    @property
    def figure(self) -> Figure:
        curves = self.curves
        limits = 0.9 * min(map(np.min, curves.values())), 1.2 * max(map(np.max, curves.values()))
        ticks = (2, 3, 4, 5, 6, 8, 10, 15, 20, 27, 40)
        y = Axis(f"perplexity of the next {self.window} symbols", "log", ticks, limits)
        lines = [Line(name, np.arange(len(curve)), curve) for name, curve in curves.items()]
        # Sampling can only lose keys, so the estimate errs downwards; a surprise is never below zero.
        surprise_T = np.maximum([row.key_surprise for row in self.rows], 0.0).mean(axis=0)
        surprise = Line("", np.arange(len(surprise_T)), surprise_T, series=0)
        panels = [
            Panel("English, a-z and space", lines, CONTEXT, y),
            Panel("Uncertainty about the key", [surprise], CONTEXT, Axis("-log P(true key), mean (nats)")),
        ]
        caption = words("limit", rows=self.rows, models=self.models)
        return Figure("theory-limit", caption, panels, size=(9.5, 4.4), legend="panels", widths=(3, 2))

    @property
    def perplexity_table(self) -> Table:
        theirs = (paper.PERPLEXITY, paper.STANDARD_PERPLEXITY, paper.PERPLEXITY)
        pairs = zip(self.at_end.items(), theirs, strict=False)
        caption = words("perplexity", first=self.rows[0], window=self.window, context=paper.CONTEXT)
        cells = [(name, f"{ours:.2f}", f"{number:.2f}") for (name, ours), number in pairs]
        return Table(caption, ("Model", "Ours", "Paper"), cells)

    @property
    def price_table(self) -> Table:
        paid_S = [sum(row.nats) - sum(row.known_nats) for row in self.rows]
        nats = {
            "Theory: never more than log d!": math.lgamma(self.rows[0].d + 1),
            "Sampled predictor, mean over texts": sum(paid_S) / len(paid_S),
            "Sampled predictor, worst text": max(paid_S),
        }
        caption = "Cost per text of not knowing the key, in nats; anything above the theory's limit is sampling error."
        return Table(caption, ("", "Nats"), [(name, f"{value:.1f}") for name, value in nats.items()])
