"""Perplexity by context length of a lexinvariant model, beside its standard twin (the paper's section on
convergence, and its appendix's figure over three corpora).

A token that has not occurred yet cannot be told from any other that has not, so the losses on new tokens and on those
seen before are measured apart too, with the perplexity that no lexinvariant model can pass.
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
from lexinvariant.results.convergence import Curve, Gap, PartLosses, SeenAndNew
from lexinvariant.results.perplexity import (
    AVERAGINGS,
    Floats,
    gap_curve,
    lexinvariant_floor,
    part_curve,
    perplexity_curve,
    resampled,
    smoothed_nats,
)
from lexinvariant.text.frequency import counting_losses


@dataclass(frozen=True, kw_only=True)
class Options(PairOptions):
    """Perplexity by context length of a lexinvariant model, beside its standard twin.

    To add a corpus to the figure, run it again with the same --out and another --data (and --label).

    example: lexinvariant experiment convergence --model runs/mine/model --baseline runs/mine-standard/model --data
    data/stdlib
    """

    data: str
    """A folder written by `lexinvariant data prepare`, or `markov12`."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part of the data to read."""
    sequences: Count = paper.SEQUENCES
    """Whole contexts to average over. Default: the paper's number; more give a tighter confidence band."""
    window: int | None = None
    """Symbols in the moving average within each sequence. Default: 100, the paper's number, or a quarter of a shorter
    context."""
    label: str = ""
    """Name of the corpus in the figure, which shows the newest run of each. Default: the data folder's name."""

    @property
    def corpus_name(self) -> str:
        return self.label or Path(self.data).resolve().name


def run(options: Options, recorder: Recorder) -> None:
    """A curve of each model, the gap between them, and both on seen and new tokens apart."""
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
    nats_by_model: list[Floats] = []
    for evaluated in models:
        nats_ST = losses(evaluated, text, options, recorder)
        nats_SI = smoothed_nats(nats_ST, window)
        nats_by_model.append(nats_ST)
        curve = recorder.write(
            Curve(
                **setting,
                model=evaluated.measured,
                curves={how: perplexity_curve(nats_SI, how, weight_RS) for how in AVERAGINGS},
                last_symbol_perplexity=float(np.exp(nats_ST[:, -1].mean())),
                nats=nats_ST.mean(axis=0).tolist(),
                nats_deviation=nats_ST.std(axis=0).tolist(),
                counting_perplexity=_counting_perplexity(evaluated, text, window),
            )
        )
        if curve.still_counting:
            recorder.log(
                f"{evaluated.name} has not learned to infer what symbols mean: {curve.still_counting}"
            )
        recorder.log(
            f"{options.corpus_name}, {evaluated.name}: perplexity {curve.start():.2f} over the first {window} "
            f"symbols, {curve.end():.2f} over the last"
        )
    if len(models) == 2:
        ours_SI, theirs_SI = (smoothed_nats(nats_ST, window) for nats_ST in nats_by_model)
        curves = {how: gap_curve(ours_SI, theirs_SI, how, weight_RS) for how in AVERAGINGS}
        gap = recorder.write(Gap(**setting, names=[evaluated.name for evaluated in models], curves=curves))
        recorder.log(
            f"{options.corpus_name}: perplexity falls from {gap.start() + 1:.2f} to {gap.end() + 1:.2f} times the "
            "standard model's (the paper: 10 to under 2)"
        )
    row = recorder.write(_seen_and_new(setting, models, text, nats_by_model, weight_RS))
    recorder.log(f"{options.corpus_name}: {row.summary}")


def _seen_and_new(
    setting: dict[str, Any],
    models: list[EvaluatedModel],
    text: HeldOut,
    nats_by_model: list[Floats],
    weight_RS: Floats,
) -> SeenAndNew:
    """The losses of all models on the same tokens, apart for those that have occurred before in their sequence."""
    window, occurrence_ST = setting["window"], text.occurrence_ST
    is_new_ST = occurrence_ST == 1
    floor_ST, unseen_ST = lexinvariant_floor(occurrence_ST, models[0].model.config.vocab_size)

    def smoothed(values_ST: Floats) -> Floats:
        return smoothed_nats(values_ST, window).mean(axis=0)

    return SeenAndNew(
        **setting,
        new_share=smoothed(is_new_ST.astype(np.float64)).tolist(),
        floor=np.exp(smoothed(floor_ST)).tolist(),
        unseen_nats=smoothed(unseen_ST).tolist(),
        losses=[
            PartLosses(
                evaluated.measured,
                seen=part_curve(nats_ST, ~is_new_ST, window, weight_RS),
                new=part_curve(nats_ST, is_new_ST, window, weight_RS),
            )
            for evaluated, nats_ST in zip(models, nats_by_model, strict=True)
        ],
        seen_difference=part_curve(nats_by_model[0] - nats_by_model[1], ~is_new_ST, window, weight_RS)
        if len(models) == 2
        else None,
    )


def _counting_perplexity(evaluated: EvaluatedModel, text: HeldOut, window: int) -> float | None:
    """What one who only counts symbols has to pay in the last window, where symbols have no names."""
    if not evaluated.model.config.lexicon.is_lexinvariant:
        return None
    nats_ST = counting_losses(text.tok_ST, evaluated.model.config.vocab_size)
    return float(np.exp(nats_ST[:, -window:].mean()))


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
