"""Solvers of substitution ciphers side by side, on the same ciphertexts in one run.

Ours stands beside a plain annealer with the same n-gram, subbreaker (quadgrams, hill climbing) and cipher_solver
(digrams), where they are installed. A text of length N has N characters: letters and single spaces where spaces are
kept, letters alone where not, any printable characters where all of ASCII is permuted.
"""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import Alphabet, make_puzzle
from lexinvariant.decipher.language import Effort, load_language
from lexinvariant.decipher.samples import Sample, Setting, draw_samples, plain_documents
from lexinvariant.decipher.solve import Decipherment, Solver
from lexinvariant.errors import UserError
from lexinvariant.experiments.rows import Provenance, Row, RowWriter, hash_files
from lexinvariant.model.weights import BUNDLED, find_model

OURS = "lexinvariant"
PEERS = ("annealer", "subbreaker", "cipher_solver")
BARS = {("spaced", 32): 0.12, ("spaced", 64): 0.015, ("spaced", 100): 0.001, ("spaced", 200): 0.0014}
BARS |= {("spaced", 400): 0.0001, ("ascii", 480): 0.02}
"""Symbol error rates to reach."""
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Bins of confidence for the reliability figure."""
_RESAMPLES = 2000

Solve = Callable[[str, Setting], str]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """Measure solvers of substitution ciphers on held-out text: symbol error rate, key accuracy and seconds by length.

    Example: lexinvariant bench decipher --data-text data/raw/prose.test.jsonl.xz --batch 1000 --fresh 5
    """

    data_text: str = "data/raw/prose.test.jsonl.xz"
    """Held-out text: a source as in `lexinvariant data prepare`."""
    out: Path = Path("runs/report")
    """Folder for the rows (decipher.jsonl)."""
    model: str = BUNDLED
    """The lexinvariant model that our solver names symbols with."""
    lengths: tuple[int, ...] = (32, 64, 100, 200, 400, 512)
    """Characters of a text, with spaces kept and without."""
    ascii_lengths: tuple[int, ...] = (480,)
    """Characters of a text where every printable character is permuted."""
    settings: tuple[Setting, ...] = ("spaced", "unspaced", "ascii")
    texts: int = 100
    """Texts a length."""
    peers: tuple[str, ...] = PEERS
    """Which others to measure."""
    peer_texts: int = 30
    """Texts a length for the others: the first ones of ours. subbreaker takes seconds for each."""
    annealer_swaps: int = 10_000
    """Swaps that each of the plain annealer's 50 restarts may try."""
    batch: int = 0
    """Measure also this many texts of 200 symbols at once; the bar is 1,000 in 60 seconds on two cores."""
    fresh: int = 0
    """Measure also this many commands, each in a fresh process with empty caches; the bar is 5 seconds."""
    seed: int = 0


def run(options: Options, command: str = "", say: Callable[[str], None] = lambda line: None) -> list[Row]:
    """Solve all texts, write the rows and return them."""
    unknown = set(options.peers) - set(PEERS)
    if unknown:
        raise UserError(
            f"There is no solver called {sorted(unknown)[0]!r} here: choose from {', '.join(PEERS)}."
        )
    provenance = Provenance(
        "decipher",
        options.seed,
        command,
        model_hash=hash_files([p for p in (load_language().folder, find_model(options.model)) if p.exists()]),
        data_hash=hash_files([Path(options.data_text.partition("?")[0])]),
        draws=1,
    )
    solver = _our_solver(options.model)
    language = solver.language
    others = {name: solve for name in options.peers if (solve := _peer(name, options, say)) is not None}
    rows: list[Row] = []
    with RowWriter(options.out / "decipher.jsonl", provenance) as writer:
        for setting in options.settings:
            documents = plain_documents(options.data_text, setting, language)
            for length in options.ascii_lengths if setting == "ascii" else options.lengths:
                samples = draw_samples(documents, setting, language, length, options.texts, options.seed)
                rows += _measure_ours(writer, solver, setting, length, samples, say)
                for name, solve in others.items():
                    if setting == "ascii":
                        continue  # none of them can
                    rows.append(
                        _measure(writer, name, solve, setting, length, samples[: options.peer_texts], say)
                    )
            if setting == "spaced" and options.batch:
                samples = draw_samples(documents, setting, language, 200, options.batch, options.seed)
                rows.append(_measure_batch(writer, solver, samples, say))
            if setting == "spaced" and options.fresh:
                samples = draw_samples(documents, setting, language, 100, options.fresh, options.seed)
                rows.append(_measure_fresh(writer, samples, say))
    return rows


def _our_solver(model: str) -> Solver:
    if model == BUNDLED:
        return Solver()
    from lexinvariant.api import load

    return Solver(load(model))


def _read(solver: Solver, texts: Sequence[str], setting: Setting) -> list[Decipherment]:
    alphabet: Alphabet = "ascii" if setting == "ascii" else "letters"
    return solver.read(list(texts), alphabet=alphabet, unspaced=setting == "unspaced")


def _measure_ours(
    writer: RowWriter,
    solver: Solver,
    setting: Setting,
    length: int,
    samples: Sequence[Sample],
    say: Callable[[str], None],
) -> list[Row]:
    _read(solver, [samples[0].cipher], setting)  # loads and compiles: what is timed is a warm solver
    readings, seconds = [], []
    for sample in samples:
        started = time.perf_counter()
        readings += _read(solver, [sample.cipher], setting)
        seconds.append(time.perf_counter() - started)
    plain = [reading.plaintext for reading in readings]
    row = _write(writer, OURS, setting, length, samples, plain, seconds, say)
    sure, right, weight = [], [], []
    for sample, reading in zip(samples, readings, strict=True):
        truth = dict(zip(sample.cipher, sample.plain, strict=True))
        for symbol, p in reading.confidence.items():
            sure.append(p)
            right.append(reading.key[symbol] == truth[symbol])
            weight.append(sample.cipher.count(symbol))
    return [
        row,
        writer.write("reliability", setting=setting, length=length, **reliability(sure, right, weight)),
    ]


def reliability(
    sure: Sequence[float], right: Sequence[bool], weight: Sequence[int]
) -> dict[str, list[float]]:
    """By bin of confidence: how many symbols of a key and of a text, their mean confidence, how many are right."""
    bin_N = np.clip(np.searchsorted(EDGES, sure, side="right") - 1, 0, len(EDGES) - 2)
    sure_N, right_N, weight_N = np.array(sure), np.array(right, float), np.array(weight, float)

    def per_bin(value_N: Floats) -> list[float]:
        return np.bincount(bin_N, value_N, minlength=len(EDGES) - 1).tolist()

    return {
        "edges": list(EDGES),
        "symbols": per_bin(np.ones(len(sure_N))),
        "symbols_right": per_bin(right_N),
        "sure": per_bin(sure_N),
        "occurrences": per_bin(weight_N),
        "occurrences_right": per_bin(right_N * weight_N),
    }


def _measure(
    writer: RowWriter,
    name: str,
    solve: Solve,
    setting: Setting,
    length: int,
    samples: Sequence[Sample],
    say: Callable[[str], None],
) -> Row:
    plain, seconds = [], []
    for sample in samples:
        started = time.perf_counter()
        plain.append(solve(sample.cipher, setting))
        seconds.append(time.perf_counter() - started)
    return _write(writer, name, setting, length, samples, plain, seconds, say)


def _measure_batch(
    writer: RowWriter, solver: Solver, samples: Sequence[Sample], say: Callable[[str], None]
) -> Row:
    started = time.perf_counter()
    readings = _read(solver, [sample.cipher for sample in samples], "spaced")
    seconds = time.perf_counter() - started
    error_N = [error_rate(s.plain, r.plaintext, "spaced") for s, r in zip(samples, readings, strict=True)]
    say(f"{len(samples)} texts of 200 at once: {seconds:.1f} s, symbol error rate {np.mean(error_N):.2%}")
    return writer.write(
        "batch", n=len(samples), length=200, wall_seconds=seconds, error=float(np.mean(error_N))
    )


def _measure_fresh(writer: RowWriter, samples: Sequence[Sample], say: Callable[[str], None]) -> Row:
    seconds = []
    for sample in samples:
        command = [sys.executable, "-m", "lexinvariant", "decipher", sample.cipher]
        with TemporaryDirectory() as empty:
            caches = {"XDG_CACHE_HOME": empty, "JAX_COMPILATION_CACHE_DIR": empty}
            started = time.perf_counter()
            subprocess.run(command, env=os.environ | caches, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - started)
    say(f"a first command in a fresh process: {np.median(seconds):.1f} s ({len(samples)} texts of 100)")
    return writer.write("fresh", n=len(samples), length=100, median_seconds=float(np.median(seconds)))


def error_rate(plain: str, read: str, setting: Setting) -> float:
    """Share of the enciphered symbols that are read wrongly; spaces count only where they were enciphered."""
    pairs = _enciphered(plain, read, setting)
    return sum(a != b for a, b in pairs) / max(1, len(pairs))


def key_accuracy(plain: str, read: str, setting: Setting) -> float:
    """Share of the plaintext's different symbols that are read rightly wherever they stand."""
    pairs = set(_enciphered(plain, read, setting))
    every = {a for a, _ in pairs}
    return len(every - {a for a, b in pairs if a != b}) / max(1, len(every))


def _enciphered(plain: str, read: str, setting: Setting) -> list[tuple[str, str]]:
    return [(a, b) for a, b in zip(plain, read, strict=True) if a != " " or setting == "ascii"]


def interval(value_N: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """95% confidence interval of the mean: bootstrap over texts."""
    every_N = np.asarray(value_N, np.float64)
    rng = np.random.default_rng(seed)
    mean_M = every_N[rng.integers(0, len(every_N), (_RESAMPLES, len(every_N)))].mean(axis=1)
    low, high = np.quantile(mean_M, (0.025, 0.975))
    return float(low), float(high)


def _write(
    writer: RowWriter,
    name: str,
    setting: Setting,
    length: int,
    samples: Sequence[Sample],
    plain: Sequence[str],
    seconds: Sequence[float],
    say: Callable[[str], None],
) -> Row:
    pairs = list(zip([sample.plain for sample in samples], plain, strict=True))
    error_N = [error_rate(*pair, setting) for pair in pairs]
    key_N = [key_accuracy(*pair, setting) for pair in pairs]
    say(
        f"{setting:<8} {length:>4}  {name:<13} symbol error rate {np.mean(error_N):7.2%}, key accuracy "
        f"{np.mean(key_N):.3f}, {np.median(seconds):.2f} s a text ({len(pairs)} texts)"
    )
    return writer.write(
        "solver",
        solver=name,
        solver_version=None if name in (OURS, "annealer") else version(name),
        setting=setting,
        length=length,
        n=len(pairs),
        error=float(np.mean(error_N)),
        error_interval=interval(error_N),
        key_accuracy=float(np.mean(key_N)),
        key_interval=interval(key_N),
        solved=float(np.mean([error == 0 for error in error_N])),
        median_seconds=float(np.median(seconds)),
        errors=error_N,
        bar=BARS.get((setting, length)),
    )


def _peer(name: str, options: Options, say: Callable[[str], None]) -> Solve | None:
    if name == "annealer":
        return partial(anneal_plainly, swaps=options.annealer_swaps)
    if importlib.util.find_spec(name) is None:
        say(f"{name} is not installed, so it is left out: pip install 'lexinvariant[peers]'.")
        return None
    return {"subbreaker": _subbreaker, "cipher_solver": _cipher_solver}[name]()


def anneal_plainly(cipher: str, setting: Setting, swaps: int = 10_000) -> str:
    """Simulated annealing with our n-gram and nothing else: 50 restarts, none of which learns from another."""
    language = load_language()
    puzzle = make_puzzle(cipher, language, "letters", setting == "unspaced")
    ngram = language.ngram("spaced" if setting == "spaced" else "unspaced")
    problem = search.SearchProblem(
        ngram, [puzzle.words], len(puzzle.symbols), np.arange(len(language.letters)), {}
    )
    rng = np.random.default_rng(0)
    effort = Effort(n_keys=50, n_swaps=swaps, start_inverse_temperature=0.1, resample_every=10**9)
    noise = language.letter_search.first_key_rank_noise
    first_SR = search.keys_by_frequency(problem, effort.n_keys, noise, rng)
    found, _ = search.anneal(problem, first_SR, effort, rng)
    best = {symbol: ngram.alphabet[v] for symbol, v in zip(puzzle.symbols, found.key_NS[0], strict=True)}
    return puzzle.plaintext(best)


def _subbreaker() -> Solve:
    import subbreaker

    table = Path(subbreaker.__file__).parent / "quadgram" / "EN.json"
    breaker = subbreaker.Breaker(io.StringIO(table.read_text()))

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
