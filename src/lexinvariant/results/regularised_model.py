"""The row of a model that was trained with random lexicons, or of one beside it: all that was measured of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.rows import Row
from lexinvariant.results.text_sums import TextSums

Perturbation = Literal["characters swapped", "rare words", "made-up words", "identifiers renamed"]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)
Occurrence = Literal["first", "second", "later"]
OCCURRENCE: tuple[Occurrence, ...] = get_args(Occurrence)
"""Of a token or word in its context."""
NO_REGULARISER, LEXINVARIANT = "none", "lexinvariant"


@dataclass(frozen=True)
class Regulariser:
    """How a model's lexicon was made random in training."""

    kind: str
    """`none`, a kind of lexicon, or `lexinvariant` for a model that stays so when it is used."""
    p: float
    p_anneal_share: float = 0.0
    """The last share of training, over which p fell to 0."""

    @property
    def name(self) -> str:
        return f"{self.kind}, p falls to 0" if self.p_anneal_share else self.kind


@dataclass(frozen=True)
class Perturbed:
    """What it costs a model that texts are written differently, in nats beyond the same texts as they were."""

    texts: int
    too_long: int
    """Texts that no longer fit the context, and were left out."""
    changed_share: float
    """Of the characters."""
    increase: TextSums
    """A character of the clean text."""
    increase_elsewhere: TextSums
    """The same in what was not changed: how much the changed words hurt the reading of the others."""
    new_word: dict[Occurrence, TextSums]
    """Nats of a changed word, at its occurrences."""


@dataclass(frozen=True)
class LossByPass:
    """A run's own evaluations."""

    step: list[int]
    loss: list[float]
    steps_a_pass: float | None
    """None where the training text was not at hand."""

    @property
    def passes(self) -> list[float]:
        return [step / (self.steps_a_pass or 1.0) for step in self.step]


@dataclass(frozen=True, kw_only=True)
class RegularisedModel(Row, experiment="regulariser", kind="model"):
    """All that was measured of one model."""

    label: str
    """The corpus."""
    split: str
    sequences: int
    context: int
    model: MeasuredModel
    regulariser: Regulariser
    training_seed: int
    loss: TextSums
    """Nats a token."""
    tasks: dict[str, Share]
    """Accuracy in LookUp and Permutation, where the vocabulary can write them."""
    by_rank: dict[str, dict[Occurrence, TextSums]]
    """Nats a token, by its place in the training text's order of frequency and its occurrence in the context."""
    robustness: dict[Perturbation, Perturbed]
    by_pass: LossByPass | None

    @property
    def name(self) -> str:
        p = "" if self.regulariser.kind in (NO_REGULARISER, LEXINVARIANT) else f", p = {self.regulariser.p:g}"
        return self.regulariser.kind + p + (" falling to 0" if self.regulariser.p_anneal_share else "")
