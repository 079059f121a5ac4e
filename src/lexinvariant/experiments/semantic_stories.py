"""Questions such as "what one here is a drink" about passages of simple English.

A question is made from any passage in which words of at least four categories occur: one word of the asked category and
one each of three others, all known to the model from the passage alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lexinvariant.experiments.semantic_prompts import (
    OPTIONS,
    CountTokens,
    Question,
    choose_options,
    question_text,
    solved_questions,
    words_of,
)
from lexinvariant.experiments.semantic_words import CATEGORIES, CATEGORY_OF
from lexinvariant.generators import generator_at


def plain_text(text: str) -> str:
    """Lower case and single blanks, as the paper's example is written: a word is then one symbol wherever it stands."""
    return " ".join(text.lower().split())


def sentences(text: str) -> list[str]:
    return re.split(r"""(?<=[.!?])\s+|(?<=[.!?]['"])\s+""", text)


def cut_passages(text: str, n_tokens: CountTokens, most: int) -> Iterator[str]:
    """A text as consecutive passages of whole sentences that take at most so many tokens; a sentence that takes more
    alone is dropped.
    """
    parts = sentences(plain_text(text))
    passage: list[str] = []
    total = 0
    # A sentence after another one is read with the blank before it.
    for part, n in zip(parts, n_tokens([" " + part for part in parts]), strict=True):
        if passage and total + n > most:
            yield " ".join(passage)
            passage, total = [], 0
        if n <= most:
            passage, total = [*passage, part], total + n
    if passage:
        yield " ".join(passage)


def known_words(passage: str) -> dict[str, list[str]]:
    """The words of each category that occur in the passage."""
    found: dict[str, list[str]] = {}
    for word in sorted(words_of(passage)):
        if word in CATEGORY_OF:
            found.setdefault(CATEGORY_OF[word], []).append(word)
    return found


@dataclass(frozen=True)
class QuestionSet:
    """The questions, and how many passages were looked at and left out for having too few of the words."""

    questions: list[Question]
    passages: int
    skipped: int


def make_story_questions(passages: list[str], n: int, seed: int, shots: int = 0) -> QuestionSet:
    """Up to n questions: one a passage, then a second one for another word, and so on.

    Categories are kept even: a passage is asked for the one that has been asked least so far. With shots, as many
    solved questions about other words of the passage come first.
    """
    known = {i: known_words(passage) for i, passage in enumerate(passages)}
    usable = [i for i in known if len(known[i]) >= OPTIONS]
    order = generator_at(seed, 0).permutation(usable).tolist() if usable else []
    asked: Counter[str] = Counter()
    done: dict[int, set[str]] = {i: set() for i in usable}
    questions: list[Question] = []
    while order and len(questions) < n:
        going_on = []
        for i in order:
            left = {name: sorted(set(words) - done[i]) for name, words in known[i].items()}
            left = {name: words for name, words in left.items() if words}
            if not left or len(questions) == n:
                continue
            rng = generator_at(seed, 1, i, len(done[i]))
            category = min(left, key=lambda name: asked[name])
            word = str(rng.choice(left[category]))
            done[i].add(word)
            going_on.append(i)
            question = _ask(passages[i], i, known[i], category, word, shots, rng)
            if question is not None:
                asked[category] += 1
                questions.append(question)
        order = going_on
    return QuestionSet(questions, len(passages), len(passages) - len(usable))


def _ask(
    passage: str,
    number: int,
    known: dict[str, list[str]],
    category: str,
    word: str,
    shots: int,
    rng: np.random.Generator,
) -> Question | None:
    options = choose_options(known, category, word, rng)
    solved = solved_questions(known, options, shots, rng)
    if solved is None:
        return None
    counts = words_of(passage)
    return Question(
        passage=passage,
        asked_O=tuple(f"\n{solved}{question_text(CATEGORY_OF[option], options)}" for option in options),
        kind="paper's wording",
        category=category,
        options=options,
        right=options.index(word),
        counts=tuple(counts[option] for option in options),
        meant=CATEGORIES[category].words,
        passage_number=number,
    )
