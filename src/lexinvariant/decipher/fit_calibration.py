"""Fits on validation text how sure the solver is of each symbol, given the keys that it found.

`lexinvariant language build` does this for a new language, and `lexinvariant language calibrate` for one that is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lexinvariant.decipher import calibration
from lexinvariant.decipher.calibration import Calibration
from lexinvariant.decipher.decipherment import KeyPosterior
from lexinvariant.decipher.language import Evidence, Language
from lexinvariant.decipher.samples import PERMUTED, Sample, Setting, draw_samples, joined_text, solver_options
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError

if TYPE_CHECKING:
    from lexinvariant.model.weights import Weights

TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)

Log = Callable[[str], None]
Plan = tuple[tuple[Setting, int], ...]
"""Which validation texts to encipher: settings and lengths."""

PLANS: dict[Evidence, Plan] = {
    "judge_spaced": (("spaced", 24), ("spaced", 32), ("spaced", 64), ("spaced", 100)),
    "judge_unspaced": (("unspaced", 32), ("unspaced", 64), ("unspaced", 100)),
    "spaced": (("spaced", 200), ("spaced", 400)),
    "unspaced": (("unspaced", 200), ("unspaced", 400)),
    "characters": (("ascii", 240), ("ascii", 480)),
}
"""Of homophonic readings there are too few right ones to fit on: their calibration is English's."""


class ValidationText:
    """Validation text, of which enciphered samples of any length can be drawn: in each setting it is one text."""

    def __init__(self, language: Language, documents: Sequence[str], n: int) -> None:
        self._language, self._n = language, n
        self._joined = {setting: joined_text(documents, setting, language) for setting in PERMUTED}

    def samples(self, setting: Setting, length: int, seed: int) -> list[Sample]:
        return draw_samples([self._joined[setting]], setting, self._language, length, self._n, seed)


def fit_calibrations(
    language: Language,
    model: Weights | None,
    text: ValidationText,
    log: Log,
    only: Collection[Evidence] = (),
) -> Language:
    """The language with its calibrations of greatest likelihood; with `only`, those of these kinds of evidence."""
    plans = _plans(language)
    if missing := [evidence for evidence in only if evidence not in plans]:
        raise UserError(
            f"The calibration {missing[0]} of {language.name} cannot be fitted: choose from {', '.join(plans)}."
        )
    for evidence in only or plans:
        started = time.monotonic()
        solver = Solver(model, language=language)
        found: list[tuple[Sample, KeyPosterior]] = []
        for setting, length in plans[evidence]:
            for sample in text.samples(setting, length, seed=1):
                posterior = solver.key_posterior(sample.cipher, **solver_options(setting))
                if posterior.evidence == evidence:
                    found.append((sample, posterior))
        if not found:
            raise UserError(
                f"Nothing in this text was read as {evidence} would: give more text, or more --texts."
            )
        before = language.calibrations.of(evidence)
        fits = [(*_fit_at(found, Calibration(beta, 1.0, 0.0, before.fit)), beta) for beta in TEMPERATURES]
        loss, slope, shift, beta = min(fits)
        fitted = Calibration(beta, round(slope, 3), round(shift, 3), before.fit)
        language = replace(language, calibrations=replace(language.calibrations, **{evidence: fitted}))
        log(
            f"calibration, {evidence}: {fitted}, {loss:.3f} nats a symbol "
            f"({len(found)} texts, {time.monotonic() - started:.0f} s)"
        )
    return language


def _plans(language: Language) -> dict[Evidence, Plan]:
    """What a language's calibrations are fitted on; without a judge, short texts are read like long ones."""
    plans = dict(PLANS)
    if not language.has_table("characters"):
        del plans["characters"]
    if language.judge is None:
        plans["spaced"] += plans.pop("judge_spaced")
        plans["unspaced"] += plans.pop("judge_unspaced")
    return plans


def _fit_at(
    found: Sequence[tuple[Sample, KeyPosterior]], unfitted: Calibration
) -> tuple[float, float, float]:
    """(loss, slope, shift) of the calibration of all symbols' shares at this temperature."""
    share: list[float] = []
    right: list[bool] = []
    for sample, posterior in found:
        truth = dict(zip(sample.cipher, sample.plain, strict=True))
        letter_S, share_S, _ = posterior.best_key(unfitted)
        share += share_S.tolist()
        right += [plain == truth[symbol] for symbol, plain in posterior.spelled(letter_S).items()]
    slope, shift, loss = calibration.fit(np.array(share), np.array(right, np.float64))
    return loss, slope, shift
