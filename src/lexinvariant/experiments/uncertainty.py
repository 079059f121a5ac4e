"""What a model takes one symbol of a text to be, at each of its occurrences (the paper's section "Uncertainty over
Lexical Permutations").

Rows: `posterior`, one a text. To a lexinvariant model the symbol is a name like any other, so that only the text
around it can tell what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from lexinvariant.decipher.probe import SymbolNamer, head_namer, load_probe
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import (
    CommonOptions,
    EvaluatedModel,
    need_characters,
    open_model,
)
from lexinvariant.experiments.rows import Provenance, Row, RowWriter, hash_bytes
from lexinvariant.model.batches import forward_batches
from lexinvariant.results.paper_texts import PAPER_TEXTS, SYMBOL

Say = Callable[[str], None]
LONGEST_LINE_SHOWN = 24


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """What a model takes one symbol of a text to be, at each occurrence: the paper's four texts, or your own.

    Example: lexinvariant experiment uncertainty --text "the qat sat on the mat with the other qats" --symbol q
    --truth c
    """

    text: str | None = None
    """Your own text, or a file that holds it; without it the paper's four are read. A text adds its own figure."""
    symbol: str = SYMBOL
    """The character of your text that is to be deciphered."""
    truth: str | None = None
    """What the symbol of your text stands for, to be marked on the figure."""
    label: str = ""
    """Name of your text on the figure. Default: the file's name, or "text"."""
    temperature: float | None = None
    """The posterior p becomes p^(1/T), normalised. Default: the paper's for its texts, 1 for yours."""
    draws: int = 8
    """Lexicons that the posterior is averaged over."""
    probe: Path | None = None
    """A probe trained on this model, to be used in place of the model's own deciphering head."""


@dataclass(frozen=True)
class Ciphered:
    """A text with one symbol to decipher."""

    label: str
    text: str
    symbol: str
    truth: str | None
    temperature: float
    paper_says: str | None = None

    @property
    def position_O(self) -> NDArray[np.int64]:
        """Where the symbol stands."""
        return np.array([i for i, character in enumerate(self.text) if character == self.symbol], np.int64)


def run(options: Options, command: str = "", say: Say = lambda line: None) -> list[Row]:
    """Read the texts and append a row for each to uncertainty.jsonl in the output folder."""
    if options.draws < 1:
        raise UserError(f"--draws is {options.draws}: give at least 1.")
    if options.temperature is not None and not options.temperature > 0:
        raise UserError(f"--temperature is {options.temperature}: give a number above 0.")
    texts = _texts(options)
    evaluated = open_model(options.model)
    reader = _reader(evaluated, options)
    context = evaluated.model.config.context
    for one in texts:
        if len(one.text) > context:
            say(
                f"{one.label} has {len(one.text)} symbols and the model's context is {context}: an occurrence beyond "
                f"that is read with the {context} symbols that end in it."
            )
        if one.truth is not None and one.truth in one.text:
            say(
                f"{one.label} has {one.truth!r} in it as well as {one.symbol!r} for it: two symbols for one character, "
                "which the model has never met."
            )
    provenance = Provenance(
        experiment="uncertainty",
        seed=options.seed,
        command=command,
        model_hash=evaluated.hash,
        data_hash=hash_bytes("\0".join(one.symbol + one.text for one in texts).encode()),
        draws=options.draws,
    )
    rows = []
    with RowWriter(options.out / "uncertainty.jsonl", provenance) as writer:
        for one, posterior_OV in zip(texts, posteriors(evaluated, reader, texts, options), strict=True):
            values = _row(one, posterior_OV)
            rows.append(writer.write("posterior", name=evaluated.name, reader=reader.name, **values))
            say(_spoken(one, rows[-1]))
    return rows


def _texts(options: Options) -> list[Ciphered]:
    if options.text is None:
        if options.truth or options.label or options.symbol != SYMBOL:
            raise UserError(
                "--symbol, --truth and --label are about a text of your own: give it with --text."
            )
        return [
            Ciphered(t.name, t.text, SYMBOL, t.truth, options.temperature or t.temperature, t.paper_says)
            for t in PAPER_TEXTS
        ]
    text, name = _given(options.text)
    label = options.label or name
    if label in {t.name for t in PAPER_TEXTS}:
        raise UserError(f"{label!r} is the name of one of the paper's texts: give yours another --label.")
    for option, character in (("--symbol", options.symbol), ("--truth", options.truth)):
        if character is not None and (len(character) != 1 or not character.isascii()):
            raise UserError(f"{option} is {character!r}: give one ASCII character.")
    if foreign := [character for character in text if not character.isascii()]:
        raise UserError(
            f"The text has {foreign[0]!r} in it, which is not ASCII, and the model knows the 128 ASCII characters: "
            "write it in those."
        )
    if options.symbol not in text:
        raise UserError(
            f"The symbol {options.symbol!r} does not occur in the text: give one that does as --symbol."
        )
    return [Ciphered(label, text, options.symbol, options.truth, options.temperature or 1.0)]


def _given(text: str) -> tuple[str, str]:
    """A text and its name; where the words given name a file, it is the file's."""
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long for a file's name, or with characters that none has
        is_file = False
    if not is_file:
        return text, "text"
    try:
        return Path(text).read_text(encoding="utf-8"), Path(text).stem
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{text} cannot be read as UTF-8 text: check the file.") from error


def _reader(evaluated: EvaluatedModel, options: Options) -> SymbolNamer:
    """The model's own head, or the probe."""
    need_characters(evaluated, "The uncertainty experiment")
    if not evaluated.model.config.lexicon.is_lexinvariant:
        raise UserError(
            f"{evaluated.name} is not a lexinvariant model and knows each character by name: give a lexinvariant one."
        )
    if options.probe is not None:
        probe = load_probe(options.probe)
        probe.check(evaluated.model.config, evaluated.hash)
        return probe.reader
    if not evaluated.model.config.decipher_head:
        raise UserError(
            f"{evaluated.name} has no deciphering head: give a probe trained on it (--probe FILE), or a model trained "
            "with --model.decipher-head."
        )
    return head_namer(evaluated.model, evaluated.name)


def posteriors(
    evaluated: EvaluatedModel, reader: SymbolNamer, texts: Sequence[Ciphered], options: Options
) -> list[NDArray[np.float64]]:
    """posterior_OV for each text: what the symbol stands for at each occurrence, given the text up to it.

    Probabilities are averaged over draws of the lexicon. A text longer than the context is read in windows, one that
    ends in each occurrence beyond it. Windows are padded to the context: the model is causal, so that what follows an
    occurrence changes nothing. The draws are the same for all windows, so no text's result depends on the others.
    """
    config = evaluated.model.config
    tok_ST, place_O = _windows(texts, config.context)
    sequence_O, at_O = np.array(place_O, np.int64).T
    probability_OV = np.zeros((len(at_O), config.vocab_size))
    for draw in range(options.draws):
        for rows, reading in forward_batches(
            evaluated.model.params,
            config,
            tok_ST,
            np.zeros(len(tok_ST), np.int64),  # one address: what stands in a window decides alone
            seed=options.seed,
            draw=draw,
            batch_size=options.batch_size,
            dtype=options.dtype,
        ):
            here_O = np.flatnonzero((rows.start <= sequence_O) & (sequence_O < rows.stop))
            logits_BTV = np.asarray(reader.logits(reading.h_BTD), np.float64)
            logits_OV = logits_BTV[sequence_O[here_O] - rows.start, at_O[here_O]]
            probability_OV[here_O] += softmax(logits_OV, axis=1) / options.draws
    return np.split(probability_OV, np.cumsum([len(one.position_O) for one in texts])[:-1])


def _windows(texts: Sequence[Ciphered], context: int) -> tuple[NDArray[np.int32], list[tuple[int, int]]]:
    """Sequences to read, and (sequence, place in it) of each occurrence."""
    sequences: list[NDArray[np.int32]] = []
    places: list[tuple[int, int]] = []
    for one in texts:
        codes = np.frombuffer(one.text.encode("ascii"), np.uint8).astype(np.int32)
        for position in one.position_O.tolist():
            start = max(0, position + 1 - context)
            if start > 0 or position == one.position_O[0]:  # all that lie within the context share its window
                piece = codes[start : start + context]
                sequences.append(np.pad(piece, (0, context - len(piece))))
            places.append((len(sequences) - 1, position - start))
    return np.stack(sequences), places


def tempered(posterior_OV: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """p^(1/T), normalised: of one draw the same as dividing its logits by T."""
    with np.errstate(divide="ignore"):
        log_OV = np.log(posterior_OV)
    return np.exp(log_softmax(log_OV / temperature, axis=1))


def shown_word(text: str, position: int) -> str:
    """The line an occurrence stands in if it is short (code), or else its word."""
    line = text[text.rfind("\n", 0, position) + 1 :].split("\n", 1)[0]
    if len(line.strip()) <= LONGEST_LINE_SHOWN:
        return line.strip()
    words_before = text[: position + 1].split()
    return (words_before[-1] + text[position + 1 :].partition("\n")[0].partition(" ")[0])[:LONGEST_LINE_SHOWN]


def _row(one: Ciphered, posterior_OV: NDArray[np.float64]) -> dict[str, Any]:
    return {
        "label": one.label,
        "text": one.text,
        "symbol": one.symbol,
        "truth": one.truth,
        "temperature": one.temperature,
        "paper_says": one.paper_says,
        "position": one.position_O,
        "word": [shown_word(one.text, int(p)) for p in one.position_O],
        "posterior": tempered(posterior_OV, one.temperature),
        "untempered": posterior_OV,
    }


def _spoken(one: Ciphered, row: Row) -> str:
    last = np.array(row["posterior"][-1])
    best = chr(int(last.argmax())) if last.argmax() < 128 else "?"
    line = (
        f"{one.label}, T={one.temperature:g}: at the last of {len(row['word'])} occurrences {one.symbol!r} is "
        f"{best!r} with probability {last.max():.2f}"
    )
    if one.truth is not None:
        first = row["posterior"][0][ord(one.truth)]
        line += f"; the truth, {one.truth!r}, goes from {first:.2f} to {last[ord(one.truth)]:.2f}"
    return line
