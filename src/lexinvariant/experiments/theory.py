"""The theory experiment: how fast p' converges to p, against the bounds, and the limit for English."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.options import AtLeast, Count
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.generators import generator_at
from lexinvariant.results import paper
from lexinvariant.results.rows import hash_bytes
from lexinvariant.results.theory import FAMILIES, Bench, Bound, Convergence, Exponents, Family, Kernel, Worst
from lexinvariant.results.theory_limit import Limit, ModelCurve
from lexinvariant.text import letters_only
from lexinvariant.theory import bound, english, languages
from lexinvariant.theory.mixture import ExactTrace, exact
from lexinvariant.theory.smc import particles
from lexinvariant.theory.worst import fit_exponent, two_level_l1

if TYPE_CHECKING:
    from lexinvariant.experiments.evaluated_model import EvaluatedModel

DELTA = 0.05


@dataclass(frozen=True)
class Options:
    """Measure how the lexinvariant mixture converges to the true language, beside the theorem's bounds.

    example: lexinvariant experiment theory --quick --out runs/theory && lexinvariant report runs/theory
    """

    out: Path = Path("runs/theory")
    """Folder for the rows (theory.jsonl); rows are appended."""
    quick: bool = False
    """Small sizes: rough curves in well under a minute."""
    seed: int = 0
    """Seed of every language and text drawn."""
    text: Path | None = None
    """English to fit the n-gram on: a text file, or JSON lines with a "text" field (.xz allowed).
    Default: the reference topics that ship with Python."""
    eval_text: Path | None = None
    """English to measure on. Default: the last tenth of --text, left out of the fit."""
    order: Count = 4
    """Order of the n-gram (symbols per table entry), at most 5."""
    particles: Count = 1024
    """Keys in the sequential Monte Carlo for 27 symbols."""
    texts: Count = 4
    """English texts to measure."""
    length: Annotated[int, AtLeast(8)] = 512
    """Symbols in each text."""
    model: str | None = None
    """A trained model to plot against the limit, scored on the same texts: its folder, OWNER/NAME on the Hugging Face
    Hub, or `bundled`."""
    draws: Count = 1
    """Lexicons to average the model's probabilities over."""
    bench: bool = False
    """Only time the two kernels: 8 symbols by enumeration, 27 by 4,096 particles, both over 512 symbols."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (3, 5) if self.quick else (2, 4, 6, 8)

    @property
    def exact_length(self) -> int:
        return min(self.length, 128) if self.quick else self.length


def run(options: Options, recorder: Recorder) -> None:
    """Everything, or the two kernels' times."""
    english.check_order(len(english.LETTERS_AND_SPACE), options.order)  # needed last, after minutes
    model = None if options.model is None else _open_model(options.model)
    fit, held_out, data_hash = _corpus(options)
    recorder.measured_on(
        model_hash=None if model is None else model.hash, data_hash=data_hash, uses_model=model is not None
    )
    if options.bench:
        _bench(recorder, fit, held_out, options)
        return
    _convergence(recorder, fit, options)
    _worst(recorder, options)
    _bounds(recorder)
    passages = _english(recorder, fit, held_out, options)
    if model is not None:
        _model_curve(recorder, passages, model, options.draws)


def _open_model(place: str) -> EvaluatedModel:
    from lexinvariant.experiments.evaluated_model import open_model  # a model needs jax; the theory does not

    return open_model(place)


def _corpus(options: Options) -> tuple[str, str, str]:
    """Letters to fit on, letters to measure on, and the hash of both."""
    most = 300_000 if options.quick else 20_000_000
    whole = letters_only(
        english.stdlib_text() if options.text is None else english.read_text(options.text, most)
    )
    cut = len(whole) if options.eval_text else int(0.9 * len(whole))
    fit = whole[:cut]
    held_out = (
        letters_only(english.read_text(options.eval_text, 5_000_000)) if options.eval_text else whole[cut:]
    )
    if len(held_out) < options.length:
        raise UserError(
            f"The text to measure on has {len(held_out)} letters, fewer than --length {options.length}."
        )
    return fit, held_out, hash_bytes((fit + "\n" + held_out).encode())


def _spaced(length: int) -> list[int]:
    """About eight context lengths an octave-and-a-half, from 1 to the length."""
    return sorted({round(value) for value in np.geomspace(1, length, 40)})


def _family(name: Family, d: int, fit: str, rng: np.random.Generator) -> languages.KnownLanguage:
    if name == "markov":
        return languages.random_markov(d, rng)
    if name == "symmetric":
        return languages.symmetric_markov(d, rng)
    if name == "near":
        return languages.near_uniform(d, 0.2)
    alphabet = english.most_frequent(fit, d)
    return english.fit_ngram(english.encode(fit, alphabet), d, 2)


def _convergence(recorder: Recorder, fit: str, options: Options) -> None:
    """Exact p' for each family and alphabet size."""
    curves: dict[tuple[Family, int], np.ndarray] = {}
    grid = _spaced(options.exact_length)
    at = np.array(grid) - 1

    def mean(values: list[languages.Floats]) -> list[float]:
        return np.mean(values, axis=0)[at].tolist()

    def largest(values: list[languages.Floats]) -> list[float]:
        return np.max(values, axis=0)[at].tolist()

    for number, name in enumerate(FAMILIES):
        for d in options.sizes:
            rng = generator_at(options.seed, number, d)
            traces: list[ExactTrace] = []
            language = _family(name, d, fit, rng)
            for _ in range(4 if options.quick or d >= 8 else 16):
                if name in ("markov", "symmetric"):  # the random ones: another language for each text
                    language = _family(name, d, fit, rng)
                traces.append(exact(language, language.sample(rng, options.exact_length)))
            average = [trace.average_l1_T for trace in traces]
            curves[name, d] = np.mean(average, axis=0)
            recorder.write(
                Convergence(
                    language=name,
                    d=d,
                    texts=len(traces),
                    context=grid,
                    l1_mean=mean(average),
                    l1_max=largest(average),
                    kl_sum_mean=mean([np.cumsum(trace.kl_T) for trace in traces]),
                    hellinger_sum_max=largest([np.cumsum(trace.hellinger_T) for trace in traces]),
                    regret_max=largest([trace.regret_T for trace in traces]),
                    entropy_mean=mean([trace.entropy_T for trace in traces]),
                    key_surprise_mean=mean([trace.key_surprise_T for trace in traces]),
                    delta=DELTA,
                    bound_sharp=[bound.error_guaranteed(d, T, DELTA, "sharp").epsilon for T in grid],
                    bound_expected=[bound.expected_error(d, T) for T in grid],
                )
            )
            recorder.log(
                f"{FAMILIES[name]}, d={d}: average L1 {curves[name, d][-1]:.4f} at T={options.exact_length}"
            )
    late = np.array([T for T in grid if options.exact_length // 8 <= T])
    for name in FAMILIES:
        # Two interchangeable symbols make p' equal to p: there is no error, and so no exponent.
        wrong = [d for d in options.sizes if curves[name, d][-1] > 1e-9]
        by_T = {d: fit_exponent(late, curves[name, d][late - 1]) for d in wrong}
        in_d = fit_exponent(wrong, [curves[name, d][-1] for d in wrong]) if len(wrong) > 1 else None
        recorder.write(Exponents(language=name, in_T=by_T, in_d=in_d, fitted_from=int(late[0])))


def _worst(recorder: Recorder, options: Options) -> None:
    """The largest mean error over near-uniform languages, at each T: what any uniform bound has to cover."""
    length, texts = (128, 200) if options.quick else (1024, 200)
    sizes = (2, 4, 6) if options.quick else (2, 4, 6, 8, 10)
    grid = [T for T in _spaced(length) if T >= 4]
    at = np.array(grid) - 1
    envelope: dict[int, np.ndarray] = {}
    for d in sizes:
        rng = generator_at(options.seed, 100, d)
        means = []
        for gap in np.geomspace(0.02, 0.95, 10):
            l1_ST = two_level_l1(d, float(gap), texts, length, rng)
            means.append((np.cumsum(l1_ST, axis=1) / np.arange(1, length + 1)).mean(axis=0))
        envelope[d] = np.max(means, axis=0)
        recorder.write(
            Worst(
                d=d,
                texts=texts,
                context=grid,
                l1_mean=envelope[d][at].tolist(),
                bound_expected=[bound.expected_error(d, T) for T in grid],
            )
        )
        recorder.log(f"worst near-uniform language, d={d}: average L1 {envelope[d][-1]:.4f} at T={length}")
    # Fit where the hardest gap lies inside the range tried: not yet at the largest, not yet at the smallest.
    late = np.array([T for T in grid if length // 16 <= T])
    by_T = {d: fit_exponent(late, envelope[d][late - 1]) for d in sizes}
    in_d = fit_exponent(sizes, [envelope[d][-1] for d in sizes])
    recorder.write(Exponents(language="worst", in_T=by_T, in_d=in_d, fitted_from=int(late[0])))
    recorder.log(
        f"worst case: exponents {np.mean(list(by_T.values())):.2f} in T and {in_d:.2f} in d (the paper's bound: "
        f"{paper.EXPONENT_T} and {paper.EXPONENT_D})"
    )


def _bounds(recorder: Recorder) -> None:
    """What each theorem guarantees at each T, far beyond what can be measured."""
    grid = np.unique(np.geomspace(1, 1e14, 120).astype(np.int64)).tolist()
    for d in (8, 27, 128):
        epsilon = {
            kind: [bound.error_guaranteed(d, T, DELTA, kind).epsilon for T in grid] for kind in bound.KINDS
        }
        needed = {kind: bound.context_needed(d, 0.1, DELTA, kind).T for kind in bound.KINDS}
        recorder.write(Bound(d=d, delta=DELTA, context=grid, epsilon=epsilon, context_for_tenth=needed))


def _english(recorder: Recorder, fit: str, held_out: str, options: Options) -> list[str]:
    """The best a lexinvariant model with this n-gram's knowledge of English can do, by context length. Returns the
    texts that it was measured on.
    """
    alphabet = english.LETTERS_AND_SPACE
    n, islands, order, count, length = options.particles, 4, options.order, options.texts, options.length
    if options.quick:  # an order lower is smoother, and needs fewer keys
        n, islands, order, count, length = min(n, 256), 2, min(order, 3), 1, min(length, 128)
    ngram = english.fit_ngram(english.encode(fit, alphabet), len(alphabet), order)
    symbols = english.encode(held_out, alphabet)
    count = min(count, len(symbols) // length)
    starts = np.linspace(0, len(symbols) - length, count).astype(int)
    passages = ["".join(alphabet[i] for i in symbols[start : start + length]) for start in starts]
    for index, passage in enumerate(passages):
        symbol_T = english.encode(passage, alphabet)
        trace = particles(ngram, symbol_T, n=n, islands=islands, seed=options.seed + index)
        seen = np.unique(symbol_T)
        row = recorder.write(
            Limit(
                text=index,
                d=len(alphabet),
                order=order,
                particles=n,
                nats=(-trace.logp_T).tolist(),
                known_nats=(-trace.known_logp_T).tolist(),
                l1=trace.l1_T.tolist(),
                key_surprise=trace.evidence_key_surprise_T.tolist(),
                log_evidence_error=trace.log_evidence_error_T.tolist(),
                key_accuracy=float(np.mean(trace.key_matrix_VV[seen].argmax(axis=1) == seen)),
                fitted_characters=len(fit),
            )
        )
        recorder.log(
            f"English text {index + 1} of {count}: perplexity of the last 100 symbols "
            f"{np.exp(-trace.logp_T[-100:].mean()):.2f}, with the key "
            f"{np.exp(-trace.known_logp_T[-100:].mean()):.2f} ({row.origin.seconds:.0f} s)"
        )
    return passages


def _model_curve(recorder: Recorder, passages: list[str], evaluated: EvaluatedModel, draws: int) -> None:
    """A trained model's losses on the same texts."""
    scores = evaluated.model.score(passages, draws=draws)
    for index, (passage, logp) in enumerate(zip(passages, scores, strict=True)):
        if len(logp) != len(passage):
            raise UserError(
                f"The model gave {len(logp)} scores for {len(passage)} characters: it is not character-level."
            )
        recorder.write(ModelCurve(text=index, name=evaluated.name, nats=(-logp.astype(np.float64)).tolist()))
    recorder.log(f"model {evaluated.name}: scored {len(passages)} texts")


def _bench(recorder: Recorder, fit: str, held_out: str, options: Options) -> None:
    rng = generator_at(options.seed)
    chain = languages.random_markov(8, rng)
    text = chain.sample(rng, 512)
    alphabet = english.LETTERS_AND_SPACE
    ngram = english.fit_ngram(english.encode(fit, alphabet), len(alphabet), options.order)
    passage = english.encode(held_out, alphabet)[:512]

    def measure(what: Kernel, d: int, length: int, keys: int, bar: float, work: Callable[[], object]) -> None:
        wall, cpu = _timed(work)
        size: dict[str, Any] = {"d": d, "length": length, "keys": keys}
        recorder.write(Bench(what=what, **size, wall_seconds=wall, cpu_seconds=cpu, bar_seconds=bar))
        recorder.log(
            f"{what}, {d} symbols, {keys:,} keys, {length} symbols: {wall:.1f} s, of the processor {cpu:.1f} s (bar: "
            f"{bar:.0f} s)"
        )

    # First calls of NumPy and the table of keys are not the kernel.
    exact(languages.random_markov(3, rng), text % 3)
    measure("enumeration", 8, len(text), 40320, 5.0, lambda: exact(chain, text))
    sample = partial(particles, ngram, passage, n=4096, seed=options.seed)
    measure("particles", len(alphabet), len(passage), 4096, 120.0, sample)


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall time, and processor time, which a busy machine does not stretch."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor
