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
    encoded = vocab.encode_batch([_text(question, shots)[0] for question in questions])
    fitted: list[Fitted | None] = []
    for question, prompt_T in zip(questions, encoded, strict=True):
        _, space = _text(question, shots)
        choices = question.example.choices if question.subtask.by_choice else ()
        tails = [ids.astype(np.int64) for ids in vocab.encode_batch([space + choice for choice in choices])]
        most = context - max(map(len, tails), default=room)
        left = min(shots, len(question.pool))
        while len(prompt_T) > most and left > 0:
            left -= 1
            prompt_T = vocab.encode(_text(question, left)[0])
        if most < 1 or not all(map(len, tails)) or not len(prompt_T):
            fitted.append(None)
        else:
            fitted.append(Fitted(prompt_T[-most:].astype(np.int64), tails, left, len(prompt_T) > most))
    return fitted


def _text(question: Question, shots: int) -> tuple[str, str]:
    """The prompt without the spaces at its end, and those: to a tokenizer they begin the next word."""
    prompt = question.prompt(min(shots, len(question.pool)))
    bare = prompt.rstrip(" ")
    return bare, prompt[len(bare) :]


def answer_tokens(questions: Sequence[Question], vocab: Vocab, most: int) -> int:
    """Tokens to write: room for the longest right answer, in few different numbers."""
    targets = [" " + target for question in questions for target in question.example.targets]
    longest = max(len(ids) for ids in vocab.encode_batch(targets))
    return min(most, max(8, 1 << longest.bit_length()))


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
