"""How a model answers questions about words: by the likelihood of each option, by its deciphering head, and freely."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.experiments.evaluated_model import EvaluatedModel
from lexinvariant.experiments.options import PairOptions
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.semantic_prompts import OPTIONS, Question
from lexinvariant.generators import generator_at
from lexinvariant.model.continuation import DecodeState, decode_step, prefill
from lexinvariant.model.decipher_head import decipher_logits, hindsight_states
from lexinvariant.model.greedy import greedy_ranks, n_ranks
from lexinvariant.model.params import Params
from lexinvariant.model.ranks import symbols_by_rank, to_ranks
from lexinvariant.results.semantic import Answer, Reading
from lexinvariant.rng import evaluation_keys
from lexinvariant.text import Vocab

NEW_SYMBOL = "[new]"
LEAST = 1e-30  # a probability that stands for none


def encode(vocab: Vocab, text: str) -> np.ndarray:
    return vocab.encode(text).astype(np.int64)


def answer_questions(
    evaluated: EvaluatedModel,
    questions: Sequence[Question],
    lead: str,
    n_continued: int,
    options: PairOptions,
    recorder: Recorder,
    reading: Reading = "plain",
    calibrate: bool = False,
) -> list[Answer]:
    """Of each question all that can be measured; of enciphered text the likelihoods alone."""
    vocab, config = evaluated.model.vocab, evaluated.model.config
    prompts = [encode(vocab, question.prompt) for question in questions]
    tails = [[encode(vocab, lead + option) for option in question.options] for question in questions]
    head: Sequence[list[float] | None] = [None] * len(questions)
    written: Sequence[str | None] = [None] * len(questions)
    if reading == "enciphered":
        for number, (prompt_T, ends) in enumerate(zip(prompts, tails, strict=True)):
            cipher_V = generator_at(options.seed, 3, number).permutation(config.vocab_size)
            prompts[number], tails[number] = cipher_V[prompt_T], [cipher_V[end] for end in ends]
        logp_QO, _ = read_questions(evaluated, prompts, tails, 1, options, recorder)
    else:
        logp_QO, tok_QN = read_questions(evaluated, prompts, tails, n_continued, options, recorder)
        written = [_readable(evaluated, *each) for each in zip(prompts, tok_QN, strict=True)]
        if config.decipher_head and config.lexicon.is_lexinvariant and not evaluated.knows_characters:
            head = head_scores(evaluated, questions, options, recorder).tolist()
    above_QO = (
        _above_mean(evaluated, questions, lead, options, recorder)
        if calibrate and reading == "plain"
        else None
    )
    return [
        Answer(
            passage=question.passage_number,
            asked=question.kind,
            category=question.category,
            options=list(question.options),
            right=question.right,
            counts=list(question.counts),
            logp=logp_QO[q].tolist(),
            tokens=[len(end) for end in tails[q]],
            above_mean=None if above_QO is None else above_QO[q].tolist(),
            head=head[q],
            written=written[q],
        )
        for q, question in enumerate(questions)
    ]


def _above_mean(
    evaluated: EvaluatedModel,
    questions: Sequence[Question],
    lead: str,
    options: PairOptions,
    recorder: Recorder,
) -> np.ndarray:
    """above_QO: the log-probability of each option after its question, above that of its mean probability after the
    questions for each of the options. What makes an option likely whatever is asked (its place, its number, how
    long ago it came) cancels out.
    """
    vocab = evaluated.model.vocab
    prompts = [
        encode(vocab, question.passage + asked) for question in questions for asked in question.asked_O
    ]
    tails = [
        [encode(vocab, lead + option) for option in question.options]
        for question in questions
        for _ in question.asked_O
    ]
    logp_PO, _ = read_questions(evaluated, prompts, tails, 1, options, recorder)
    logp_QAO = logp_PO.reshape(len(questions), OPTIONS, OPTIONS)
    asked_QO = logp_QAO[np.arange(len(questions)), [question.right for question in questions]]
    return asked_QO - np.logaddexp.reduce(logp_QAO, axis=1)


def read_questions(
    evaluated: EvaluatedModel,
    prompts: Sequence[np.ndarray],
    tails: Sequence[Sequence[np.ndarray]],
    n_continued: int,
    options: PairOptions,
    recorder: Recorder,
) -> tuple[np.ndarray, np.ndarray]:
    """(logp_QO, tok_QN): the log-probability of each tail after its prompt, in nats, and the likeliest continuation.

    A prompt is read once for all of that. Draws of the lexicon are averaged as in scoring: each one's vote is weighted
    by how well it predicted the prompt.
    """
    params, config = evaluated.model.params, evaluated.model.config
    draws = options.draws if config.lexicon.is_random else 1
    longest = max(len(end) for ends in tails for end in ends)
    after = max(longest, n_continued)
    length = -(-max(map(len, prompts)) // 8) * 8  # as in `greedy_tokens`
    batch_size = min(options.batch_size, len(prompts))
    logp_QO = np.empty((len(prompts), OPTIONS))
    tok_QN = np.empty((len(prompts), n_continued), np.int64)
    with recorder.progress(f"{evaluated.name}, questions read", len(prompts)) as advance:
        for start in range(0, len(prompts), batch_size):
            # The last batch is filled up with repeats that are cut off again: one shape, one compilation.
            index_B = np.minimum(np.arange(start, start + batch_size), len(prompts) - 1)
            rank_BT = np.zeros((batch_size, length), np.int32)
            tail_BON = np.zeros((batch_size, OPTIONS, longest), np.int32)
            for b, q in enumerate(index_B):
                n = len(prompts[q])
                rank_BT[b, :n] = to_ranks(config, prompts[q])
                for o, end in enumerate(tails[q]):
                    tail_BON[b, o, : len(end)] = to_ranks(config, np.concatenate([prompts[q], end]))[n:]
            n_BO = np.array([[len(end) for end in tails[q]] for q in index_B])
            states = [
                prefill(
                    params,
                    config,
                    evaluation_keys(options.seed, jnp.asarray(index_B, jnp.uint32), draw),
                    rank_BT,
                    np.array([len(prompts[q]) for q in index_B], np.int32),
                    n_ranks=n_ranks(config, length + after),
                    max_new_tokens=after,
                    score_prompts=draws > 1,
                    dtype=options.dtype,
                )
                for draw in range(draws)
            ]
            logp_KBO = np.stack([_tail_logp(params, config, state, tail_BON, n_BO) for state in states])
            total_KB = np.stack([np.asarray(state.prompt_logp_B, np.float64) for state in states])
            weight_KB = total_KB - np.logaddexp.reduce(total_KB, axis=0)
            logp_BO = np.logaddexp.reduce(logp_KBO + weight_KB[:, :, None], axis=0)
            rank_BN = greedy_ranks(params, config, states, n_continued)
            for b, q in enumerate(index_B[: len(prompts) - start]):
                logp_QO[q] = logp_BO[b]
                tok_QN[q] = symbols_by_rank(config, prompts[q], options.seed)[rank_BN[b]]
            advance(min(batch_size, len(prompts) - start))
    return logp_QO, tok_QN


def _tail_logp(
    params: Params, config: ModelConfig, prompt: DecodeState, tail_BON: np.ndarray, n_BO: np.ndarray
) -> np.ndarray:
    """logp_BO of the first n ranks of each tail; most words are one token, which takes no step."""
    logp_BO = np.take_along_axis(np.asarray(prompt.logp_BR, np.float64), tail_BON[:, :, 0], axis=1)
    for o in range(OPTIONS):
        state = prompt
        for place in range(1, int(n_BO[:, o].max())):
            state = decode_step(params, config, state, jnp.asarray(tail_BON[:, o, place - 1]))
            next_B1 = np.take_along_axis(np.asarray(state.logp_BR), tail_BON[:, o, place, None], axis=1)
            logp_BO[:, o] += np.where(n_BO[:, o] > place, next_B1[:, 0], 0.0)
    return logp_BO


def head_scores(
    evaluated: EvaluatedModel, questions: Sequence[Question], options: PairOptions, recorder: Recorder
) -> np.ndarray:
    """score_QO: the log of how probable the deciphering head finds it that an option is one of the words meant.

    The probability is the mean over the option's occurrences in the passage and over draws, in hindsight of the whole
    passage where the model has that. Nothing of the question is read.
    """
    model = evaluated.model
    passages = [encode(model.vocab, question.passage) for question in questions]
    length = -(-max(map(len, passages)) // 8) * 8
    tok_QT = np.zeros((len(questions), length), np.int32)
    for q, passage_T in enumerate(passages):
        tok_QT[q, : len(passage_T)] = passage_T
    read_QT = np.arange(length) < np.array([len(passage_T) for passage_T in passages])[:, None]
    places = [
        [_occurrences(model.vocab, passage_T, option) for option in question.options]
        for question, passage_T in zip(questions, passages, strict=True)
    ]
    place_QP = _padded([np.concatenate(each) for each in places])
    meant_QM = _padded([_tokens_meant(model.vocab, question.meant) for question in questions], repeat=False)
    p_QP = np.zeros(place_QP.shape)
    with recorder.progress(
        f"{evaluated.name}, passages deciphered", options.draws * len(questions)
    ) as advance:
        for draw in range(options.draws):
            for rows, output in evaluated.forward(tok_QT, np.arange(len(questions)), options, draw):
                p_BP = _probability_meant(
                    model.params, model.config, output.h_BTD, read_QT[rows], place_QP[rows], meant_QM[rows]
                )
                p_QP[rows] += np.asarray(p_BP) / options.draws
                advance(rows.stop - rows.start)
    score_QO = np.full((len(questions), OPTIONS), LEAST)
    for q, each in enumerate(places):
        ends = np.cumsum([len(found) for found in each])
        for o, (found, end) in enumerate(zip(each, ends, strict=True)):
            if len(found):
                score_QO[q, o] = max(LEAST, p_QP[q, end - len(found) : end].mean())
    return np.log(score_QO)


@partial(jax.jit, static_argnames="config")
def _probability_meant(
    params: Params,
    config: ModelConfig,
    h_BTD: jax.Array,
    read_BT: jax.Array,
    place_BP: jax.Array,
    meant_BM: jax.Array,
) -> jax.Array:
    """p_BP: how probable it is that the token at each place is one of those meant; -1 is no token."""
    h_BTD = hindsight_states(params, config, h_BTD, read_BT)
    h_BPD = jnp.take_along_axis(h_BTD, place_BP[:, :, None], axis=1)
    p_BPV = jax.nn.softmax(decipher_logits(params, config, h_BPD), axis=2)
    p_BPM = jnp.take_along_axis(p_BPV, jnp.maximum(meant_BM, 0)[:, None], axis=2)
    return jnp.sum(p_BPM, axis=2, where=meant_BM[:, None] >= 0)


def _spellings(vocab: Vocab, word: str) -> list[np.ndarray]:
    """As a word within a sentence and as one after a quotation mark."""
    return [encode(vocab, " " + word), encode(vocab, word)]


def _occurrences(vocab: Vocab, passage_T: np.ndarray, word: str) -> np.ndarray:
    """Where the word begins: a word that the tokenizer splits is judged by its first token."""
    found = [
        np.flatnonzero((np.lib.stride_tricks.sliding_window_view(passage_T, len(ids)) == ids).all(axis=1))
        for ids in _spellings(vocab, word)
        if len(ids) <= len(passage_T)
    ]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _tokens_meant(vocab: Vocab, words: frozenset[str]) -> np.ndarray:
    """The tokens that are one of the words whole; where all are split, those that they begin with."""
    spelled = [ids for word in sorted(words) for ids in _spellings(vocab, word)]
    whole = [ids for ids in spelled if len(ids) == 1]
    return np.unique([ids[0] for ids in whole or spelled])


def _padded(rows: Sequence[np.ndarray], repeat: bool = True) -> np.ndarray:
    """Rows of one length, filled up with 0 or, where a repeat would count, with -1."""
    width = max(1, *map(len, rows))
    filled = np.full((len(rows), width), 0 if repeat else -1, np.int32)
    for number, row in enumerate(rows):
        filled[number, : len(row)] = row
    return filled


def _readable(evaluated: EvaluatedModel, prompt_T: np.ndarray, tok_N: np.ndarray) -> str:
    """What was written; to a lexinvariant model, symbols that it has not read are one."""
    vocab = evaluated.model.vocab
    if not evaluated.model.config.lexicon.is_lexinvariant:
        return vocab.decode(tok_N)
    known = set(prompt_T.tolist())
    text, run_ = "", []
    for token in tok_N.tolist():
        if token in known:
            run_.append(token)
        else:
            text, run_ = text + vocab.decode(run_) + NEW_SYMBOL, []
    return text + vocab.decode(run_)
