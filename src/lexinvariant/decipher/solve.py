"""The best reading of a ciphertext: n-grams find good keys, a neural model chooses among them, and both say how sure.

Where letters were enciphered, an n-gram search finds the keys worth looking at in a fraction of a second, and
for short texts a small standard language model (the reader) judges their readings. Where everything was enciphered, the
lexinvariant model names the symbols first, and an n-gram of characters refines what it said.

The key that is returned is the one with the fewest wrong symbols to be expected over all keys found, each weighing
as much as it is likely.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from lexinvariant.decipher import calibrate, search
from lexinvariant.decipher.alphabet import BREAK, LOWER, Alphabet, Puzzle, check_cribs, make_puzzle
from lexinvariant.decipher.judge import judged
from lexinvariant.decipher.judge_lm import JudgeLM, bundled_judge
from lexinvariant.decipher.ngram import ASCII, NGram, bundled
from lexinvariant.decipher.search import Effort, Found, Task
from lexinvariant.decipher.workers import read_on_all_cores
from lexinvariant.errors import UserError

if TYPE_CHECKING:  # jax takes a second to import, and most texts need none
    from lexinvariant.model.weights import Weights

JUDGED_UP_TO = 130
"""Symbols of a text up to which the reader is asked; beyond it n-grams leave nothing to ask."""
SEARCHED, COMPARED = 400, 4000
"""Symbols of a long text that are searched, and that keys are compared on in the end."""
MANY = 64
"""Texts from which on it pays to start other processes."""
SHORT, EASY = 45, 150
"""Enciphered symbols below which only the longest search does, and from which on a short one does; all but the longest
are repeated at length where they got stuck."""
STUCK = {True: 1.85, False: 2.2}
"""Nats a symbol beyond which a search is taken to be stuck, with spaces and without: held-out prose costs 1.4 and 1.7
in the median, and one text in fifty more than this."""
THOROUGH = (Effort(256, 1500, 0.25), Effort(256, 1500, 0.5))
DOUBTFUL = 2.1
"""Nats a symbol beyond which a reading is no English: held-out prose costs the n-grams 1.4 to 1.7."""
PRIOR_WEIGHT = 2.0
"""How much the lexinvariant model's opinion counts beside the n-gram of characters."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Alternative:
    """Another reading, and the probability of its key among all that were found."""

    plaintext: str
    key: dict[str, str]
    probability: float


@dataclass(frozen=True)
class Decipherment:
    """One ciphertext read: its plaintext, what every cipher symbol stands for, and how sure that is."""

    plaintext: str
    key: dict[str, str]
    confidence: dict[str, float]
    """For every cipher symbol, the probability that the key is right about it."""
    alternatives: list[Alternative]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As `lexinvariant decipher --json` prints it."""
        return asdict(self) | {"seconds": round(self.seconds, 3)}


class Solver:
    """Reads ciphertexts. Models are loaded when a text first needs them."""

    def __init__(self, model: Weights | None = None, *, use_reader: bool = True) -> None:
        self._model, self._use_reader = model, use_reader

    @cached_property
    def model(self) -> Weights | None:
        """The lexinvariant model that names symbols; None where the package came without one."""
        if self._model is not None:
            return self._model
        from lexinvariant.model.weights import load_weights

        try:
            return load_weights()
        except UserError:
            return None

    @cached_property
    def reader(self) -> JudgeLM | None:
        """The judge of short texts; None where the package came without it."""
        return bundled_judge() if self._use_reader else None

    def read(
        self,
        texts: Sequence[str | Sequence[str]],
        *,
        cribs: Mapping[str, str] | None = None,
        crib_text: str | None = None,
        alphabet: Alphabet = "auto",
        unspaced: bool = False,
        top: int = 3,
    ) -> list[Decipherment]:
        """Read ciphertexts, each under its own key; a text may also be a list of symbols.

        Cribs (cipher symbol -> character) hold for every text; `crib_text` is the known beginning of the plaintext.
        What a text is read as does not depend on the others.
        """
        options: dict[str, Any] = {
            "cribs": cribs,
            "crib_text": crib_text,
            "alphabet": alphabet,
            "unspaced": unspaced,
            "top": top,
        }
        puzzles = [make_puzzle(text, alphabet, unspaced) for text in texts]
        known = [check_cribs(puzzle, cribs or {}, crib_text) for puzzle in puzzles]

        def read_one(number: int) -> Decipherment:
            started = time.perf_counter()
            reading = self._read(puzzles[number], known[number], top, unspaced, alphabet)
            return replace(reading, seconds=time.perf_counter() - started)

        numbers = range(len(puzzles))
        light = [number for number in numbers if _needs_no_model(puzzles[number])]
        if len(light) < MANY:
            with ThreadPoolExecutor(os.cpu_count()) as pool:  # one text's search beside another's judging
                return list(pool.map(read_one, numbers))
        heavy = sorted(set(numbers) - set(light))
        readings = dict(zip(heavy, self.read([texts[number] for number in heavy], **options), strict=True))
        read_here = partial(_one_by_one, self, options)
        found = read_on_all_cores([texts[number] for number in light], options, read_here)
        readings |= dict(zip(light, found, strict=True))
        return [readings[number] for number in numbers]

    def _read(
        self, puzzle: Puzzle, known: Mapping[int, str], top: int, unspaced: bool, alphabet: Alphabet
    ) -> Decipherment:
        if puzzle.kind == "ascii":
            return self._conclude(puzzle, *self._read_ascii(puzzle, known), top)
        tries = [self._read_letters(puzzle, known, ngram=puzzle.spaced)]
        if puzzle.kind == "glyphs" and not puzzle.spaced and not unspaced:
            # One of the glyphs may be the space.
            tries.append(self._read_letters(puzzle, known, ngram=True))
        best = min(tries, key=lambda found: _cost_of_a_symbol(*found[:2]))
        long_enough = puzzle.kind == "glyphs" and alphabet == "auto" and len(puzzle.symbol_T) >= 40
        if long_enough and _cost_of_a_symbol(*best[:2]) > DOUBTFUL:
            # No English in letters: perhaps capitals, digits and punctuation are among the glyphs.
            wider = make_puzzle(puzzle.cells, "ascii")
            renamed = {wider.symbols.index(puzzle.symbols[s]): plain for s, plain in known.items()}
            other = self._read_ascii(wider, renamed)
            if _cost_of_a_symbol(*other[:2]) < _cost_of_a_symbol(*best[:2]):
                return self._conclude(wider, *other, top)
        return self._conclude(puzzle, *best, top)

    def _read_letters(
        self, puzzle: Puzzle, known: Mapping[int, str], ngram: bool
    ) -> tuple[Task, Found, calibrate.Evidence]:
        """Search with short n-grams, then with long ones, then ask the reader about a short text."""
        row, n_symbols = puzzle.running, len(puzzle.symbols)
        long, short = (
            (bundled("spaced"), bundled("spaced3")) if ngram else (bundled("unspaced"), bundled("unspaced3"))
        )
        n_letters = long.size if ngram and not puzzle.spaced else len(LOWER)
        pinned = {symbol: long.alphabet.index(plain) for symbol, plain in known.items()}
        task = Task(long, _pieces(row, SEARCHED, n_symbols), n_symbols, np.arange(n_letters), pinned)
        n = int(puzzle.count_S.sum())
        found = _searched(task, short, _efforts(n, n_symbols))
        if n >= SHORT and _cost_of_a_symbol(task, found) > STUCK[" " in long.alphabet]:
            again = THOROUGH if n >= EASY else _efforts(SHORT - 1, n_symbols)
            found = search.merged(task, [found, _searched(task, short, again)])
        if len(row) > SEARCHED:
            task = replace(task, pieces=_pieces(row, COMPARED, n_symbols))
            found = _kept(task, found.key_NS[:20])
        found = _climbed(task, found)
        spaced_or_not = puzzle.spaced or not ngram
        if n <= JUDGED_UP_TO and spaced_or_not and n_symbols > len(pinned) and self.reader is not None:
            evidence: calibrate.Evidence = "judged" if " " in long.alphabet else "judged unspaced"
            return task, judged(self.reader, task, found), evidence
        return task, found, "ngram"

    def _read_ascii(self, puzzle: Puzzle, known: Mapping[int, str]) -> tuple[Task, Found, calibrate.Evidence]:
        """The lexinvariant model names the symbols; an n-gram of characters refines what it said."""
        n_symbols = len(puzzle.symbols)
        if n_symbols > len(ASCII):
            raise UserError(
                f"The text has {n_symbols} different symbols and there are {len(ASCII)} printable characters: a "
                "substitution of one character by several symbols cannot be read."
            )
        ngram = bundled("ascii")
        pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in known.items()}
        task = Task(
            ngram, _pieces(puzzle.symbol_T, 2 * SEARCHED, n_symbols), n_symbols, np.arange(ngram.size), pinned
        )
        rng = np.random.default_rng(0)
        effort = Effort(keys=24, swaps=2000, coldness=0.6)
        if self.model is None:
            found, _ = search.anneal(task, search.by_frequency(task, effort.keys, rng), effort, rng)
            return task, _climbed(task, found), "ascii"
        from lexinvariant.decipher.symbol_posterior import named

        logp_SV = named(self.model, puzzle.symbol_T, n_symbols, ngram.alphabet)
        task = replace(task, prior_SV=-PRIOR_WEIGHT * logp_SV)
        first_SR = search.by_posterior(task, logp_SV, effort.keys, rng)
        found, _ = search.anneal(task, first_SR, effort, rng)
        return task, _climbed(task, found), "ascii"

    def _conclude(
        self, puzzle: Puzzle, task: Task, found: Found, evidence: calibrate.Evidence, top: int
    ) -> Decipherment:
        """The key with the fewest wrong symbols to expect, how sure each of its symbols is, and the next best keys."""
        weight_N = calibrate.weights(found.cost_N, evidence)
        share_SV = np.zeros((task.n_symbols, task.ngram.size))
        for key_S, weight in zip(found.key_NS, weight_N, strict=True):
            share_SV[np.arange(task.n_symbols), key_S] += weight
        symbol_S, letter_S = linear_sum_assignment(puzzle.count_S[:, None] * share_SV, maximize=True)
        letters = task.ngram.alphabet

        def spelled(key_S: NDArray[np.integer]) -> dict[str, str]:
            return {symbol: letters[v] for symbol, v in zip(puzzle.symbols, key_S, strict=True)}

        sure_S = calibrate.probability(share_SV[symbol_S, letter_S], evidence)
        sure_S = np.where(np.isin(symbol_S, list(task.pinned)), 1.0, sure_S)
        ranked = [n for n, key_S in enumerate(found.key_NS[: top + 1]) if not np.array_equal(key_S, letter_S)]
        others = [
            Alternative(puzzle.plaintext(named), named, round(float(weight_N[n]), 6))
            for n in ranked[:top]
            for named in [spelled(found.key_NS[n])]
        ]
        key = spelled(letter_S)
        sure = {symbol: round(float(p), 4) for symbol, p in zip(puzzle.symbols, sure_S, strict=True)}
        return Decipherment(puzzle.plaintext(key), key, sure, others, 0.0)


def _efforts(n: int, n_symbols: int) -> tuple[Effort, Effort]:
    """With short n-grams and with long ones; a longer text needs fewer keys, since more of it tells them apart, and
    few symbols need few swaps.
    """
    if n >= EASY:
        return Effort(48, 700, 0.25), Effort(48, 400, 0.6)
    n_keys = 1024 if n < SHORT else 512 if n < 80 else 256
    n_swaps = min(1500, 150 * n_symbols)
    return Effort(n_keys, n_swaps, 0.3), Effort(n_keys, n_swaps, 0.6)


def _pieces(row: NDArray[np.integer], most: int, n_symbols: int) -> list[NDArray[np.integer]]:
    """A text of up to `most` symbols as it is; of a longer one windows from all over, and one around every symbol that
    these do not hold.
    """
    if len(row) <= most:
        return [row]
    n_windows = 4
    width = most // n_windows
    starts = np.linspace(0, len(row) - width, n_windows).astype(int).tolist()
    pieces = [_whole_words(row, start, start + width) for start in starts]
    missing = set(range(n_symbols)) - set(np.concatenate(pieces).tolist())
    for symbol in sorted(missing):
        place = int(np.argmax(row == symbol))
        pieces.append(_whole_words(row, max(0, place - 20), place + 20))
    return pieces


def _whole_words(row: NDArray[np.integer], start: int, end: int) -> NDArray[np.integer]:
    """A window, without the word that its beginning cuts in two and the one that its end does."""
    piece = row[start:end]
    (breaks,) = np.nonzero(piece == BREAK)
    if len(breaks) < 3:
        return piece
    return piece[breaks[0] + 1 if start else 0 : breaks[-1] if end < len(row) else len(piece)]


def _needs_no_model(puzzle: Puzzle) -> bool:
    return puzzle.kind == "letters" and int(puzzle.count_S.sum()) > JUDGED_UP_TO


def _one_by_one(
    solver: Solver, options: Mapping[str, Any], texts: Sequence[str | Sequence[str]]
) -> list[Decipherment]:
    return [solver.read([text], **options)[0] for text in texts]


def _searched(task: Task, short: NGram, efforts: tuple[Effort, Effort]) -> Found:
    """From frequencies with short n-grams, whose landscape is smooth, and from there with the task's own."""
    rng = np.random.default_rng(0)  # the same for every text, so that none depends on the others
    smooth = replace(task, ngram=short)
    key_SR = search.by_frequency(smooth, efforts[0].keys, rng)
    _, key_SR = search.anneal(smooth, key_SR, efforts[0], rng)
    return search.anneal(task, key_SR, efforts[1], rng)[0]


def _cost_of_a_symbol(task: Task, found: Found) -> float:
    """What the best key costs the n-gram, in nats a symbol."""
    language = replace(task, prior_SV=None)
    return float(search.costs(language, found.key_NS[:1])[0]) / sum(map(len, task.pieces))


def _kept(task: Task, key_NS: Ints) -> Found:
    return search.distinct(task, key_NS.T, search.costs(task, key_NS))


def _climbed(task: Task, found: Found, most: int = 20) -> Found:
    """From the best key, by best swaps, to one that no swap betters; all its neighbours are found along."""
    for _ in range(most):
        near = search.neighbours(task, found.key_NS[0])
        better = near.cost_N[0] < found.cost_N[0] - 1e-9
        found = search.merged(task, [found, near])
        if not better:
            break
    return found
