"""The solver's verdict on held-out texts in every cipher: is it right about what they are, and how sure may one be?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lexinvariant.decipher.decipherment import Decipherment
from lexinvariant.decipher.kind_samples import Cipher, KindSample, draw_kind_samples, folded, kind_of
from lexinvariant.decipher.solve import Solver
from lexinvariant.experiments.cipher_peers import climb_vigenere
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.results.cipher_kinds import KindSolver, KindVerdicts
from lexinvariant.results.decipher import OURS

EDGES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Bins of confidence."""
CLIMBED: tuple[Cipher, ...] = ("vigenere", "gronsfeld")
"""Ciphers that the plain hill climber can read."""
READABLE = 0.9
"""A text of which so many symbols are right was readable."""


@dataclass(frozen=True)
class _Told:
    """What was said of one text, and the truth about it."""

    found: Decipherment
    cipher: Cipher
    sure_T: list[float]
    right_T: list[bool]
    seconds: float

    @property
    def is_named(self) -> bool:
        """By its own name, or by that of its kind where it was not read; another language by being read in one."""
        verdict = self.found.verdict
        if self.cipher == "other-language" and verdict.language is not None:
            return verdict.kind == "substitution"
        return verdict.kind in (self.cipher, kind_of(self.cipher))

    @property
    def right(self) -> float:
        return float(np.mean(self.right_T))


def measure_kinds(
    recorder: Recorder,
    solver: Solver,
    documents: Sequence[str],
    foreign: Sequence[Sequence[str]],
    *,
    ciphers: Sequence[Cipher],
    lengths: Sequence[int],
    n: int,
    seed: int,
    n_peer: int,
) -> None:
    """`n` texts of each cipher, of all lengths in turn; another language's only where there is text of one.

    Others that can read a cipher get `n_peer` of its texts.
    """
    language = solver.language
    own = [folded(text, language) for text in documents]
    others = [[folded(text, language) for text in texts] for texts in foreign]
    for cipher in ciphers:
        sources = others if cipher == "other-language" else [own]
        if not sources:
            continue
        parts = [(texts, length) for texts in sources for length in lengths]
        share = -(-n // len(parts))
        samples = [
            sample
            for number, (texts, length) in enumerate(parts)
            for sample in draw_kind_samples(texts, cipher, language, length, share, seed + number)
        ][:n]
        with recorder.progress(cipher, len(samples)) as advance:
            told = []
            for sample in samples:
                told.append(_tell(solver, sample))
                advance(1)
        row = recorder.write(_row(cipher, told, lengths))
        if cipher in CLIMBED and n_peer:
            some = slice(None, None, -(-len(samples) // n_peer))  # of all lengths
            _beside_climber(recorder, solver, cipher, samples[some], told[some])
        certain, right = row.certain()
        recorder.log(
            f"{cipher:<15} {row.read:>4} read {row.doubtful:>4} doubtful {row.unread:>4} not ({row.unread_readable} of "
            f"them readable), {row.named / row.n:4.0%} named; expected right {row.claimed:.1%}, right {row.right:.1%}; "
            f"of {certain:,.0f} symbols given 90% {right:,.0f} are right; {row.median_seconds:.2f} s a text"
        )


def _beside_climber(
    recorder: Recorder, solver: Solver, cipher: Cipher, samples: Sequence[KindSample], told: Sequence[_Told]
) -> None:
    """A plain hill climber on some of the texts, and ours on the same."""
    right, seconds = [], []
    for sample in samples:
        started = time.perf_counter()
        plain = climb_vigenere(sample.text, solver.language)
        seconds.append(time.perf_counter() - started)
        right.append(float(np.mean([a == b for a, b in zip(plain, sample.plain, strict=True)])))
    ours = [one.right for one in told], [one.seconds for one in told]
    for name, (shares, times) in {OURS: ours, "plain hill climber": (right, seconds)}.items():
        median = float(np.median(times))
        recorder.write(KindSolver(cipher=cipher, solver=name, right=shares, median_seconds=median))


def _tell(solver: Solver, sample: KindSample) -> _Told:
    started = time.perf_counter()
    found = solver.read([sample.text], top=0)[0]
    seconds = time.perf_counter() - started
    nothing = sample.cipher == "random"  # there is no plaintext to be right about
    if found.key:
        # A letter that the language of the reading does not have stands for itself, and nothing is claimed of it.
        plain_T = [found.key.get(symbol, symbol) for symbol in sample.symbols]
        sure_T = [found.confidence.get(symbol, 0.0) for symbol in sample.symbols]
    else:
        plain_T = [letter.lower() for letter in found.plaintext if letter.isalpha()]
        sure_T = [*found.letter_confidence]
    right_T = [not nothing and a == b for a, b in zip(plain_T, sample.plain, strict=True)]
    return _Told(found, sample.cipher, sure_T, right_T, seconds)


def _row(cipher: Cipher, told: Sequence[_Told], lengths: Sequence[int]) -> KindVerdicts:
    status = [one.found.verdict.status for one in told]
    sure_N = np.array([p for one in told for p in one.sure_T])
    right_N = np.array([right for one in told for right in one.right_T], np.float64)
    bin_N = np.clip(np.searchsorted(EDGES, sure_N, side="right") - 1, 0, len(EDGES) - 2)
    counts = [
        np.bincount(bin_N, weight, minlength=len(EDGES) - 1).tolist()
        for weight in (np.ones(len(bin_N)), right_N, sure_N)
    ]
    unread = [one for one in told if one.found.verdict.status == "unread"]
    return KindVerdicts(
        cipher=cipher,
        n=len(told),
        lengths=list(lengths),
        read=status.count("read"),
        doubtful=status.count("doubtful"),
        unread=len(unread),
        named=sum(one.is_named for one in told),
        unread_readable=sum(one.right >= READABLE for one in unread),
        claimed=float(np.mean([one.found.right for one in told])),
        right=float(np.mean([one.right for one in told])),
        edges=list(EDGES),
        symbols=counts[0],
        symbols_right=counts[1],
        sure=counts[2],
        median_seconds=float(np.median([one.seconds for one in told])),
    )
