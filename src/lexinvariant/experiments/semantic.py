"""Semantic deciphering: what a word means, from its use in one passage (the paper's section of that name).

The paper shows one prompt: a story in plain words, then "what one here is a drink", four words of the story, and "the
one here that drink is", which its model continues by "- coffee". Here hundreds of such questions are made from simple
texts, each model says how likely each of the four words is as the next one, and the likeliest counts as its answer;
with four options a guess is right once in four. A tie for the best counts as one part of its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel, open_one_or_pair
from lexinvariant.experiments.options import Count, CountOrZero, PairOptions
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.semantic_passages import LIKE_THE_PAPERS, PASSAGES
from lexinvariant.experiments.semantic_prompts import (
    CATEGORIES,
    CATEGORY_OF,
    OPTIONS,
    Question,
    QuestionSet,
    credit,
    cut_passages,
    make_questions,
    named_option,
    paper_example,
    question_text,
    words_of,
)
from lexinvariant.model.scoring import mixture
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.rows import hash_bytes, hash_files
from lexinvariant.results.semantic import TIMES, Accuracy, Answer, ExampleAnswered, QuestionAnswered
from lexinvariant.text import Vocab, read_documents

EXAMPLE_CATEGORY, EXAMPLE_OPTIONS, EXAMPLE_RIGHT = "drink", ("restaurants", "music", "coffee", "father"), 2
SHORTEST_PASSAGE = 32  # tokens; less than this says nothing about its words
NEW_SYMBOL = "[new]"


@dataclass(frozen=True)
class Options(PairOptions):
    """Multiple choice over words that a lexinvariant model knows from one passage alone, beside its standard twin.

    The paper's setting is a model with a tokenizer of 32,000 tokens; one of characters spells its answers out.

    example: lexinvariant experiment semantic --model runs/mine/model --data-text simple.jsonl --prompts 500
    """

    data_text: str | None = None
    """Simple texts to make passages from: a file, folder or other source as `lexinvariant data prepare` reads them.
    Without it, a few passages that come with the package."""
    prompts: Count = 200
    """Questions; the paper shows one. There may be fewer where the text is short."""
    continuation: CountOrZero = 0
    """Tokens that the model writes freely after the question; 0: 5 of a tokenizer, or 16 characters."""
    lead: str = " "
    """What stands between the question and an option when its likelihood is taken."""
    paper_tex: Path | None = None
    """The paper's LaTeX source: its own example is taken from it and asked as well."""


def run(options: Options, recorder: Recorder) -> None:
    """Of each model a row about all questions, one a question, and one an example."""
    models = open_one_or_pair(options.model, options.baseline)
    asked, data_hash = ask(options, models[0])
    examples = _examples(options, models[0])
    recorder.log(
        f"{len(asked.questions)} questions; {asked.skipped} of {asked.passages} passages have words of fewer than "
        f"{OPTIONS} categories and were skipped"
    )
    recorder.measured_on(model_hash=models[0].hash, data_hash=data_hash)
    text = Path(options.data_text).name if options.data_text else "built-in passages"
    together = asked.questions + [example.question for example in examples if example.fits]
    for evaluated in models:
        model = evaluated.measured
        logp_QO, n_QO = option_scores(evaluated, together, options, recorder)
        written = _continuations(evaluated, together, options, recorder)
        answers = [
            Answer(
                passage=question.passage_number,
                category=question.category,
                options=list(question.options),
                right=question.right,
                counts=list(question.counts),
                logp=logp_O.tolist(),
                tokens=n_O.tolist(),
                written=continuation,
            )
            for question, logp_O, n_O, continuation in zip(together, logp_QO, n_QO, written, strict=True)
        ]
        of_questions, of_examples = answers[: len(asked.questions)], iter(answers[len(asked.questions) :])
        row = recorder.write(summary(model, text, asked, of_questions))
        recorder.log(f"{model.name}: {row.by_mean_token} right; chance is 25%")
        for answer in of_questions:
            recorder.write(QuestionAnswered(model=model, text=text, answer=answer))
        for example in examples:
            recorder.write(
                ExampleAnswered(
                    model=model,
                    text=text,
                    example=example.name,
                    prompt_tokens=example.n_tokens,
                    answer=next(of_examples) if example.fits else None,
                )
            )


def _n_continued(evaluated: EvaluatedModel, options: Options) -> int:
    return options.continuation or (16 if evaluated.knows_characters else 5)


def encode(vocab: Vocab, text: str) -> np.ndarray:
    return vocab.encode(text).astype(np.int64)


def passage_budget(evaluated: EvaluatedModel, options: Options) -> int:
    """Tokens that a passage may take so that every question about it, and what follows, fits the context."""
    vocab = evaluated.model.vocab
    longest = max(len(ids) for ids in vocab.encode_batch([options.lead + word for word in CATEGORY_OF]))
    frame = max(
        len(ids) for ids in vocab.encode_batch(["\n" + question_text(c, [""] * 4) for c in CATEGORIES])
    )
    budget = (
        evaluated.model.config.context
        - frame
        - OPTIONS * longest
        - max(longest, _n_continued(evaluated, options))
    )
    if budget < SHORTEST_PASSAGE:
        raise UserError(
            f"The context of {evaluated.name} has {evaluated.model.config.context} tokens, which leaves "
            f"{max(budget, 0)} for a passage: give a model with at least {SHORTEST_PASSAGE - budget} more."
        )
    return budget


def ask(options: Options, evaluated: EvaluatedModel) -> tuple[QuestionSet, str]:
    """The questions, with passages cut to the model's context, and the hash of the text they were made from."""
    vocab = evaluated.model.vocab
    most = passage_budget(evaluated, options)
    if options.data_text is None:
        texts, data_hash = list(PASSAGES), hash_bytes("\n".join(PASSAGES).encode())
    else:
        texts = [document.text for document in read_documents(options.data_text)]
        place = Path(options.data_text.partition("?")[0])
        data_hash = hash_files([place]) if place.exists() else hash_bytes("\n".join(texts).encode())

    def n_tokens(parts: list[str]) -> list[int]:
        return [len(ids) for ids in vocab.encode_batch(parts)]

    passages = [passage for text in texts for passage in cut_passages(vocab.fold(text)[0], n_tokens, most)]
    asked = make_questions(passages, options.prompts, options.seed)
    if not asked.questions:
        raise UserError(
            f"None of the {len(passages)} passages has words of {OPTIONS} categories such as drinks, animals and "
            "colours: give a longer text in simple English, or leave --data-text out."
        )
    return asked, data_hash


def option_scores(
    evaluated: EvaluatedModel, questions: Sequence[Question], options: Options, recorder: Recorder
) -> tuple[np.ndarray, np.ndarray]:
    """(logp_QO, n_QO): the log-probability of each option after its question, in nats, and its tokens."""
    model = evaluated.model
    texts, n_QO = [], np.zeros((len(questions), OPTIONS), np.int64)
    for q, question in enumerate(questions):
        prompt_T = encode(model.vocab, question.prompt)
        for o, option in enumerate(question.options):
            tail = encode(model.vocab, options.lead + option)
            n_QO[q, o] = len(tail)
            texts.append(np.concatenate([prompt_T, tail]))
    tok_ST = np.zeros((len(texts), max(map(len, texts))), np.int32)
    for s, text in enumerate(texts):
        tok_ST[s, : len(text)] = text
    address_S = np.repeat(np.arange(len(questions)), OPTIONS)  # one lexicon for all options of a question
    logp_KST = evaluated.log_probabilities(tok_ST, address_S, options, recorder, "options")
    logp_S = [
        mixture(logp_KST[:, s, : len(text)])[-n:].sum()
        for s, (text, n) in enumerate(zip(texts, n_QO.ravel(), strict=True))
    ]
    return np.array(logp_S).reshape(n_QO.shape), n_QO


def _continuations(
    evaluated: EvaluatedModel, questions: Sequence[Question], options: Options, recorder: Recorder
) -> list[str]:
    """What the model writes after each question; to a lexinvariant model, symbols that it has not read are one."""
    model = evaluated.model
    prompts = [encode(model.vocab, question.prompt) for question in questions]
    n_tokens = _n_continued(evaluated, options)
    tok_SN = evaluated.continue_greedily(prompts, n_tokens, options, recorder, "questions continued")
    if not model.config.lexicon.is_lexinvariant:
        return [model.vocab.decode(tok_N) for tok_N in tok_SN]
    return [_readable(model.vocab, prompt, tok_N) for prompt, tok_N in zip(prompts, tok_SN, strict=True)]


def _readable(vocab: Vocab, prompt_T: np.ndarray, tok_N: np.ndarray) -> str:
    known = set(prompt_T.tolist())
    text, run_ = "", []
    for token in tok_N.tolist():
        if token in known:
            run_.append(token)
        else:
            text, run_ = text + vocab.decode(run_) + NEW_SYMBOL, []
    return text + vocab.decode(run_)


def summary(model: MeasuredModel, text: str, asked: QuestionSet, answers: Sequence[Answer]) -> Accuracy:
    """Accuracies of one model: by the likelihood of the whole option and by that of its mean token."""
    n = len(answers)
    right_Q = np.array([answer.right for answer in answers])
    credit_Q = credit(np.array([answer.nats_per_token for answer in answers]), right_Q)
    by_whole_Q = credit(np.array([answer.logp for answer in answers]), right_Q)
    named = [named_option(answer.written, answer.options) for answer in answers]
    chosen = Counter(answer.chosen for answer in answers)
    times = [TIMES[min(answer.counts[answer.right], len(TIMES)) - 1] for answer in answers]
    return Accuracy(
        model=model,
        text=text,
        by_mean_token=_share(credit_Q),
        by_whole_option=_share(by_whole_Q),
        free_right=_share(np.array(named) == right_Q),
        free_named=float(np.mean([name is not None for name in named])),
        most_frequent=float(credit(np.array([answer.counts for answer in answers]), right_Q).mean()),
        by_category=_share_of_each([answer.category for answer in answers], credit_Q),
        by_times=_share_of_each(times, credit_Q),
        chosen_by_place=[chosen[place] / n for place in range(OPTIONS)],
        passages=asked.passages,
        skipped=asked.skipped,
    )


def _share(credit_Q: np.ndarray) -> Share:
    return Share(float(credit_Q.mean()), len(credit_Q))


def _share_of_each(names: Sequence[str], credit_Q: np.ndarray) -> dict[str, Share]:
    return {name: _share(credit_Q[np.array(names) == name]) for name in sorted(set(names))}


@dataclass(frozen=True)
class Example:
    """The paper's question about one passage."""

    name: Literal["paper", "ours"]
    question: Question
    n_tokens: int
    fits: bool


def _examples(options: Options, evaluated: EvaluatedModel) -> list[Example]:
    """The paper's question about its own passage, where its source is given, and about one of the same kind."""
    passages: dict[Literal["paper", "ours"], str] = {"ours": LIKE_THE_PAPERS}
    if options.paper_tex is not None:
        prompt = paper_example(options.paper_tex.read_text()) if options.paper_tex.is_file() else None
        asked = question_text(EXAMPLE_CATEGORY, EXAMPLE_OPTIONS)
        if prompt is None or not prompt.endswith("\n" + asked):
            raise UserError(
                f"{options.paper_tex} does not hold the paper's semantic example: give the paper's LaTeX source."
            )
        passages = {"paper": prompt.removesuffix("\n" + asked), **passages}
    out = []
    for name, passage in passages.items():
        words = words_of(passage)
        counts = tuple(words[option] for option in EXAMPLE_OPTIONS)
        question = Question(passage, EXAMPLE_CATEGORY, EXAMPLE_OPTIONS, EXAMPLE_RIGHT, counts)
        ends = evaluated.model.vocab.encode_batch([options.lead + option for option in EXAMPLE_OPTIONS])
        after = max(_n_continued(evaluated, options), *map(len, ends))
        n_tokens = len(encode(evaluated.model.vocab, question.prompt)) + after
        out.append(Example(name, question, n_tokens, n_tokens <= evaluated.model.config.context))
    return out
