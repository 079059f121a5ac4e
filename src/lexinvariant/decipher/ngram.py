"""A compact character n-gram: the first judge of a decipherment, small enough to come with the package.

It is an interpolated Kneser-Ney model, kept as one byte for every possible n-gram (the cost of its last symbol in
sixteenths of a nat): scoring is one look-up a symbol. The file stores only what differs from the next shorter n-gram:
a penalty for each context that was seen, and a gain for each n-gram that was.

`lexinvariant language build` counts the tables of a language; the same text gives the same bytes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
Counts = NDArray[np.int64]
Floats = NDArray[np.float32]


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


def count_ngrams(texts: Iterable[str], alphabet: str, order: int, chunk: int = 1 << 24) -> list[Counts]:
    """counts[n-1]: how often each n-gram occurs in the texts, up to the order; about `chunk` symbols at a time."""
    size = len(alphabet)
    totals = [np.zeros(size**n, np.int64) for n in range(1, order + 1)]
    for symbol_T in _chunks(texts, alphabet, chunk):
        for n, total_G in enumerate(totals, start=1):
            total_G += np.bincount(ngram_codes(symbol_T, n, size), minlength=size**n)
    if not totals[-1].any():
        raise UserError(f"The text to count is shorter than {order} symbols: give more of it.")
    return totals


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
    gain_G: Costs


def backoff_levels(
    counts: Sequence[Counts], size: int, min_count: int = 1, step: int = 2
) -> list[BackoffLevel]:
    """Interpolated Kneser-Ney with three discounts, rounded; n-grams seen less than `min_count` times count as unseen.

    Shorter n-grams are counted by how many different symbols stand before them, since they matter where the longer
    one was not seen. `step` is the precision of the longest n-grams' gains, which are most of the file.
    """
    order = len(counts)
    shorter_G = np.full(size, np.float32(np.log(size) * SCALE))
    shorter_p = np.full(size, np.float32(1 / size))
    out = []
    for n in range(1, order + 1):
        last = n == order
        used_G = counts[n - 1] if last else (counts[n].reshape(size, -1) > 0).sum(axis=0)
        if last:
            used_G = np.where(used_G >= min_count, used_G, 0)
        discount_G = _discounts(used_G)[np.minimum(used_G, 3)]
        count_CV, discount_CV = used_G.reshape(-1, size), discount_G.reshape(-1, size)
        total_C1 = np.maximum(count_CV.sum(axis=1, keepdims=True), 1).astype(np.float32)
        seen_C1 = count_CV.any(axis=1, keepdims=True)
        rest_C1 = np.where(seen_C1, discount_CV.sum(axis=1, keepdims=True) / total_C1, 1)
        rest_C1 = np.maximum(rest_C1, np.float32(np.exp(-MAX_COST / SCALE)))
        backed_CV = shorter_p.reshape(-1, size) if n == 1 else _tiled(shorter_p, size)
        p_CV = np.maximum(count_CV - discount_CV, 0).astype(np.float32) / total_C1 + rest_C1 * backed_CV
        penalty_C = np.round(-np.log(rest_C1[:, 0]) * SCALE).astype(np.uint8)
        backed_cost_CV = shorter_G.reshape(-1, size) if n == 1 else _tiled(shorter_G, size)
        backed_cost_CV = backed_cost_CV + penalty_C[:, None]
        gain_CV = backed_cost_CV + np.log(np.maximum(p_CV, 1e-12)) * SCALE
        every = step if last else 1
        gain_CV = np.where(count_CV > 0, np.round(np.clip(gain_CV, 0, MAX_COST) / every) * every, 0)
        out.append(BackoffLevel(penalty_C, gain_CV.astype(np.uint8).ravel()))
        shorter_p = p_CV.ravel().astype(np.float32)
        shorter_G = (backed_cost_CV - gain_CV).ravel().astype(np.float32)  # as it will be read from the file
    return out


def _tiled(shorter_G: Floats, size: int) -> Floats:
    """A shorter n-gram's values for every context one symbol longer."""
    return np.tile(shorter_G.reshape(-1, size), (size, 1))


def _discounts(count_G: Counts) -> Floats:
    """How much to take off n-grams seen 0, 1, 2 and more times (Chen and Goodman's estimates)."""
    n1, n2, n3, n4 = (max(1, int((count_G == k).sum())) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    # Few symbols have too few counts of counts for the estimates to make sense.
    return np.array([0, *(np.clip(d, 0.1 * k, 0.9 * k) for k, d in enumerate(found, start=1))], np.float32)


def assemble(alphabet: str, levels: Sequence[BackoffLevel]) -> NGram:
    """The whole table, order by order."""
    size = len(alphabet)
    cost_G = np.full(size, round(np.log(size) * SCALE), np.int16)
    for n, level in enumerate(levels, start=1):
        longer_CV = cost_G.reshape(-1, size) if n == 1 else np.tile(cost_G.reshape(-1, size), (size, 1))
        longer_CV += level.penalty_C[:, None].astype(np.int16)
        longer_CV -= level.gain_G.reshape(-1, size)
        cost_G = longer_CV.ravel()
    return NGram(alphabet, len(levels), np.clip(cost_G, 0, MAX_COST).astype(np.uint8))


def save(path: Path, alphabet: str, levels: Sequence[BackoffLevel]) -> None:
    header = json.dumps({"alphabet": alphabet, "order": len(levels)}).encode() + b"\n"
    body = b"".join(array.tobytes() for level in levels for array in (level.penalty_C, level.gain_G))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(header + body, check=lzma.CHECK_CRC32, filters=_FILTERS))


def read(path: Path) -> NGram:
    try:
        unpacked = lzma.LZMADecompressor()
        data = unpacked.decompress(read_small_file(path, "build the language again."), LARGEST_TABLE)
        header, _, body = data.partition(b"\n")
        about = parse_json_object(header, str(path), "build the language again.")
        alphabet, order = str(about["alphabet"]), int(about["order"])
        n_values = sum(len(alphabet) ** (n - 1) + len(alphabet) ** n for n in range(1, min(order, 16) + 1))
        if not unpacked.eof or order > 16 or len(body) != n_values:
            raise ValueError("not as many values as its header says")
        value = np.frombuffer(body, np.uint8)
        levels, start = [], 0
        for n in range(1, order + 1):
            middle = start + len(alphabet) ** (n - 1)
            end = middle + len(alphabet) ** n
            levels.append(BackoffLevel(value[start:middle], value[middle:end]))
            start = end
        return assemble(alphabet, levels)
    except (UserError, OSError, lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is missing or damaged: build the language again, or install the package again if it came with it."
        ) from error
