"""Solvers of substitution ciphers side by side, on the same ciphertexts in one run.

A text of length N has N characters: letters and single spaces where spaces are kept, letters alone where not, any
printable characters where all of ASCII is permuted.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.alphabet import make_puzzle
from lexinvariant.decipher.decipherment import Decipherment
from lexinvariant.decipher.kind_samples import CIPHERS, Cipher
from lexinvariant.decipher.language import AUTO, ENGLISH, load_language
from lexinvariant.decipher.samples import (
    Sample,
    draw_samples,
    enciphered_pairs,
    plain_documents,
    solver_options,
)
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError
from lexinvariant.experiments.cipher_kinds import measure_kinds
from lexinvariant.experiments.cipher_peers import PEERS, Solve, can_read, open_peers
from lexinvariant.experiments.options import Count, CountOrZero
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.generators import generator_at
from lexinvariant.model.weights import BUNDLED, find_model
from lexinvariant.processes import python_command
from lexinvariant.results.decipher import (
    ANNEALER,
    OURS,
    Batch,
    Fresh,
    PublishedCipher,
    Reliability,
    Setting,
    SolverErrors,
)
from lexinvariant.results.rows import hash_bytes, hash_files
from lexinvariant.text import read_documents

EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Bins of confidence."""
_RESAMPLES = 2000

Floats = NDArray[np.float64]
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure solvers of substitution ciphers on held-out text: symbol error rate, key accuracy and seconds by length.

    Ours is compared with a plain annealer using the same n-gram and, where installed, with subbreaker (quadgrams, hill
    climbing) and cipher_solver (digrams); on Vigenere ciphers with a plain hill climber.

    examples:
      lexinvariant experiment decipher --data-text prose.test.jsonl.xz --batch 1000 --fresh 5
      lexinvariant experiment decipher --data-text prose.test.jsonl.xz --settings --kinds 120 --foreign de.test.jsonl.xz
    """

    data_text: str
    """Held-out text: a source, as for `lexinvariant data prepare`."""
    out: Path = Path("runs/report")
    """Folder for the rows (decipher.jsonl)."""
    language: str = AUTO
    """The language of the text: a name, or a folder written by `lexinvariant language build`. With auto the text is
    English, but the solver has to find that out."""
    model: str = BUNDLED
    """The lexinvariant model with which our solver names symbols."""
    lengths: tuple[int, ...] = (32, 64, 100, 200, 400, 512)
    """Lengths of texts in characters, with spaces and without."""
    ascii_lengths: tuple[int, ...] = (480,)
    """Lengths of texts in which every printable character is permuted."""
    homophonic_lengths: tuple[int, ...] = (400,)
    """Lengths, in letters, of homophonic texts: common letters have several of 50 symbols."""
    settings: tuple[Setting, ...] = ("spaced", "unspaced", "ascii", "homophonic")
    """What to measure: letters with spaces kept, letters alone, every printable character, homophonic ciphers."""
    texts: Count = 100
    """Texts of each length."""
    peers: tuple[str, ...] = PEERS
    """Which other solvers to measure."""
    peer_texts: Count = 30
    """Texts of each length for the other solvers, the first of ours; subbreaker takes seconds for each."""
    annealer_swaps: Count = 10_000
    """Most swaps in each of the plain annealer's 50 restarts."""
    batch: CountOrZero = 0
    """Also measure this many texts of 200 symbols at once; the bar is 1,000 in 60 seconds on two cores."""
    published: tuple[str, ...] = ()
    """Also measure published ciphers: files with a ciphertext, an empty line and its plaintext, letter for letter."""
    published_letters: CountOrZero = 0
    """Count only this many letters of each from the start, if the end has no agreed reading; 0: all."""
    kinds: CountOrZero = 0
    """Also measure the verdicts on this many texts of every kind of cipher: Caesar, Vigenere, transposition,
    random."""
    kind_lengths: tuple[int, ...] = (60, 100, 200, 400)
    """Lengths of these texts, in letters."""
    ciphers: tuple[Cipher, ...] = CIPHERS
    """Which kinds to measure."""
    foreign: tuple[str, ...] = ()
    """Held-out text in other languages, for substitution ciphers in another language: sources, as for --data-text."""
    fresh: CountOrZero = 0
    """Also time this many commands, each in a fresh process with empty caches; the bar is 5 seconds."""
    seed: int = 0
    """Seed for drawing texts and keys."""


def run(options: Options, recorder: Recorder) -> None:
    """Every solver on every text."""
    if not (
        any(_lengths(options, setting) for setting in options.settings) or options.published or options.kinds
    ):
        raise UserError(
            "There is nothing to measure: give --settings with --lengths, --kinds or --published."
        )
    solver, model_hash = _open_solver(options)
    peers = open_peers(options.peers, solver.language, options.annealer_swaps, recorder.log)
    text = "\n".join(document.text for document in read_documents(options.data_text))
    recorder.measured_on(model_hash=model_hash, data_hash=hash_bytes(text.encode()))
    for setting in options.settings:
        documents = plain_documents(options.data_text, setting, solver.language)
        sample = partial(draw_samples, documents, setting, solver.language, seed=options.seed)
        for length in _lengths(options, setting):
            texts = _Texts(setting, length, sample(length=length, n=options.texts))
            _measure_ours(recorder, solver, texts)
            few = _Texts(setting, length, texts.samples[: options.peer_texts])
            for name, solve in peers.items():
                if can_read(name, setting):
                    _write(recorder, name, few, *_timed(recorder, name, few, solve))
        if setting == "spaced" and options.batch:
            _measure_batch(recorder, solver, sample(length=200, n=options.batch))
        if setting == "spaced" and options.fresh:
            _measure_fresh(recorder, sample(length=100, n=options.fresh))
    for file in options.published:
        _measure_published(recorder, solver, peers.get(ANNEALER), Path(file), options.published_letters)
    if options.kinds:
        own, *foreign = (
            [document.text for document in read_documents(source)]
            for source in (options.data_text, *options.foreign)
        )
        measure_kinds(
            recorder,
            solver,
            own,
            foreign,
            ciphers=options.ciphers,
            lengths=options.kind_lengths,
            n=options.kinds,
            seed=options.seed,
            n_peer=options.peer_texts if options.peers else 0,
        )


def _lengths(options: Options, setting: Setting) -> tuple[int, ...]:
    if setting == "ascii":
        return options.ascii_lengths
    return options.homophonic_lengths if setting == "homophonic" else options.lengths


@dataclass(frozen=True)
class _Texts:
    """Texts of one setting and length."""

    setting: Setting
    length: int
    samples: Sequence[Sample]


def _open_solver(options: Options) -> tuple[Solver, str]:
    """Our solver, and a hash of all that it knows."""
    language, model = load_language(ENGLISH if options.language == AUTO else options.language), None
    if options.model != BUNDLED:
        from lexinvariant.api import load

        model = load(options.model)
    used = [place for place in (language.folder, find_model(options.model)) if place.exists()]
    return Solver(model, language=None if options.language == AUTO else language), hash_files(used)


def _timed(
    recorder: Recorder, name: str, texts: _Texts, solve: Callable[[str, Setting], Answer]
) -> tuple[list[Answer], list[float]]:
    """Texts one at a time: what a solver makes of each, and in how many seconds."""
    answers, seconds = [], []
    with recorder.progress(f"{texts.setting} {texts.length}, {name}", len(texts.samples)) as advance:
        for sample in texts.samples:
            started = time.perf_counter()
            answers.append(solve(sample.cipher, texts.setting))
            seconds.append(time.perf_counter() - started)
            advance(1)
    return answers, seconds


def _measure_ours(recorder: Recorder, solver: Solver, texts: _Texts) -> None:
    def solve(cipher: str, setting: Setting) -> Decipherment:
        return solver.read([cipher], **solver_options(setting))[0]

    solve(texts.samples[0].cipher, texts.setting)  # loads and compiles: what is timed is a warm solver
    found, seconds = _timed(recorder, OURS, texts, solve)
    _write(recorder, OURS, texts, [decipherment.plaintext for decipherment in found], seconds)
    sure, right, weight = [], [], []
    for sample, decipherment in zip(texts.samples, found, strict=True):
        right_of = occurrences_right(sample, decipherment)
        for symbol, p in decipherment.confidence.items():
            sure.append(p)
            right.append(all(right_of[symbol]))
            weight.append(len(right_of[symbol]))
    recorder.write(reliability(texts.setting, texts.length, sure, right, weight))


def occurrences_right(sample: Sample, decipherment: Decipherment) -> dict[str, list[bool]]:
    """For every symbol of the key, whether it is read rightly wherever it stands. A spelling without accents takes
    several characters of the ciphertext for one symbol.
    """
    out: dict[str, list[bool]] = {symbol: [] for symbol in decipherment.confidence}
    for cell, true, plain in zip(sample.cipher, sample.plain, decipherment.plaintext, strict=True):
        symbol = decipherment.symbol_of.get(cell)
        if symbol in out:
            out[symbol].append(plain == true)
    return out


def reliability(
    setting: Setting, length: int, sure: Sequence[float], right: Sequence[bool], weight: Sequence[int]
) -> Reliability:
    """By bin of confidence: how many symbols of a key and of a text, their summed confidence, how many are right."""
    bin_N = np.clip(np.searchsorted(EDGES, sure, side="right") - 1, 0, len(EDGES) - 2)
    sure_N, right_N, weight_N = np.array(sure), np.array(right, float), np.array(weight, float)

    def per_bin(value_N: Floats) -> list[float]:
        return np.bincount(bin_N, value_N, minlength=len(EDGES) - 1).tolist()

    return Reliability(
        setting=setting,
        length=length,
        edges=list(EDGES),
        symbols=per_bin(np.ones(len(sure_N))),
        symbols_right=per_bin(right_N),
        sure=per_bin(sure_N),
        occurrences=per_bin(weight_N),
        occurrences_right=per_bin(right_N * weight_N),
    )


def _measure_batch(recorder: Recorder, solver: Solver, samples: Sequence[Sample]) -> None:
    started = time.perf_counter()
    found = solver.read([sample.cipher for sample in samples], **solver_options("spaced"))
    seconds = time.perf_counter() - started
    error_N = [error_rate(s.plain, r.plaintext, "spaced") for s, r in zip(samples, found, strict=True)]
    row = recorder.write(
        Batch(n=len(samples), length=200, wall_seconds=seconds, error=float(np.mean(error_N)))
    )
    recorder.log(f"{row.n} texts of 200 at once: {seconds:.1f} s, symbol error rate {row.error:.2%}")


def _measure_fresh(recorder: Recorder, samples: Sequence[Sample]) -> None:
    seconds = []
    for sample in samples:
        command = python_command("lexinvariant.cli.main", "main", "decipher", sample.cipher)
        with TemporaryDirectory() as empty:
            caches = {"XDG_CACHE_HOME": empty, "JAX_COMPILATION_CACHE_DIR": empty}
            started = time.perf_counter()
            subprocess.run(command, env=os.environ | caches, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - started)
    row = recorder.write(Fresh(n=len(samples), length=100, median_seconds=float(np.median(seconds))))
    recorder.log(f"a first command in a fresh process: {row.median_seconds:.1f} s ({row.n} texts of 100)")


def _measure_published(
    recorder: Recorder, solver: Solver, annealer: Solve | None, file: Path, n_letters: int
) -> None:
    """A cipher that was published with its solution, read as it stands in its file."""
    cipher, plain = _read_published(file)
    puzzle = make_puzzle(cipher, solver.language)
    if puzzle.count_S.sum() != len(plain):
        raise UserError(
            f"{file} is not a published cipher: give a ciphertext, an empty line and a plaintext with the same number "
            "of letters."
        )
    solvers: dict[str, Callable[[], str]] = {OURS: lambda: solver.read([cipher], top=0)[0].plaintext}
    if annealer is not None:
        spacing: Setting = "spaced" if puzzle.spaced else "unspaced"
        solvers[ANNEALER] = lambda: annealer(cipher, "homophonic" if puzzle.is_homophonic else spacing)
    for name, solve in solvers.items():
        started = time.perf_counter()
        found = _letters(solve())
        seconds = time.perf_counter() - started
        pairs = list(zip(plain, found, strict=True))[: n_letters or None]
        right = float(np.mean([a == b for a, b in pairs]))
        row = recorder.write(
            PublishedCipher(
                file=file.name,
                solver=name,
                symbols=len(puzzle.symbols),
                letters=len(pairs),
                right=right,
                wall_seconds=seconds,
            )
        )
        recorder.log(f"{file.name}, {name}: {row.right:.1%} of {row.letters} letters, {seconds:.1f} s")


def _read_published(file: Path) -> tuple[str, str]:
    """A file's ciphertext as it stands, and its plaintext's letters."""
    try:
        cipher, _, plain = file.read_text("utf-8").strip().partition("\n\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}.") from error
    return cipher, _letters(plain)


def _letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalpha())


def error_rate(plain: str, deciphered: str, setting: Setting) -> float:
    """Share of the enciphered symbols that are deciphered wrongly; spaces count only where they were enciphered."""
    pairs = enciphered_pairs(plain, deciphered, setting)
    return sum(a != b for a, b in pairs) / max(1, len(pairs))


def key_accuracy(plain: str, deciphered: str, setting: Setting) -> float:
    """Share of the plaintext's different symbols that are deciphered rightly wherever they stand."""
    pairs = set(enciphered_pairs(plain, deciphered, setting))
    every = {a for a, _ in pairs}
    return len(every - {a for a, b in pairs if a != b}) / max(1, len(every))


def interval(value_N: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """95% confidence interval of the mean: bootstrap over texts."""
    every_N = np.asarray(value_N, np.float64)
    rng = generator_at(seed)
    mean_M = every_N[rng.integers(0, len(every_N), (_RESAMPLES, len(every_N)))].mean(axis=1)
    low, high = np.quantile(mean_M, (0.025, 0.975))
    return float(low), float(high)


def _write(
    recorder: Recorder, name: str, texts: _Texts, plain: Sequence[str], seconds: Sequence[float]
) -> None:
    pairs = list(zip([sample.plain for sample in texts.samples], plain, strict=True))
    error_N = [error_rate(*pair, texts.setting) for pair in pairs]
    key_N = [key_accuracy(*pair, texts.setting) for pair in pairs]
    row = recorder.write(
        SolverErrors(
            solver=name,
            solver_version=None if name in (OURS, ANNEALER) else version(name),
            setting=texts.setting,
            length=texts.length,
            errors=error_N,
            error_interval=interval(error_N),
            key_accuracy=float(np.mean(key_N)),
            key_interval=interval(key_N),
            median_seconds=float(np.median(seconds)),
        )
    )
    recorder.log(
        f"{row.setting:<8} {row.length:>4}  {name:<13} symbol error rate {row.error:7.2%}, key accuracy "
        f"{row.key_accuracy:.3f}, {row.median_seconds:.2f} s a text ({row.n} texts)"
    )
