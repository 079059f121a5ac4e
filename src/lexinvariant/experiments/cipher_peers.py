"""Other solvers: of substitution ciphers a plain annealer with our n-gram and two packages if they are installed, of
homophonic ones the annealer (there seems to be no package), of Vigenere ciphers a plain hill climber.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import homophonic, search
from lexinvariant.decipher.alphabet import make_puzzle
from lexinvariant.decipher.language import Effort, Language
from lexinvariant.decipher.ngram import ngram_codes
from lexinvariant.errors import UserError
from lexinvariant.progress import Log
from lexinvariant.results.decipher import ANNEALER, OURS, SOLVERS, Setting

PEERS = tuple(name for name in SOLVERS if name != OURS)
Solve = Callable[[str, Setting], str]
"""From a ciphertext to its plaintext."""
SETTINGS: dict[str, tuple[Setting, ...]] = {ANNEALER: ("spaced", "unspaced", "homophonic")}
"""What a solver can read; others: letters that are permuted."""


def can_read(name: str, setting: Setting) -> bool:
    return setting in SETTINGS.get(name, ("spaced", "unspaced"))


def open_peers(names: Iterable[str], language: Language, annealer_swaps: int, log: Log) -> dict[str, Solve]:
    """Those of the solvers that are installed."""
    make: dict[str, Callable[[], Solve]] = {
        ANNEALER: lambda: partial(anneal_plainly, language=language, swaps=annealer_swaps),
        "subbreaker": _subbreaker,
        "cipher_solver": _cipher_solver,
    }
    peers: dict[str, Solve] = {}
    for name in names:
        if name not in make:
            raise UserError(f"There is no solver called {name!r} here: choose from {', '.join(PEERS)}.")
        if name != ANNEALER and importlib.util.find_spec(name) is None:
            log(f"{name} is not installed, so it is left out: pip install 'lexinvariant[peers]'.")
        else:
            peers[name] = make[name]()
    return peers


def anneal_plainly(cipher: str, setting: Setting, language: Language, swaps: int = 10_000) -> str:
    """Simulated annealing with our n-gram and nothing else: 50 restarts, none of which learns from another."""
    rng, letters = np.random.default_rng(0), np.arange(len(language.letters))
    effort = Effort(n_keys=50, n_swaps=swaps, start_inverse_temperature=0.1, resample_every=10**9)
    if setting == "homophonic":
        puzzle, ngram = make_puzzle(cipher, language), language.ngram("unspaced")
        problem = search.SearchProblem(ngram, [puzzle.words], len(puzzle.symbols), letters, {})
        longer = replace(effort, n_swaps=5 * swaps, resample_every=5 * swaps)
        found = homophonic.anneal_from_random(problem, longer, rng)
    else:
        puzzle = make_puzzle(cipher, language, "letters", setting == "unspaced")
        ngram = language.ngram("spaced" if setting == "spaced" else "unspaced")
        problem = search.SearchProblem(ngram, [puzzle.words], len(puzzle.symbols), letters, {})
        noise = language.letter_search.first_key_rank_noise
        first_SR = search.keys_by_frequency(problem, effort.n_keys, noise, rng)
        found, _ = search.anneal(problem, first_SR, effort, rng)
    best = {symbol: ngram.alphabet[v] for symbol, v in zip(puzzle.symbols, found.key_NS[0], strict=True)}
    return puzzle.plaintext(best)


def climb_vigenere(cipher: str, language: Language, periods: int = 20, tries: int = 2000) -> str:
    """The way of textbooks: the periods whose columns have the highest index of coincidence, each column's shift by its
    frequencies (chi-squared), then random changes of the key that our n-gram likes better. The plaintext's letters.
    """
    ngram, frequency_V = language.ngram("unspaced"), language.letter_frequencies
    size = len(language.letters)
    letter_T = np.array([language.letters.index(c) for c in language.unspaced(cipher)])

    def coincidence(period: int) -> float:
        counts = [np.bincount(letter_T[p::period], minlength=size) for p in range(period)]
        return float(np.mean([(c * (c - 1)).sum() / max(1, c.sum() * (c.sum() - 1)) for c in counts]))

    def shift(column_T: NDArray[np.integer]) -> int:
        count_V = np.bincount(column_T, minlength=size)
        expected_V = len(column_T) * frequency_V
        return int(
            np.argmin([((np.roll(count_V, -k) - expected_V) ** 2 / expected_V).sum() for k in range(size)])
        )

    def plain(key: NDArray[np.integer]) -> NDArray[np.integer]:
        return (letter_T - np.resize(key, len(letter_T))) % size

    def cost(key: NDArray[np.integer]) -> int:
        return int(ngram.cost_G[ngram_codes(plain(key), ngram.order, size)].sum(dtype=np.int64))

    rng = np.random.default_rng(0)
    found = []
    for period in sorted(range(1, periods + 1), key=coincidence)[-3:]:
        key = np.array([shift(letter_T[p::period]) for p in range(period)])
        least = cost(key)
        for _ in range(tries):
            changed = key.copy()
            changed[rng.integers(period)] = rng.integers(size)
            if (now := cost(changed)) < least:
                key, least = changed, now
        found.append((least, key))
    best = min(found, key=lambda pair: pair[0])[1]
    return "".join(language.letters[v] for v in plain(best))


def _subbreaker() -> Solve:
    import subbreaker

    table = Path(subbreaker.__file__).parent / "quadgram" / "EN.json"
    breaker = subbreaker.Breaker(io.StringIO(table.read_text("utf-8")))

    def solve(cipher: str, setting: Setting) -> str:
        # 300 rounds at most: what its published table was measured with.
        return str(breaker.break_cipher(cipher, max_rounds=300).plaintext)

    return solve


def _cipher_solver() -> Solve:
    from cipher_solver.simple import SimpleSolver

    def solve(cipher: str, setting: Setting) -> str:
        solver = SimpleSolver(cipher)
        solver.solve()
        return str(solver.plaintext())

    return solve
