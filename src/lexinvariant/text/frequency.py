"""What counting symbols alone tells of a text whose symbols have no names: the level at which a lexinvariant model
stands before it has learned to infer what symbols mean.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexinvariant.text.vocab import CharVocab

_NOTICEABLE = 0.02  # nats
_DISCOUNTS = (0.0, 0.25, 0.5, 0.75)
_NEW = (1.0, 4.0, 16.0)
_ADDED = (0.5, 2.0, 1000.0)  # the last is all but uniform: nothing better is known of a short text


class CountedText(NamedTuple):
    """The best that counting does on some texts."""

    nats_ST: NDArray[np.float64]
    """The loss on every symbol, each predicted by how often it has occurred so far in its sequence."""
    named_ST: NDArray[np.bool_]
    """Where frequency analysis names the symbol: the k-th most frequent one of a sequence is taken for the k-th most
    frequent one of all."""


def still_counting(
    loss: float, counting_loss: float, named: float | None = None, counting_named: float | None = None
) -> str | None:
    """What a lexinvariant model has not learned yet, in words; None where it has left the plateau that it learns from.

    Losses are in nats per symbol, and the others the shares of symbols named by its deciphering head, if it has one,
    and by frequency analysis.
    """
    if loss > counting_loss - _NOTICEABLE:
        return f"it predicts no better than counting symbols does ({loss:.2f} and {counting_loss:.2f} nats per symbol)"
    if named is not None and counting_named is not None and named <= counting_named:
        return f"it names {named:.0%} of the symbols, and frequency analysis {counting_named:.0%}"
    return None


def advice(vocab: str) -> str:
    """What to do about a model of this vocabulary that is still counting."""
    longer = "train with more --steps into another --out (--init RUN/model begins with the weights of a run)"
    if vocab != CharVocab.name:  # the bundled model reads no other
        return longer
    return f"{longer}, or start from a model that has learned it (train --init bundled)"


def count_text(tok_ST: NDArray[np.int32], vocab_size: int) -> CountedText:
    return CountedText(counting_losses(tok_ST, vocab_size), named_by_frequency(tok_ST, vocab_size))


def counting_losses(tok_ST: NDArray[np.int32], vocab_size: int) -> NDArray[np.float64]:
    """Of the best of a few estimators: some take a discount from counts for the unseen symbols, which share it evenly,
    and some add a constant to the counts of all symbols.
    """
    before_ST = occurrences(tok_ST) - 1
    is_new_ST = before_ST == 0
    distinct_ST = np.cumsum(is_new_ST, axis=1) - is_new_ST
    length_T = np.arange(tok_ST.shape[1])
    unseen_ST = np.maximum(vocab_size - distinct_ST, 1)

    def discounting(discount: float, new: float) -> NDArray[np.float64]:
        seen_ST = np.maximum(before_ST - discount, 1e-9)
        weight_ST = np.where(is_new_ST, (new + discount * distinct_ST) / unseen_ST, seen_ST)
        return np.log(length_T + new) - np.log(weight_ST)

    def adding(constant: float) -> NDArray[np.float64]:
        return np.log(length_T + constant * vocab_size) - np.log(before_ST + constant)

    candidates = [discounting(discount, new) for discount in _DISCOUNTS for new in _NEW] + [
        *map(adding, _ADDED)
    ]
    return min(candidates, key=np.mean)


def named_by_frequency(tok_ST: NDArray[np.int32], vocab_size: int) -> NDArray[np.bool_]:
    count_SV = np.stack([np.bincount(tok_T, minlength=vocab_size) for tok_T in tok_ST])
    common_V = np.argsort(-count_SV.sum(axis=0), kind="stable")
    # Ties go to the lower number in every sequence: that helps frequency analysis, never the model beside it.
    name_SV = np.empty_like(count_SV)
    np.put_along_axis(name_SV, np.argsort(-count_SV, axis=1, kind="stable"), common_V[None], axis=1)
    return np.take_along_axis(name_SV, tok_ST.astype(np.int64), axis=1) == tok_ST


def occurrences(tok_ST: NDArray[np.int32]) -> NDArray[np.int64]:
    """How often the token at each place has occurred in its sequence so far: 1 where it is new."""
    order_ST = np.argsort(tok_ST, axis=1, kind="stable")
    sorted_ST = np.take_along_axis(tok_ST, order_ST, axis=1)
    place_ST = np.broadcast_to(np.arange(tok_ST.shape[1]), tok_ST.shape)
    is_first_ST = np.diff(sorted_ST, axis=1, prepend=-1) != 0
    first_ST = np.maximum.accumulate(np.where(is_first_ST, place_ST, 0), axis=1)
    occurrence_ST = np.empty(tok_ST.shape, np.int64)
    np.put_along_axis(occurrence_ST, order_ST, place_ST - first_ST + 1, axis=1)
    return occurrence_ST
