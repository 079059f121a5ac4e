"""The model that an experiment measures, with its hash, and held-out text that fits it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lexinvariant.api import Model, load
from lexinvariant.errors import UserError
from lexinvariant.experiments.options import CommonOptions, PairOptions
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.transformer import ForwardOutput
from lexinvariant.model.weights import find_model, read_description
from lexinvariant.remote import is_remote
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.rows import hash_files
from lexinvariant.text import CharVocab, ChosenPieces, Pieces, Split, open_data
from lexinvariant.text.frequency import occurrences
from lexinvariant.text.tags import WORDS
from lexinvariant.training.evaluate import check_vocabulary, full_pieces

RECORDS = "records"  # the tag of made-up records


@dataclass(frozen=True)
class EvaluatedModel:
    """A model with what experiments record of it; results depend neither on the batch size nor on other texts."""

    name: str
    model: Model
    hash: str
    trained_on: str | None
    """Fingerprint of the data it was trained on, where its exporter noted it."""
    records_share: float = 0.0
    """The share of made-up records in that data, as far as it is noted."""

    @property
    def knows_characters(self) -> bool:
        return isinstance(self.model.vocab, CharVocab)

    @property
    def reads(self) -> tuple[str, int, int]:
        """Its vocabulary, the size of that, and its context: models that differ in these read other texts."""
        config = self.model.config
        return self.model.vocab.name, config.vocab_size, config.context

    @property
    def measured(self) -> MeasuredModel:
        """What rows tell of it."""
        return MeasuredModel(
            self.name,
            self.hash,
            "lexinvariant" if self.model.config.lexicon.is_lexinvariant else "standard",
            self.model.vocab.name,
            self.model.config.vocab_size,
            self.knows_characters,
            self.records_share,
        )

    def forward(
        self, tok_ST: np.ndarray, address_S: np.ndarray, options: CommonOptions, draw: int = 0
    ) -> Iterator[tuple[slice, ForwardOutput]]:
        """The model's output for all sequences, batch by batch (see `forward_batches`)."""
        return forward_batches(
            self.model.params,
            self.model.config,
            tok_ST,
            address_S,
            seed=options.seed,
            draw=draw,
            batch_size=options.batch_size,
            dtype=options.dtype,
        )

    def log_probabilities(
        self, tok_ST: np.ndarray, address_S: np.ndarray, options: PairOptions, recorder: Recorder, what: str
    ) -> np.ndarray:
        """logp_KST of every token under K draws of the lexicon; a standard model has nothing to draw, so K is 1."""
        draws = options.draws if self.model.config.lexicon.is_lexinvariant else 1
        logp_KST = np.empty((draws, *tok_ST.shape), np.float32)
        with recorder.progress(f"{self.name}, {what} read", draws * len(tok_ST)) as advance:
            for draw in range(draws):
                for rows, output in self.forward(tok_ST, address_S, options, draw):
                    logp_KST[draw, rows] = np.asarray(output.logp_BT)
                    advance(rows.stop - rows.start)
        return logp_KST

    def continue_greedily(
        self,
        prompts: Sequence[np.ndarray],
        n_tokens: int,
        options: PairOptions,
        recorder: Recorder,
        what: str,
    ) -> np.ndarray:
        """tok_SN: the likeliest next token after each prompt, n_tokens times over."""
        with recorder.progress(f"{self.name}, {what}", len(prompts)) as advance:
            return greedy_tokens(
                self.model.params,
                self.model.config,
                prompts,
                n_tokens,
                seed=options.seed,
                draws=options.draws,
                batch_size=options.batch_size,
                dtype=options.dtype,
                advance=advance,
            )


@dataclass(frozen=True)
class HeldOut:
    """Whole contexts of held-out text."""

    tok_ST: np.ndarray
    piece_S: np.ndarray
    """The number of each piece in its split: the address of its randomness."""
    kind_S: list[str]
    """The kind of text of each, the tag of its document; none in a made-up language."""
    fingerprint: str

    @property
    def occurrence_ST(self) -> np.ndarray:
        return occurrences(self.tok_ST)


def _share_of(tag: str, tokens_by_tag: object, folder: Path) -> float:
    tokens = {} if tokens_by_tag is None else tokens_by_tag
    if not isinstance(tokens, dict) or not all(type(n) is int and n >= 0 for n in tokens.values()):
        raise UserError(f"{folder}/config.json is damaged, its notes are none: export the model again.")
    return tokens.get(tag, 0) / max(1, sum(tokens.values()))


def open_model(place: str) -> EvaluatedModel:
    folder = find_model(place)
    description = read_description(folder)
    named = Path(place) if is_remote(place) else folder.resolve()
    name = named.parent.name if named.name == "model" else named.name
    notes = description["notes"]
    records_share = _share_of(RECORDS, notes.get("tokens_by_tag"), folder)
    return EvaluatedModel(name, load(place), hash_files([folder]), notes.get("data"), records_share)


def open_pair(model: str, baseline: str) -> tuple[EvaluatedModel, EvaluatedModel]:
    """A lexinvariant model and the standard one that it is measured against."""
    pair = open_model(model), open_model(baseline)
    ours, theirs = pair
    if ours.trained_on and theirs.trained_on and ours.trained_on != theirs.trained_on:
        raise UserError(
            f"{baseline} was trained on other data than {model}, so the two cannot be compared: give a baseline "
            "trained on the same prepared folder."
        )
    if not ours.model.config.lexicon.is_lexinvariant:
        raise UserError(
            f"{model} is not a lexinvariant model: give one, and its standard twin as --baseline."
        )
    if theirs.model.config.lexicon.is_lexinvariant:
        raise UserError(
            f"{baseline} is lexinvariant itself: give a model trained with --standard as --baseline."
        )
    return pair


def open_one_or_pair(model: str, baseline: str | None) -> list[EvaluatedModel]:
    """A model of any kind, or a lexinvariant one with its standard twin of the same vocabulary and context."""
    if baseline is None:
        return [open_model(model)]
    ours, theirs = open_pair(model, baseline)
    if ours.reads != theirs.reads:
        raise UserError(
            f"{baseline} and {model} differ in vocabulary or context ({theirs.reads} and {ours.reads}): give a "
            "baseline that differs in its lexicon alone."
        )
    return [ours, theirs]


def need_characters(evaluated: EvaluatedModel, experiment: str) -> None:
    if not evaluated.knows_characters:
        raise UserError(
            f"{experiment} is about characters and {evaluated.name} reads the tokens of a tokenizer: give a model "
            "trained on data prepared with the char128 vocabulary."
        )


def _named(pieces: Pieces) -> Split:
    words = pieces.pieces_by_tag.get(WORDS)
    if words is None:
        return pieces
    named = np.setdiff1d(np.arange(len(pieces)), words)
    if not len(named):
        raise UserError(
            f"Symbols stand for words in all of {pieces.where}, and have no names: give data with other text too."
        )
    return ChosenPieces(pieces, named)


def held_out(
    evaluated: EvaluatedModel, data: str, split: str, sequences: int, *, named: bool = False
) -> HeldOut:
    """Up to `sequences` pieces that fill the model's whole context, spread evenly over the split; `named` leaves out
    those whose symbols stand for words, and so have no names to be told.
    """
    corpus, config = open_data(data), evaluated.model.config
    if corpus.vocab_size != config.vocab_size:
        raise UserError(
            f"{data} has a vocabulary of {corpus.vocab_size} symbols and {evaluated.name} one of {config.vocab_size}: "
            "prepare the data with the model's own vocabulary."
        )
    check_vocabulary(config, evaluated.model.vocab, corpus, f"{evaluated.name} cannot read {data}")
    pieces = corpus.split(split, config.context)
    among = _named(pieces) if named and isinstance(pieces, Pieces) else pieces
    chosen = among[full_pieces(among, sequences)]
    if not chosen.mask_BT.all():
        raise UserError(
            f"No text in the {split} split of {data} fills the model's context of {config.context} tokens: give "
            "longer texts."
        )
    kind_S = pieces.tags_of(chosen.piece_B) if isinstance(pieces, Pieces) else []
    return HeldOut(chosen.tok_BT, chosen.piece_B, kind_S, corpus.fingerprint)
