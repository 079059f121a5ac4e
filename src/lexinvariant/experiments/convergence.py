"""Perplexity by context length of a lexinvariant model, beside its standard twin (the paper's section on
convergence, and its appendix's figure over three corpora).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel, HeldOut, held_out, open_one_or_pair
from lexinvariant.experiments.options import Count, PairOptions, choose_window
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.model.scoring import mixture
from lexinvariant.results import paper
from lexinvariant.results.convergence import Curve, Gap
from lexinvariant.results.perplexity import (
    AVERAGINGS,
    Floats,
    gap_curve,
    perplexity_curve,
    resampled,
    smoothed_nats,
)


@dataclass(frozen=True, kw_only=True)
class Options(PairOptions):
    """Perplexity by context length of a lexinvariant model, beside its standard twin.

    Run it again into the same --out with another --data (and --label) to add a corpus to the figure.

    example: lexinvariant experiment convergence --model runs/mine/model --baseline runs/mine-standard/model --data
    data/stdlib
    """

    data: str
    """A folder written by `lexinvariant data prepare`, or `markov12`."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part of the data is read."""
    sequences: Count = paper.SEQUENCES
    """Whole contexts to average over; the paper's number. More give a tighter confidence band."""
    window: int | None = None
    """Symbols of the moving average inside each sequence. Default: 100, the paper's number, or a quarter of a shorter
    context."""
    label: str = ""
    """Name of the corpus on the figure, which shows the newest run of each. Default: the data folder's name."""

    @property
    def corpus_name(self) -> str:
        return self.label or Path(self.data).resolve().name


def run(options: Options, recorder: Recorder) -> None:
    """A curve of each model, and the gap between them."""
    models = _models(options)
    context = models[0].model.config.context
    window = choose_window(options.window, context)
    text = held_out(models[0], options.data, options.split, options.sequences)
    recorder.measured_on(model_hash=models[0].hash, data_hash=text.fingerprint)
    setting: dict[str, Any] = {
        "label": options.corpus_name,
        "split": options.split,
        "sequences": len(text.tok_ST),
        "window": window,
        "context": context,
    }
    weight_RS = resampled(len(text.tok_ST), options.seed)
    smoothed: list[Floats] = []
    for evaluated in models:
        nats_ST = losses(evaluated, text, options, recorder)
        nats_SI = smoothed_nats(nats_ST, window)
        smoothed.append(nats_SI)
        curve = recorder.write(
            Curve(
                **setting,
                model=evaluated.measured,
                curves={how: perplexity_curve(nats_SI, how, weight_RS) for how in AVERAGINGS},
                last_symbol_perplexity=float(np.exp(nats_ST[:, -1].mean())),
                nats=nats_ST.mean(axis=0).tolist(),
                nats_deviation=nats_ST.std(axis=0).tolist(),
            )
        )
        recorder.log(
            f"{options.corpus_name}, {evaluated.name}: perplexity {curve.start():.2f} over the first {window} "
            f"symbols, {curve.end():.2f} over the last"
        )
    if len(models) == 2:
        curves = {how: gap_curve(smoothed[0], smoothed[1], how, weight_RS) for how in AVERAGINGS}
        gap = recorder.write(Gap(**setting, names=[evaluated.name for evaluated in models], curves=curves))
        recorder.log(
            f"{options.corpus_name}: the gap falls from {gap.start():.2f} to {gap.end():.2f} times the standard "
            "model's perplexity (the paper: 9 to under 1)"
        )


def _models(options: Options) -> list[EvaluatedModel]:
    """The lexinvariant model, and its twin if there is one."""
    models = open_one_or_pair(options.model, options.baseline)
    if not models[0].model.config.lexicon.is_lexinvariant:
        raise UserError(
            f"{options.model} is not a lexinvariant model: give one, and a standard model as --baseline."
        )
    return models


def losses(evaluated: EvaluatedModel, text: HeldOut, options: Options, recorder: Recorder) -> Floats:
    """nats_ST: the loss of every symbol, of the mixture over draws of the lexicon."""
    logp_KST = evaluated.log_probabilities(text.tok_ST, text.piece_S, options, recorder, "sequences")
    return -np.stack([mixture(logp_KST[:, s]) for s in range(len(text.tok_ST))])
