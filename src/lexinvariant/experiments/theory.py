"""The theory experiment: how fast p' converges to p, against the bounds, and the limit for English.

Rows by kind: `convergence` (one a language and alphabet size), `worst` (the hardest language at each T),
`bound` (what each theorem guarantees), `exponents`, `limit` (English over 27 symbols), `model` (a trained
model on the same text) and `bench`. The report draws them; nothing here draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.rows import Provenance, Row, RowWriter, hash_bytes
from lexinvariant.text import letters_only
from lexinvariant.theory import bound, english, languages
from lexinvariant.theory.mixture import ExactTrace, exact, log_factorial
from lexinvariant.theory.smc import particles
from lexinvariant.theory.worst import fit_exponent, two_level_l1

if TYPE_CHECKING:
    from lexinvariant.experiments.evaluated_model import EvaluatedModel

DELTA = 0.05
Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Measure the convergence of the lexinvariant mixture to the true language, beside the theorem's bounds.

    Example: lexinvariant experiment theory --quick --out runs/theory && lexinvariant report runs/theory
    """

    out: Path = Path("runs/theory")
    """Folder for the rows (theory.jsonl); rows are appended."""
    quick: bool = False
    """Small sizes: well under a minute, and rough curves."""
    seed: int = 0
    """Seed of every language and text drawn."""
    text: Path | None = None
    """English to fit the n-gram on: a text file, or JSON lines with a "text" field (.xz allowed).
    Default: the reference topics that ship with Python."""
    eval_text: Path | None = None
    """English to measure on. Default: the last tenth of the text fitted on, left out of the fit."""
    order: int = 4
    """Order of the n-gram (symbols in a table entry), at most 5."""
    particles: int = 1024
    """Keys in the sequential Monte Carlo for 27 symbols."""
    texts: int = 4
    """English texts measured."""
    length: int = 512
    """Symbols in each text."""
    model: str | None = None
    """A trained model to plot against the limit, scored on the same texts: its folder, OWNER/NAME on the Hugging Face
    Hub, or `bundled`."""
    draws: int = 1
    """Draws of the lexicon that the model's probabilities are averaged over."""
    bench: bool = False
    """Only time the two kernels: 8 symbols by enumeration, 27 by 4,096 particles, both over 512 symbols."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (3, 5) if self.quick else (2, 4, 6, 8)

    @property
    def exact_length(self) -> int:
        return min(self.length, 128) if self.quick else self.length


def run(options: Options, command: str = "", say: Say = lambda line: None) -> list[Row]:
    """Run the experiment and append its rows to theory.jsonl in the output folder."""
    if options.length < 8 or options.texts < 1 or options.draws < 1:
        raise UserError(
            "The theory experiment needs --length of at least 8 and at least one text and one draw."
        )
    model = None if options.model is None else _open_model(options.model)
    fit, held_out, data_hash = _corpus(options)
    provenance = Provenance(
        experiment="theory",
        seed=options.seed,
        command=command,
        model_hash=None if model is None else model.hash,
        data_hash=data_hash,
        draws=None if model is None else options.draws,
    )
    rows: list[Row] = []
    with RowWriter(options.out / "theory.jsonl", provenance) as writer:

        def record(kind: str, **values: Any) -> None:
            rows.append(writer.write(kind, **values))

        if options.bench:
            _bench(record, fit, held_out, options, say)
            return rows
        _convergence(record, fit, options, say)
        _worst(record, options, say)
        _bounds(record)
        _english(record, fit, held_out, options, model, say)
    return rows


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


def _family(name: str, d: int, fit: str, rng: np.random.Generator) -> languages.Language:
    if name == "markov":
        return languages.random_markov(d, rng)
    if name == "symmetric":
        return languages.symmetric_markov(d, rng)
    if name == "near":
        return languages.near_uniform(d, 0.2)
    alphabet = english.most_frequent(fit, d)
    return english.fit_ngram(english.encode(fit, alphabet), d, 2)


FAMILIES = {
    "markov": "random Markov chains",
    "ngram": "character bigram of the text, its d commonest symbols",
    "near": "near-unidentifiable: independent symbols, odds 1.2 : 0.8",
    "symmetric": "Markov chains with interchangeable pairs",
}


def _convergence(record: Callable[..., None], fit: str, options: Options, say: Say) -> None:
    """Exact p' for each family and alphabet size."""
    curves: dict[tuple[str, int], np.ndarray] = {}
    grid = _spaced(options.exact_length)
    at = np.array(grid) - 1
    for number, name in enumerate(FAMILIES):
        for d in options.sizes:
            rng = np.random.default_rng([options.seed, number, d])
            traces: list[ExactTrace] = []
            language = _family(name, d, fit, rng)
            for _ in range(4 if options.quick or d >= 8 else 16):
                if name in ("markov", "symmetric"):  # the random ones: another language for each text
                    language = _family(name, d, fit, rng)
                traces.append(exact(language, language.sample(rng, options.exact_length)))
            average = np.stack([trace.average_l1_T for trace in traces])
            curves[name, d] = average.mean(axis=0)
            record(
                "convergence",
                language=name,
                label=FAMILIES[name],
                d=d,
                texts=len(traces),
                context=grid,
                l1_mean=average.mean(axis=0)[at],
                l1_max=average.max(axis=0)[at],
                kl_sum_mean=np.mean([np.cumsum(trace.kl_T) for trace in traces], axis=0)[at],
                hellinger_sum_max=np.max([np.cumsum(trace.hellinger_T) for trace in traces], axis=0)[at],
                regret_max=np.max([trace.regret_T for trace in traces], axis=0)[at],
                entropy_mean=np.mean([trace.entropy_T for trace in traces], axis=0)[at],
                key_surprise_mean=np.mean([trace.key_surprise_T for trace in traces], axis=0)[at],
                log_factorial=log_factorial(d),
                delta=DELTA,
                bound_sharp=[bound.error_guaranteed(d, T, DELTA, "sharp").epsilon for T in grid],
                bound_expected=[bound.expected_error(d, T) for T in grid],
            )
            say(f"{FAMILIES[name]}, d={d}: average L1 {curves[name, d][-1]:.4f} at T={options.exact_length}")
    late = np.array([T for T in grid if options.exact_length // 8 <= T])
    for name in FAMILIES:
        # Two interchangeable symbols make p' equal to p: there is no error, and so no exponent.
        wrong = [d for d in options.sizes if curves[name, d][-1] > 1e-9]
        by_T = {d: fit_exponent(late, curves[name, d][late - 1]) for d in wrong}
        in_d = fit_exponent(wrong, [curves[name, d][-1] for d in wrong]) if len(wrong) > 1 else None
        record("exponents", language=name, in_T=by_T, in_d=in_d, fitted_from=int(late[0]))


def _worst(record: Callable[..., None], options: Options, say: Say) -> None:
    """The largest mean error over near-uniform languages, at each T: what any uniform bound has to cover."""
    length, texts = (128, 200) if options.quick else (1024, 200)
    sizes = (2, 4, 6) if options.quick else (2, 4, 6, 8, 10)
    grid = [T for T in _spaced(length) if T >= 4]
    at = np.array(grid) - 1
    envelope: dict[int, np.ndarray] = {}
    for d in sizes:
        rng = np.random.default_rng([options.seed, 100, d])
        means = []
        for gap in np.geomspace(0.02, 0.95, 10):
            l1_ST = two_level_l1(d, float(gap), texts, length, rng)
            means.append((np.cumsum(l1_ST, axis=1) / np.arange(1, length + 1)).mean(axis=0))
        envelope[d] = np.max(means, axis=0)
        record(
            "worst",
            d=d,
            context=grid,
            l1_mean=envelope[d][at],
            texts=texts,
            bound_expected=[bound.expected_error(d, T) for T in grid],
        )
        say(f"worst near-uniform language, d={d}: average L1 {envelope[d][-1]:.4f} at T={length}")
    # Fit where the hardest gap lies inside the range tried: not yet at the largest, not yet at the smallest.
    late = np.array([T for T in grid if length // 16 <= T])
    by_T = {d: fit_exponent(late, envelope[d][late - 1]) for d in sizes}
    in_d = fit_exponent(sizes, [envelope[d][-1] for d in sizes])
    record("exponents", language="worst", in_T=by_T, in_d=in_d, fitted_from=int(late[0]))
    in_T = np.mean(list(by_T.values()))
    say(f"worst case: exponents {in_T:.2f} in T and {in_d:.2f} in d (the paper's bound: -0.25 and 0.25)")


def _bounds(record: Callable[..., None]) -> None:
    """What each theorem guarantees at each T, far beyond what can be measured."""
    grid = np.unique(np.geomspace(1, 1e14, 120).astype(np.int64)).tolist()
    for d in (8, 27, 128):
        values = {
            kind: [bound.error_guaranteed(d, T, DELTA, kind).epsilon for T in grid] for kind in bound.KINDS
        }
        needed = {kind: bound.context_needed(d, 0.1, DELTA, kind).T for kind in bound.KINDS}
        record("bound", d=d, delta=DELTA, context=grid, epsilon=values, context_for_tenth=needed)


def _english(
    record: Callable[..., None],
    fit: str,
    held_out: str,
    options: Options,
    model: EvaluatedModel | None,
    say: Say,
) -> None:
    """The best a lexinvariant model with this n-gram's knowledge of English can do, by context length."""
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
        began = time.perf_counter()
        trace = particles(
            ngram,
            english.encode(passage, alphabet),
            n=n,
            islands=islands,
            seed=options.seed + index,
        )
        seen = np.unique(english.encode(passage, alphabet))
        record(
            "limit",
            d=len(alphabet),
            order=order,
            text=index,
            particles=n,
            nats=-trace.logp_T,
            known_nats=-trace.known_logp_T,
            l1=trace.l1_T,
            key_surprise=trace.evidence_key_surprise_T,
            log_evidence_error=trace.log_evidence_error_T,
            key_accuracy=float(np.mean(trace.key_matrix_VV[seen].argmax(axis=1) == seen)),
            fitted_characters=len(fit),
        )
        say(
            f"English text {index + 1} of {count}: perplexity of the last 100 symbols "
            f"{np.exp(-trace.logp_T[-100:].mean()):.2f}, with the key "
            f"{np.exp(-trace.known_logp_T[-100:].mean()):.2f} ({time.perf_counter() - began:.0f} s)"
        )
    if model is not None:
        _model_curve(record, passages, model, options.draws)
        say(f"model {model.name}: scored {len(passages)} texts")


def _model_curve(
    record: Callable[..., None], passages: list[str], evaluated: EvaluatedModel, draws: int
) -> None:
    scores = evaluated.model.score(passages, draws=draws)
    for index, (passage, logp) in enumerate(zip(passages, scores, strict=True)):
        if len(logp) != len(passage):
            raise UserError(
                f"The model gave {len(logp)} scores for {len(passage)} characters: it is not character-level."
            )
        record("model", text=index, nats=-logp.astype(np.float64), name=evaluated.name)


def _bench(record: Callable[..., None], fit: str, held_out: str, options: Options, say: Say) -> None:
    rng = np.random.default_rng(options.seed)
    chain = languages.random_markov(8, rng)
    text = chain.sample(rng, 512)
    exact(
        languages.random_markov(3, rng), text % 3
    )  # first calls of NumPy and the table of keys are not the kernel
    times = _timed(lambda: exact(chain, text))
    record("bench", what="enumeration", d=8, length=512, keys=40320, bar_seconds=5.0, **times)
    say("enumeration, 8 symbols, 40,320 keys, 512 symbols: " + _spoken(times, 5))
    alphabet = english.LETTERS_AND_SPACE
    ngram = english.fit_ngram(english.encode(fit, alphabet), 27, options.order)
    passage = english.encode(held_out, alphabet)[:512]
    times = _timed(lambda: particles(ngram, passage, n=4096, seed=options.seed))
    record("bench", what="particles", d=27, length=len(passage), keys=4096, bar_seconds=120.0, **times)
    say(f"particles, 27 symbols, 4,096 keys, {len(passage)} symbols: " + _spoken(times, 120))


def _timed(work: Callable[[], object]) -> dict[str, float]:
    """Wall time, and processor time, which a busy machine does not stretch."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}


def _spoken(times: dict[str, float], bar: int) -> str:
    return f"{times['wall_seconds']:.1f} s, of the processor {times['cpu_seconds']:.1f} s (bar: {bar} s)"
