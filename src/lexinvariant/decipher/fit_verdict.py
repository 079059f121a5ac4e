"""Fits what the verdict needs on validation text: a test for each kind of evidence, and a classifier of unread texts.

Texts of every cipher and of many lengths are given to the solver. What it reads rightly, and what it costs then, goes
into one `FitTest` for each kind of evidence; the features of all that is no substitution of the language, into the
classifier. `lexinvariant language verdict` does this for a language that is there already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.calibration import FitTest, fit_test
from lexinvariant.decipher.decipherment import KeyPosterior
from lexinvariant.decipher.features import Ids, measure
from lexinvariant.decipher.kind_samples import Cipher, draw_kind_samples, folded, kind_of
from lexinvariant.decipher.language import Calibrations, Evidence, Language
from lexinvariant.decipher.samples import draw_samples, joined_text, plain_text, solver_options
from lexinvariant.decipher.solve import Solver
from lexinvariant.decipher.verdict import N_INPUTS, Kind, KindClassifier, classifier_input

LENGTHS = (25, 40, 60, 90, 130, 200, 400)
CHARACTER_LENGTHS = (120, 240, 400)
SHARES: dict[Cipher, float] = {
    "substitution": 1.0,
    "vigenere": 0.3,
    "beaufort": 0.15,
    "gronsfeld": 0.3,
    "porta": 0.15,
    "columnar": 0.5,
    "homophonic": 0.3,
    "random": 0.5,
    "other-language": 0.7,
}
"""Texts of each cipher, beside those of the substitution."""
LEAST_READINGS = 8  # right ones and wrong ones, for a test to be fitted
RIDGE = 0.01
MIN_SCALE = 0.01  # of a feature that is the same for all texts

Floats = NDArray[np.float64]
Log = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """What the solver made of one text: the cost in nats a letter, and the share of symbols that are right."""

    kind: Kind
    evidence: Evidence
    cost: float
    n_letters: int
    log_keys: float
    right: float

    @property
    def is_right(self) -> bool:
        return self.kind in ("substitution", "homophonic") and self.right >= 0.7

    @property
    def is_half_right(self) -> bool:
        """Of a substitution: neither right nor wrong. (What is read as another language than its own is wrong here.)"""
        return self.kind == "substitution" and 0.3 < self.right < 0.7


@dataclass(frozen=True)
class Unread:
    """What the classifier learns from."""

    kind: Kind
    inputs: Floats


def fit_verdict(
    language: Language, documents: Sequence[str], foreign: Sequence[Sequence[str]], n_texts: int, log: Log
) -> Language:
    """The language with its tests and its classifier fitted on texts of its own and of other languages.

    Where there is no other language, the classifier stays as it is.
    """
    solver = Solver(language=_open_minded(language))
    own = [folded(text, language) for text in documents]
    others = [[folded(text, language) for text in texts] for texts in foreign]
    trials: list[Trial] = []
    posteriors: list[tuple[Kind, KeyPosterior, Ids | None]] = []
    for length in LENGTHS:
        for cipher, share in SHARES.items():
            sources = others if cipher == "other-language" else [own]
            for number, texts in enumerate(sources):
                n = max(1, round(share * n_texts / len(sources)))
                for sample in draw_kind_samples(texts, cipher, language, length, n, 10 + number):
                    posterior = solver.key_posterior(sample.text)
                    key = posterior.spelled(posterior.candidates.key_NS[0])
                    pairs = zip(sample.symbols, sample.plain, strict=True)
                    right = float(np.mean([key[symbol] == plain for symbol, plain in pairs]))
                    trials += _trials(kind_of(cipher), posterior, right)
                    if cipher != "substitution" and not trials[-1].is_right:
                        posteriors.append((kind_of(cipher), posterior, posterior.puzzle.letter_S))
                    if cipher == "other-language":  # it may also stand there as it is
                        truth = dict(zip(sample.symbols, sample.plain, strict=True))
                        plain_S = [language.letters.index(truth[s]) for s in posterior.puzzle.symbols]
                        posteriors.append(("other-language", posterior, np.array(plain_S)))
        log(f"{len(trials)} readings of up to {length} letters")
    as_written = [" ".join(plain_text(text, "ascii", language) for text in documents)]
    for length in CHARACTER_LENGTHS:
        for drawn in draw_samples(as_written, "ascii", language, length, max(2, n_texts // 3), 10):
            posterior = solver.key_posterior(drawn.cipher, **solver_options("ascii"))
            key = posterior.spelled(posterior.candidates.key_NS[0])
            right = float(np.mean([key[a] == b for a, b in zip(drawn.cipher, drawn.plain, strict=True)]))
            trials += _trials("substitution", posterior, right)
    language = replace(language, calibrations=_with_tests(language, trials, log))
    if not foreign:
        return language
    unread = []
    for kind, posterior, letter_S in posteriors:
        puzzle = replace(posterior.puzzle, language=language)
        features = measure(puzzle.symbol_T[puzzle.symbol_T >= 0], language.letter_frequencies, letter_S)
        misfit = replace(posterior, puzzle=puzzle).reading().misfit
        unread.append(Unread(kind, classifier_input(features, misfit)))
    classifier = fit_classifier(unread)
    log(f"kinds of unread texts: {accuracy(classifier, unread):.1%} right on the texts they were fitted on")
    return replace(language, unread_kinds=classifier)


def moved_tests(language: Language, documents: Sequence[str]) -> Language:
    """The language with its tests, which were another's, moved to what its own texts cost: no text is deciphered."""
    calibrations = language.calibrations
    settings: dict[Evidence, Literal["spaced", "unspaced", "ascii"]] = {
        "spaced": "spaced",
        "unspaced": "unspaced",
        "judge_spaced": "spaced",
        "judge_unspaced": "unspaced",
        "characters": "ascii",
        "homophonic": "unspaced",
    }
    for evidence, setting in settings.items():
        judge = language.judge if evidence.startswith("judge") else None
        missing = evidence == "characters" and not language.has_table("characters")
        if missing or (evidence.startswith("judge") and judge is None):
            continue
        joined = joined_text(documents, setting, language)
        drawn = [sample.plain for sample in draw_samples([joined], setting, language, 100, 60, seed=4)]
        ngram = language.ngram("characters" if setting == "ascii" else setting)
        cost_N = np.array([ngram.nats(text) for text in drawn])
        if judge is not None:
            weight = language.judging.weight
            cost_N = weight * judge.nats(drawn) + (1 - weight) * cost_N
        n_N = [len(text) if setting == "ascii" else len(text.replace(" ", "")) for text in drawn]
        test = calibrations.of(evidence).fit
        right = round(float(np.median(cost_N / n_N)), 4)
        moved = replace(test, right=right, wrong=round(right + test.wrong - test.right, 4))
        calibrations = replace(calibrations, **{evidence: replace(calibrations.of(evidence), fit=moved)})
    return replace(language, calibrations=calibrations)


def _open_minded(language: Language) -> Language:
    """A language whose tests rule nothing out, so that every reading is judged in full."""
    calibrations = language.calibrations
    for evidence in get_args(Evidence):
        calibration = calibrations.of(evidence)
        neutral = replace(calibration, fit=replace(calibration.fit, slope=0.0, shift=0.0))
        calibrations = replace(calibrations, **{evidence: neutral})
    return replace(language, calibrations=calibrations)


def _trials(kind: Kind, posterior: KeyPosterior, right: float) -> list[Trial]:
    """The n-gram's word on a reading, and the judge's where it was asked."""
    by_ngram: Evidence = posterior.evidence
    if by_ngram not in ("characters", "homophonic"):
        by_ngram = "spaced" if " " in posterior.problem.ngram.alphabet else "unspaced"
    n, cost = posterior.n_letters, posterior.ngram_cost
    found = [Trial(kind, by_ngram, cost / n, posterior.n_telling, posterior.effort, right)]
    if by_ngram != posterior.evidence:
        cost = float(posterior.candidates.cost_N[0])
        found.append(replace(found[0], evidence=posterior.evidence, cost=cost / n))
    return found


def _with_tests(language: Language, trials: Sequence[Trial], log: Log) -> Calibrations:
    calibrations = language.calibrations
    by_evidence: dict[Evidence, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_evidence[trial.evidence].append(trial)
    for evidence, found in by_evidence.items():
        found = [trial for trial in found if not trial.is_half_right]
        n_right = sum(trial.is_right for trial in found)
        if min(n_right, len(found) - n_right) < LEAST_READINGS:
            continue
        test = test_of(found)
        log(f"{evidence}: {test} ({n_right} right readings, {len(found) - n_right} wrong ones)")
        calibrations = replace(calibrations, **{evidence: replace(calibrations.of(evidence), fit=test)})
    return calibrations


def test_of(trials: Sequence[Trial]) -> FitTest:
    cost_N, n_letters_N, log_keys_N = np.array([(t.cost, t.n_letters, t.log_keys) for t in trials]).T
    return fit_test(cost_N, n_letters_N, log_keys_N, np.array([t.is_right for t in trials]))


def fit_classifier(unread: Sequence[Unread]) -> KindClassifier:
    """Softmax regression with a small ridge; every kind weighs the same."""
    from scipy.optimize import minimize

    x_NF = np.stack([text.inputs for text in unread])
    center_F, scale_F = x_NF.mean(axis=0), np.maximum(x_NF.std(axis=0), MIN_SCALE)
    x_NF = np.append((x_NF - center_F) / scale_F, np.ones((len(x_NF), 1)), axis=1)
    kinds: list[Kind] = sorted({text.kind for text in unread})
    kind_N = np.array([kinds.index(text.kind) for text in unread])
    weight_N = 1 / np.bincount(kind_N)[kind_N] / len(kinds)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weight_KF = flat.reshape(len(kinds), N_INPUTS + 1)
        score_NK = x_NF @ weight_KF.T
        logp_NK = score_NK - np.logaddexp.reduce(score_NK, axis=1, keepdims=True)
        slope_NK = weight_N[:, None] * (np.exp(logp_NK) - np.eye(len(kinds))[kind_N])
        value = (
            -(weight_N * logp_NK[np.arange(len(kind_N)), kind_N]).sum()
            + RIDGE * (weight_KF[:, :-1] ** 2).sum()
        )
        ridge_KF = 2 * RIDGE * weight_KF
        ridge_KF[:, -1] = 0
        return float(value), (slope_NK.T @ x_NF + ridge_KF).ravel()

    found = minimize(loss, np.zeros(len(kinds) * (N_INPUTS + 1)), jac=True, method="L-BFGS-B")
    weight_KF = np.round(found.x.reshape(len(kinds), -1), 3)
    return KindClassifier(
        tuple(np.round(center_F, 4).tolist()),
        tuple(np.round(scale_F, 4).tolist()),
        {kind: row.tolist() for kind, row in zip(kinds, weight_KF, strict=True)},
    )


def accuracy(classifier: KindClassifier, unread: Sequence[Unread]) -> float:
    """Share of the texts whose kind is the likeliest."""
    right = 0
    for text in unread:
        p = classifier.of_inputs(text.inputs)
        right += max(p, key=lambda kind: p[kind]) == text.kind
    return right / len(unread)
