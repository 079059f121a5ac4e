"""What every text source gives to training and scoring: batches that are pure functions of an address."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lexinvariant.errors import UserError
from lexinvariant.text.hashing import key_of, permute
from lexinvariant.text.vocab import Vocab

SPLITS = ("train", "valid", "test")


class Batch(NamedTuple):
    """B sequences of T tokens; `mask_BT` is False on padding, whose token is 0."""

    tok_BT: NDArray[np.int32]
    mask_BT: NDArray[np.bool_]
    named_B: NDArray[
        np.bool_
    ]  # False where symbols stand for words (word_symbols.py): their names say nothing
    piece_B: NDArray[np.int64]  # index of each sequence in its split: the address for evaluation randomness


class Split(Protocol):
    """The pieces of one split, all of one length."""

    @property
    def length(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, piece_B: NDArray[np.int64], /) -> Batch: ...

    def batch(self, seed: int, step: int, size: int, rows: slice | range = slice(None)) -> Batch: ...


class Data(Protocol):
    """A corpus on disk or a language made on the fly."""

    @property
    def vocab(self) -> Vocab: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def tokens_by_tag(self) -> dict[str, int]: ...

    def split(self, name: str, length: int, packed: bool = False) -> Split: ...


def check_split_name(name: str) -> None:
    if name not in SPLITS:
        raise UserError(f"there is no split {name!r}: choose one of {', '.join(SPLITS)}")


def check_pieces(piece_B: NDArray[np.int64] | list[int], n_pieces: int) -> NDArray[np.int64]:
    """The indices as an int64 vector; those outside the split are an error, never wrapped around."""
    checked_B = np.atleast_1d(np.asarray(piece_B, np.int64))
    if checked_B.size and (checked_B.min() < 0 or checked_B.max() >= n_pieces):
        raise IndexError(f"piece indices must lie in [0, {n_pieces})")
    return checked_B


def shuffled_pieces(
    n_pieces: int, seed: int, step: int, size: int, rows: slice | range = slice(None)
) -> NDArray[np.int64]:
    """The pieces that rows `rows` of batch `step` hold; hosts that take disjoint rows share one global batch."""
    return shuffled(stream_positions(step, size, rows), n_pieces, seed)


def stream_positions(step: int, size: int, rows: slice | range = slice(None)) -> NDArray[np.int64]:
    """Row r of step s stands at position s*size + r of an endless stream."""
    if step < 0 or size < 1:
        raise ValueError(f"step must be >= 0 and size >= 1, not {step} and {size}")
    chosen = range(size)[rows] if isinstance(rows, slice) else rows
    if chosen and (min(chosen) < 0 or max(chosen) >= size):
        raise ValueError(f"rows {rows} do not lie in a batch of {size}")
    return step * size + np.array(chosen, np.int64)


def shuffled(position_B: NDArray[np.int64], n: int, *address: int | str) -> NDArray[np.int64]:
    """What stands at these positions of the stream: epoch after epoch of range(n), each shuffled anew."""
    epoch_B, index_B = np.divmod(position_B, n)
    for epoch in np.unique(epoch_B):
        here = epoch_B == epoch
        index_B[here] = permute(index_B[here], n, key_of(*address, "epoch", int(epoch)))
    return index_B
