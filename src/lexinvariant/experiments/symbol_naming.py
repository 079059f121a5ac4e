"""Naming symbols from a model's states: by the head trained along with the model, or by a probe trained afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import numpy as np

from lexinvariant.decipher.key import SoftKey
from lexinvariant.decipher.probe import Probe, ProbeConfig, SymbolNamer, load_probe, train_probe
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel, need_characters, open_model
from lexinvariant.progress import Log
from lexinvariant.results.rows import hash_bytes
from lexinvariant.text import open_data

STRIDE = 25
"""Symbols between the windows of a namer that looks ahead, whose work has to be done anew for each window."""


def open_lexinvariant(place: str, experiment: str) -> EvaluatedModel:
    """A model of characters that has to find out what each symbol stands for."""
    evaluated = open_model(place)
    need_characters(evaluated, experiment)
    if not evaluated.model.config.lexicon.is_lexinvariant:
        raise UserError(
            f"{evaluated.name} is not a lexinvariant model and knows each character by name: give a lexinvariant one."
        )
    return evaluated


def open_probe(path: Path, evaluated: EvaluatedModel) -> Probe:
    """A probe that was trained on this model."""
    probe = load_probe(path)
    probe.check(evaluated.model.config, evaluated.hash)
    return probe


def find_or_train_probe(
    evaluated: EvaluatedModel, data: str, config: ProbeConfig, folder: Path, log: Log
) -> Probe:
    """The probe that was trained so before and kept in the folder, or a new one, which is kept there."""
    model, corpus = evaluated.model, open_data(data)
    settings = json.dumps([asdict(config), corpus.fingerprint]).encode()
    path = (
        folder / f"probe-{evaluated.hash}-{hash_bytes(settings)[:8]}.safetensors"
    )  # a trial replaces no other
    if path.exists():
        probe = load_probe(path)
        if (probe.config, probe.model_hash, probe.data) == (config, evaluated.hash, corpus.fingerprint):
            log(f"The probe in {path} is used again.")
            return probe
    if evaluated.trained_on not in (None, corpus.fingerprint):
        log(f"{evaluated.name} was trained on other data than {data}, where its probe is trained now.")
    log(f"Training a probe on {data} for {config.steps:,} steps, to be kept in {path}.")
    pieces = corpus.split("train", model.config.context)
    about = (evaluated.hash, corpus.fingerprint)
    return train_probe(model.params, model.config, pieces, config, path, about=about)


@dataclass(frozen=True)
class Naming:
    """What one namer says of all texts."""

    namer: SymbolNamer
    name_by_start: dict[int, np.ndarray]
    """The names of the symbols in some spans of all texts: name_SN by where the span begins."""
    soft: SoftKey

    @classmethod
    def empty(cls, namer: SymbolNamer, shape: tuple[int, ...], window: int, soft: SoftKey) -> Naming:
        """What a causal namer says never changes, so the whole text is one span; one that looks ahead says something
        else for every window, since it knows the text up to the window's end.
        """
        n_texts, length = shape
        starts = [*range(0, length - window, STRIDE), length - window] if namer.looks_ahead else [0]
        width = window if namer.looks_ahead else length
        return cls(namer, {start: np.empty((n_texts, width), np.int64) for start in starts}, soft)

    def add(self, rows: slice, symbol_BT: np.ndarray, h_BTD: jax.Array) -> None:
        """Name the symbols of a batch. Its logits are reduced here: those of all texts are too many to be held."""
        logits_between = self._logits_between(h_BTD)
        for start, name_SN in self.name_by_start.items():
            name_SN[rows] = logits_between(start, start + name_SN.shape[1]).argmax(axis=2)
        self.soft.add(symbol_BT, logits_between)

    def _logits_between(self, h_BTD: jax.Array) -> Callable[[int, int], np.ndarray]:
        """A function of (start, stop): the logits of that span when the text is read up to its end."""
        if self.namer.looks_ahead:
            return lambda start, stop: np.asarray(self.namer.logits(h_BTD, stop)[:, start:stop])
        logits_BTV = np.asarray(self.namer.logits(h_BTD))
        return lambda start, stop: logits_BTV[:, start:stop]

    def window_starts(self, window: int) -> list[int]:
        """Where the windows begin that lie within a span."""
        spans = self.name_by_start.items()
        return [start + i for start, name_SN in spans for i in range(name_SN.shape[1] - window + 1)]

    def last_names(self, window: int) -> np.ndarray:
        """name_SN of the last window."""
        return self.name_by_start[max(self.name_by_start)][:, -window:]
