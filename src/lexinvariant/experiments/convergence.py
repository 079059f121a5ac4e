"""Perplexity by context length of a lexinvariant model, beside its standard twin (the paper's section on
convergence, and its appendix's figure over three corpora).

Rows: `curve` (one a model and label) and `gap` (one a label, where there is a baseline).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import (
    CommonOptions,
    EvaluatedModel,
    HeldOut,
    held_out,
    open_model,
    open_pair,
)
from lexinvariant.experiments.perplexity import (
    AVERAGINGS,
    WINDOW,
    Curve,
    Floats,
    gap_curve,
    perplexity_curve,
    resampled,
    smoothed_nats,
)
from lexinvariant.experiments.rows import Provenance, Row, RowWriter
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.scoring import mixture

Say = Callable[[str], None]
SECONDS_BETWEEN_NEWS = 10.0


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Perplexity by context length of a lexinvariant model, beside its standard twin.

    Run it again into the same --out with another --data (and --label) to add a corpus to the figure.

    Example: lexinvariant experiment convergence --model runs/mine/model --baseline runs/mine-standard/model --data
    data/stdlib
    """

    data: str
    """A folder written by `lexinvariant data prepare`, or `markov12`."""
    baseline: str | None = None
    """The model's standard twin, trained on the same data; without one there is only the lexinvariant curve."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part of the data is read."""
    sequences: int = 100
    """Whole contexts to average over; the paper's number. More give a tighter confidence band."""
    draws: int = 1
    """Lexicons that the lexinvariant model's probabilities are averaged over."""
    window: int = WINDOW
    """Symbols of the moving average inside each sequence; the paper's number."""
    label: str = ""
    """Name of the corpus on the figure, which shows the newest run of each. Default: the data folder's name."""

    @property
    def corpus_name(self) -> str:
        return self.label or Path(self.data).resolve().name


def run(options: Options, command: str = "", say: Say = lambda line: None) -> list[Row]:
    """Measure the curves and append their rows to convergence.jsonl in the output folder."""
    if options.sequences < 1 or options.draws < 1:
        raise UserError(
            f"--sequences is {options.sequences} and --draws is {options.draws}: give both at least 1."
        )
    models = _subjects(options)
    context = models[0].model.config.context
    if not 1 <= options.window <= context:
        raise UserError(
            f"A window of {options.window} symbols does not fit the model's context of {context}: give --window a "
            f"number from 1 to {context}."
        )
    text = held_out(models[0], options.data, options.split, options.sequences)
    provenance = Provenance(
        experiment="convergence",
        seed=options.seed,
        command=command,
        model_hash=models[0].hash,
        data_hash=text.fingerprint,
        draws=options.draws,
    )
    setting = {
        "label": options.corpus_name,
        "split": options.split,
        "sequences": len(text.tok_ST),
        "window": options.window,
        "context": context,
        "vocab_size": models[0].model.config.vocab_size,
    }
    rows: list[Row] = []
    with RowWriter(options.out / "convergence.jsonl", provenance) as writer:
        weight_RS = resampled(len(text.tok_ST), options.seed)
        smoothed: list[Floats] = []
        for evaluated in models:
            nats_ST = losses(evaluated, text, options, say)
            smoothed.append(smoothed_nats(nats_ST, options.window))
            values = _curve_values(evaluated, nats_ST, smoothed[-1], weight_RS)
            rows.append(writer.write("curve", **setting, **values))
            say(
                f"{options.corpus_name}, {evaluated.name}: perplexity {values['start']['geometric']:.2f} over the "
                f"first {options.window} symbols, {values['end']['geometric']:.2f} over the last"
            )
        if len(models) == 2:
            values = _gap_values(smoothed[0], smoothed[1], weight_RS)
            values["names"] = [evaluated.name for evaluated in models]
            rows.append(writer.write("gap", **setting, **values))
            say(
                f"{options.corpus_name}: the gap falls from {values['start']['geometric']:.2f} to "
                f"{values['end']['geometric']:.2f} times the standard model's perplexity (the paper: 9 to under 1)"
            )
    return rows


def _subjects(options: Options) -> tuple[EvaluatedModel, ...]:
    """The lexinvariant model, and its twin if there is one."""
    if options.baseline is None:
        ours = open_model(options.model)
        if not ours.model.config.lexicon.is_lexinvariant:
            raise UserError(
                f"{options.model} is not a lexinvariant model: give one, and a standard model as --baseline."
            )
        return (ours,)
    ours, theirs = open_pair(options.model, options.baseline)
    for name in ("vocab_size", "context"):
        mine, other = getattr(ours.model.config, name), getattr(theirs.model.config, name)
        if mine != other:
            raise UserError(
                f"{options.model} has a {name.replace('_size', 'ulary')} of {mine} and {options.baseline} one of "
                f"{other}: give a baseline that was trained with the same."
            )
    return ours, theirs


def losses(
    evaluated: EvaluatedModel, text: HeldOut, options: Options, say: Say = lambda line: None
) -> Floats:
    """nats_ST: the loss of every symbol, of the mixture over draws of the lexicon."""
    draws = draws_used(evaluated, options.draws)
    logp_KST = np.empty((draws, *text.tok_ST.shape), np.float32)
    spoken = time.perf_counter()
    for k in range(draws):
        for rows, reading in forward_batches(
            evaluated.model.params,
            evaluated.model.config,
            text.tok_ST,
            text.piece_S,
            seed=options.seed,
            draw=k,
            batch_size=options.batch_size,
            dtype=options.dtype,
        ):
            logp_KST[k, rows] = np.asarray(reading.logp_BT)
            if time.perf_counter() - spoken > SECONDS_BETWEEN_NEWS:
                of_draws = f", draw {k + 1} of {draws}" if draws > 1 else ""
                say(f"{evaluated.name}: {rows.stop} of {len(text.tok_ST)} sequences{of_draws}")
                spoken = time.perf_counter()
    return -np.stack([mixture(logp_KST[:, s]) for s in range(len(text.tok_ST))])


def draws_used(evaluated: EvaluatedModel, draws: int) -> int:
    """A standard model has nothing to draw."""
    return draws if evaluated.model.config.lexicon.is_lexinvariant else 1


def _curve_values(
    evaluated: EvaluatedModel, nats_ST: Floats, nats_SI: Floats, weight_RS: Floats
) -> dict[str, Any]:
    curves = {how: perplexity_curve(nats_SI, how, weight_RS) for how in AVERAGINGS}
    return {
        "role": "lexinvariant" if evaluated.model.config.lexicon.is_lexinvariant else "standard",
        "name": evaluated.name,
        "subject_hash": evaluated.hash,
        **_ends(curves),
        "last_symbol_perplexity": float(np.exp(nats_ST[:, -1].mean())),
        # Enough to draw the geometric curve again with any window: means of logs can be taken in any order.
        "nats": nats_ST.mean(axis=0),
        "nats_deviation": nats_ST.std(axis=0),
    }


def _gap_values(ours_SI: Floats, theirs_SI: Floats, weight_RS: Floats) -> dict[str, Any]:
    curves = {how: gap_curve(ours_SI, theirs_SI, how, weight_RS) for how in AVERAGINGS}
    ratio_at_end = {how: float(curve.mean_I[-1]) + 1 for how, curve in curves.items()}
    return {**_ends(curves), "ratio_at_end": ratio_at_end}


def _ends(curves: dict[Any, Curve]) -> dict[str, Any]:
    """The curves as a row keeps them, and what they begin and end with."""
    return {
        "curves": {
            how: {name.removesuffix("_I"): values for name, values in asdict(curve).items()}
            for how, curve in curves.items()
        },
        "start": {how: float(curve.mean_I[0]) for how, curve in curves.items()},
        "end": {how: float(curve.mean_I[-1]) for how, curve in curves.items()},
    }
