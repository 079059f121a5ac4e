"""The paper's two symbol tasks, LookUp and Permutation, as token ids.

    A->2            A 2 C->C A
    C->4            4 1 D->D 4
    G->5
    C->4

A prompt ends with the last arrow and the answer follows it. Every answer can be worked out from its prompt alone:
the keys of a lookup table differ from each other, and so do the symbols of a sequence that is to be permuted.
Nothing here knows of models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.generators import generator_at
from lexinvariant.results.synthetic import Drawn, TaskName
from lexinvariant.text import HuggingFaceVocab, Vocab

ARROW, GAP = "->", " "


@dataclass(frozen=True)
class Alphabet:
    """What examples are written in: symbols with the probability that each is drawn, and separators."""

    symbol_M: np.ndarray
    probability_M: np.ndarray
    arrow: np.ndarray
    line_end: np.ndarray
    gap: np.ndarray
    drawn: Drawn = "even"

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """N symbols, each drawn on its own."""
        return rng.choice(self.symbol_M, n, p=self.probability_M)

    def draw_distinct(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """N different symbols, drawn one after another from those that are left."""
        return rng.choice(self.symbol_M, n, replace=False, p=self.probability_M)

    @property
    def n_drawable(self) -> int:
        return int(np.count_nonzero(self.probability_M))


@dataclass(frozen=True)
class Examples:
    """Examples of one task: prompts of equal length, and what should follow each."""

    prompt_ST: np.ndarray
    answer_SN: np.ndarray
    """The symbols of the answer with the separators between them, and the line end that closes it."""
    is_symbol_N: np.ndarray
    """Which tokens of the answer are symbols: those that count."""

    def mark(self, written_SN: np.ndarray) -> Answers:
        """What was written after each prompt, compared with the answer."""
        return Answers(written_SN, written_SN == self.answer_SN, self.is_symbol_N)


@dataclass(frozen=True)
class LookUp:
    """A table of `pairs` lines and one of its keys again, whose value is the answer."""

    pairs: int = 3
    name: ClassVar[TaskName] = "LookUp"
    stream = 0  # of its random numbers

    @property
    def most_different(self) -> int:
        """How many different symbols one example must be able to draw."""
        return self.pairs

    def example(self, alphabet: Alphabet, rng: np.random.Generator) -> tuple[list[np.ndarray], list[int]]:
        key_P, value_P = alphabet.draw_distinct(rng, self.pairs), alphabet.draw(rng, self.pairs)
        asked = int(rng.integers(self.pairs))
        parts: list[np.ndarray] = []
        for key, value in zip(key_P, value_P, strict=True):
            parts += [key[None], alphabet.arrow, value[None], alphabet.line_end]
        return [*parts, key_P[asked, None], alphabet.arrow], [int(value_P[asked])]


@dataclass(frozen=True)
class Permutation:
    """`demonstrations` sequences of `length` symbols, each followed by `answer` of them in an order that is the
    same in all, and one more sequence, which is to be treated likewise.
    """

    demonstrations: int = 1
    length: int = 3
    answer: int = 2
    name: ClassVar[TaskName] = "Permutation"
    stream = 1

    @property
    def most_different(self) -> int:
        return self.length

    def example(self, alphabet: Alphabet, rng: np.random.Generator) -> tuple[list[np.ndarray], list[int]]:
        order_N = rng.permutation(self.length)[: self.answer]
        parts: list[np.ndarray] = []
        for _ in range(self.demonstrations):
            symbol_L = alphabet.draw_distinct(rng, self.length)
            parts += [_spaced(symbol_L, alphabet), alphabet.arrow]
            parts += [_spaced(symbol_L[order_N], alphabet), alphabet.line_end]
        symbol_L = alphabet.draw_distinct(rng, self.length)
        return [*parts, _spaced(symbol_L, alphabet), alphabet.arrow], symbol_L[order_N].tolist()


Task = LookUp | Permutation


def _spaced(symbol_L: np.ndarray, alphabet: Alphabet) -> np.ndarray:
    parts = [symbol_L[:1]]
    for symbol in symbol_L[1:]:
        parts += [alphabet.gap, symbol[None]]
    return np.concatenate(parts)


def check(task: Task) -> None:
    """Refuse a task that has no answer."""
    if isinstance(task, LookUp) and task.pairs < 1:
        raise UserError(
            f"A lookup table of {task.pairs} pairs has nothing to look up: give --pairs 1 or more."
        )
    if isinstance(task, Permutation) and not (task.demonstrations >= 1 and 1 <= task.answer <= task.length):
        raise UserError(
            f"Permutation with {task.demonstrations} demonstrations, sequences of {task.length} and answers of "
            f"{task.answer} symbols cannot be solved: give --demonstrations 1 or more and an --answer from 1 to "
            "--length."
        )


def make_examples(task: Task, alphabet: Alphabet, n: int, seed: int) -> Examples:
    """N examples; the k-th is the same however many are made."""
    check(task)
    if alphabet.n_drawable < max(2, task.most_different):
        raise UserError(
            f"{task.name} needs {max(2, task.most_different)} different symbols and the vocabulary has "
            f"{alphabet.n_drawable} that can be drawn: choose a smaller example, or a larger vocabulary (or text)."
        )
    prompts, answers = [], []
    for k in range(n):
        rng = generator_at(seed, task.stream, k)
        parts, answer = task.example(alphabet, rng)
        prompts.append(np.concatenate(parts))
        answers.append(np.concatenate([_spaced(np.array(answer), alphabet), alphabet.line_end]))
    between = len(alphabet.gap) + 1
    n_symbols = task.answer if isinstance(task, Permutation) else 1
    is_symbol_N = np.zeros(len(answers[0]), bool)
    is_symbol_N[: between * n_symbols : between] = True
    return Examples(np.stack(prompts), np.stack(answers), is_symbol_N)


def alphabet_of(vocab: Vocab, frequency_V: np.ndarray | None = None, line_end: str = "\n") -> Alphabet:
    """The symbols of a vocabulary, drawn uniformly or in proportion to how often each occurs.

    Of characters: the printable ones without the blank and those of the separators. Of a tokenizer: every token that
    is printable text and has, but for leading blanks (" the" is a symbol), none of the separators' characters; tokens
    are placed as ids, and each separator as the ids of its own encoding.
    """
    arrow, end, gap = separators = [vocab.encode(text).astype(np.int64) for text in (ARROW, line_end, GAP)]
    for text, ids in zip((ARROW, line_end, GAP), separators, strict=True):
        if not len(ids) or vocab.decode(ids).strip(" ") != text.strip(" "):
            raise UserError(
                f"The vocabulary {vocab.name} cannot write {text!r}, which separates the symbols of these tasks: give "
                "another model, or (for a tokenizer without line ends) another --line-end."
            )
    symbol_M = np.setdiff1d(_symbols(vocab, set(ARROW + line_end)), np.concatenate(separators))
    weight_M = np.ones(len(symbol_M)) if frequency_V is None else frequency_V[symbol_M].astype(np.float64)
    if not weight_M.any():
        raise UserError(f"The vocabulary {vocab.name} has no symbols that could be drawn: choose another.")
    drawn: Drawn = "even" if frequency_V is None else "frequency"
    return Alphabet(symbol_M, weight_M / weight_M.sum(), arrow, end, gap, drawn)


def _symbols(vocab: Vocab, reserved: set[str]) -> np.ndarray:
    tokens = list(range(vocab.size))
    if isinstance(vocab, HuggingFaceVocab):  # ids may have gaps, and markers such as </s> are not text
        markers = vocab.tokenizer.get_added_tokens_decoder()
        known = set(vocab.tokenizer.get_vocab(with_added_tokens=False).values())
        tokens = [i for i in tokens if i in known and i not in markers]
    bare = {i: vocab.decode([i]).strip(" ") for i in tokens}
    reserved = reserved | {"\N{REPLACEMENT CHARACTER}"}  # a byte of a character that takes several
    return np.array(
        [i for i, text in bare.items() if text and text.isprintable() and not reserved & set(text)]
    )


@dataclass(frozen=True)
class Answers:
    """What was written after the prompts, and where it is right: token by token, at its place in the answer."""

    written_SN: np.ndarray
    right_SN: np.ndarray
    is_symbol_N: np.ndarray

    @property
    def accuracy(self) -> float:
        """The paper's measure, as read here: the share of answer symbols that were generated right; separators
        are generated as well, but not counted.
        """
        return float(self.right_SN[:, self.is_symbol_N].mean())

    @property
    def accuracy_by_position(self) -> list[float]:
        return self.right_SN[:, self.is_symbol_N].mean(axis=0).tolist()

    @property
    def accuracy_with_separators(self) -> float:
        """The same over all generated tokens: gaps and the line end that closes the answer count too."""
        return float(self.right_SN.mean())

    @property
    def whole(self) -> float:
        """The share of answers all of whose symbols are right."""
        return float(self.right_SN[:, self.is_symbol_N].all(axis=1).mean())


def copied_from_another_line(examples: Examples, answers: Answers, alphabet: Alphabet) -> float:
    """The share of answers that are not right throughout and stand, word for word, after an earlier arrow."""
    n, arrow = answers.written_SN.shape[1], alphabet.arrow
    # No symbol is part of an arrow, so arrows stand at the same places in all prompts.
    first_T = examples.prompt_ST[0]
    places = [
        p + len(arrow)
        for p in range(len(first_T) - len(arrow) - n + 1)
        if np.array_equal(first_T[p : p + len(arrow)], arrow)
    ]
    same = [(examples.prompt_ST[:, place : place + n] == answers.written_SN).all(axis=1) for place in places]
    copied_S = np.any(same, axis=0) if same else np.zeros(len(examples.prompt_ST), np.bool_)
    return float(np.mean(copied_S & ~np.all(answers.right_SN, axis=1)))
