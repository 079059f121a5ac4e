"""A small made-up language whose entropy is known exactly: a 12-symbol Markov chain, generated on the fly.

It needs no files, so demos and tests can watch a model learn and compare its loss with the known limit.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from lexinvariant.checks import whole_number
from lexinvariant.errors import UserError
from lexinvariant.text.batch import Batch, check_pieces, check_split_name, shuffled_pieces
from lexinvariant.text.hashing import key_of, scramble
from lexinvariant.text.vocab import LetterVocab

_SYMBOLS = 12
_GRAIN = 1 << 12  # probabilities are multiples of 1/4096, so every machine draws the very same text
_PIECES = 1 << 20
_SEED, _CONCENTRATION = 30, 0.3  # give a unigram entropy of 2.20 nats and an entropy rate of 1.40


def _transition_counts() -> NDArray[np.int64]:
    """Row i: out of 4096 times, how often each symbol follows symbol i."""
    # RandomState's streams are frozen by NumPy's compatibility policy; those of newer generators are not.
    drawn = np.random.RandomState(_SEED).dirichlet([_CONCENTRATION] * _SYMBOLS, _SYMBOLS)
    counts = np.floor(drawn * (_GRAIN - _SYMBOLS)).astype(np.int64) + 1
    counts[np.arange(_SYMBOLS), counts.argmax(axis=1)] += _GRAIN - counts.sum(axis=1)
    return counts


class MarkovLanguage:
    """Twelve letters, each drawn from a fixed distribution that depends on the one before."""

    name = "markov12"

    def __init__(self) -> None:
        self.vocab = LetterVocab(_SYMBOLS)
        self.vocab_size = _SYMBOLS
        self.tokens_by_tag: dict[str, int] = {}  # it has no end, so there is nothing to count
        counts = _transition_counts()
        self.transition = counts / _GRAIN
        self.fingerprint = hashlib.sha256(counts.astype("<i8").tobytes()).hexdigest()
        self.stationary = np.linalg.matrix_power(self.transition, 1 << 12)[0]
        self.unigram_entropy = float(_entropy(self.stationary))
        self.entropy_rate = float(self.stationary @ _entropy(self.transition))
        self._thresholds = np.cumsum(counts, axis=1)[:, :-1]
        self._first_thresholds = np.floor(np.cumsum(self.stationary) * _GRAIN)[:-1].astype(np.int64)

    def split(self, name: str, length: int, packed: bool = False) -> "MarkovPieces":
        """Sequences of `length` symbols; there is no padding, so `packed` changes nothing."""
        check_split_name(name)
        length = whole_number(length, "length")
        if length < 1:
            raise UserError(f"sequences of {length} symbols cannot be made: give a length of 1 or more")
        return MarkovPieces(self, name, length)

    def generate(self, split: str, piece_B: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """Sequence number `piece_B[b]` of the split in each row; a longer one begins with the shorter one."""
        stream_B = scramble(piece_B.astype(np.uint64) ^ np.uint64(key_of(self.name, split)))
        time_T = scramble(np.arange(length, dtype=np.uint64) ^ np.uint64(key_of(self.name, "time")))
        uniform_BT = scramble(stream_B[:, None] ^ time_T) >> np.uint64(52)  # below 4096
        draw_BT = uniform_BT.astype(np.int64)
        tok_BT = np.empty((len(piece_B), length), np.int32)
        tok_BT[:, 0] = np.searchsorted(self._first_thresholds, draw_BT[:, 0], side="right")
        for t in range(1, length):
            tok_BT[:, t] = (self._thresholds[tok_BT[:, t - 1]] <= draw_BT[:, t, None]).sum(axis=1)
        return tok_BT


class MarkovPieces:
    """One split of the language: 2**20 sequences, made when they are asked for."""

    def __init__(self, language: MarkovLanguage, name: str, length: int) -> None:
        self._language, self.name, self.length = language, name, length

    def __len__(self) -> int:
        return _PIECES

    def __getitem__(self, piece_B: NDArray[np.int64] | list[int], /) -> Batch:
        piece_B = check_pieces(piece_B, len(self))
        tok_BT = self._language.generate(self.name, piece_B, self.length)
        return Batch(tok_BT, np.ones(tok_BT.shape, np.bool_), np.ones(len(piece_B), np.bool_), piece_B)

    def batch(self, seed: int, step: int, size: int, rows: slice | range = slice(None)) -> Batch:
        """Rows `rows` of batch `step` of an endless shuffled stream: a pure function of its arguments."""
        return self[shuffled_pieces(len(self), seed, step, size, rows)]


def _entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """In nats, over the last axis; every probability here is positive."""
    return -(p * np.log(p)).sum(axis=-1)
