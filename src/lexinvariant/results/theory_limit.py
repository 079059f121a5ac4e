"""The limit for English: the best that a lexinvariant predictor with an n-gram's knowledge can do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lexinvariant.results import paper
from lexinvariant.results.figure import Axis, Figure, Line, Panel
from lexinvariant.results.perplexity import Floats, smoothed_perplexity
from lexinvariant.results.rows import Row
from lexinvariant.results.section import Finding, Table


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


def _window(rows: list[Limit]) -> int:
    """The paper's window, or a quarter of a shorter text."""
    return min(paper.WINDOW, len(rows[0].nats) // 4)


def _limit_curves(rows: list[Limit], models: list[ModelCurve]) -> dict[str, Floats]:
    """Losses of every text (nats_ST): of the limit, of the n-gram with the key, and of the trained model."""
    curves = {
        "Lexinvariant limit p'": np.array([row.nats for row in rows]),
        f"Standard: {rows[0].order}-gram that knows the key, p": np.array([row.known_nats for row in rows]),
    }
    if models:
        curves[f"Trained model {models[0].name}"] = np.array([row.nats for row in models])
    return curves


def _at_end(nats_ST: Floats, window: int) -> float:
    return float(np.exp(nats_ST[:, -window:].mean()))


def limit_figure(rows: list[Limit], models: list[ModelCurve]) -> Figure:
    window, first = _window(rows), rows[0]
    curves = {
        name: smoothed_perplexity(nats_ST, window) for name, nats_ST in _limit_curves(rows, models).items()
    }
    limits = 0.9 * min(curve.min() for curve in curves.values()), 1.2 * max(map(np.max, curves.values()))
    perplexity = Panel(
        "English, a-z and space",
        [Line(name, np.arange(len(curve)), curve) for name, curve in curves.items()],
        Axis("context length (symbols)"),
        Axis(
            f"perplexity of the next {window} symbols", "log", (2, 3, 4, 5, 6, 8, 10, 15, 20, 27, 40), limits
        ),
    )
    # Sampling can only lose keys, so the estimate errs downwards; a surprise is never below zero.
    surprise_T = np.maximum([row.key_surprise for row in rows], 0.0).mean(axis=0)
    key = Panel(
        "Uncertainty about the key",
        [Line("", np.arange(len(surprise_T)), surprise_T, series=0)],
        Axis("context length (symbols)"),
        Axis("-log P(true key), mean (nats)"),
    )
    compared = (
        " The trained model was given the same letters and spaces; its vocabulary is larger (it may spend probability "
        f"on symbols that never come), its draws: {models[0].origin.draws}."
        if models
        else ""
    )
    return Figure(
        "theory-limit",
        "Perplexity by context length on English: the lexinvariant limit starts well above the n-gram that knows the "
        "key and joins it within about two hundred symbols.",
        f"The Bayes-optimal lexinvariant predictor whose knowledge of English is a {first.order}-gram over {first.d} "
        f"symbols, on {len(rows)} texts, by sequential Monte Carlo with {first.particles:,} keys. It is the limit for "
        f"a model with that knowledge; one that knows English better than a {first.order}-gram can go "
        f"below.{compared}",
        [perplexity, key],
        size=(9.5, 4.4),
        legend="panels",
        widths=(3, 2),
    )


def limit_finding(rows: list[Limit]) -> Finding:
    nats_ST, known_ST = _limit_curves(rows, []).values()
    window = _window(rows)
    return Finding(
        "Perplexity of the lexinvariant limit, English letters",
        None,
        _at_end(nats_ST, window),
        ".2f",
        at_least=False,
        curve=smoothed_perplexity(nats_ST, window).tolist(),
        note=f"a {rows[0].order}-gram's knowledge; {_at_end(known_ST, window):.2f} where it also knows the key",
    )


def perplexity_table(rows: list[Limit], models: list[ModelCurve]) -> Table:
    window = _window(rows)
    theirs = (paper.PERPLEXITY, paper.STANDARD_PERPLEXITY, paper.PERPLEXITY)
    cells = [
        (name, f"{_at_end(nats_ST, window):.2f}", f"{number:.2f}")
        for (name, nats_ST), number in zip(_limit_curves(rows, models).items(), theirs, strict=False)
    ]
    caption = (
        f"Perplexity at the end of {len(rows[0].nats)} symbols (last {window}). Ours: a {rows[0].order}-gram of "
        f"English over {rows[0].d} symbols and its lexinvariant limit; the paper: 150M-parameter Transformers, the "
        f"Pile, 128 characters, context {paper.CONTEXT}. Different text and alphabet, so side by side and not a race."
    )
    return Table(caption, ("Model", "Ours", "Paper"), cells)


def price_table(rows: list[Limit]) -> Table:
    paid_S = [sum(row.nats) - sum(row.known_nats) for row in rows]
    nats = {
        "Theory: never more than log d!": math.lgamma(rows[0].d + 1),
        "Sampled predictor, mean over texts": sum(paid_S) / len(paid_S),
        "Sampled predictor, worst text": max(paid_S),
    }
    caption = "Nats a text pays for not knowing the key. What exceeds the theory's limit is sampling error."
    return Table(caption, ("", "Nats"), [(name, f"{value:.1f}") for name, value in nats.items()])
