"""A compact character n-gram: the first judge of a decipherment, small enough to come with the package.

It is an interpolated Kneser-Ney model, kept as one byte for every possible n-gram (the cost of its last symbol in
sixteenths of a nat), so that scoring is one look-up a symbol. On disk stands only what the shorter n-gram does not
know: a penalty for each context that was seen, and a gain for each n-gram that was.

The bundled tables are built from the training split of the prose (`python -m lexinvariant.decipher.ngram --help`);
the same text gives the same bytes.
"""

from __future__ import annotations

import json
import lzma
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lexinvariant.errors import UserError

SCALE = 16
"""Costs are whole numbers of 1/SCALE nats."""
HIGHEST = 255
SPACED = string.ascii_lowercase + " "
UNSPACED = string.ascii_lowercase
ASCII = "".join(map(chr, range(32, 127))) + "\n"
TABLES = Path(__file__).parents[1] / "weights" / "ngram"
Name = Literal["spaced", "spaced3", "unspaced", "unspaced3", "ascii"]
_CHUNK = 1 << 24  # symbols counted at a time
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

    def padded(self, symbol_T: Ids) -> Ids:
        """With a word break before and after, where the alphabet has one: a text begins and ends with a word."""
        if " " not in self.alphabet:
            return symbol_T
        space = self.alphabet.index(" ")
        return np.concatenate([[space] * (self.order - 1), symbol_T, [space]])

    def shares(self) -> NDArray[np.float64]:
        """How common each symbol is in the long run."""
        p_CV = np.exp(-self.cost_G.reshape(-1, self.size).astype(np.float64) / SCALE)
        share_C = np.full(len(p_CV), 1 / len(p_CV))
        for _ in range(20):
            follow_CV = share_C[:, None] * p_CV
            share_C = follow_CV.reshape(self.size, -1).sum(axis=0) if self.order > 1 else np.ones(1)
            share_C /= share_C.sum()
        return (share_C[:, None] * p_CV).sum(axis=0)

    def nats(self, text: str) -> float:
        """Total cost of a text over this alphabet."""
        symbol_T = self.padded(np.array([self.alphabet.index(character) for character in text]))
        return float(self.cost_G[codes(symbol_T, self.order, self.size)].sum(dtype=np.int64)) / SCALE


def codes(symbol_T: Ids, order: int, size: int) -> NDArray[np.int64]:
    """The number of the n-gram that begins at each place."""
    n = max(0, len(symbol_T) - order + 1)
    code_T = np.zeros(n, np.int64)
    for i in range(order):
        code_T = code_T * size + symbol_T[i : n + i]
    return code_T


def count(texts: Iterable[str], alphabet: str, order: int) -> list[Counts]:
    """counts[n-1]: how often each n-gram occurs in the texts, up to the order."""
    size = len(alphabet)
    totals = [np.zeros(size**n, np.int64) for n in range(1, order + 1)]
    for symbol_T in _chunks(texts, alphabet):
        for n, total_G in enumerate(totals, start=1):
            total_G += np.bincount(codes(symbol_T, n, size), minlength=size**n)
    if not totals[-1].any():
        raise UserError(f"The text to count is shorter than {order} symbols: give more of it.")
    return totals


def _chunks(texts: Iterable[str], alphabet: str) -> Iterator[NDArray[np.int64]]:
    number_C = np.full(256, -1, np.int64)
    number_C[np.frombuffer(alphabet.encode("ascii"), np.uint8)] = np.arange(len(alphabet))
    waiting: list[NDArray[np.int64]] = []
    n_waiting = 0
    for text in texts:
        symbol_T = number_C[np.frombuffer(text.encode("ascii", "replace"), np.uint8)]
        waiting.append(symbol_T[symbol_T >= 0])
        n_waiting += len(waiting[-1])
        if n_waiting >= _CHUNK:
            yield np.concatenate(waiting)
            waiting, n_waiting = [], 0
    if waiting:
        yield np.concatenate(waiting)


@dataclass(frozen=True)
class BackoffLevel:
    """What n-grams of one order add: cost = cost of the shorter n-gram + penalty of the context - gain."""

    penalty_C: Costs
    gain_G: Costs


def backoff_levels(counts: Sequence[Counts], size: int, fewest: int = 1, step: int = 2) -> list[BackoffLevel]:
    """Interpolated Kneser-Ney with three discounts, rounded; n-grams seen less than `fewest` times count as unseen.

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
            used_G = np.where(used_G >= fewest, used_G, 0)
        discount_G = _discounts(used_G)[np.minimum(used_G, 3)]
        count_CV, discount_CV = used_G.reshape(-1, size), discount_G.reshape(-1, size)
        total_C1 = np.maximum(count_CV.sum(axis=1, keepdims=True), 1).astype(np.float32)
        seen_C1 = count_CV.any(axis=1, keepdims=True)
        rest_C1 = np.where(seen_C1, discount_CV.sum(axis=1, keepdims=True) / total_C1, 1)
        rest_C1 = np.maximum(rest_C1, np.float32(np.exp(-HIGHEST / SCALE)))
        backed_CV = (
            np.broadcast_to(shorter_p.reshape(-1, size), (1, size)) if n == 1 else _tiled(shorter_p, size)
        )
        p_CV = np.maximum(count_CV - discount_CV, 0).astype(np.float32) / total_C1 + rest_C1 * backed_CV
        penalty_C = np.round(-np.log(rest_C1[:, 0]) * SCALE).astype(np.uint8)
        backed_cost_CV = (shorter_G.reshape(-1, size) if n == 1 else _tiled(shorter_G, size)) + penalty_C[
            :, None
        ]
        gain_CV = backed_cost_CV + np.log(np.maximum(p_CV, 1e-12)) * SCALE
        every = step if last else 1
        gain_CV = np.where(count_CV > 0, np.round(np.clip(gain_CV, 0, HIGHEST) / every) * every, 0)
        out.append(BackoffLevel(penalty_C, gain_CV.astype(np.uint8).ravel()))
        shorter_p = p_CV.ravel().astype(np.float32)
        shorter_G = (
            (backed_cost_CV - gain_CV).ravel().astype(np.float32)
        )  # what a reader of the file will have
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


def assemble(alphabet: str, parts: Sequence[BackoffLevel]) -> NGram:
    """The whole table, order by order."""
    size = len(alphabet)
    cost_G = np.full(size, round(np.log(size) * SCALE), np.int16)
    for n, part in enumerate(parts, start=1):
        longer_CV = cost_G.reshape(-1, size) if n == 1 else np.tile(cost_G.reshape(-1, size), (size, 1))
        longer_CV += part.penalty_C[:, None].astype(np.int16)
        longer_CV -= part.gain_G.reshape(-1, size)
        cost_G = longer_CV.ravel()
    return NGram(alphabet, len(parts), np.clip(cost_G, 0, HIGHEST).astype(np.uint8))


def build(texts: Iterable[str], alphabet: str, order: int, fewest: int = 1) -> NGram:
    """Count and assemble in one go, for tests and for other languages."""
    return assemble(alphabet, backoff_levels(count(texts, alphabet, order), len(alphabet), fewest))


def save(path: Path, alphabet: str, parts: Sequence[BackoffLevel]) -> None:
    header = json.dumps({"alphabet": alphabet, "order": len(parts)}).encode() + b"\n"
    body = b"".join(array.tobytes() for part in parts for array in (part.penalty_C, part.gain_G))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(header + body, check=lzma.CHECK_CRC32, filters=_FILTERS))


def read(path: Path) -> NGram:
    try:
        data = lzma.decompress(path.read_bytes())
        header, _, body = data.partition(b"\n")
        about = json.loads(header)
        alphabet, order = str(about["alphabet"]), int(about["order"])
        value = np.frombuffer(body, np.uint8)
        parts, start = [], 0
        for n in range(1, order + 1):
            middle, end = (
                start + len(alphabet) ** (n - 1),
                start + len(alphabet) ** (n - 1) + len(alphabet) ** n,
            )
            parts.append(BackoffLevel(value[start:middle], value[middle:end]))
            start = end
        return assemble(alphabet, parts)
    except (OSError, lzma.LZMAError, ValueError, KeyError) as error:
        raise UserError(f"{path} is missing or damaged: install the package again.") from error


@cache
def bundled(name: Name) -> NGram:
    """A table that comes with the package, read once."""
    return read(TABLES / f"{name}.xz")


RECIPES: dict[Name, tuple[str, int, int]] = {
    "spaced": (SPACED, 5, 1),
    "spaced3": (SPACED, 3, 1),
    "unspaced": (UNSPACED, 5, 4),
    "unspaced3": (UNSPACED, 3, 1),
    "ascii": (ASCII, 3, 2),
}
"""Alphabet, order, and the fewest times that a longest n-gram must have been seen: what fits in 2.5 MB. Short
n-grams are what a search begins with."""


def main(argv: Sequence[str] | None = None) -> None:
    """Build the bundled tables from a source of text."""
    import argparse

    from lexinvariant.text.letters import letters_only, unspaced
    from lexinvariant.text.sources import read_documents

    parser = argparse.ArgumentParser(prog="python -m lexinvariant.decipher.ngram", description=main.__doc__)
    parser.add_argument("source", help="a source as in `lexinvariant data prepare`, such as prose.jsonl.xz")
    parser.add_argument("--out", type=Path, default=TABLES, help="folder for the tables")
    parser.add_argument("--only", choices=list(RECIPES), action="append", help="build these alone")
    arguments = parser.parse_args(argv)
    folds: dict[str, Callable[[str], str]] = {
        SPACED: lambda text: letters_only(text) + " ",
        UNSPACED: unspaced,
        ASCII: str,
    }
    for name in arguments.only or RECIPES:
        alphabet, order, fewest = RECIPES[name]
        texts = (folds[alphabet](document.text) for document in read_documents(arguments.source))
        parts = backoff_levels(count(texts, alphabet, order), len(alphabet), fewest)
        save(arguments.out / f"{name}.xz", alphabet, parts)
        print(
            f"{arguments.out / name}.xz: {(arguments.out / f'{name}.xz').stat().st_size / 1e6:.2f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
