"""Semantic deciphering: what a word means, from its use in one passage (the paper's section of that name).

The paper shows one prompt: a story in plain words, then "what one here is a drink", four words of the story, and "the
one here that drink is", which its model continues by "- coffee". Here hundreds of questions are made from simple texts
(`stories`) and from generated ones (`templates`). A model answers by the likelihood of each of the four words as the
next one, by its deciphering head, and freely; with four options a guess is right once in four. A tie for the best
counts as one part of its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel, open_one_or_pair
from lexinvariant.experiments.options import Count, CountOrZero, PairOptions
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.semantic_answers import answer_questions, encode
from lexinvariant.experiments.semantic_passages import LIKE_THE_PAPERS, PASSAGES
from lexinvariant.experiments.semantic_prompts import (
    OPTIONS,
    Question,
    credit,
    named_option,
    paper_example,
    question_text,
    words_of,
)
from lexinvariant.experiments.semantic_stories import cut_passages, make_story_questions
from lexinvariant.experiments.semantic_templates import Design, make_template_questions
from lexinvariant.experiments.semantic_words import CATEGORIES, CATEGORY_OF, RELATIONS, WordList
from lexinvariant.progress import Log
from lexinvariant.results.intervals import Share
from lexinvariant.results.rows import group_by, hash_bytes, hash_files
from lexinvariant.results.semantic import (
    SORTS,
    TIMES,
    Accuracy,
    Answer,
    ExampleAnswered,
    QuestionAnswered,
    Reading,
    Sort,
)
from lexinvariant.text import Vocab, read_documents
from lexinvariant.text.formats import read_whole_text

EXAMPLE_CATEGORY, EXAMPLE_OPTIONS, EXAMPLE_RIGHT = "drink", ("restaurants", "music", "coffee", "father"), 2
EXAMPLE_CATEGORIES = ("place", "sound", EXAMPLE_CATEGORY, "person")
SHORTEST_PASSAGE = 32  # tokens; less than this says nothing about its words


@dataclass(frozen=True)
class Options(PairOptions):
    """Ask multiple-choice questions about words that a lexinvariant model knows from one passage alone, beside its
    standard twin.

    The paper's setting is a tokenizer of 32,000 tokens; a model of characters spells its answers out.

    example: lexinvariant experiment semantic --model runs/mine/model --data-text simple.jsonl --prompts 500
    """

    data_text: str | None = None
    """Simple texts to make stories from: a file, folder or other source, as for `lexinvariant data prepare`. Default:
    a few passages that come with the package."""
    prompts: Count = 300
    """Questions of each sort (the paper shows one); fewer if the text is short."""
    sorts: tuple[Sort, ...] = SORTS
    """Where passages come from: `stories` are from a text, `templates` are generated."""
    shots: CountOrZero = 0
    """Solved questions about other words before each question in the paper's wording (paper: 0)."""
    length: CountOrZero = 0
    """Most tokens in a prompt with its answer; 0: the model's context."""
    word_list: WordList = "test"
    """Which words generated passages use; only `development` was used while designing them."""
    mixed: bool = False
    """In generated passages, take categories in turn instead of a paragraph for each."""
    calibrate: bool = False
    """Ask for each of the four options in turn, and compare an option's likelihood with its mean over these four
    questions. Takes four times as long."""
    continuation: CountOrZero = 0
    """Tokens that the model writes freely after the question; 0: 5 tokens of a tokenizer, or 16 characters."""
    lead: str = " "
    """Text between the question and an option when scoring the option."""
    paper_tex: Path | None = None
    """The paper's LaTeX source; its own example is taken from it and asked too."""


@dataclass(frozen=True)
class Asked:
    """Questions of one sort."""

    sort: Sort
    text: str
    """Where their passages come from."""
    questions: list[Question]
    passages: int
    skipped: int
    """Passages without words of four categories."""
    data_hash: str


def run(options: Options, recorder: Recorder) -> None:
    """Of each model a row about every kind of question, one a question, and one an example."""
    models = open_one_or_pair(options.model, options.baseline)
    sorts = [ask(sort, options, models[0]) for sort in _sorts(options, models[0], recorder.log)]
    examples = _examples(options, models[0])
    for asked in sorts:
        told = f"{len(asked.questions)} questions about {asked.sort}"
        if asked.skipped:
            told += (
                f"; {asked.skipped} of {asked.passages} passages have words of fewer than {OPTIONS} categories "
                "and were skipped"
            )
        recorder.log(told)
    data_hash = hash_bytes("".join(asked.data_hash for asked in sorts).encode())
    recorder.measured_on(model_hash=models[0].hash, data_hash=data_hash)
    fitting = [example.question for example in examples if example.fits]
    together = [question for asked in sorts for question in asked.questions] + fitting
    for evaluated in models:
        for reading in readings(evaluated):
            answers = iter(
                answer_questions(
                    evaluated,
                    together,
                    options.lead,
                    _n_continued(evaluated, options),
                    options,
                    recorder,
                    reading,
                    options.calibrate,
                )
            )
            for asked in sorts:
                own = [next(answers) for _ in asked.questions]
                for row in summaries(evaluated, asked, own, reading, options.shots):
                    recorder.write(row)
                    recorder.log(f"{row.who}, {row.question}: {row.by_mean_token} right; chance is 25%")
                for answer in own:
                    recorder.write(
                        QuestionAnswered(
                            model=evaluated.measured,
                            text=asked.text,
                            shots=options.shots,
                            reading=reading,
                            sort=asked.sort,
                            answer=answer,
                        )
                    )
            for example in examples:
                recorder.write(
                    ExampleAnswered(
                        model=evaluated.measured,
                        text=example.name,
                        shots=0,
                        reading=reading,
                        example=example.name,
                        prompt_tokens=example.n_tokens,
                        answer=next(answers) if example.fits else None,
                    )
                )


def readings(evaluated: EvaluatedModel) -> tuple[Reading, ...]:
    """To a lexinvariant model a text and its enciphered form are the same."""
    return ("plain",) if evaluated.model.config.lexicon.is_lexinvariant else ("plain", "enciphered")


def _n_continued(evaluated: EvaluatedModel, options: Options) -> int:
    return options.continuation or (16 if evaluated.knows_characters else 5)


def _sorts(options: Options, evaluated: EvaluatedModel, log: Log) -> list[Sort]:
    """Spelled out in characters, a generated passage is too long for what it says."""
    sorts = [sort for sort in SORTS if sort in options.sorts]
    if evaluated.knows_characters and "templates" in sorts:
        sorts.remove("templates")
        log(
            f"{evaluated.name} reads characters: generated passages (templates) are too long for it and left out."
        )
    if not sorts:
        raise UserError(
            f"{evaluated.name} has no questions to answer: give --sorts stories, which is the one for a model of "
            "characters, or a model with a tokenizer and --sorts templates."
        )
    return sorts


def completion_budget(evaluated: EvaluatedModel, options: Options) -> int:
    """Tokens that a prompt may take so that every option, and what is written freely, fits after it."""
    vocab, context = evaluated.model.vocab, evaluated.model.config.context
    if options.length > context:
        raise UserError(
            f"--length is {options.length} and the context of {evaluated.name} has {context} tokens: give at most that."
        )
    return (options.length or context) - max(
        _longest_option(vocab, options), _n_continued(evaluated, options)
    )


def passage_budget(evaluated: EvaluatedModel, options: Options) -> int:
    """Tokens that a passage may take so that every question in the paper's wording fits after it."""
    vocab, longest = evaluated.model.vocab, _longest_option(evaluated.model.vocab, options)
    frame = max(
        len(ids) for ids in vocab.encode_batch(["\n" + question_text(c, [""] * OPTIONS) for c in CATEGORIES])
    )
    questions = (1 + options.shots) * (frame + OPTIONS * longest) + options.shots * longest
    budget = completion_budget(evaluated, options) - questions
    if budget < SHORTEST_PASSAGE:
        raise UserError(
            f"A prompt of {options.length or evaluated.model.config.context} tokens leaves {max(budget, 0)} for a "
            f"passage: give a model whose context has at least {SHORTEST_PASSAGE - budget} more, fewer --shots or a "
            "greater --length."
        )
    return budget


def _longest_option(vocab: Vocab, options: Options) -> int:
    words = [
        *CATEGORY_OF,
        *(word for relation in RELATIONS for pair in relation.test + relation.development for word in pair),
    ]
    return max(len(ids) for ids in vocab.encode_batch([options.lead + word for word in words]))


def ask(sort: Sort, options: Options, evaluated: EvaluatedModel) -> Asked:
    """The questions of one sort, with passages that fit the model's context."""
    vocab = evaluated.model.vocab
    most = passage_budget(evaluated, options)

    def n_tokens(parts: list[str]) -> list[int]:
        return [len(ids) for ids in vocab.encode_batch(parts)]

    if sort == "templates":
        completed = completion_budget(evaluated, options)
        design = Design(n_tokens, completed, most, options.word_list, options.mixed, options.shots)
        made = make_template_questions(options.prompts, options.seed, design)
        if not made:
            raise UserError(
                f"A generated passage does not fit the {most} tokens that a prompt leaves for it, or has too few words "
                f"for {options.shots} solved questions: give a model with a longer context, a greater --length, fewer "
                "--shots, or --sorts stories."
            )
        data_hash = hash_bytes("\n".join(question.prompt for question in made).encode())
        order = "mixed sentences" if options.mixed else "paragraphs"
        name = f"generated {order} ({options.word_list} words)"
        return Asked(sort, name, made, len(made), 0, data_hash)
    name, texts, data_hash = _stories(options)
    passages = [passage for text in texts for passage in cut_passages(vocab.fold(text)[0], n_tokens, most)]
    found = make_story_questions(passages, options.prompts, options.seed, options.shots)
    if not found.questions:
        solved = f" and enough others for {options.shots} solved questions" if options.shots else ""
        raise UserError(
            f"None of the {len(passages)} passages has words of {OPTIONS} categories such as drinks, animals and "
            f"colours{solved}: give a longer text in simple English, or leave --data-text out."
        )
    return Asked(sort, name, found.questions, found.passages, found.skipped, data_hash)


def _stories(options: Options) -> tuple[str, Sequence[str], str]:
    """Their name, texts and hash."""
    if options.data_text is None:
        return "built-in passages", PASSAGES, hash_bytes("\n".join(PASSAGES).encode())
    texts = [document.text for document in read_documents(options.data_text)]
    place = Path(options.data_text.partition("?")[0])
    data_hash = hash_files([place]) if place.exists() else hash_bytes("\n".join(texts).encode())
    return place.name, texts, data_hash


def summaries(
    evaluated: EvaluatedModel, asked: Asked, answers: Sequence[Answer], reading: Reading, shots: int
) -> Iterator[Accuracy]:
    """One model's accuracies, for each kind of question."""
    for kind, of_kind in group_by(answers, lambda answer: answer.asked).items():
        right_Q = np.array([answer.right for answer in of_kind])
        credit_Q = credit(np.array([answer.nats_per_token for answer in of_kind]), right_Q)
        free = [
            named_option(answer.written, answer.options) for answer in of_kind if answer.written is not None
        ]
        compared = [answer.above_mean for answer in of_kind if answer.above_mean is not None]
        head = [answer.head for answer in of_kind if answer.head is not None]
        chosen = Counter(answer.chosen for answer in of_kind)
        times = [TIMES[min(answer.counts[answer.right], len(TIMES)) - 1] for answer in of_kind]
        yield Accuracy(
            model=evaluated.measured,
            text=asked.text,
            shots=shots,
            reading=reading,
            sort=asked.sort,
            asked=kind,
            by_mean_token=_share(credit_Q),
            by_whole_option=_share(credit(np.array([answer.logp for answer in of_kind]), right_Q)),
            by_calibrated=_share(credit(np.array(compared), right_Q)) if compared else None,
            by_head=_share(credit(np.array(head), right_Q)) if head else None,
            free_right=_share(np.array(free) == right_Q) if free else None,
            free_named=float(np.mean([name is not None for name in free])) if free else None,
            most_frequent=float(credit(np.array([answer.counts for answer in of_kind]), right_Q).mean()),
            by_category=_share_of_each([answer.category for answer in of_kind], credit_Q),
            by_times=_share_of_each(times, credit_Q),
            chosen_by_place=[chosen[place] / len(of_kind) for place in range(OPTIONS)],
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
    asked = "\n" + question_text(EXAMPLE_CATEGORY, EXAMPLE_OPTIONS)
    passages: dict[Literal["paper", "ours"], str] = {"ours": LIKE_THE_PAPERS}
    if options.paper_tex is not None:
        prompt = paper_example(read_whole_text(options.paper_tex)) if options.paper_tex.is_file() else None
        if prompt is None or not prompt.endswith(asked):
            raise UserError(
                f"{options.paper_tex} does not hold the paper's semantic example: give the paper's LaTeX source."
            )
        passages = {"paper": prompt.removesuffix(asked), **passages}
    out = []
    for name, passage in passages.items():
        words = words_of(passage)
        question = Question(
            passage=passage,
            asked_O=tuple("\n" + question_text(name, EXAMPLE_OPTIONS) for name in EXAMPLE_CATEGORIES),
            kind="paper's wording",
            category=EXAMPLE_CATEGORY,
            options=EXAMPLE_OPTIONS,
            right=EXAMPLE_RIGHT,
            counts=tuple(words[option] for option in EXAMPLE_OPTIONS),
            meant=CATEGORIES[EXAMPLE_CATEGORY].words,
        )
        ends = evaluated.model.vocab.encode_batch([options.lead + option for option in EXAMPLE_OPTIONS])
        after = max(_n_continued(evaluated, options), *map(len, ends))
        n_tokens = len(encode(evaluated.model.vocab, question.prompt)) + after
        out.append(Example(name, question, n_tokens, n_tokens <= evaluated.model.config.context))
    return out
