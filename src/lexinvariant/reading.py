"""Texts as a model's symbols: what every object that users hold shares, with and without jax."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.decipher.votes import Floats, check_head
from lexinvariant.errors import UserError
from lexinvariant.model.ranks import check_prompt, check_sampling
from lexinvariant.text import HuggingFaceVocab, Vocab


@dataclass(frozen=True, eq=False)
class Logits:
    """Normalised logits: log-probabilities, in nats, of every next symbol at every position of a text."""

    log_probs: np.ndarray
    """(T + 1, V): row t is over the symbol that follows the first t of the text, the last row over what comes next."""
    symbols: tuple[str, ...]
    """What the V columns stand for. Of a lexinvariant model of characters: the text's own, in the order in which they
    come, then others, which it cannot tell apart."""


@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth: each object is itself
class Posterior:
    """What every symbol of a text stands for, by the deciphering head."""

    symbols: tuple[str, ...]
    """The text's own, in the order in which they come."""
    characters: tuple[str, ...]
    """What they may stand for: the model's vocabulary."""
    probs: np.ndarray
    """(symbols, characters); rows sum to 1."""

    def __contains__(self, symbol: object) -> bool:
        return symbol in self.symbols

    def __iter__(self) -> Iterator[str]:
        return iter(self.symbols)

    def __len__(self) -> int:
        return len(self.symbols)

    def __getitem__(self, symbol: str) -> dict[str, float]:
        """Every character's probability, the likeliest first."""
        if symbol not in self.symbols:
            raise KeyError(f"{symbol!r} is not in the text")
        row = self.probs[self.symbols.index(symbol)]
        return {self.characters[c]: float(row[c]) for c in np.argsort(-row, kind="stable")}

    @property
    def best(self) -> dict[str, str]:
        """The likeliest character of every symbol; two symbols may have the same one."""
        return {
            symbol: self.characters[c]
            for symbol, c in zip(self.symbols, self.probs.argmax(axis=1), strict=True)
        }


class ReadsText:
    """Encoding, checks and warnings, for a class that has a model's configuration and vocabulary."""

    config: ModelConfig
    vocab: Vocab

    def _alphabet(self, text: str) -> str | None:
        """For a lexinvariant model of characters, names for its symbols: the text's own, then others.

        Names mean nothing to such a model, so a text may be written in any.
        """
        if not self.config.lexicon.is_lexinvariant or isinstance(self.vocab, HuggingFaceVocab):
            return None
        used = "".join(dict.fromkeys(text))
        self._check_number_of_symbols(len(used))
        others = self.vocab.decode(range(self.vocab.size)).translate(dict.fromkeys(map(ord, used)))
        # A model may have more symbols than its vocabulary has names: private characters name the rest.
        private = (
            chr(code) for code in range(0xE000, 0xE000 + self.config.vocab_size) if chr(code) not in used
        )
        spare = islice(private, max(0, self.config.vocab_size - len(used) - len(others)))
        return (used + others + "".join(spare))[: self.config.vocab_size]

    def _encode(self, text: str, alphabet: str | None) -> np.ndarray:
        if alphabet is None:
            if dropped := self.vocab.fold(text)[1]:
                warnings.warn(
                    f"The model does not know {dropped} of the text's {len(text)} characters, which are left out: "
                    "replace them, or take a lexinvariant model, which reads any.",
                    stacklevel=3,
                )
            return self.vocab.encode(text).astype(np.int64)
        number = {character: i for i, character in enumerate(alphabet)}
        return np.fromiter((number[character] for character in text), np.int64, len(text))

    def _decode(self, tokens: np.ndarray, alphabet: str | None) -> str:
        if alphabet is None:
            return self.vocab.decode(tokens[tokens < self.vocab.size])  # as in `_names`, others have none
        return "".join(alphabet[i] for i in tokens)

    def _names(self, alphabet: str | None) -> tuple[str, ...]:
        """What each token of the model stands for."""
        size, known = self.config.vocab_size, self.vocab.size
        return tuple(alphabet or [self.vocab.decode([i]) if i < known else "" for i in range(size)])

    def _check_number_of_symbols(self, n: int) -> None:
        if n > self.config.vocab_size:
            raise UserError(
                f"The text has {n} different characters and the model knows {self.config.vocab_size} symbols: "
                "shorten or simplify it."
            )

    def _warn_beyond_context(self, tokens: Sequence[np.ndarray], stacklevel: int = 3) -> None:
        longest = max(map(len, tokens), default=0)
        if longest > self.config.context:
            self._warn(f"A text has {longest}", "cut it into pieces", stacklevel)

    def _warn(self, what: str, remedy: str, stacklevel: int) -> None:
        warnings.warn(
            f"{what} tokens, and the model was trained on {self.config.context} at a time: {remedy}, or take what lies "
            "beyond with caution.",
            stacklevel=stacklevel + 1,
        )

    def _prompt(
        self,
        prompt: str,
        n_tokens: int,
        temperature: float,
        top_k: int | None,
        seed: int,
        stacklevel: int = 3,
    ) -> tuple[str | None, np.ndarray]:
        """A prompt's names and tokens, once it is sure that it can be continued in this way."""
        check_sampling(self.config, n_tokens, temperature, top_k, seed)
        alphabet = self._alphabet(checked_text(prompt))
        tok_T = self._encode(prompt, alphabet)
        check_prompt(self.config, tok_T, n_tokens)
        if (length := len(tok_T) + n_tokens) > self.config.context:
            self._warn(f"The prompt and its continuation have {length}", "ask for fewer tokens", stacklevel)
        return alphabet, tok_T

    def _posterior(
        self, text: str | Sequence[str], name_symbols: Callable[[np.ndarray, int, str], Floats]
    ) -> Posterior:
        """By a function from a text's symbols, their number and the characters to logp_SC of what each symbol is."""
        check_head(self)
        symbols = distinct_symbols(text)
        if not symbols:
            raise UserError("The text is empty, so there is nothing to name: give one with symbols in it.")
        self._check_number_of_symbols(len(symbols))
        number = {symbol: i for i, symbol in enumerate(symbols)}
        characters = self.vocab.decode(range(self.vocab.size))
        symbol_T = np.array([number[symbol] for symbol in text])
        logp_SC = name_symbols(symbol_T, len(symbols), characters)
        probs = np.exp(logp_SC - np.logaddexp.reduce(logp_SC, axis=1, keepdims=True))
        return Posterior(symbols, tuple(characters), probs)


def type_of(value: object) -> str:
    return f"a value of type {type(value).__name__}"


def checked_text(text: object) -> str:
    if not isinstance(text, str):
        raise UserError(f"Give texts as str, not {type_of(text)}.")
    return text


def texts_to_score(texts: object) -> list[str]:
    """One text or several, once it is sure that these are texts."""
    if isinstance(texts, str):
        return [texts]
    if isinstance(texts, bytes) or not isinstance(texts, Iterable):
        raise UserError(f"Give a text or a list of texts to score, not {type_of(texts)}.")
    return [checked_text(text) for text in texts]


def _is_text(symbol: str) -> bool:
    """Whether words stand side by side in it, with a space between them, as in no symbol of a cipher."""
    is_word = [any(map(str.isalpha, part)) for part in symbol.split()]
    return any(a and b for a, b in pairwise(is_word))


def distinct_symbols(text: str | Sequence[str]) -> tuple[str, ...]:
    """In the order in which they come, once it is sure that these are symbols."""
    if isinstance(text, str):
        return tuple(dict.fromkeys(text))
    symbols = list(text) if isinstance(text, Iterable) and not isinstance(text, bytes) else [text]
    for symbol in symbols:
        if not isinstance(symbol, str):
            raise UserError(f"Give a text, or a list of symbols that are str, not {type_of(symbol)}.")
        if _is_text(symbol):
            raise UserError(
                f"A list is a list of symbols, and {reprlib.repr(symbol)} in it looks like a text: give one text at a "
                "time."
            )
    return tuple(dict.fromkeys(symbols))
