"""Questions about generated passages in simple, repetitive English.

The paper: "construct a simple context that repetitively uses simple words so that these words are easier to decipher".
A passage has four categories, three words of each, and uses all of them equally often, in sentences that fit their
category. It is asked which word fits one more sentence: one that the passage has with the other words of the category
and never with the right one itself, so that copying does not help and its use elsewhere has to. Pairs (opposites; part
and whole) are used together, and of pairs that are not asked for the relation is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lexinvariant.experiments.semantic_prompts import (
    OPTIONS,
    CountTokens,
    Question,
    question_text,
    solved_questions,
    words_of,
)
from lexinvariant.experiments.semantic_words import CATEGORIES, RELATIONS, Category, Relation, WordList
from lexinvariant.generators import generator_at
from lexinvariant.results.semantic import KINDS, Kind

MEMBERS = 3  # words of a category: one that is an option, and others
TOLD_PAIRS = 2
NAMED = "one {} is _."
"""Says of a word what it is: the question of `class`, and what the passages of `paper's wording` have."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Design:
    """How passages are made."""

    n_tokens: CountTokens
    most: int
    """Tokens of a passage with the sentence to complete."""
    most_listed: int
    """Tokens of a passage that the paper's wording asks about."""
    word_list: WordList = "test"
    mixed: bool = False
    """Sentences about everything in turn, in place of one category or pair after another."""
    shots: int = 0
    """Solved questions before one in the paper's wording; the other kinds have them in the passage."""

    def total(self, sentences: Sequence[str]) -> int:
        return sum(self.n_tokens([" " + sentence for sentence in sentences]))


def make_template_questions(n: int, seed: int, design: Design) -> list[Question]:
    """N questions of all kinds in turn, each about a passage of its own; none if not every word fits in once."""
    generated = [category for category in CATEGORIES.values() if category.frames]
    questions = []
    for number in range(n):
        rng = generator_at(seed, 2, number)
        kind = KINDS[number % len(KINDS)]
        relation = next((relation for relation in RELATIONS if relation.name == kind), None)
        if relation is not None:
            question = _ask_relation(relation, design, number, rng)
        else:
            asked_for = generated.pop(0)  # every category in its turn
            others = shuffled(generated, rng)[: OPTIONS - 1]
            generated.append(asked_for)
            question = _ask_category(kind, [asked_for, *others], design, number, rng)
        if question is None:
            return []
        questions.append(question)
    return questions


def _ask_category(
    kind: Kind, categories: Sequence[Category], design: Design, number: int, rng: np.random.Generator
) -> Question | None:
    """The first category is asked for; each one's first word is an option and is never put into the asked sentence."""
    words, held_out, parts = {}, {}, []
    for category in categories:
        name = category.name
        words[name] = shuffled(category.generated_of(design.word_list), rng)[:MEMBERS]
        held_out[name] = shuffled(category.asked_frames, rng)[0] if kind == "frame" else NAMED.format(name)
        part = []
        for word in words[name]:
            frames = shuffled([frame for frame in category.frames if frame != held_out[name]], rng)
            if word != words[name][0]:
                frames.insert(0, held_out[name])
            part.append([frame.replace("_", word) for frame in frames])
        parts.append(part)
    asked = {name: " " + frame.removesuffix(" _.") for name, frame in held_out.items()}
    longest = max(design.n_tokens(list(asked.values())))
    most = design.most_listed if kind == "paper's wording" else design.most - longest
    passage = _passage(parts, [], most, design, rng)
    if passage is None:
        return None
    options = shuffled([own[0] for own in words.values()], rng)
    if kind == "paper's wording":
        solved = solved_questions(words, options, design.shots, rng)
        if solved is None:
            return None
        asked = {name: f"\n{solved}{question_text(name, options)}" for name in words}
    by_option = {words[name][0]: text for name, text in asked.items()}
    asked_for, right = categories[0], words[categories[0].name][0]
    return _question(passage, by_option, kind, asked_for.name, options, right, asked_for.words, number)


def _ask_relation(
    relation: Relation, design: Design, number: int, rng: np.random.Generator
) -> Question | None:
    pairs = shuffled(relation.generated_of(design.word_list), rng)[: OPTIONS + TOLD_PAIRS]
    parts = [[[_put(frame, pair) for frame in shuffled(relation.frames, rng)]] for pair in pairs]
    told = [_put(relation.told, pair) for pair in pairs[OPTIONS:]]
    by_option = {pair[1]: " " + _put(relation.told.removesuffix(" B."), pair) for pair in pairs[:OPTIONS]}
    most = design.most - max(design.n_tokens(list(by_option.values())))
    passage = _passage(parts, told, most, design, rng)
    if passage is None:
        return None
    options = shuffled([second for _, second in pairs[:OPTIONS]], rng)
    right, kind = pairs[0][1], relation.name
    return _question(passage, by_option, kind, kind, options, right, frozenset([right]), number)


def _question(
    passage: str,
    by_option: Mapping[str, str],
    kind: Kind,
    category: str,
    options: list[str],
    right: str,
    meant: frozenset[str],
    number: int,
) -> Question:
    counts = words_of(passage)
    return Question(
        passage=passage,
        asked_O=tuple(by_option[option] for option in options),
        kind=kind,
        category=category,
        options=tuple(options),
        right=options.index(right),
        counts=tuple(counts[option] for option in options),
        meant=meant,
        passage_number=number,
    )


def _passage(
    parts: Sequence[Sequence[Sequence[str]]],
    last: Sequence[str],
    most: int,
    design: Design,
    rng: np.random.Generator,
) -> str | None:
    """The sentences of every word of every part, as many of each as fit `most` tokens, and the last ones; None if not
    even one fits. All words have equally many: how often one occurs tells nothing.
    """
    each = min(len(sentences) for part in parts for sentences in part)
    left = most - design.total(last)
    kept = 0
    while kept < each:
        left -= design.total([sentences[kept] for part in parts for sentences in part])
        if left < 0:
            break
        kept += 1
    if kept == 0:
        return None
    groups = [[sentences for part in parts for sentences in part]] if design.mixed else shuffled(parts, rng)
    passage = [sentence for group in groups for sentence in _in_rounds(group, kept, rng)]
    return " ".join(passage + shuffled(last, rng))


def _in_rounds(words: Sequence[Sequence[str]], n: int, rng: np.random.Generator) -> Iterator[str]:
    for place in range(n):
        yield from shuffled([sentences[place] for sentences in words], rng)


def _put(frame: str, pair: tuple[str, str]) -> str:
    """The pair in the places of A and B; frames are in lower case otherwise."""
    return frame.translate({ord("A"): pair[0], ord("B"): pair[1]})


def shuffled(items: Sequence[Item], rng: np.random.Generator) -> list[Item]:
    return [items[place] for place in rng.permutation(len(items))]
