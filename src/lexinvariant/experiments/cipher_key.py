"""Recovering substitution ciphers: how well a model's states tell the key, by how far it has read.

Rows by kind: `setup` (one: the key and the sizes), `probe` (where one was trained or loaded), and for each reader
`precision` (majority votes in a window at every offset), `key` (the whole key, voted over all last windows) and
`soft` (one a start: the key as probabilities). The report draws them; nothing here draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from rich.console import Console
from rich.progress import Progress

from lexinvariant.config import ModelConfig
from lexinvariant.decipher.cipher import LOWERCASE, encipher, inverse, random_keys
from lexinvariant.decipher.key import (
    NONE,
    SoftKey,
    check_temperature,
    check_window,
    majority,
    mean_precision,
    number_symbols,
    sliding_counts,
    tally,
    whole_key,
)
from lexinvariant.decipher.probe import (
    Probe,
    ProbeConfig,
    SymbolNamer,
    head_namer,
    hindsight_namer,
    load_probe,
    train_probe,
)
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import (
    CommonOptions,
    EvaluatedModel,
    HeldOut,
    held_out,
    need_characters,
    open_model,
)
from lexinvariant.experiments.rows import Provenance, Row, RowWriter
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.weights import find_model, read_description
from lexinvariant.text import open_data

NAME = "cipher-key"
STRIDE = 25
"""Symbols between the windows of a reader that looks ahead, which has to read anew for each."""
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Read the key of a substitution cipher off a model (the paper's section Recovering Substitution Ciphers).

    Lowercase letters are enciphered, and the model has to reckon with every permutation of all its symbols. Its
    deciphering head, or a probe on its frozen states, names each symbol; votes in a window make a key.

    Example: lexinvariant experiment cipher-key --model runs/mine/model --data data/mixed --sequences 200
    """

    data: str
    """A folder written by `lexinvariant data prepare` (char128): texts come from --split, the probe's from train."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part of the data is enciphered."""
    sequences: int = 1000
    """Texts that fill the model's context, all enciphered with one key (the paper: 1,000)."""
    fresh_keys: bool = False
    """A new key for every text. The whole key and the matrices are then those of the letters stood for."""
    window: int = 100
    """Symbols in which a key is voted on (the paper: 100)."""
    soft_window: int = 50
    """Symbols over which logits are averaged for the key as probabilities (the paper: 50)."""
    soft_starts: tuple[int, ...] = (0, 50, 100, 200, 400)
    """Where those windows begin (the paper's places); those that do not fit the context are left out."""
    temperature: float = 1.0
    """Temperature of the probabilities (the paper: 1)."""
    reader: Literal["head", "probe", "both"] = "head"
    """What names the symbols: the head trained along with the model (in hindsight too, where the model has that), or
    the paper's probe on the frozen model."""
    probe: Path | None = None
    """A probe trained before. Default: one is trained and kept beside the rows, to be used again."""
    probe_steps: int = 10_000
    """Steps of training a probe (the paper: 10,000)."""
    probe_batch_size: int = 64
    """Sequences a step of training a probe."""
    probe_hidden: int = 0
    """Width between the probe's two layers; 0 is the model's own."""


@dataclass(frozen=True)
class Ciphertext:
    """Texts under their keys, and what is known of the keys."""

    plain_ST: np.ndarray
    cipher_ST: np.ndarray
    key_SV: np.ndarray
    letters_C: np.ndarray
    """The key's symbols."""
    symbol_ST: np.ndarray
    """Which of the key's symbols stands at each position: the row of the key matrix."""
    truth_C: np.ndarray
    """What each row's symbol stands for."""


Stretches = dict[int, np.ndarray]
"""What a reader named the symbols of some stretches of all texts: name_SN by where a stretch begins."""


def run(options: Options, command: str = "", say: Say = lambda line: None) -> list[Row]:
    """Run the experiment and append its rows to cipher-key.jsonl in the output folder."""
    if options.sequences < 1 or options.batch_size < 1 or options.soft_window < 1:
        raise UserError("Give --sequences, --batch-size and --soft-window of at least 1.")
    evaluated = open_model(options.model)
    need_characters(evaluated, NAME)
    config = evaluated.model.config
    if not config.lexicon.is_lexinvariant:
        raise UserError(
            f"{evaluated.name} is not a lexinvariant model, so it knows symbols by name and infers no key: give one "
            "that is."
        )
    check_window(options.window, config.context)
    check_temperature(options.temperature)
    starts = [s for s in options.soft_starts if 0 <= s <= config.context - options.soft_window]
    if len(starts) < len(options.soft_starts):
        say(f"Soft windows beyond the context of {config.context} are left out: {options.soft_starts}.")
    texts = held_out(evaluated, options.data, options.split, options.sequences)
    if len(texts.tok_ST) < options.sequences:
        say(f"{options.data} has {len(texts.tok_ST)} texts that fill the context: all of them are used.")
    readers, probe = _readers(options, evaluated, say)
    text = _encipher(options, evaluated, texts)
    provenance = Provenance(NAME, options.seed, command, evaluated.hash, texts.fingerprint, draws=1)
    rows: list[Row] = []
    with RowWriter(options.out / f"{NAME}.jsonl", provenance) as writer:

        def record(kind: str, **values: Any) -> None:
            rows.append(writer.write(kind, **values))

        record("setup", **_setup(options, evaluated, texts, text))
        if probe is not None:
            record("probe", config=vars(probe.config), trained_on=probe.data, metrics=dict(probe.metrics))
        named, soft = _read(options, evaluated, texts, text, readers, starts)
        for reader in readers:
            _record_votes(record, options, text, config.vocab_size, reader.name, named[reader.name], say)
            _record_soft(record, text, reader.name, soft[reader.name])
    return rows


def _readers(options: Options, evaluated: EvaluatedModel, say: Say) -> tuple[list[SymbolNamer], Probe | None]:
    readers, probe = [], None
    if options.reader in ("head", "both"):
        readers.append(head_namer(evaluated.model, evaluated.name))
        readers += [hindsight_namer(evaluated.model)] if evaluated.model.config.has_hindsight else []
    if options.reader in ("probe", "both"):
        probe = _probe(options, evaluated, say)
        readers.append(probe.reader)
    return readers, probe


def _probe(options: Options, evaluated: EvaluatedModel, say: Say) -> Probe:
    """The one given, the one that the same command trained before, or a new one."""
    model = evaluated.model
    if options.probe is not None:
        probe = load_probe(options.probe)
        probe.check(model.config, evaluated.hash)
        return probe
    config = ProbeConfig(
        steps=options.probe_steps,
        batch_size=options.probe_batch_size,
        hidden=options.probe_hidden,
        seed=options.seed,
        dtype=options.dtype,
    )
    corpus = open_data(options.data)
    path = options.out / f"probe-{evaluated.hash}.safetensors"
    if path.exists():
        probe = load_probe(path)
        if (probe.config, probe.model_hash, probe.data) == (config, evaluated.hash, corpus.fingerprint):
            say(f"The probe in {path} is used again.")
            return probe
    if evaluated.trained_on not in (None, corpus.fingerprint):
        say(
            f"{evaluated.name} was trained on other data than {options.data}, where its probe is trained now."
        )
    say(f"Training a probe on {options.data} for {config.steps:,} steps, to be kept in {path}.")
    pieces = corpus.split("train", model.config.context)
    about = (evaluated.hash, corpus.fingerprint)
    return train_probe(model.params, model.config, pieces, config, path, about=about)


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
    symbol_ST = number_symbols(by_ST, letters_C, size)
    return Ciphertext(texts.tok_ST, cipher_ST, key_SV, letters_C, symbol_ST, truth_C)


def _setup(options: Options, evaluated: EvaluatedModel, texts: HeldOut, text: Ciphertext) -> dict[str, Any]:
    config, decode = evaluated.model.config, evaluated.model.vocab.decode
    return {
        "model": evaluated.name,
        "sequences": len(text.plain_ST),
        "pieces": texts.piece_S,
        "context": config.context,
        "vocab_size": config.vocab_size,
        "matrix_parameters": config.n_matmul_parameters,
        "training_flop": training_flop(config, read_description(find_model(options.model))["notes"]),
        "split": options.split,
        "dtype": options.dtype,
        "window": options.window,
        "fresh_keys": options.fresh_keys,
        "symbols": decode(text.letters_C),
        "truth": decode(text.truth_C),
        "example": decode(text.cipher_ST[0, :80]),
    }


def training_flop(config: ModelConfig, notes: dict[str, Any]) -> float | None:
    """What the model's training took by 6N + 12LHT a token, where its exporter noted steps and batch."""
    try:
        return float(notes["step"] * notes["config"]["batch_size"] * config.context) * config.flop_per_token(
            config.context
        )
    except (KeyError, TypeError):
        return None


def _read(
    options: Options,
    evaluated: EvaluatedModel,
    texts: HeldOut,
    text: Ciphertext,
    readers: list[SymbolNamer],
    starts: list[int],
) -> tuple[dict[str, Stretches], dict[str, SoftKey]]:
    """The names and the soft key of each reader; logits are reduced batch by batch and never held all at once."""
    model, size = evaluated.model, evaluated.model.config.vocab_size
    n_texts, length = text.cipher_ST.shape
    named: dict[str, Stretches] = {
        reader.name: {
            first: np.empty((n_texts, stop - first), np.int64)
            for first, stop in _stretches(reader, options.window, length)
        }
        for reader in readers
    }
    soft = {
        reader.name: SoftKey.empty(
            starts, options.soft_window, options.temperature, len(text.letters_C), size
        )
        for reader in readers
    }
    batches = forward_batches(
        model.params,
        model.config,
        text.cipher_ST,
        texts.piece_S,
        seed=options.seed,
        batch_size=options.batch_size,
        dtype=options.dtype,
    )
    for rows, reading in _shown(batches, len(text.cipher_ST)):
        for reader in readers:
            logits_between = _logits_between(reader, reading.h_BTD)
            for first, name_SN in named[reader.name].items():
                name_SN[rows] = logits_between(first, first + name_SN.shape[1]).argmax(axis=2)
            soft[reader.name].add(text.symbol_ST[rows], logits_between)
    return named, soft


def _stretches(reader: SymbolNamer, window: int, length: int) -> list[tuple[int, int]]:
    """Where a reader's names are wanted: a causal one names all in one go, one that looks ahead window by window."""
    if not reader.looks_ahead:
        return [(0, length)]
    return [(first, first + window) for first in (*range(0, length - window, STRIDE), length - window)]


def _logits_between(reader: SymbolNamer, h_BTD: jax.Array) -> Callable[[int, int], np.ndarray]:
    """A function from (first, stop) to the logits of that stretch when the text is read up to its end."""
    if reader.looks_ahead:
        return lambda first, stop: np.asarray(reader.logits(h_BTD, stop)[:, first:stop])
    whole_BTV = np.asarray(reader.logits(h_BTD))
    return lambda first, stop: whole_BTV[:, first:stop]


def _shown(batches: Iterator[tuple[slice, Any]], total: int) -> Iterator[tuple[slice, Any]]:
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("deciphering", total=total)
        for rows, reading in batches:
            yield rows, reading
            progress.update(task, completed=rows.stop)


def _record_votes(
    record: Callable[..., None],
    options: Options,
    text: Ciphertext,
    size: int,
    reader: str,
    named: Stretches,
    say: Say,
) -> None:
    """Precision at every offset, and the key that the last windows vote for."""
    counted = [
        sliding_counts(
            text.symbol_ST[:, first : first + name_SN.shape[1]],
            name_SN,
            text.truth_C[None],
            size=size,
            window=options.window,
        )
        for first, name_SN in named.items()
    ]
    right_SW, seen_SW = (np.concatenate(parts, axis=1) for parts in zip(*counted, strict=True))
    start_W = np.concatenate(
        [first + np.arange(right.shape[1]) for first, (right, _) in zip(named, counted, strict=True)]
    )
    mean_W, half_W = mean_precision(right_SW, seen_SW)
    end = slice(-options.window, None)
    name_SN = named[max(named)][:, end]
    # The same for all symbols, which the model's lexicon permutes too: the plain text tells them apart as well as
    # the ciphertext does, and names the truth.
    every_right_S1, every_seen_S1 = sliding_counts(
        text.plain_ST[:, end], name_SN, np.arange(size)[None], size=size, window=options.window
    )
    every_mean, every_half = mean_precision(every_right_S1, every_seen_S1)
    record(
        "precision",
        reader=reader,
        start=start_W,
        precision=np.round(mean_W, 6),
        half_width=np.round(half_W, 6),
        symbols_seen=float(seen_SW[:, -1].mean()),
        last=mean_W[-1],
        last_half_width=half_W[-1],
        last_by_text=_shares(right_SW[:, -1], seen_SW[:, -1]),
        last_all_symbols=every_mean[0],
        last_all_symbols_half_width=every_half[0],
        named_rightly=float((name_SN == text.plain_ST[:, end]).mean()),
    )
    name_SC = majority(text.symbol_ST[:, end], name_SN, len(text.letters_C), size)
    votes_CV = tally(name_SC, size)
    key_C = whole_key(name_SC, size)
    others_C = votes_CV.sum(axis=1) - votes_CV[:, text.letters_C].sum(axis=1)
    wrong_CV = votes_CV.copy()
    wrong_CV[np.arange(len(wrong_CV)), text.truth_C] = 0
    record(
        "key",
        reader=reader,
        named=[None if name == NONE else chr(name) for name in key_C],
        right=int((key_C == text.truth_C).sum()),
        seen=int((key_C != NONE).sum()),
        votes=votes_CV[:, text.letters_C],
        votes_for_others=others_C,
        confused_with=[chr(row.argmax()) if row.any() else None for row in wrong_CV],
    )
    say(
        f"{reader}: the last window names {mean_W[-1]:.2%} of its letters rightly, the whole key "
        f"{(key_C == text.truth_C).sum()} of {len(key_C)}."
    )


def _shares(right_S: np.ndarray, seen_S: np.ndarray) -> list[float | None]:
    """Each text's precision; None where the window has no letter."""
    return [
        round(int(right) / int(seen), 6) if seen else None
        for right, seen in zip(right_S, seen_S, strict=True)
    ]


def _record_soft(record: Callable[..., None], text: Ciphertext, reader: str, soft: SoftKey) -> None:
    rows = np.arange(len(text.letters_C))
    for start, p_CV, n_C in zip(soft.starts, soft.matrices(), soft.n_KC, strict=True):
        true_C = p_CV[rows, text.truth_C]
        record(
            "soft",
            reader=reader,
            start=start,
            window=soft.window,
            temperature=soft.temperature,
            matrix=np.round(p_CV[:, text.letters_C], 6),
            others=np.round(1 - p_CV[:, text.letters_C].sum(axis=1), 6),
            sequences_by_symbol=n_C,
            on_truth=float(np.sum(np.nan_to_num(true_C) * n_C) / max(n_C.sum(), 1)),
        )
