"""Recovering substitution ciphers: how well a model's states tell the key, by how far it has read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.decipher.cipher import LOWERCASE, encipher, inverse, random_keys
from lexinvariant.decipher.key import (
    NONE,
    SoftKey,
    check_temperature,
    majority,
    mean_precision,
    number_symbols,
    sliding_counts,
    tally,
    whole_key,
)
from lexinvariant.decipher.probe import Probe, ProbeConfig, SymbolNamer, head_namer, hindsight_namer
from lexinvariant.experiments.evaluated_model import EvaluatedModel, HeldOut, held_out
from lexinvariant.experiments.options import CommonOptions, Count, CountOrZero, choose_window
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.symbol_naming import Naming, find_or_train_probe, open_lexinvariant, open_probe
from lexinvariant.model.weights import find_model, read_description
from lexinvariant.progress import Log
from lexinvariant.results import paper
from lexinvariant.results.cipher_key import (
    KeyProbabilities,
    Precision,
    ProbeSettings,
    ProbeTraining,
    Setup,
    WholeKey,
)
from lexinvariant.results.intervals import MeanShare
from lexinvariant.results.section import percent


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Read the key of a substitution cipher from a model (the paper's section Recovering Substitution Ciphers).

    Lower-case letters are enciphered, but the model has to reckon with every permutation of all its symbols. Its
    deciphering head, or a probe on its frozen states, names each symbol; votes in a window make a key.

    example: lexinvariant experiment cipher-key --model runs/mine/model --data data/mixed --sequences 200
    """

    data: str
    """A folder written by `lexinvariant data prepare` (char128). Texts come from --split, the probe's training text
    from train."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part of the data to encipher."""
    sequences: Count = paper.KEY_SEQUENCES
    """Texts to encipher, all with one key, each filling the model's context. Default: the paper's number."""
    fresh_keys: bool = False
    """Use a new key for every text. The whole key and the matrices are then over plain letters, not cipher letters."""
    window: int | None = None
    """Symbols that vote on a key. Default: 100, the paper's number, or a quarter of a shorter context."""
    soft_window: Count = 50
    """Symbols over which logits are averaged for the key as probabilities (paper: 50)."""
    soft_starts: tuple[int, ...] = (0, 50, 100, 200, 400)
    """Where those windows begin (default: as in the paper); those beyond the context are left out."""
    temperature: float = 1.0
    """Temperature of the probabilities (paper: 1)."""
    namer: Literal["head", "probe", "both"] = "head"
    """What names the symbols: the head trained along with the model (also in hindsight, if the model has that), or the
    paper's probe on the frozen model."""
    probe: Path | None = None
    """A probe trained earlier. Default: train one, and keep it beside the rows to use again."""
    probe_steps: Count = 10_000
    """Training steps of the probe (paper: 10,000)."""
    probe_batch_size: Count = 64
    """Sequences per training step of the probe."""
    probe_hidden: CountOrZero = 0
    """Width between the probe's two layers; 0: the model's own."""
    draws: ClassVar[int] = 1  # each text is read once, with one lexicon: part of the rows' provenance


@dataclass(frozen=True)
class Ciphertext:
    """Texts under their keys, and what is known of the keys."""

    plain: HeldOut
    cipher_ST: np.ndarray
    vocab_size: int
    letters_C: np.ndarray
    """The key's symbols."""
    symbol_ST: np.ndarray
    """Which of the key's symbols stands at each position: the row of the key matrix."""
    truth_C: np.ndarray
    """What each row's symbol stands for."""


def run(options: Options, recorder: Recorder) -> None:
    """Encipher texts, let each namer name their symbols, and record how well that tells the key."""
    evaluated = open_lexinvariant(options.model, "cipher-key")
    context = evaluated.model.config.context
    window = choose_window(options.window, context)
    check_temperature(options.temperature)
    starts = [start for start in options.soft_starts if 0 <= start <= context - options.soft_window]
    if left_out := [start for start in options.soft_starts if start not in starts]:
        recorder.log(
            f"Soft windows of {options.soft_window} that do not fit the context of {context} are left out: those that "
            f"begin at {', '.join(map(str, left_out))}."
        )
    texts = held_out(evaluated, options.data, options.split, options.sequences, named=True)
    if len(texts.tok_ST) < options.sequences:
        recorder.log(
            f"{options.data} has {len(texts.tok_ST)} texts that fill the context: all of them are used."
        )
    namers, probe = _namers(options, evaluated, recorder.log)
    recorder.measured_on(model_hash=evaluated.hash, data_hash=texts.fingerprint)
    text = _encipher(options, evaluated, texts)
    recorder.write(_setup(options, window, evaluated, text))
    if probe is not None:
        settings = ProbeSettings(**vars(probe.config))
        recorder.write(ProbeTraining(config=settings, trained_on=probe.data, metrics=dict(probe.metrics)))
    size = (len(text.letters_C), text.vocab_size)
    namings = [
        Naming.empty(
            namer,
            text.cipher_ST.shape,
            window,
            SoftKey.empty(starts, options.soft_window, options.temperature, *size),
        )
        for namer in namers
    ]
    with recorder.progress("texts deciphered", len(text.cipher_ST)) as advance:
        for rows, output in evaluated.forward(text.cipher_ST, text.plain.piece_S, options):
            for naming in namings:
                naming.add(rows, text.symbol_ST[rows], output.h_BTD)
            advance(rows.stop - rows.start)
    for naming in namings:
        precision = recorder.write(_precision(naming, text, window))
        key = recorder.write(_whole_key(naming, text, window))
        for probabilities in _key_probabilities(naming, text):
            recorder.write(probabilities)
        last = percent(precision.last.value, digits=2)
        recorder.log(
            f"{naming.namer.name}: the last window names {last} of its letters correctly, and the whole key "
            f"{key.told} letters that occur in a last window."
        )


def _namers(options: Options, evaluated: EvaluatedModel, log: Log) -> tuple[list[SymbolNamer], Probe | None]:
    namers: list[SymbolNamer] = []
    if options.namer in ("head", "both"):
        namers.append(head_namer(evaluated.model, evaluated.name))
        namers += [hindsight_namer(evaluated.model)] if evaluated.model.config.has_hindsight else []
    if options.namer == "head":
        return namers, None
    config = ProbeConfig(
        steps=options.probe_steps,
        batch_size=options.probe_batch_size,
        hidden=options.probe_hidden,
        seed=options.seed,
        dtype=options.dtype,
    )
    if options.probe is not None:
        probe = open_probe(options.probe, evaluated)
    else:
        probe = find_or_train_probe(evaluated, options.data, config, options.out, log)
    return [*namers, probe.namer], probe


def _encipher(options: Options, evaluated: EvaluatedModel, texts: HeldOut) -> Ciphertext:
    size = evaluated.model.config.vocab_size
    letters_C = evaluated.model.vocab.encode(LOWERCASE).astype(np.int64)
    # The key that all texts share is number 0, and a text's own has the number of its piece.
    number_S = texts.piece_S if options.fresh_keys else np.zeros(1, np.int64)
    key_SV = random_keys(options.seed, number_S, letters_C, size)
    cipher_ST = encipher(key_SV, texts.tok_ST)
    # Symbols of different keys have nothing in common but what they stand for.
    by_ST = texts.tok_ST if options.fresh_keys else cipher_ST
    truth_C = letters_C if options.fresh_keys else inverse(key_SV)[0, letters_C]
    return Ciphertext(texts, cipher_ST, size, letters_C, number_symbols(by_ST, letters_C, size), truth_C)


def _setup(options: Options, window: int, evaluated: EvaluatedModel, text: Ciphertext) -> Setup:
    config, decode = evaluated.model.config, evaluated.model.vocab.decode
    return Setup(
        model=evaluated.name,
        sequences=len(text.cipher_ST),
        pieces=text.plain.piece_S.tolist(),
        kinds=text.plain.kind_S,
        context=config.context,
        vocab_size=config.vocab_size,
        matrix_parameters=config.n_matmul_parameters,
        training_flop=training_flop(config, read_description(find_model(options.model))["notes"]),
        split=options.split,
        dtype=options.dtype,
        window=window,
        fresh_keys=options.fresh_keys,
        symbols=decode(text.letters_C),
        truth=decode(text.truth_C),
        example=decode(text.cipher_ST[0, :80]),
    )


def training_flop(config: ModelConfig, notes: dict[str, Any]) -> float | None:
    """What the model's training took by 6N + 12LHT a token, where its exporter noted steps and batch."""
    try:
        tokens = notes["step"] * notes["config"]["batch_size"] * config.context
    except (KeyError, TypeError):
        return None
    return float(tokens) * config.flop_per_token(config.context)


def _precision(naming: Naming, text: Ciphertext, window: int) -> Precision:
    """The share of letters that the vote in a window names rightly, at every start of the window."""
    counted = [
        sliding_counts(
            text.symbol_ST[:, start : start + name_SN.shape[1]],
            name_SN,
            text.truth_C[None],
            size=text.vocab_size,
            window=window,
        )
        for start, name_SN in naming.name_by_start.items()
    ]
    right_SW, seen_SW = (np.concatenate(parts, axis=1) for parts in zip(*counted, strict=True))
    # The same for all symbols, which the model's lexicon permutes too: the plain text tells them apart as well as
    # the ciphertext does, and names the truth.
    name_SN, plain_SN = naming.last_names(window), text.plain.tok_ST[:, -window:]
    all_symbols_1V = np.arange(text.vocab_size)[None]
    all_counts = sliding_counts(plain_SN, name_SN, all_symbols_1V, size=text.vocab_size, window=window)
    return Precision(
        namer=naming.namer.name,
        start=naming.window_starts(window),
        precision=_shares(right_SW, seen_SW),
        symbols_seen=float(seen_SW[:, -1].mean()),
        last_by_text=(right_SW[:, -1] / np.where(seen_SW[:, -1] > 0, seen_SW[:, -1], np.nan)).tolist(),
        last_all_symbols=_shares(*all_counts)[0],
        named_rightly=float((name_SN == plain_SN).mean()),
    )


def _shares(right_SW: np.ndarray, seen_SW: np.ndarray) -> list[MeanShare]:
    """The mean precision of each window, with its interval."""
    mean_W, half_W = mean_precision(right_SW, seen_SW)
    low_W, high_W = np.maximum(mean_W - half_W, 0), np.minimum(mean_W + half_W, 1)
    return [MeanShare(*shares) for shares in np.stack([mean_W, low_W, high_W], axis=1).tolist()]


def _whole_key(naming: Naming, text: Ciphertext, window: int) -> WholeKey:
    """The key that the last windows of all texts vote for, and the votes."""
    n_letters, size = len(text.letters_C), text.vocab_size
    name_SC = majority(text.symbol_ST[:, -window:], naming.last_names(window), n_letters, size)
    votes_CV = tally(name_SC, size)
    key_C = whole_key(name_SC, size)
    for_letters_CC = votes_CV[:, text.letters_C]
    wrong_CV = votes_CV.copy()
    wrong_CV[np.arange(n_letters), text.truth_C] = 0
    return WholeKey(
        namer=naming.namer.name,
        named=[None if name == NONE else chr(name) for name in key_C],
        right=int((key_C == text.truth_C).sum()),
        votes=for_letters_CC.tolist(),
        votes_for_others=(votes_CV.sum(axis=1) - for_letters_CC.sum(axis=1)).tolist(),
        confused_with=[chr(row.argmax()) if row.any() else None for row in wrong_CV],
    )


def _key_probabilities(naming: Naming, text: Ciphertext) -> Iterator[KeyProbabilities]:
    soft, row_C = naming.soft, np.arange(len(text.letters_C))
    for start, p_CV, n_C in zip(soft.starts, soft.matrices(), soft.n_KC, strict=True):
        matrix_CC = p_CV[:, text.letters_C]
        true_C = np.nan_to_num(p_CV[row_C, text.truth_C])
        yield KeyProbabilities(
            namer=naming.namer.name,
            start=start,
            window=soft.window,
            temperature=soft.temperature,
            matrix=matrix_CC.round(6).tolist(),
            others=(1 - matrix_CC.sum(axis=1)).round(6).tolist(),
            sequences_by_symbol=n_C.tolist(),
            on_truth=float(np.sum(true_C * n_C) / max(n_C.sum(), 1)),
        )
