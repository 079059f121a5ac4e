"""A split in other proportions than its text has, and a part of a split."""

import numpy as np
from numpy.typing import NDArray

from lexinvariant.text.batch import Batch, check_pieces, shuffled, shuffled_pieces, stream_positions
from lexinvariant.text.corpus import Pieces
from lexinvariant.text.tags import weigh


class ChosenPieces:
    """Some pieces of a split, counted from 0."""

    def __init__(self, pieces: Pieces, chosen_P: NDArray[np.int64]) -> None:
        self._pieces, self._chosen_P = pieces, chosen_P
        self.length = pieces.length

    def __len__(self) -> int:
        return len(self._chosen_P)

    def __getitem__(self, piece_B: NDArray[np.int64] | list[int], /) -> Batch:
        return self._pieces[self._chosen_P[check_pieces(piece_B, len(self))]]

    def batch(self, seed: int, step: int, size: int, rows: slice | range = slice(None)) -> Batch:
        """Rows `rows` of batch `step` of an endless shuffled stream: a pure function of its arguments."""
        return self[shuffled_pieces(len(self), seed, step, size, rows)]


class WeightedPieces(ChosenPieces):
    """Every kind of text as often as its weight says: 2 is twice an epoch, 0.5 every other epoch, 0 never.

    An epoch has round(weight * pieces) places for a kind. They are filled from an endless stream of that kind's pieces,
    each pass over them shuffled anew, so that no piece comes back before all of its kind have been read.
    """

    def __init__(self, pieces: Pieces, weights: dict[str, float]) -> None:
        by_tag = pieces.pieces_by_tag
        weight_of = weigh(by_tag, weights, pieces.where)
        self._tags = [tag for tag in by_tag if weight_of[tag]]
        super().__init__(pieces, np.concatenate([by_tag[tag] for tag in self._tags]))
        self._size_K = np.array([len(by_tag[tag]) for tag in self._tags])
        places = [max(1, round(weight_of[tag] * len(by_tag[tag]))) for tag in self._tags]
        self._end_K = np.cumsum(places)

    def batch(self, seed: int, step: int, size: int, rows: slice | range = slice(None)) -> Batch:
        """Rows `rows` of batch `step` of an endless shuffled stream: a pure function of its arguments."""
        position_B, n_places = stream_positions(step, size, rows), int(self._end_K[-1])
        place_B, epoch_B = shuffled(position_B, n_places, seed), position_B // n_places
        kind_B = np.searchsorted(self._end_K, place_B, side="right")
        chosen_B = np.empty_like(place_B)
        for kind in np.unique(kind_B):
            here = kind_B == kind
            end, n = self._end_K[kind], int(self._size_K[kind])
            first = self._end_K[kind - 1] if kind else 0
            of_kind_B = epoch_B[here] * (end - first) + place_B[here] - first
            chosen_B[here] = self._size_K[:kind].sum() + shuffled(of_kind_B, n, seed, self._tags[kind])
        return self[chosen_B]
