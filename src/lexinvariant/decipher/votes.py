"""A text in windows of a model's context, and the mean of what its deciphering head says of each symbol: all of naming
symbols but for the network itself, for readers with and without jax.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.padding import bucket
from lexinvariant.text import HuggingFaceVocab, Vocab

MAX_WINDOWS = 4

Floats = NDArray[np.float64]


class DescribedModel(Protocol):
    """What has to be known of a model here."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def vocab(self) -> Vocab: ...


def check_head(model: DescribedModel) -> None:
    if (
        not model.config.decipher_head
        or isinstance(model.vocab, HuggingFaceVocab)
        or not model.config.lexicon.is_lexinvariant
    ):
        raise UserError(
            "This model cannot name symbols: give a lexinvariant model of characters that has a deciphering head "
            "(--model.decipher-head)."
        )


def n_copies(config: ModelConfig) -> int:
    """A causal model has seen nothing when it names the first symbols of a text, so it reads the text twice, and what
    it says the second time counts."""
    return 1 if config.has_hindsight else 2


def longest_window(config: ModelConfig) -> int:
    return config.context // n_copies(config)


def windows(n: int, longest: int, most: int | None = MAX_WINDOWS) -> list[slice]:
    """Evenly spread windows that cover a text, as far as `most` of them can."""
    if n <= longest:
        return [slice(0, n)]
    needed = -(-n // longest)
    starts = np.linspace(0, n - longest, min(most or needed, needed)).round().astype(int)
    return [slice(start, start + longest) for start in starts.tolist()]


@dataclass(frozen=True)
class Window:
    """A part of a text as the model reads it."""

    symbol_T: NDArray[np.int32]  # repeated, to fill a power of two
    n_read: int
    """The part's own length: what hindsight may look at."""
    counted: slice
    """The positions at which the head's word counts."""


def read_in_windows(
    config: ModelConfig, symbol_T: NDArray[np.integer[Any]], most: int | None = MAX_WINDOWS
) -> Iterator[Window]:
    """The windows of a text."""
    copies, longest = n_copies(config), longest_window(config)
    length = copies * min(longest, bucket(min(len(symbol_T), longest)))
    for window in windows(len(symbol_T), longest, most):
        part = symbol_T[window]
        counted = slice(len(part)) if copies == 1 else slice(len(part), None)
        yield Window(np.resize(part, length).astype(np.int32), len(part), counted)


def mean_by_symbol(
    model: DescribedModel,
    votes: Iterable[tuple[NDArray[np.integer[Any]], Any]],
    n_symbols: int,
    characters: str,
) -> Floats:
    """logp_SC: which character each symbol is, as a mean over votes, which are symbols and logp_NV of what each is.

    A character that the model does not know is as likely as any.
    """
    total_SV, n_S = np.zeros((n_symbols, model.config.vocab_size)), np.zeros(n_symbols)
    for symbol_N, logp_NV in votes:
        np.add.at(total_SV, symbol_N, np.asarray(logp_NV, np.float64))
        n_S += np.bincount(symbol_N, minlength=n_symbols)
    unknown = -np.log(model.config.vocab_size)
    mean_SV = np.where(n_S[:, None] > 0, total_SV / np.maximum(n_S, 1)[:, None], unknown)
    mean_SV = np.column_stack([mean_SV, np.full(n_symbols, unknown)])
    token_of = {
        character: token for token, character in enumerate(model.vocab.decode(range(model.vocab.size)))
    }
    return mean_SV[:, [token_of.get(character, -1) for character in characters]]
