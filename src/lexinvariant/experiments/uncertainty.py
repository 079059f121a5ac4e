"""What a model takes one symbol of a text to be, at each of its occurrences (the paper's section "Uncertainty over
Lexical Permutations"). A lexinvariant model can tell only from the text around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from lexinvariant.decipher.key import check_temperature
from lexinvariant.decipher.probe import SymbolNamer, head_namer
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel
from lexinvariant.experiments.options import CommonOptions, Count
from lexinvariant.experiments.own_text import own_text
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.symbol_naming import open_lexinvariant, open_probe
from lexinvariant.results.paper_texts import PAPER_TEXTS, SYMBOL
from lexinvariant.results.rows import hash_bytes
from lexinvariant.results.uncertainty import CipheredText, Posterior


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Show what a model thinks one symbol of a text stands for, at each occurrence, in the paper's four texts or your
    own.

    example: lexinvariant experiment uncertainty --text "the qat sat on the mat with the other qats" --symbol q
    --truth c
    """

    text: str | None = None
    """Your own text, or a file with it. Default: the paper's four. Each text adds a figure."""
    symbol: str = SYMBOL
    """The character of your text to decipher."""
    truth: str | None = None
    """What that character stands for, to be marked in the figure."""
    label: str = ""
    """Name of your text in the figure. Default: the file's name, or "text"."""
    temperature: float | None = None
    """The posterior p becomes p^(1/T), normalised. Default: the paper's for its texts, 1 for yours."""
    draws: Count = 8
    """Lexicons to average the posterior over."""
    probe: Path | None = None
    """A probe trained on this model, to use instead of its deciphering head."""


def run(options: Options, recorder: Recorder) -> None:
    """Read the texts, and record a posterior for each."""
    if options.temperature is not None:
        check_temperature(options.temperature)
    texts = _paper_texts(options) if options.text is None else [_own_text(options, options.text)]
    evaluated = open_lexinvariant(options.model, "The uncertainty experiment")
    if options.probe is None:
        namer = head_namer(evaluated.model, evaluated.name)
    else:
        namer = open_probe(options.probe, evaluated).namer
    _remark(texts, evaluated.model.config.context, recorder)
    data = "\0".join(one.symbol + one.text for one in texts).encode()
    recorder.measured_on(model_hash=evaluated.hash, data_hash=hash_bytes(data))
    for one, p_OV in zip(texts, posteriors(evaluated, namer, texts, options, recorder), strict=True):
        row = recorder.write(
            Posterior(**vars(one), name=evaluated.name, namer=namer.name, untempered=p_OV.tolist())
        )
        recorder.log(row.summary)


def _paper_texts(options: Options) -> list[CipheredText]:
    if options.truth or options.label or options.symbol != SYMBOL:
        raise UserError("--symbol, --truth and --label are about a text of your own: give it with --text.")
    return [
        CipheredText(
            label=paper.name,
            text=paper.text,
            symbol=SYMBOL,
            truth=paper.truth,
            temperature=options.temperature or paper.temperature,
        )
        for paper in PAPER_TEXTS
    ]


def _own_text(options: Options, given: str) -> CipheredText:
    text, name = own_text(given)
    label = options.label or name
    if label in {paper.name for paper in PAPER_TEXTS}:
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
    temperature = options.temperature or 1.0
    return CipheredText(
        label=label, text=text, symbol=options.symbol, truth=options.truth, temperature=temperature
    )


def _remark(texts: Sequence[CipheredText], context: int, recorder: Recorder) -> None:
    """Say what about these texts is unlike what the model was trained on."""
    for one in texts:
        if len(one.text) > context:
            recorder.log(
                f"{one.label} has {len(one.text)} symbols and the model's context is {context}: an occurrence beyond "
                f"that is read with the {context} symbols that end in it."
            )
        if one.truth is not None and one.truth in one.text:
            recorder.log(
                f"{one.label} has {one.truth!r} in it as well as {one.symbol!r} for it: two symbols for one character, "
                "which the model has never met."
            )


def posteriors(
    evaluated: EvaluatedModel,
    namer: SymbolNamer,
    texts: Sequence[CipheredText],
    options: Options,
    recorder: Recorder,
) -> list[NDArray[np.float64]]:
    """p_OV for each text: what the symbol stands for at each occurrence, given the text up to it.

    Probabilities are averaged over draws of the lexicon. A text longer than the context is read in windows, one that
    ends in each occurrence beyond it. Windows are padded to the context: the model is causal, so that what follows an
    occurrence changes nothing. The draws are the same for all windows, so no text's result depends on the others.
    """
    config = evaluated.model.config
    tok_ST, place_O = _windows(texts, config.context)
    address_S = np.zeros(len(tok_ST), np.int64)  # the same lexicon for all windows
    sequence_O, at_O = np.array(place_O, np.int64).T
    p_OV = np.zeros((len(at_O), config.vocab_size))
    with recorder.progress("windows read", options.draws * len(tok_ST)) as advance:
        for draw in range(options.draws):
            for rows, output in evaluated.forward(tok_ST, address_S, options, draw):
                here_O = np.flatnonzero((rows.start <= sequence_O) & (sequence_O < rows.stop))
                logits_BTV = np.asarray(namer.logits(output.h_BTD), np.float64)
                logits_OV = logits_BTV[sequence_O[here_O] - rows.start, at_O[here_O]]
                p_OV[here_O] += softmax(logits_OV, axis=1) / options.draws
                advance(rows.stop - rows.start)
    return np.split(p_OV, np.cumsum([len(one.positions) for one in texts])[:-1])


def _windows(texts: Sequence[CipheredText], context: int) -> tuple[NDArray[np.int32], list[tuple[int, int]]]:
    """Sequences to read, and (sequence, place in it) of each occurrence."""
    sequences: list[NDArray[np.int32]] = []
    places: list[tuple[int, int]] = []
    for one in texts:
        codes = np.frombuffer(one.text.encode("ascii"), np.uint8).astype(np.int32)
        for position in one.positions:
            start = max(0, position + 1 - context)
            if start > 0 or position == one.positions[0]:  # all that lie within the context share its window
                piece = codes[start : start + context]
                sequences.append(np.pad(piece, (0, context - len(piece))))
            places.append((len(sequences) - 1, position - start))
    return np.stack(sequences), places
