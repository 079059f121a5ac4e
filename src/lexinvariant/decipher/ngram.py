"""A compact character n-gram: the first judge of a decipherment, small enough to come with the package.

It is an interpolated Kneser-Ney model, kept as one byte for every possible n-gram (the cost of its last symbol in
sixteenths of a nat): scoring is one look-up a symbol. The file stores only what differs from the next shorter n-gram:
a penalty for each context that was seen, and gains for the n-grams that begin with it.

`lexinvariant language build` counts the tables of a language; the same text gives the same bytes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexinvariant.errors import UserError
from lexinvariant.files import parse_json_object, read_small_file

SCALE = 16
"""Costs are whole numbers of 1/SCALE nats."""
MAX_COST = 255
LARGEST_TABLE = 1 << 28
"""Bytes: a few of a packed file may stand for any number of them."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 0}]

Ids = NDArray[np.integer]
Costs = NDArray[np.uint8]
Floats = NDArray[np.float32]
Values = NDArray[Any]


@dataclass(frozen=True)
class NGram:
    """cost_G[code of an n-gram] is -log p of its last symbol given the others, in 1/SCALE nats."""

    alphabet: str
    order: int
    cost_G: Costs

    @property
    def size(self) -> int:
        return len(self.alphabet)

    def padded(self, symbol_T: Ids, space: int) -> Ids:
        """With spaces before and after, where the alphabet has the space: a text begins and ends with a word."""
        if " " not in self.alphabet:
            return symbol_T
        return np.concatenate([np.full(self.order - 1, space), symbol_T, [space]])

    def counted(self, counts_T: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which symbols of a padded text count: the space after it where its last one does."""
        if " " not in self.alphabet or not len(counts_T):
            return counts_T
        return np.concatenate([np.ones(self.order - 1, bool), counts_T, counts_T[-1:]])

    def _joint_shares(self) -> NDArray[np.float64]:
        """joint_CV: how common each n-gram is in the long run."""
        p_CV = np.exp(-self.cost_G.reshape(-1, self.size).astype(np.float64) / SCALE)
        share_C = np.full(len(p_CV), 1 / len(p_CV))
        for _ in range(20):
            follow_CV = share_C[:, None] * p_CV
            share_C = follow_CV.reshape(self.size, -1).sum(axis=0) if self.order > 1 else np.ones(1)
            share_C /= share_C.sum()
        return share_C[:, None] * p_CV

    def stationary_distribution(self) -> NDArray[np.float64]:
        """How common each symbol is in the long run."""
        return self._joint_shares().sum(axis=0)

    def pair_costs(self) -> NDArray[np.float64]:
        """cost_VV[a, b]: -log p of symbol b after a, in nats; for an order of 2 or more."""
        pair_VV = self._joint_shares().reshape(self.size, self.size, -1).sum(axis=2) + 1e-9
        return -np.log(pair_VV / pair_VV.sum(axis=1, keepdims=True))

    def nats(self, text: str) -> float:
        """Total cost of a text over this alphabet."""
        symbol_T = np.array([self.alphabet.index(character) for character in text])
        symbol_T = self.padded(symbol_T, self.alphabet.find(" "))
        return float(self.cost_G[ngram_codes(symbol_T, self.order, self.size)].sum(dtype=np.int64)) / SCALE


def ngram_codes(symbol_T: Ids, order: int, size: int) -> NDArray[np.int64]:
    """The number of the n-gram that begins at each position."""
    n = max(0, len(symbol_T) - order + 1)
    code_T = np.zeros(n, np.int64)
    for i in range(order):
        code_T = code_T * size + symbol_T[i : n + i]
    return code_T


@dataclass(frozen=True)
class Counts:
    """How often each n-gram of a text occurs: the numbers of those that do, in order."""

    code_N: NDArray[np.int64]
    count_N: NDArray[np.int64]


def count_ngrams(texts: Iterable[str], alphabet: str, order: int, chunk: int = 1 << 24) -> list[Counts]:
    """counts[n-1] are those of n-grams, up to the order; about `chunk` symbols are counted at a time."""
    size = len(alphabet)
    totals = [Counts(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in range(order)]
    for symbol_T in _chunks(texts, alphabet, chunk):
        for n, total in enumerate(totals, start=1):
            found = np.unique(ngram_codes(symbol_T, n, size), return_counts=True)
            totals[n - 1] = _added(total, Counts(*found))
    if not len(totals[-1].code_N):
        raise UserError(f"The text to count is shorter than {order} symbols: give more of it.")
    return totals


def _added(one: Counts, other: Counts) -> Counts:
    code_N, place = np.unique(np.concatenate([one.code_N, other.code_N]), return_inverse=True)
    count_N = np.bincount(place, np.concatenate([one.count_N, other.count_N]), len(code_N))
    return Counts(code_N, count_N.astype(np.int64))


def _chunks(texts: Iterable[str], alphabet: str, chunk: int) -> Iterator[NDArray[np.int64]]:
    """The texts as numbers, about `chunk` at a time; characters that are not of the alphabet are left out."""
    number_U = np.full(max(map(ord, alphabet)) + 2, -1, np.int64)  # the last entry: all higher code points
    number_U[[ord(character) for character in alphabet]] = np.arange(len(alphabet))
    waiting: list[NDArray[np.int64]] = []
    n_waiting = 0
    for text in texts:
        code_T = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        symbol_T = number_U[np.minimum(code_T, len(number_U) - 1)]
        waiting.append(symbol_T[symbol_T >= 0])
        n_waiting += len(waiting[-1])
        if n_waiting >= chunk:
            yield np.concatenate(waiting)
            waiting, n_waiting = [], 0
    if waiting:
        yield np.concatenate(waiting)


@dataclass(frozen=True)
class BackoffLevel:
    """What n-grams of one order add: cost = cost of the shorter n-gram + penalty of the context - gain."""

    penalty_C: Costs
    """0 where the context was not seen."""
    gain_RV: Costs
    """A row for each context that was."""


def backoff_levels(
    counts: Sequence[Counts], size: int, min_count: int = 1, step: int = 4
) -> list[BackoffLevel]:
    """Interpolated Kneser-Ney with three discounts, rounded.

    Of the longest n-grams those are stored that were seen `min_count` times. The others count as seen all the same:
    their probability goes to the shorter n-gram, and not to those that are stored.

    Shorter n-grams are counted by how many different symbols stand before them, since they matter where the longer
    one was not seen. `step` is the precision of the longest n-grams' gains, which are most of the file.
    """
    order = len(counts)
    shorter_cost_CV = np.full((1, size), np.float32(np.log(size) * SCALE))
    shorter_p_CV = np.full((1, size), np.float32(1 / size))
    out = []
    for n in range(1, order + 1):
        last = n == order
        seen = counts[n - 1] if last else _continuations(counts[n], size**n)
        stored = _at_least(seen, min_count) if last else seen
        context_R, row_N = np.unique(stored.code_N // size, return_inverse=True)
        count_RV = np.zeros((len(context_R), size), np.int64)
        count_RV[row_N, stored.code_N % size] = stored.count_N
        discounted_RV = np.maximum(count_RV - _discounts(seen.count_N)[np.minimum(count_RV, 3)], 0)
        total_R1 = _totals(seen, size, context_R)[:, None]
        rest_R1 = (1 - discounted_RV.sum(axis=1, keepdims=True) / total_R1).astype(np.float32)
        rest_R1 = np.maximum(rest_R1, np.float32(np.exp(-MAX_COST / SCALE)))
        backed_R = context_R % len(shorter_p_CV)
        p_RV = (discounted_RV / total_R1).astype(np.float32) + rest_R1 * shorter_p_CV[backed_R]
        # At least 1: 0 marks a context that was not seen.
        penalty_R1 = np.maximum(np.round(-np.log(rest_R1) * SCALE), 1)
        backed_cost_RV = shorter_cost_CV[backed_R] + penalty_R1
        gain_RV = backed_cost_RV + np.log(np.maximum(p_RV, 1e-12)) * SCALE
        every = step if last else 1
        gain_RV = np.where(count_RV > 0, np.round(np.clip(gain_RV, 0, MAX_COST) / every) * every, 0)
        penalty_C = np.zeros(size ** (n - 1), np.uint8)
        penalty_C[context_R] = penalty_R1[:, 0]
        out.append(BackoffLevel(penalty_C, gain_RV.astype(np.uint8)))
        if not last:
            shorter_p_CV = _longer(shorter_p_CV, n, context_R, p_RV)
            # As it will be read from the file:
            shorter_cost_CV = _longer(shorter_cost_CV, n, context_R, backed_cost_RV - gain_RV)
    return out


def _at_least(counts: Counts, least: int) -> Counts:
    enough_N = counts.count_N >= least
    return Counts(counts.code_N[enough_N], counts.count_N[enough_N])


def _totals(seen: Counts, size: int, context_R: Ids) -> NDArray[np.int64]:
    """How often each of these contexts was seen, whatever followed it."""
    context_N, start_N = np.unique(seen.code_N // size, return_index=True)
    return np.add.reduceat(seen.count_N, start_N)[np.searchsorted(context_N, context_R)]


def _continuations(longer: Counts, n_codes: int) -> Counts:
    """How many different symbols stand before each n-gram."""
    return Counts(*np.unique(longer.code_N % n_codes, return_counts=True))


def _longer(shorter_CV: Values, n: int, context_R: Ids, value_RV: Values) -> Values:
    """Values for every context of n-grams: the rows of those seen, and elsewhere those of the shorter context."""
    size = shorter_CV.shape[1]
    value_CV = np.tile(shorter_CV, (size if n > 1 else 1, 1))
    value_CV[context_R] = value_RV
    return value_CV


def _discounts(count_N: NDArray[np.int64]) -> Floats:
    """How much to take off n-grams seen 0, 1, 2 and more times (Chen and Goodman's estimates)."""
    n1, n2, n3, n4 = (max(1, int((count_N == k).sum())) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    # Few symbols have too few counts of counts for the estimates to make sense.
    return np.array([0, *(np.clip(d, 0.1 * k, 0.9 * k) for k, d in enumerate(found, start=1))], np.float32)


def assemble(alphabet: str, levels: Sequence[BackoffLevel]) -> NGram:
    """The whole table, order by order."""
    size = len(alphabet)
    cost_CV: Values = np.full((1, size), round(np.log(size) * SCALE), np.int16)
    for n, level in enumerate(levels, start=1):
        (context_R,) = np.nonzero(level.penalty_C)
        seen_RV = cost_CV[context_R % len(cost_CV)] + level.penalty_C[context_R, None].astype(np.int16)
        seen_RV -= level.gain_RV
        if n == len(levels):
            seen_RV, cost_CV = (np.clip(v, 0, MAX_COST).astype(np.uint8) for v in (seen_RV, cost_CV))
        cost_CV = _longer(cost_CV, n, context_R, seen_RV)
    return NGram(alphabet, len(levels), cost_CV.ravel())


def save(path: Path, alphabet: str, levels: Sequence[BackoffLevel]) -> None:
    header = json.dumps({"alphabet": alphabet, "order": len(levels)}).encode() + b"\n"
    body = b""
    for level in levels:
        order_R = _by_recent_symbols(level.penalty_C, len(alphabet))
        # By symbol, and contexts that end alike side by side: gains that are alike are then too.
        body += level.penalty_C.tobytes() + level.gain_RV[order_R].T.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(header + body, check=lzma.CHECK_CRC32, filters=_FILTERS))


def _by_recent_symbols(penalty_C: Costs, size: int) -> NDArray[np.int64]:
    """The contexts that were seen, those side by side that agree in their last symbols."""
    (context_R,) = np.nonzero(penalty_C)
    turned_R, n_codes = np.zeros_like(context_R), 1
    while n_codes < len(penalty_C):
        turned_R = turned_R * size + context_R // n_codes % size
        n_codes *= size
    return np.argsort(turned_R)


def read(path: Path) -> NGram:
    try:
        unpacked = lzma.LZMADecompressor()
        data = unpacked.decompress(read_small_file(path, "build the language again."), LARGEST_TABLE)
        header, _, body = data.partition(b"\n")
        about = parse_json_object(header, str(path), "build the language again.")
        alphabet, order = str(about["alphabet"]), int(about["order"])
        if not unpacked.eof or len(alphabet) ** min(order, 64) > LARGEST_TABLE:
            raise ValueError("a table of more values than a language has")
        value = np.frombuffer(body, np.uint8)
        levels, start = [], 0
        for n in range(1, order + 1):
            middle = start + len(alphabet) ** (n - 1)
            penalty_C = value[start:middle]
            order_R = _by_recent_symbols(penalty_C, len(alphabet))
            start = middle + len(order_R) * len(alphabet)
            gain_RV = np.empty((len(order_R), len(alphabet)), np.uint8)
            gain_RV[order_R] = value[middle:start].reshape(len(alphabet), -1).T
            levels.append(BackoffLevel(penalty_C, gain_RV))
        if start != len(value):
            raise ValueError("not as many values as its header says")
        return assemble(alphabet, levels)
    except (UserError, OSError, lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is missing or damaged: build the language again, or install the package again if it came with it."
        ) from error
