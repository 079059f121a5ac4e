"""What a model takes the tokens of a text to be: its deciphering head's names for them, by how often each has occurred
and how common it is, beside two references for what a text says about its tokens at all.

With --baseline, the standard twin is told all other tokens: a token's name is then the likeliest by the product of the
twin's next-token distributions over the true left contexts of all its occurrences so far. And Shannon's estimate sets
what the twin saves against log2(V) bits a token beside the bits of the key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.decipher.probe import SymbolNamer, head_namer, hindsight_namer
from lexinvariant.errors import UserError, nearest
from lexinvariant.experiments.evaluated_model import EvaluatedModel, HeldOut, held_out, open_one_or_pair
from lexinvariant.experiments.naming_passage import PASSAGE
from lexinvariant.experiments.options import Count, PairOptions, choose_window
from lexinvariant.experiments.own_text import own_text
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.synthetic import token_counts
from lexinvariant.model.params import Params
from lexinvariant.model.readout import logits, predictors
from lexinvariant.results import paper
from lexinvariant.results.intervals import Share
from lexinvariant.results.naming import (
    OCCURRENCES,
    RANKS,
    Bins,
    FollowedText,
    FollowedToken,
    Guess,
    Named,
    Namer,
    Score,
    Unicity,
    unicity_points,
)
from lexinvariant.results.perplexity import smoothed_nats
from lexinvariant.text import MarkovLanguage, Vocab, open_data

GUESSES = 5
COMMON = 100
"""The most frequent tokens of a language: words of grammar and punctuation."""
FOLLOWED_COMMON, FOLLOWED_OTHERS = 8, 14
FEWEST_TOKENS = 16
"""A text of fewer says nothing about its tokens."""


@dataclass(frozen=True, kw_only=True)
class Options(PairOptions):
    """Measure how well the deciphering head names the tokens of held-out text, by how often each has occurred and how
    common it is, and follow the words of one text from occurrence to occurrence.

    example: lexinvariant experiment naming --model runs/mine/model --baseline runs/mine-standard/model --data data/mine
    """

    data: str
    """A folder written by `lexinvariant data prepare`; its train split says how common each token is."""
    split: Literal["test", "valid", "train"] = "test"
    """Which part of the data to read."""
    sequences: Count = paper.SEQUENCES
    """Whole contexts to average over."""
    window: int | None = None
    """Tokens that count as the end of the context. Default: 100, or a quarter of a shorter context."""
    label: str = ""
    """Name of the corpus in the tables, which show the newest run of each. Default: the data folder's name."""
    text: str | None = None
    """The text whose tokens to follow, or a file with it. Default: a simple story that comes with the package."""
    words: tuple[str, ...] = ()
    """Tokens of the text to follow. Default: the most frequent ones in it, both common and rarer."""

    @property
    def corpus_name(self) -> str:
        return self.label or Path(self.data).resolve().name


@dataclass(frozen=True)
class Names:
    """What a namer says of every token: the log-probability of the right name, and how many names are likelier."""

    logp_ST: np.ndarray
    likelier_ST: np.ndarray

    def score(self, chosen_ST: np.ndarray) -> Score:
        likelier = self.likelier_ST[chosen_ST]
        named, among_five = (Share(float((likelier < n).mean()), len(likelier)) for n in (1, GUESSES))
        return Score(named, among_five, float(-self.logp_ST[chosen_ST].mean()))

    def score_of_each(self, bins: Bins, number_ST: np.ndarray, chosen_ST: np.ndarray) -> dict[str, Score]:
        """By the bins of some number, those that have tokens."""
        index_ST = bins.index(number_ST)
        parts = {name: chosen_ST & (index_ST == i) for i, name in enumerate(bins.names)}
        return {name: self.score(part_ST) for name, part_ST in parts.items() if part_ST.any()}


def run(options: Options, recorder: Recorder) -> None:
    """A row a way of naming, one of Shannon's estimate, and one of the text whose tokens were followed."""
    models = open_one_or_pair(options.model, options.baseline)
    ours = models[0]
    if not ours.model.config.lexicon.is_lexinvariant:
        raise UserError(
            f"{ours.name} is not a lexinvariant model and knows each token: give a lexinvariant one."
        )
    namers: dict[Namer, SymbolNamer] = {"so far": head_namer(ours.model, ours.name)}
    if ours.model.config.has_hindsight:
        namers["in hindsight"] = hindsight_namer(ours.model)
    window = choose_window(options.window, ours.model.config.context)
    rank_V = token_ranks(options.data)
    text = held_out(ours, options.data, options.split, options.sequences, named=True)
    label, tok_T = _text_to_follow(options, ours)
    followed = _tokens_to_follow(options, ours.model.vocab, tok_T, rank_V)
    recorder.measured_on(model_hash=ours.hash, data_hash=text.fingerprint)
    about: dict[str, Any] = {
        "label": options.corpus_name,
        "split": options.split,
        "sequences": len(text.tok_ST),
        "context": ours.model.config.context,
    }

    def write(evaluated: EvaluatedModel, namer: Namer, names: Names) -> None:
        at_end_ST = np.broadcast_to(
            np.arange(text.tok_ST.shape[1]) >= text.tok_ST.shape[1] - window, text.tok_ST.shape
        )
        is_right_ST = (names.likelier_ST == 0).astype(np.float64)
        row = recorder.write(
            Named(
                **about,
                model=evaluated.measured,
                namer=namer,
                window=window,
                at_end=names.score(at_end_ST),
                by_occurrence=names.score_of_each(OCCURRENCES, text.occurrence_ST, at_end_ST),
                by_rank=names.score_of_each(RANKS, rank_V[text.tok_ST], at_end_ST),
                share_by_position=smoothed_nats(is_right_ST, window).mean(axis=0).tolist(),
            )
        )
        recorder.log(
            f"{options.corpus_name}, {evaluated.name}, {namer}: {row.at_end.named} of the last {window} tokens named "
            f"correctly, {row.at_end.among_five} among the five likeliest, {row.at_end.nats:.2f} nats"
        )

    for namer, names in head_names(ours, namers, text, options, recorder).items():
        write(ours, namer, names)
    if len(models) == 2:
        names, nats_ST = names_by_left_contexts(models[1], text, options, recorder)
        write(models[1], "left contexts", names)
        types_ST = np.cumsum(text.occurrence_ST == 1, axis=1)
        points = unicity_points(types_ST, nats_ST / np.log(2), ours.model.config.vocab_size)
        recorder.write(Unicity(**about, model=models[1].measured, points=points))
        recorder.log(
            f"{options.corpus_name}: {points[-1].ratio:.2f} times the bits of the key in a whole context"
        )
    tokens = follow(ours, namers, tok_T, followed, rank_V, options)
    recorder.write(FollowedText(label=label, model=ours.measured, n_tokens=len(tok_T), tokens=tokens))
    right = sum(token.p_right[-1] >= token.guesses[-1][0].p for token in tokens)
    recorder.log(f"{label}: {right} of {len(tokens)} tokens named correctly at their last occurrence")


def token_ranks(data: str) -> np.ndarray:
    """rank_V: the place of each token among all, from 1, the most frequent in the train split first."""
    corpus = open_data(data)
    if isinstance(corpus, MarkovLanguage):
        frequency_V = corpus.stationary
    elif corpus.manifest.tokens("train"):
        frequency_V = token_counts(corpus)
    else:
        raise UserError(
            f"{data} has no training text, which says how common each token is: prepare it with some."
        )
    rank_V = np.empty(len(frequency_V), np.int64)
    rank_V[np.argsort(-frequency_V, kind="stable")] = np.arange(1, len(frequency_V) + 1)
    return rank_V


def head_names(
    evaluated: EvaluatedModel,
    namers: dict[Namer, SymbolNamer],
    text: HeldOut,
    options: Options,
    recorder: Recorder,
) -> dict[Namer, Names]:
    """What the head says of every token of held-out text, of the average over lexicons."""
    found = {
        namer: Names(np.empty(text.tok_ST.shape, np.float32), np.empty(text.tok_ST.shape, np.int64))
        for namer in namers
    }
    with recorder.progress(f"{evaluated.name}, sequences read", len(text.tok_ST)) as advance:
        for s, by_namer in enumerate(_head_logits(evaluated, namers, text.tok_ST, text.piece_S, options)):
            for namer, logits_KTV in by_namer.items():
                logp_T, likelier_T = _judge(logits_KTV, jnp.asarray(text.tok_ST[s]))
                found[namer].logp_ST[s], found[namer].likelier_ST[s] = (
                    np.asarray(logp_T),
                    np.asarray(likelier_T),
                )
            advance(1)
    return found


def _head_logits(
    evaluated: EvaluatedModel,
    namers: dict[Namer, SymbolNamer],
    tok_ST: np.ndarray,
    address_S: np.ndarray,
    options: Options,
) -> Iterator[dict[Namer, jax.Array]]:
    """logits_KTV by each namer, sequence by sequence: those of a batch are too many to be held."""
    for start in range(0, len(tok_ST), options.batch_size):
        part = slice(start, start + options.batch_size)
        states = [
            h_BTD
            for draw in range(options.draws)
            for _, (_, h_BTD) in evaluated.forward(tok_ST[part], address_S[part], options, draw)
        ]
        for b in range(len(tok_ST[part])):
            h_KTD = jnp.stack([h_BTD[b] for h_BTD in states])
            yield {name: namer.logits(h_KTD) for name, namer in namers.items()}


@jax.jit
def _judge(logits_KTV: jax.Array, tok_T: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The log-probability of each token's right name, averaged over draws, and how many names are likelier."""
    logp_TV = _averaged(logits_KTV)
    right_T1 = jnp.take_along_axis(logp_TV, tok_T[:, None], axis=1)
    return right_T1[:, 0], jnp.sum(logp_TV > right_T1, axis=1)


def _averaged(logits_KTV: jax.Array) -> jax.Array:
    """logp_TV of the mean over draws."""
    logp_KTV = jax.nn.log_softmax(logits_KTV)
    return jax.nn.logsumexp(logp_KTV, axis=0) - jnp.log(jnp.float32(len(logits_KTV)))


def names_by_left_contexts(
    standard: EvaluatedModel, text: HeldOut, options: Options, recorder: Recorder
) -> tuple[Names, np.ndarray]:
    """Names of tokens if all others were known, and the standard model's loss of each token, nats_ST.

    Any token may be any name, so by Bayes p(name) goes with the product of p(name | left context of an occurrence).
    """
    shape = text.tok_ST.shape
    names, nats_ST = Names(np.empty(shape, np.float32), np.empty(shape, np.int64)), np.empty(shape)
    model = standard.model
    with recorder.progress(f"{standard.name}, sequences read", shape[0]) as advance:
        for rows, (logp_BT, h_BTD) in standard.forward(text.tok_ST, text.piece_S, options):
            nats_ST[rows] = -np.asarray(logp_BT)
            for s, h_TD in zip(range(rows.start, rows.stop), h_BTD, strict=True):
                found = _left_contexts(model.params, model.config, h_TD, jnp.asarray(text.tok_ST[s]))
                names.logp_ST[s], names.likelier_ST[s] = map(np.asarray, found)
                advance(1)
    return names, nats_ST


@partial(jax.jit, static_argnames="config")
def _left_contexts(
    params: Params, config: ModelConfig, h_TD: jax.Array, tok_T: jax.Array
) -> tuple[jax.Array, jax.Array]:
    logits_1TV = logits(config, params.embedding.table_VD, predictors(params, h_TD[None]))
    return _judge(over_occurrences(jax.nn.log_softmax(logits_1TV[0]), tok_T)[None], tok_T)


def over_occurrences(logp_TV: jax.Array, tok_T: jax.Array) -> jax.Array:
    """Each row becomes the sum of the rows at all occurrences of its token so far."""
    so_far_TS = jnp.tril(tok_T[:, None] == tok_T).astype(jnp.float32)
    return jnp.matmul(so_far_TS, logp_TV, precision="highest")


def _text_to_follow(options: Options, evaluated: EvaluatedModel) -> tuple[str, np.ndarray]:
    """The text's name and tokens, as many as fit the context."""
    given, label = (PASSAGE, "a story") if options.text is None else own_text(options.text)
    vocab = evaluated.model.vocab
    tok_T = vocab.encode(vocab.fold(given)[0]).astype(np.int32)[: evaluated.model.config.context]
    if options.text is not None and len(tok_T) < FEWEST_TOKENS:
        raise UserError(
            f"The text has {len(tok_T)} tokens, too few to name them: give one of at least {FEWEST_TOKENS}."
        )
    return label, tok_T


def _tokens_to_follow(options: Options, vocab: Vocab, tok_T: np.ndarray, rank_V: np.ndarray) -> list[int]:
    """The tokens of the chosen words; or those that occur most often, common ones first and then others."""
    counts = Counter(tok_T.tolist())
    if options.words:
        by_word = {vocab.decode([token]).strip(): token for token in counts}
        for word in options.words:
            if word.strip() not in by_word:
                raise UserError(
                    f"{word!r} is not a token of the text: the nearest is {nearest(word, by_word)!r}. (A word that the "
                    "tokenizer splits cannot be followed.)"
                )
        return [by_word[word.strip()] for word in options.words]
    often = [token for token, _ in counts.most_common() if vocab.decode([token]).strip()]
    if not often:
        raise UserError("The text has nothing but blanks: give one with words.")
    common = [token for token in often if rank_V[token] <= COMMON]
    others = [token for token in often if rank_V[token] > COMMON]
    room = FOLLOWED_COMMON + max(0, FOLLOWED_OTHERS - len(others))
    return [*common[:room], *others[:FOLLOWED_OTHERS]]


def follow(
    evaluated: EvaluatedModel,
    namers: dict[Namer, SymbolNamer],
    tok_T: np.ndarray,
    followed: Sequence[int],
    rank_V: np.ndarray,
    options: Options,
) -> list[FollowedToken]:
    """What the head takes these tokens of a text for, at each of their occurrences."""
    [by_namer] = _head_logits(evaluated, namers, tok_T[None], np.zeros(1, np.int64), options)
    p_TV = {namer: np.asarray(jnp.exp(_averaged(logits_KTV))) for namer, logits_KTV in by_namer.items()}
    decode = evaluated.model.vocab.decode

    def guesses(p_V: np.ndarray) -> list[Guess]:
        return [Guess(decode([name]), float(p_V[name])) for name in np.argsort(-p_V)[:GUESSES].tolist()]

    tokens = []
    for token in followed:
        places = np.flatnonzero(tok_T == token)
        hindsight_V = p_TV["in hindsight"][places[-1]] if "in hindsight" in p_TV else None
        tokens.append(
            FollowedToken(
                decode([token]),
                int(rank_V[token]),
                places.tolist(),
                [guesses(p_TV["so far"][place]) for place in places],
                p_TV["so far"][places, token].tolist(),
                [] if hindsight_V is None else guesses(hindsight_V),
                None if hindsight_V is None else float(hindsight_V[token]),
            )
        )
    return tokens
