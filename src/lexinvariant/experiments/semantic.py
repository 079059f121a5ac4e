"""Semantic deciphering: what a word means, from its use in one passage (the paper's section of that name).

The paper shows one prompt: a story in plain words, then "what one here is a drink", four words of the story, and "the
one here that drink is", which its model continues by "- coffee". Here hundreds of such questions are made from simple
texts, each model says how likely each of the four words is as the next one, and the likeliest counts as its answer;
with four options a guess is right once in four. A tie for the best counts as one part of its size.

Rows: `accuracy` (one a model), `question` (one a model and question) and `example` (the paper's own prompt, where its
source is given, and one of the same kind).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import CommonOptions, EvaluatedModel, open_one_or_pair
from lexinvariant.experiments.intervals import wilson
from lexinvariant.experiments.news import News
from lexinvariant.experiments.rows import Provenance, Row, RowWriter, hash_bytes, hash_files
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
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.scoring import mixture
from lexinvariant.text import Vocab, read_documents

Say = Callable[[str], None]
EXAMPLE_CATEGORY, EXAMPLE_OPTIONS, EXAMPLE_RIGHT = "drink", ("restaurants", "music", "coffee", "father"), 2
SHORTEST_PASSAGE = 32  # tokens; less than this says nothing about its words
NEW_SYMBOL = "[new]"


@dataclass(frozen=True)
class Options(CommonOptions):
    """Multiple choice over words that a lexinvariant model knows from one passage alone, beside its standard twin.

    The paper's setting is a model with a tokenizer of 32,000 tokens; one of characters spells its answers out.

    Example: lexinvariant experiment semantic --model runs/mine/model --data-text simple.jsonl --prompts 500
    """

    baseline: str | None = None
    """The model's standard twin, trained on the same data, to measure beside it."""
    data_text: str | None = None
    """Simple texts to make passages from: a file, folder or other source as `lexinvariant data prepare` reads them.
    Without it, a few passages that come with the package."""
    prompts: int = 200
    """Questions; the paper shows one. There may be fewer where the text is short."""
    draws: int = 1
    """Lexicons that a lexinvariant model's probabilities are averaged over."""
    continuation: int = 0
    """Tokens that the model writes freely after the question; 0: 5 of a tokenizer, or 16 characters."""
    lead: str = " "
    """What stands between the question and an option when its likelihood is taken."""
    paper_tex: Path | None = None
    """The paper's LaTeX source: its own example is taken from it and asked as well."""


def run(options: Options, command: str = "", say: Say = lambda line: None) -> list[Row]:
    """Ask the questions and append the rows to semantic.jsonl in the output folder."""
    if options.prompts < 1 or options.draws < 1 or options.continuation < 0:
        raise UserError(
            f"--prompts is {options.prompts}, --draws {options.draws} and --continuation {options.continuation}: give "
            "prompts and draws at least 1, and continuation at least 0."
        )
    models = open_one_or_pair(options.model, options.baseline)
    asked, data_hash = ask(options, models[0])
    examples = _examples(options, models[0])
    say(
        f"{len(asked.questions)} questions; {asked.skipped} of {asked.passages} passages have words of fewer than "
        f"{OPTIONS} categories and were skipped"
    )
    provenance = Provenance(
        experiment="semantic",
        seed=options.seed,
        command=command,
        model_hash=models[0].hash,
        data_hash=data_hash,
        draws=options.draws,
    )
    rows: list[Row] = []
    with RowWriter(options.out / "semantic.jsonl", provenance) as writer:
        for evaluated in models:
            who = _who(evaluated, options)
            together = asked.questions + [example.question for example in examples if example.fits]
            logp_QO, n_QO = option_scores(evaluated, together, options, say)
            written = _continuations(evaluated, together, options, say)
            told = [_told(*answer) for answer in zip(together, logp_QO, n_QO, written, strict=True)]
            n = len(asked.questions)
            values = summary(asked.questions, logp_QO[:n], n_QO[:n], written[:n])
            values |= {"passages": asked.passages, "skipped": asked.skipped}
            rows.append(writer.write("accuracy", **who, **values))
            low, high = values["interval"]["mean"]
            say(
                f"{evaluated.name}: {values['accuracy']['mean']:.1%} right ({low:.1%} to {high:.1%}; chance 25%)"
            )
            rows += [writer.write("question", **who, **answer) for answer in told[:n]]
            of_examples = iter(told[n:])
            for example in examples:
                about = {"example": example.name, "prompt_tokens": example.n_tokens, "fits": example.fits}
                rows.append(
                    writer.write("example", **who, **about, **(next(of_examples) if example.fits else {}))
                )
    return rows


def _who(evaluated: EvaluatedModel, options: Options) -> dict[str, Any]:
    text = Path(options.data_text).name if options.data_text else "built-in passages"
    return {
        "group": f"{text}, {evaluated.model.vocab.name}",
        "name": evaluated.name,
        "name_hash": evaluated.hash,
        "lexinvariant": evaluated.model.config.lexicon.is_lexinvariant,
        "vocab": evaluated.model.vocab.name,
        "vocab_size": evaluated.model.config.vocab_size,
        "characters": evaluated.knows_characters,
        "text": text,
    }


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
    evaluated: EvaluatedModel, questions: Sequence[Question], options: Options, say: Say = lambda line: None
) -> tuple[np.ndarray, np.ndarray]:
    """(logp_QO, n_QO): the log-probability of each option after its question, in nats, and its tokens."""
    model = evaluated.model
    prompts = [encode(model.vocab, question.prompt) for question in questions]
    texts, n_QO = [], np.zeros((len(questions), OPTIONS), np.int64)
    for q, (question, prompt_T) in enumerate(zip(questions, prompts, strict=True)):
        for o, option in enumerate(question.options):
            tail = encode(model.vocab, options.lead + option)
            n_QO[q, o] = len(tail)
            texts.append(np.concatenate([prompt_T, tail]))
    length = max(map(len, texts))
    tok_ST = np.zeros((len(texts), length), np.int32)
    for s, text in enumerate(texts):
        tok_ST[s, : len(text)] = text
    address_S = np.repeat(np.arange(len(questions)), OPTIONS)  # one lexicon for all options of a question
    draws = options.draws if model.config.lexicon.is_lexinvariant else 1
    logp_KST = np.zeros((draws, *tok_ST.shape))
    news = News(say, f"{evaluated.name}, options read", draws * len(texts))
    for draw in range(draws):
        for rows, reading in forward_batches(
            model.params,
            model.config,
            tok_ST,
            address_S,
            seed=options.seed,
            draw=draw,
            batch_size=options.batch_size,
            dtype=options.dtype,
        ):
            logp_KST[draw, rows] = np.asarray(reading.logp_BT)
            news(rows.stop - rows.start)
    logp_S = [
        mixture(logp_KST[:, s, : len(text)])[-n:].sum()
        for s, (text, n) in enumerate(zip(texts, n_QO.ravel(), strict=True))
    ]
    return np.array(logp_S).reshape(n_QO.shape), n_QO


def _continuations(
    evaluated: EvaluatedModel, questions: Sequence[Question], options: Options, say: Say
) -> list[str]:
    """What the model writes after each question; to a lexinvariant model, symbols that it has not read are one."""
    model = evaluated.model
    prompts = [encode(model.vocab, question.prompt) for question in questions]
    tok_SN = greedy_tokens(
        model.params,
        model.config,
        prompts,
        _n_continued(evaluated, options),
        seed=options.seed,
        draws=options.draws,
        batch_size=options.batch_size,
        dtype=options.dtype,
        advance=News(say, f"{evaluated.name}, questions continued", len(prompts)),
    )
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


def summary(
    questions: Sequence[Question], logp_QO: np.ndarray, n_QO: np.ndarray, written: Sequence[str]
) -> dict[str, Any]:
    """Accuracies of one model: by the likelihood of the whole option and by that of its mean token."""
    right_Q = np.array([question.right for question in questions])
    count_QO = np.array([question.counts for question in questions])
    score = {"mean": logp_QO / n_QO, "sum": logp_QO}
    credit_of = {name: credit(score_QO, right_Q) for name, score_QO in score.items()}
    named = [named_option(text, question.options) for text, question in zip(written, questions, strict=True)]
    n = len(questions)
    share = {name: float(credit_Q.mean()) for name, credit_Q in credit_of.items()}
    free = float(np.mean([name == question.right for name, question in zip(named, questions, strict=True)]))
    chosen = Counter(score["mean"].argmax(axis=1).tolist())
    return {
        "questions": n,
        "accuracy": share,
        "interval": {name: wilson(value, n) for name, value in share.items()},
        "free_right": free,
        "free_right_interval": wilson(free, n),
        "free_named": float(np.mean([name is not None for name in named])),
        "most_frequent": float(credit(count_QO, right_Q).mean()),
        "by_category": _groups([question.category for question in questions], credit_of["mean"]),
        "by_count": _groups(
            [_times(question.counts[question.right]) for question in questions], credit_of["mean"]
        ),
        "chosen_by_place": [chosen[place] / n for place in range(OPTIONS)],
    }


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else "3 times or more"


def _groups(names: list[str], credit_Q: np.ndarray) -> dict[str, dict[str, float]]:
    out = {}
    for name in sorted(set(names)):
        mine = credit_Q[[other == name for other in names]]
        low, high = wilson(float(mine.mean()), len(mine))
        out[name] = {"questions": len(mine), "accuracy": float(mine.mean()), "low": low, "high": high}
    return out


def _told(question: Question, logp_O: np.ndarray, n_O: np.ndarray, text: str) -> dict[str, Any]:
    return {
        "passage": question.passage_number,
        "category": question.category,
        "options": question.options,
        "right": question.right,
        "counts": question.counts,
        "logp": logp_O,
        "tokens": n_O,
        "chosen": int((logp_O / n_O).argmax()),
        "written": text,
    }


@dataclass(frozen=True)
class Example:
    """The paper's question about one passage."""

    name: str
    question: Question
    n_tokens: int
    fits: bool


def _examples(options: Options, evaluated: EvaluatedModel) -> list[Example]:
    """The paper's question about its own passage, where its source is given, and about one of the same kind."""
    passages = {"ours": LIKE_THE_PAPERS}
    if options.paper_tex is not None:
        prompt = paper_example(options.paper_tex.read_text()) if options.paper_tex.is_file() else None
        asked = question_text(EXAMPLE_CATEGORY, EXAMPLE_OPTIONS)
        if prompt is None or not prompt.endswith("\n" + asked):
            raise UserError(
                f"{options.paper_tex} does not hold the paper's semantic example: give the paper's LaTeX source."
            )
        passages = {"paper": prompt.removesuffix("\n" + asked)} | passages
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
