"""Reading a cipher of words: which true word each made-up one stands for, by a lexinvariant model of tokens.

A made-up word would fall into meaningless pieces under the model's tokenizer, so it is not tokenized: every word,
with the blank before it, is one symbol, as a true word is to the model that was trained on a tokenizer's stream.
What stands in clear between words goes through the tokenizer. To a lexinvariant model only equality counts.

W true words, S made-up ones, V tokens, N positions, T pieces of a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from lexinvariant.checks import whole_number
from lexinvariant.decipher.symbol_posterior import read_windows
from lexinvariant.decipher.votes import longest_window, windows
from lexinvariant.decipher.word_cipher import LIKELY, WORDS, WORDS_AND_MARKS, replace_words
from lexinvariant.errors import UserError
from lexinvariant.model.weights import Weights
from lexinvariant.progress import Log, Progress
from lexinvariant.text import HuggingFaceVocab

FEWEST_WORDS = 5
MOST_WORDS = 2_000  # different ones: the table of their probabilities stays at some hundred megabytes
SHARPENING = 0.2
"""A mean over n occurrences says less than all of them together, so it is raised to the power n^0.2. With that, the
share of words that is right in enciphered held-out prose of 60 to 480 words is within 2 points of what is expected."""
_BLANKS = ("\u0120", "\u2581")  # how byte-level and SentencePiece tokenizers write the blank before a word

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WordReading:
    """What every made-up word of a text stands for."""

    text: str
    """As it was given."""
    words: tuple[str, ...]
    """Its made-up words in small letters, in the order in which they come."""
    counts: tuple[int, ...]
    """How often each of them stands in the text."""
    names: tuple[str, ...]
    """What they may stand for: whole words of the model's tokenizer, in small letters."""
    probs: Floats
    """(words, names): by the deciphering head, over all occurrences and draws; rows sum to 1."""
    key: dict[str, str]
    """Made-up word to true one. No two stand for the same, and the most words of the text are expected to be right."""
    pattern: re.Pattern[str]
    """What counted as a word of the text."""

    @cached_property
    def confidence(self) -> dict[str, float]:
        """The probability that the key is right about a word."""
        number = {name: w for w, name in enumerate(self.names)}
        return {word: float(self.probs[s, number[self.key[word]]]) for s, word in enumerate(self.words)}

    def best(self, word: str, top: int = 5) -> dict[str, float]:
        """The likeliest names of a made-up word; other words may have the same ones."""
        if word not in self.words:
            raise KeyError(f"{word!r} is not in the text")
        row = self.probs[self.words.index(word)]
        return {self.names[w]: float(row[w]) for w in np.argsort(-row, kind="stable")[:top]}

    def pieces(self, likely: float = LIKELY) -> list[tuple[str, str | None]]:
        """The text with the key's words in it, capitals where they were, and beside each the made-up word (None of what
        lies between); a word that the key is less sure of stays."""
        sure = self.confidence
        written = {word: name if sure[word] >= likely else word for word, name in self.key.items()}
        return list(replace_words(self.pattern, self.text, written))

    def plaintext(self, likely: float = LIKELY) -> str:
        """The same as one text."""
        return "".join(piece for piece, _ in self.pieces(likely))

    def n_right(self, truth: Mapping[str, str]) -> int:
        """How many of the text's words the key has right."""
        return sum(
            n for word, n in zip(self.words, self.counts, strict=True) if self.key[word] == truth[word]
        )

    @property
    def n_expected(self) -> float:
        """How many of the text's words the key is expected to have right."""
        return sum(n * self.confidence[word] for word, n in zip(self.words, self.counts, strict=True))

    def to_json(self, top: int = 3, likely: float = LIKELY) -> dict[str, Any]:
        return {
            "plaintext": self.plaintext(likely),
            "words": [
                {
                    "word": word,
                    "count": count,
                    "name": self.key[word],
                    "probability": round(self.confidence[word], 6),
                    "guesses": {name: round(p, 6) for name, p in self.best(word, top).items()},
                }
                for word, count in zip(self.words, self.counts, strict=True)
            ],
            "n_words": sum(self.counts),
            "n_expected": round(self.n_expected, 3),
        }


def check_word_model(model: Weights) -> None:
    """Complains unless the model can name words."""
    if not isinstance(model.vocab, HuggingFaceVocab):
        what = "it reads characters, not words"
    elif not model.config.lexicon.is_lexinvariant:
        what = "it is a standard model, which knows words by their names alone"
    elif model.params.decipher is None:
        what = "it has no deciphering head (--model.decipher-head)"
    elif model.vocab.size > model.config.vocab_size:
        what = (
            f"its tokenizer has {model.vocab.size} tokens and it was trained with {model.config.vocab_size}, so the "
            "tokenizer.json is not its own"
        )
    else:
        return
    raise UserError(
        f"This model cannot name words, since {what}: give a lexinvariant model of tokens with a deciphering head, "
        "such as `lexinvariant train tokens-small` makes."
    )


def word_names(vocab: HuggingFaceVocab, marks_too: bool = False) -> tuple[tuple[str, ...], Ints]:
    """(names, name_V): the words that are one token, and which of them each token is, one beyond the last if none.

    " The", " the" and "the" are one word; what never follows a blank, such as "ation", is a piece of one and no word.
    """
    pattern = WORDS_AND_MARKS if marks_too else WORDS
    written = [vocab.tokenizer.id_to_token(v) or "" for v in range(vocab.size)]
    marks_blanks = any(token.startswith(_BLANKS) for token in written)
    whole: dict[int, str] = {}
    numbers: dict[str, int] = {}
    for v, token in enumerate(written):
        text = vocab.decode([v])
        match = pattern.fullmatch(text)
        if match and match["word"]:
            whole[v] = match["word"].lower()
            if token.startswith(_BLANKS) or not marks_blanks or not whole[v].isalpha():
                numbers.setdefault(whole[v], len(numbers))
    name_V = np.full(vocab.size, len(numbers), np.int64)
    for v, word in whole.items():
        name_V[v] = numbers.get(word, len(numbers))
    return tuple(numbers), name_V


def read_words(
    model: Weights, text: str, *, marks_too: bool = False, draws: int = 1, log: Log | None = None
) -> WordReading:
    """What each made-up word of a text stands for; with `marks_too`, numbers and marks are made up as well.

    A text longer than the context is read in windows, and `log` is told how far that has come.
    """
    check_word_model(model)
    assert isinstance(model.vocab, HuggingFaceVocab)
    if whole_number(draws, "draws") < 1:
        raise UserError(f"{draws} draws of the lexicon are none to read with: give 1 or more.")
    pattern = WORDS_AND_MARKS if marks_too else WORDS
    symbol_T, word_T, words = _pieces(text, pattern, model.vocab)
    names, name_V = word_names(model.vocab, marks_too)
    _check_words(len(words), int((word_T >= 0).sum()), len(names))
    n_symbols = int(symbol_T.max()) + 1
    if n_symbols > model.config.vocab_size:
        raise UserError(
            f"The text has {n_symbols} different words and marks and the model knows {model.config.vocab_size}: "
            "give a shorter one."
        )
    # A word's symbols differ in capitals and in the blank before them; what is said of any of them counts for it.
    word_S = np.full(n_symbols, -1)
    word_S[symbol_T] = word_T
    n_windows = len(windows(len(symbol_T), longest_window(model.config), None))
    total_SW = np.full((len(words), len(names)), 1e-30)  # so that a row has a sum whatever the head says
    progress = Progress("reading", n_windows * draws, log) if log else nullcontext(lambda n: None)
    name_V = np.append(name_V, np.full(model.config.vocab_size - len(name_V), len(names)))
    with progress as advance:
        for window, logp_TV in read_windows(model, symbol_T, draws, most=None):
            word_N = word_S[window.symbol_T[window.counted]]
            p_TW = np.asarray(_sum_by_name(logp_TV, jnp.asarray(name_V), len(names) + 1), np.float64)
            p_NW = p_TW[window.counted]
            np.add.at(total_SW, word_N[word_N >= 0], p_NW[word_N >= 0, :-1])
            advance(1)
    count_S = np.bincount(word_T[word_T >= 0], minlength=len(words))
    probs_SW = (total_SW / total_SW.sum(axis=1, keepdims=True)) ** (count_S[:, None] ** SHARPENING)
    probs_SW /= probs_SW.sum(axis=1, keepdims=True)
    row_S, name_S = linear_sum_assignment(count_S[:, None] * probs_SW, maximize=True)
    key = {words[s]: names[w] for s, w in zip(row_S.tolist(), name_S.tolist(), strict=True)}
    return WordReading(text, words, tuple(count_S.tolist()), names, probs_SW, key, pattern)


@partial(jax.jit, static_argnames=("n",))
def _sum_by_name(logp_TV: jax.Array, name_V: jax.Array, n: int) -> jax.Array:
    return jax.ops.segment_sum(jnp.exp(logp_TV).T, name_V, n).T


def _pieces(
    text: str, pattern: re.Pattern[str], vocab: HuggingFaceVocab
) -> tuple[Ints, Ints, tuple[str, ...]]:
    """(symbol_T, word_T, words): the text as a lexinvariant model sees it, numbered in the order in which pieces come;
    the number of each piece's word, -1 of what stands in clear; and the words."""
    symbols: dict[str | int, int] = {}
    words: dict[str, int] = {}
    symbol_T: list[int] = []
    word_T: list[int] = []

    def add(piece: str | int, word: int) -> None:
        symbol_T.append(symbols.setdefault(piece, len(symbols)))
        word_T.append(word)

    end = 0
    for match in (match for match in pattern.finditer(text) if match["word"]):
        for token in vocab.encode(text[end : match.start()]).tolist():
            add(token, -1)
        word = match["word"].lower()
        add(match[0], words.setdefault(word, len(words)))
        end = match.end()
    for token in vocab.encode(text[end:]).tolist():
        add(token, -1)
    return np.array(symbol_T, np.int64), np.array(word_T, np.int64), tuple(words)


def _check_words(n_different: int, n: int, n_names: int) -> None:
    if n < FEWEST_WORDS:
        many = ("no word", "one word")[n] if n < 2 else f"{n} words"
        raise UserError(
            f"The text has {many}, too few to read anything from: give at least {FEWEST_WORDS}, and better a hundred."
        )
    most = min(MOST_WORDS, n_names)
    if n_different > most:
        raise UserError(
            f"The text has {n_different:,} different words and at most {most:,} can be named at once: give a shorter "
            "one."
        )
