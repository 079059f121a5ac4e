"""Standard models that were trained with random lexicons (`lexinvariant train --regularise`), side by side: held-out
loss, LookUp and Permutation, loss on text that is written differently, and loss on rare words.

Every model is measured on the same texts, so that differences between models are those of pairs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from lexinvariant.config import LexiconConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments import synthetic
from lexinvariant.experiments.evaluated_model import EvaluatedModel, HeldOut, held_out, open_model
from lexinvariant.experiments.naming import token_ranks
from lexinvariant.experiments.options import Count, CountOrZero
from lexinvariant.experiments.perturbations import Piece, perturbations
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.symbol_tasks import alphabet_of
from lexinvariant.experiments.training import curve_of
from lexinvariant.model.weights import find_model, read_description
from lexinvariant.results.intervals import Share
from lexinvariant.results.naming import RANKS
from lexinvariant.results.regularised_model import (
    LEXINVARIANT,
    NO_REGULARISER,
    OCCURRENCE,
    LossByPass,
    Occurrence,
    Perturbation,
    Perturbed,
    RegularisedModel,
    Regulariser,
)
from lexinvariant.results.rows import hash_bytes
from lexinvariant.results.synthetic import TaskResult
from lexinvariant.results.text_sums import TextSums
from lexinvariant.text import CharVocab, HuggingFaceVocab, Vocab, open_data

RARE_SHARE = 1 / 3
"""A word is rare if one of its tokens is not among this share of the vocabulary, the most frequent in the training
text."""
GROUPS = 50
"""Of texts, which a bootstrap chooses from."""
PERTURBED_SHARE = 0.5
"""Of the context that a clean text fills: written differently it takes more tokens."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure what training with random lexicons does to standard models: held-out loss, LookUp and Permutation,
    robustness to misspelt, rare and made-up words and to renamed identifiers, and how fast new words are learned.

    example: lexinvariant experiment regulariser --models runs/standard/model runs/mixed-0.2/model --data data/mine
    """

    models: tuple[str, ...]
    """Folders of trained models; each one's configuration says how it was regularised. For models inside a run's
    folder the loss by pass over the text is shown too."""
    data: str
    """A folder written by `lexinvariant data prepare`; its train split says how common each token is."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part of the data to read."""
    sequences: Count = 500
    """Whole contexts to average over. The first half of each is the part that gets rewritten."""
    examples: CountOrZero = 1000
    """Examples each of LookUp and Permutation; 0 skips both."""
    label: str = ""
    """Name of the corpus in the tables. Default: the data folder's name."""
    out: Path = Path("runs/report")
    """Folder for the rows (regulariser.jsonl); rows are appended, and the report shows the newest of each model."""
    seed: int = 0
    """Seed of the tasks and of the words written in place of others."""
    batch_size: Count = 16
    """Sequences per batch; results do not depend on it."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the arithmetic; bfloat16 is faster on a GPU."""

    @property
    def corpus_name(self) -> str:
        return self.label or Path(self.data).resolve().name

    @property
    def scoring(self) -> synthetic.Options:
        return synthetic.Options(batch_size=self.batch_size, seed=self.seed, dtype=self.dtype)

    @property
    def reading(self) -> synthetic.Options:
        """Of losses: of a lexinvariant model those under one lexicon, as in its training."""
        return replace(self.scoring, draws=1)


@dataclass(frozen=True)
class Written:
    """A text as tokens, and the characters that each of them covers."""

    tok_T: np.ndarray
    span_T2: np.ndarray

    @classmethod
    def of(cls, vocab: Vocab, text: str) -> Written:
        if isinstance(vocab, HuggingFaceVocab):
            encoding = vocab.tokenizer.encode(text, add_special_tokens=False)
            return cls(np.array(encoding.ids, np.int32), np.array(encoding.offsets, int).reshape(-1, 2))
        tok_T = vocab.encode(text).astype(np.int32)
        return cls(tok_T, np.stack([np.arange(len(tok_T)), np.arange(len(tok_T)) + 1], axis=1))

    def changed_piece(self, lengths: Sequence[int], is_changed: Sequence[bool]) -> np.ndarray:
        """Of each token the number of the changed piece that it is part of, or -1; the text's pieces are that long.

        The blank before a word is part of its token, so both ends of a token count.
        """
        piece_of_character = np.repeat(np.arange(len(lengths)), lengths)
        first_T, last_T = (
            piece_of_character[np.clip(place_T, 0, len(piece_of_character) - 1)]
            for place_T in (self.span_T2[:, 0], self.span_T2[:, 1] - 1)
        )
        is_changed_P = np.array(is_changed)
        return np.where(is_changed_P[last_T], last_T, np.where(is_changed_P[first_T], first_T, -1))


@dataclass(frozen=True)
class PerturbedText:
    """A text in pieces, clean and written differently."""

    number: int
    """Of the clean text."""
    pieces: list[Piece]
    written: Written


@dataclass(frozen=True)
class Texts:
    """What all models are measured on."""

    contexts: HeldOut
    rank_V: np.ndarray
    clean: list[Written]
    perturbed: dict[Perturbation, tuple[list[PerturbedText], int]]
    """And how many no longer fit the context."""


def run(options: Options, recorder: Recorder) -> None:
    """A row a model."""
    models = [open_model(place) for place in options.models]
    _check_comparable(models)
    texts = prepare_texts(models[0], options)
    for name, (perturbed, too_long) in texts.perturbed.items():
        left_out = f", {too_long} left out that no longer fit the context" if too_long else ""
        recorder.log(f"{name}: {len(perturbed)} texts{left_out}")
    hashes = "".join(evaluated.hash for evaluated in models).encode()
    recorder.measured_on(model_hash=hash_bytes(hashes), data_hash=texts.contexts.fingerprint)
    for place, evaluated in zip(options.models, models, strict=True):
        row = recorder.write(measure(evaluated, place, texts, options, recorder))
        tasks = "".join(f", {task} {share.value:.1%}" for task, share in row.tasks.items())
        added = "".join(f", {name} {found.increase.estimate()}" for name, found in row.robustness.items())
        recorder.log(f"{evaluated.name} ({row.name}): {row.loss.estimate()} nats per token{tasks}{added}")


def _check_comparable(models: Sequence[EvaluatedModel]) -> None:
    if not models:
        raise UserError("There are no models to measure: give --models with at least one folder.")
    first = models[0]
    for other in models[1:]:
        if other.reads != first.reads:
            raise UserError(
                f"{other.name} and {first.name} differ in vocabulary or context ({other.reads} and {first.reads}): "
                "give models that read the same tokens."
            )
        if first.trained_on and other.trained_on and first.trained_on != other.trained_on:
            raise UserError(
                f"{other.name} was trained on other data than {first.name}, so the two cannot be compared: give "
                "models trained on the same prepared folder."
            )


def prepare_texts(evaluated: EvaluatedModel, options: Options) -> Texts:
    vocab, context = evaluated.model.vocab, evaluated.model.config.context
    contexts = held_out(evaluated, options.data, options.split, options.sequences)
    clean = [vocab.decode(tok_T[: max(1, int(PERTURBED_SHARE * context))]) for tok_T in contexts.tok_ST]
    perturbed: dict[Perturbation, tuple[list[PerturbedText], int]] = {}
    rank_V = token_ranks(options.data)

    def is_rare(word: str) -> bool:
        return bool(rank_V[vocab.encode(f" {word}")].max() > RARE_SHARE * len(rank_V))

    for name, (perturb, numbers) in perturbations(clean, is_rare).items():
        found, too_long = [], 0
        for number in numbers:
            pieces = perturb(clean[number], random.Random(f"{options.seed} {name} {number}"))
            if all(piece.word is None for piece in pieces):
                continue  # there was nothing to change
            written = Written.of(vocab, "".join(piece.written for piece in pieces))
            if len(written.tok_T) > context:
                too_long += 1
            else:
                found.append(PerturbedText(number, pieces, written))
        if found:
            perturbed[name] = found, too_long
    as_tokens = [Written.of(vocab, text) for text in clean]
    return Texts(contexts, rank_V, as_tokens, perturbed)


def measure(
    evaluated: EvaluatedModel, place: str, texts: Texts, options: Options, recorder: Recorder
) -> RegularisedModel:
    """All that is measured of one model."""
    regulariser, evaluated, contexts = regulariser_of(evaluated), _as_used(evaluated), texts.contexts
    [logp_ST] = evaluated.log_probabilities(
        contexts.tok_ST, contexts.piece_S, options.reading, recorder, "contexts"
    )
    nats_ST = -logp_ST.astype(np.float64)
    robustness: dict[Perturbation, Perturbed] = {}
    if texts.perturbed:
        clean = nats_of(evaluated, texts.clean, options, recorder, "clean texts")
    for name, (some, too_long) in texts.perturbed.items():
        nats = nats_of(evaluated, [text.written for text in some], options, recorder, f"texts with {name}")
        scored = [
            (text, texts.clean[text.number], clean[text.number], nats_T)
            for text, nats_T in zip(some, nats, strict=True)
        ]
        robustness[name] = compare(scored, too_long)
    return RegularisedModel(
        label=options.corpus_name,
        split=options.split,
        sequences=len(contexts.tok_ST),
        context=evaluated.model.config.context,
        model=evaluated.measured,
        regulariser=regulariser,
        training_seed=_training_seed(place),
        loss=text_sums(nats_ST.sum(axis=1), np.full(len(nats_ST), nats_ST.shape[1])),
        tasks=_tasks(evaluated, options, recorder),
        by_rank=by_rank(nats_ST, texts.rank_V[contexts.tok_ST], contexts.occurrence_ST),
        robustness=robustness,
        by_pass=_by_pass(evaluated, place, options),
    )


def regulariser_of(evaluated: EvaluatedModel) -> Regulariser:
    lexicon = evaluated.model.config.lexicon
    if lexicon.is_lexinvariant:
        return Regulariser(LEXINVARIANT, 1.0)
    if not lexicon.is_regulariser or lexicon.p == 0:
        return Regulariser(NO_REGULARISER, 0.0)
    unit = f" by {lexicon.unit}" if lexicon.kind == "token-permuted" else ""
    targets = "" if lexicon.permute_targets or lexicon.kind == "mixed" else ", original targets"
    return Regulariser(f"{lexicon.kind}{unit}{targets}", lexicon.p, lexicon.p_anneal_share)


def _as_used(evaluated: EvaluatedModel) -> EvaluatedModel:
    """Without what its lexicon was in training: models that differ in nothing else are compiled once."""
    config = evaluated.model.config
    lexicon = LexiconConfig(config.lexicon.at_evaluation.kind, affine=config.lexicon.affine)
    return replace(evaluated, model=replace(evaluated.model, config=replace(config, lexicon=lexicon)))


def _training_seed(place: str) -> int:
    return int(read_description(find_model(place))["notes"].get("config", {}).get("seed", 0))


def nats_of(
    evaluated: EvaluatedModel, texts: Sequence[Written], options: Options, recorder: Recorder, what: str
) -> list[np.ndarray]:
    """The loss of every token of texts that may be shorter than the context: what follows them changes nothing."""
    tok_ST = np.zeros((len(texts), evaluated.model.config.context), np.int32)
    for row, text in zip(tok_ST, texts, strict=True):
        row[: len(text.tok_T)] = text.tok_T
    [logp_ST] = evaluated.log_probabilities(tok_ST, np.arange(len(texts)), options.reading, recorder, what)
    return [
        -logp_T[: len(text.tok_T)].astype(np.float64) for logp_T, text in zip(logp_ST, texts, strict=True)
    ]


def compare(
    scored: Sequence[tuple[PerturbedText, Written, np.ndarray, np.ndarray]], too_long: int
) -> Perturbed:
    """Texts as they are written now beside the clean ones, with the nats of the tokens of both."""
    sums: dict[str, list[float]] = {name: [] for name in ("all", "elsewhere", "characters", "unchanged")}
    new_word: dict[Occurrence, tuple[list[float], list[float]]] = {one: ([], []) for one in OCCURRENCE}
    for text, clean, clean_nats_T, nats_T in scored:
        is_changed = [piece.word is not None for piece in text.pieces]
        piece_T = text.written.changed_piece([len(piece.written) for piece in text.pieces], is_changed)
        clean_piece_T = clean.changed_piece([len(piece.clean) for piece in text.pieces], is_changed)
        sums["all"].append(float(nats_T.sum() - clean_nats_T.sum()))
        sums["elsewhere"].append(float(nats_T[piece_T < 0].sum() - clean_nats_T[clean_piece_T < 0].sum()))
        sums["characters"].append(sum(len(piece.clean) for piece in text.pieces))
        sums["unchanged"].append(sum(len(piece.clean) for piece in text.pieces if piece.word is None))
        spent: dict[Occurrence, list[float]] = {one: [] for one in OCCURRENCE}
        times: Counter[str] = Counter()
        for number, piece in enumerate(text.pieces):
            if piece.word is not None:
                spent[OCCURRENCE[min(times[piece.word], 2)]].append(float(nats_T[piece_T == number].sum()))
                times[piece.word] += 1
        for one, each in spent.items():
            new_word[one][0].append(sum(each))
            new_word[one][1].append(len(each))
    return Perturbed(
        texts=len(scored),
        too_long=too_long,
        changed_share=1 - sum(sums["unchanged"]) / sum(sums["characters"]),
        increase=text_sums(sums["all"], sums["characters"]),
        increase_elsewhere=text_sums(sums["elsewhere"], sums["unchanged"]),
        new_word={one: text_sums(*both) for one, both in new_word.items()},
    )


def by_rank(
    nats_ST: np.ndarray, rank_ST: np.ndarray, occurrence_ST: np.ndarray
) -> dict[str, dict[Occurrence, TextSums]]:
    """By the bins of the tokens' ranks that have any, and by occurrence in the context."""
    bin_ST, time_ST = RANKS.index(rank_ST), np.minimum(occurrence_ST, len(OCCURRENCE)) - 1
    found: dict[str, dict[Occurrence, TextSums]] = {}
    for i, name in enumerate(RANKS.names):
        if (bin_ST == i).any():
            parts = {one: (bin_ST == i) & (time_ST == time) for time, one in enumerate(OCCURRENCE)}
            found[name] = {
                one: text_sums((nats_ST * part_ST).sum(axis=1), part_ST.sum(axis=1))
                for one, part_ST in parts.items()
            }
    return found


def text_sums(nats: Sequence[float] | np.ndarray, units: Sequence[float] | np.ndarray) -> TextSums:
    """Of the nats and units of each text."""
    group_S = np.arange(len(nats)) % GROUPS
    return TextSums(
        np.bincount(group_S, np.asarray(nats, float)).round(3).tolist(),
        np.bincount(group_S, np.asarray(units, float)).tolist(),
    )


def _tasks(evaluated: EvaluatedModel, options: Options, recorder: Recorder) -> dict[str, Share]:
    """Accuracy in the paper's two tasks, where the vocabulary can write them."""
    if not options.examples or not isinstance(evaluated.model.vocab, CharVocab | HuggingFaceVocab):
        return {}
    alphabet, settings = alphabet_of(evaluated.model.vocab), options.scoring
    results = [
        synthetic.measure(TaskResult, settings, evaluated, task, alphabet, options.examples, recorder)
        for task in settings.tasks()
    ]
    return {result.task: result.accuracy for result in results}


def _by_pass(evaluated: EvaluatedModel, place: str, options: Options) -> LossByPass | None:
    """From the metrics of the run whose folder the model is in."""
    run_folder = find_model(place).resolve().parent
    if not (run_folder / "metrics.jsonl").is_file():
        return None
    curve, data = curve_of(run_folder), open_data(options.data)
    steps_a_pass = None
    if data.fingerprint == evaluated.trained_on:
        batch_size = read_description(find_model(place))["notes"]["config"]["batch_size"]
        steps_a_pass = len(data.split("train", evaluated.model.config.context)) / batch_size
    return LossByPass(curve.step, curve.loss, steps_a_pass)
