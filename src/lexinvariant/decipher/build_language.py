"""A language out of text: counts its n-grams and fits the numbers of language.json on validation text.

What is fitted, and how:
- letters, capitals, folds, characters: what is common in the text, unless they are given;
- recognition: from the shares of letters and inner capitals and the lengths of words in validation text;
- stuck_above, not_language_above: quantiles of what validation texts themselves cost the n-grams;
- n_keys of the letter search, the judge's weight and reach, the weights of the model and of letters: the best of a few
  values each, one after the other (`_TUNED`), by the error rate on enciphered validation texts; a quick build keeps
  those of English;
- calibrations (`fit_calibration.py`); the tests of whether a text was read are English's, moved to what this
  language's texts cost (`lexinvariant language verdict` fits them in full).
All else (lengths of samples and bands, the trace's decay) is as in English, whose language.json is the pattern.
"""

from __future__ import annotations

import shutil
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lexinvariant.decipher import ngram
from lexinvariant.decipher.describe_language import describe_language
from lexinvariant.decipher.fit_calibration import Log, Plan, ValidationText, fit_calibrations
from lexinvariant.decipher.fit_verdict import moved_tests
from lexinvariant.decipher.judge_lm import load_judge
from lexinvariant.decipher.language import (
    FOLDED_FOLDER,
    JUDGE_FOLDER,
    LANGUAGE_FILE,
    Evidence,
    Language,
    Recognition,
    Stages,
    Table,
    load_language,
)
from lexinvariant.decipher.samples import (
    Sample,
    Setting,
    draw_samples,
    enciphered_pairs,
    joined_text,
    solver_options,
)
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError
from lexinvariant.text.sources import read_documents

if TYPE_CHECKING:
    from lexinvariant.model.weights import Weights

MIN_LETTERS, MIN_VALID_LETTERS = 20_000, 5_000
MAX_TABLE = 2**27  # entries of an n-gram table, which has one for every possible n-gram
LONG, SHORT = 5, 3  # letters of an n-gram
MUCH_TEXT, LONG_CHARACTERS = 100_000_000, 4  # characters of text, and those of an n-gram then; else SHORT
QUICK_SHARE = 1 / 6  # of the texts that a full build would fit calibrations on
TOLERANCE = 0.001  # of a symbol error rate: the first value that is no worse than the best by more is taken


@dataclass(frozen=True)
class _Tuned:
    """A number to be chosen among a few values, the cheapest or likeliest first, on the texts of a plan."""

    what: str
    values: tuple[float, ...]
    change: Callable[[Language, float], Language]
    plan: Plan
    needs: Evidence
    """It is left alone where the language has no such evidence."""


def _with_more_keys(language: Language, factor: float) -> Language:
    def scaled(stages: Stages) -> Stages:
        efforts = (stages.short, stages.long)
        return Stages(*(replace(effort, n_keys=round(effort.n_keys * factor)) for effort in efforts))

    bands = tuple(
        replace(band, first=scaled(band.first), retry=band.retry and scaled(band.retry))
        for band in language.letter_search.bands
    )
    return replace(language, letter_search=replace(language.letter_search, bands=bands))


def _field(part: str, name: str) -> Callable[[Language, float], Language]:
    """A change of one field of one part of a language."""
    return lambda language, value: replace(
        language, **{part: replace(getattr(language, part), **{name: value})}
    )


_SHORT: Plan = (("spaced", 32), ("spaced", 64), ("unspaced", 64))
_KEYS: Plan = (*_SHORT, ("spaced", 100), ("spaced", 200))
_ASCII: Plan = (("ascii", 240), ("ascii", 480))
_TUNED = (
    _Tuned(
        "n_keys of the letter search, beside English's", (0.5, 1.0, 2.0), _with_more_keys, _KEYS, "spaced"
    ),
    _Tuned(
        "judging.weight", (0.75, 0.5, 0.65, 0.85, 1.0), _field("judging", "weight"), _SHORT, "judge_spaced"
    ),
    _Tuned(
        "judging.max_ngram_excess",
        (9.0, 6.0, 12.0, 15.0),
        _field("judging", "max_ngram_excess"),
        _SHORT,
        "judge_spaced",
    ),
    _Tuned(
        "character_search.model_weight",
        (2.0, 0.5, 1.0, 4.0),
        _field("character_search", "model_weight"),
        _ASCII,
        "characters",
    ),
    _Tuned(
        "character_search.letters_weight",
        (1.0, 0.0, 2.0),
        _field("character_search", "letters_weight"),
        _ASCII,
        "characters",
    ),
)


def build_language(
    name: str,
    text: Sequence[str],
    valid: Sequence[str],
    out: Path,
    *,
    letters: str | None = None,
    capitals: str | None = None,
    folded: str | None = None,
    folds: Mapping[str, str] | None = None,
    judge: Path | None = None,
    model: str | None = None,
    min_counts: tuple[int, int, int] = (1, 1, 1),
    n_texts: int = 60,
    quick: bool = False,
    overwrite: bool = False,
    log: Log = lambda line: None,
) -> Language:
    """Make a language's folder from sources of text; it appears when it is complete.

    `folded` are the letters of its spelling in fewer letters, if it has one, where the others lose their accents or are
    written as `folds` says. `min_counts` are how often a longest n-gram (spaced, unspaced, of characters) must occur to
    be stored; `n_texts` are fitted on for every length of a plan.
    """
    if out.exists() and not (overwrite and (out / LANGUAGE_FILE).is_file()):
        raise UserError(
            f"{out} exists: give another --out, or --overwrite if it is a language to be replaced."
        )
    if min(n_texts, *min_counts) < 1:
        raise UserError("Texts to fit on and counts of n-grams are whole numbers from 1 on: give others.")
    documents = _read(text)
    held_out = _read(valid)
    described = describe_language(name, documents + held_out, letters, capitals, {}, model)
    spellings = [described]
    if folded is not None:
        spellings.append(describe_language(name, documents + held_out, folded, None, folds or {}, None))
    for language in spellings:
        _check_amount("text", documents, MIN_LETTERS, language)
        _check_amount("validation text", held_out, MIN_VALID_LETTERS, language)
    # Load the model and the judge first: if one does not suit, say so before the counting.
    weights = Solver(language=described).model
    if judge is not None:
        load_judge(judge, described.letters)
    unfinished = out.with_name(out.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    if judge is not None:
        shutil.copytree(judge, unfinished / JUDGE_FOLDER)
    for language in spellings:
        log(f"{len(language.letters)} letters: {language.letters}")
        is_folded = language is not described
        language = replace(language, folder=unfinished / FOLDED_FOLDER if is_folded else unfinished)
        _count_tables(language, documents, min_counts, log, with_characters=not is_folded)
        language = moved_tests(_fit_thresholds(language, held_out), held_out)
        search = language.letter_search
        log(
            f"a search is stuck above {search.stuck_above_spaced} nats a symbol ({search.stuck_above_unspaced} "
            f"without spaces), letters alone make no sense above {search.not_language_above}; {language.recognition}"
        )
        named_by = None if is_folded else weights
        if quick:
            log(
                "quick: search efforts and weights are those of English, calibrations are fitted on few texts"
            )
            texts = ValidationText(language, held_out, max(2, round(n_texts * QUICK_SHARE)))
        else:
            texts = ValidationText(language, held_out, n_texts)
            language = _tune(language, named_by, texts, log)
        fit_calibrations(language, named_by, texts, log).save()
    if out.exists():
        shutil.rmtree(out)
    unfinished.rename(out)
    return load_language(out)


def _read(sources: Sequence[str]) -> list[str]:
    documents = (document.text for source in sources for document in read_documents(source))
    return [text if text.isascii() else unicodedata.normalize("NFC", text) for text in documents]


def _check_amount(what: str, documents: Sequence[str], least: int, language: Language) -> None:
    n = 0
    for text in documents:
        n += len(language.unspaced(text))
        if n >= least:
            return
    raise UserError(f"There are {n:,} letters of {what} and at least {least:,} are needed: give more of it.")


def _count_tables(
    language: Language,
    documents: Sequence[str],
    min_counts: tuple[int, int, int],
    log: Log,
    *,
    with_characters: bool,
) -> None:
    """Where everything was enciphered, letters with accents were too: a spelling without them has no such table."""
    spaced, unspaced, characters = min_counts
    recipes: list[tuple[Table, Callable[[str], str], str, int, int]] = [
        ("spaced", lambda text: language.letters_only(text) + " ", language.letters + " ", LONG, spaced),
        ("unspaced", language.unspaced, language.letters, LONG, unspaced),
    ]
    if with_characters:
        longest = LONG_CHARACTERS if sum(map(len, documents)) >= MUCH_TEXT else SHORT
        recipes.append(("characters", str, language.characters, longest, characters))
    for table, fold, alphabet, longest, min_count in recipes:
        started = time.monotonic()
        size = len(alphabet)
        order = max(n for n in range(1, longest + 1) if size**n <= MAX_TABLE)
        counts = ngram.count_ngrams(map(fold, documents), alphabet, order)
        path = language.folder / f"{table}.xz"
        ngram.save(path, alphabet, ngram.backoff_levels(counts, size, min_count))
        if longest == LONG:
            short = path.with_name(f"{table}-short.xz")
            ngram.save(short, alphabet, ngram.backoff_levels(counts[:SHORT], size))
        megabytes, seconds = path.stat().st_size / 1e6, time.monotonic() - started
        log(f"n-grams, {table}: {order} of {size} symbols, {megabytes:.2f} MB ({seconds:.0f} s)")


def _fit_thresholds(language: Language, documents: Sequence[str]) -> Language:
    """What validation texts of 100 and of 40 symbols cost the n-grams, and what they look like."""

    def quantile(table: Table, setting: Setting, length: int, q: float) -> float:
        model = language.ngram(table)
        drawn = draw_samples(
            [joined_text(documents, setting, language)], setting, language, length, 500, seed=2
        )
        return round(float(np.quantile([model.nats(sample.plain) / length for sample in drawn], q)), 2)

    search = replace(
        language.letter_search,
        stuck_above_spaced=quantile("spaced", "spaced", 100, 0.98),
        stuck_above_unspaced=quantile("unspaced", "unspaced", 100, 0.98),
        not_language_above=quantile(
            "spaced", "spaced", language.letter_search.not_language_min_symbols, 0.98
        ),
    )
    text = "\n".join(documents)
    visible = [character for character in text if not character.isspace()]
    letter_share = sum(language.letter(character) is not None for character in visible) / len(visible)
    pairs = [(a, b) for a, b in pairwise(text) if a.isalpha() and b.isalpha()]
    inner_capital_share = sum(a.islower() and b.isupper() for a, b in pairs) / max(1, len(pairs))
    length_W = [len(word) for word in language.letters_only(text).split()]
    pattern = language.recognition
    recognition = Recognition(
        min_letter_share=round(0.8 * letter_share, 3),
        max_inner_capital_share=round(max(pattern.max_inner_capital_share, 4 * inner_capital_share), 3),
        max_mean_word_length=round(2.5 * len(visible) / len(text.split()), 1),
        max_word_length=round(1.25 * float(np.quantile(length_W, 0.9999))),
    )
    return replace(language, letter_search=search, recognition=recognition)


def _tune(language: Language, model: Weights | None, text: ValidationText, log: Log) -> Language:
    """The language with each number of `_TUNED` at its best value, one after the other."""
    has: dict[Evidence, bool] = {
        "spaced": True,
        "judge_spaced": language.judge is not None,
        "characters": model is not None,
    }
    for tuned in _TUNED:
        if not has[tuned.needs]:
            continue
        started = time.monotonic()
        tests = [(setting, text.samples(setting, length, seed=3)) for setting, length in tuned.plan]
        errors = [_error(tuned.change(language, value), model, tests) for value in tuned.values]
        value = next(
            v for v, error in zip(tuned.values, errors, strict=True) if error <= min(errors) + TOLERANCE
        )
        language = tuned.change(language, value)
        tried = ", ".join(f"{v:g}: {error:.2%}" for v, error in zip(tuned.values, errors, strict=True))
        log(f"{tuned.what}: {value:g} (errors {tried}; {time.monotonic() - started:.0f} s)")
    return language


def _error(
    language: Language, model: Weights | None, tests: Sequence[tuple[Setting, Sequence[Sample]]]
) -> float:
    """Mean symbol error rate."""
    solver = Solver(model, language=language)
    wrong = []
    for setting, samples in tests:
        found = solver.read([sample.cipher for sample in samples], **solver_options(setting), top=0)
        for sample, decipherment in zip(samples, found, strict=True):
            pairs = enciphered_pairs(sample.plain, decipherment.plaintext, setting)
            wrong += [a != b for a, b in pairs]
    return float(np.mean(wrong))
