"""Prompts as BIG-bench builds them, and what of a model's text is its answer.

A prompt is the task's prefix and then, with the task's separator between them, solved examples (shots) and the one that
is asked: input prefix, input, the choices where they are to be appended, output prefix, and of a shot its answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from lexinvariant.experiments.bigbench_tasks import Example, Subtask, Task, name_rng
from lexinvariant.text import Vocab

MOST_SHOTS = 3


@dataclass(frozen=True)
class Question:
    """An example that is asked, with the ones that may be shown before it: the nearest last."""

    subtask: Subtask
    example: Example
    pool: tuple[Example, ...]
    seed: int

    def prompt(self, shots: int) -> str:
        """Ends where the answer begins; with fewer shots it is the same but for the ones that are missing."""
        solved = [self._shown(shot) + self._answer(shot) for shot in self.pool[len(self.pool) - shots :]]
        return self.subtask.task_prefix + self.subtask.separator.join([*solved, self._shown(self.example)])

    def _shown(self, example: Example) -> str:
        subtask, choices = self.subtask, ""
        if example.choices and subtask.append_choices:
            order = name_rng(example.input, self.seed).permutation(len(example.choices))
            choices = "".join(subtask.choice_prefix + example.choices[index] for index in order)
        return subtask.input_prefix + example.input + choices + subtask.output_prefix

    def _answer(self, example: Example) -> str:
        if not self.subtask.by_choice:
            return example.targets[0]
        return str(name_rng(example.input, self.seed, 1).choice(example.best_choices))


def pick_questions(task: Task, most: int, seed: int) -> list[Question]:
    """A random part of a task's examples, the same for a seed, and as evenly from its subtasks as they have them."""
    by_subtask = []
    for subtask in task.subtasks:
        order = name_rng(subtask.name, seed, 1).permutation(len(subtask.examples))
        by_subtask.append([(subtask, int(index)) for index in order[:most]])
    by_subtask = [by_subtask[index] for index in name_rng(task.name, seed, 2).permutation(len(by_subtask))]
    in_turn = [pair for turn in zip_longest(*by_subtask) for pair in turn if pair is not None]
    return [_question(subtask, index, seed) for subtask, index in in_turn[:most]]


def _question(subtask: Subtask, index: int, seed: int) -> Question:
    example = subtask.examples[index]
    order = name_rng(subtask.name, seed, 3 + index).permutation(len(subtask.examples))
    others = (subtask.examples[other] for other in order)
    pool = [
        other for _, other in zip(range(MOST_SHOTS + 1), others, strict=False) if other.input != example.input
    ]
    return Question(subtask, example, tuple(pool[:MOST_SHOTS]), seed)


@dataclass(frozen=True)
class Fitted:
    """A question in a model's tokens, with room for the answer after it."""

    prompt_T: np.ndarray
    tails: list[np.ndarray]
    """The choices."""
    shots: int
    """Those that were left."""
    is_cut: bool
    """The question alone was too long, and lost its beginning."""


def fit_questions(
    questions: Sequence[Question], shots: int, vocab: Vocab, context: int, room: int
) -> list[Fitted | None]:
    """Questions that fit the context with their longest choice, or with `room` tokens to write in.

    Too long a prompt loses shots, the first ones first, and then the beginning of what is left. A question with a
    choice that is longer than the context, or that the vocabulary cannot write, cannot be asked: None.
    """
    left = [min(shots, len(question.pool)) for question in questions]
    texts = [_text(question, n) for question, n in zip(questions, left, strict=True)]
    prompts = vocab.encode_batch([prompt for prompt, _ in texts])
    choices = [question.example.choices if question.subtask.by_choice else () for question in questions]
    encoded = iter(
        vocab.encode_batch(
            [space + choice for (_, space), own in zip(texts, choices, strict=True) for choice in own]
        )
    )
    tails = [[next(encoded).astype(np.int64) for _ in own] for own in choices]
    most = [context - max(map(len, own), default=room) for own in tails]
    for fewer in range(shots - 1, -1, -1):
        long = [i for i, prompt_T in enumerate(prompts) if len(prompt_T) > most[i] and left[i] > fewer]
        for i, prompt_T in zip(
            long, vocab.encode_batch([_text(questions[i], fewer)[0] for i in long]), strict=True
        ):
            prompts[i], left[i] = prompt_T, fewer
    return [
        Fitted(prompt_T[-n:].astype(np.int64), own, kept, len(prompt_T) > n)
        if n > 0 and len(prompt_T) and all(map(len, own))
        else None
        for prompt_T, own, kept, n in zip(prompts, tails, left, most, strict=True)
    ]


def _text(question: Question, shots: int) -> tuple[str, str]:
    """The prompt without the spaces at its end, and those: to a tokenizer they begin the next word."""
    prompt = question.prompt(shots)
    bare = prompt.rstrip(" ")
    return bare, prompt[len(bare) :]


def answer_tokens(questions: Sequence[Question], vocab: Vocab, most: int) -> int:
    """Tokens to write: more than the longest right answer has, and one of few numbers (8, 32, 128, ...)."""
    targets = [" " + target for question in questions for target in question.example.targets]
    longest = max(len(ids) for ids in vocab.encode_batch(targets))
    n_tokens = 8
    while n_tokens <= longest:
        n_tokens *= 4
    return min(most, n_tokens)


def find_answer(subtask: Subtask, written: str) -> str:
    """What of a model's text counts: up to the stop string and with it, then the pattern's first match."""
    place = written.find(subtask.stop_string) if subtask.stop_string else -1
    if place > 0:
        written = written[: place + len(subtask.stop_string)]
    if subtask.output_regex:
        found = re.search(subtask.output_regex, written.strip())
        groups = found.re.groups if found else 0
        written = (found.group(1) if groups == 1 else found.group(0)) or "" if found else ""
    return written.strip()
