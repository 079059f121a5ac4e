"""The solver of ciphertexts: n-grams find good keys, and a neural model chooses among them where n-grams cannot tell.

Where letters were enciphered, an n-gram search finds the keys worth looking at in a fraction of a second, and
for short texts a small standard language model (the judge) compares their plaintexts. Where everything was enciphered,
the lexinvariant model names the symbols first, and an n-gram of characters refines what it said.

The key that is returned minimises the expected number of wrong symbols under the candidates' probabilities.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import WORD_BREAK, Alphabet, Puzzle, check_cribs, make_puzzle
from lexinvariant.decipher.crib_words import pinned_by_words
from lexinvariant.decipher.decipherment import Decipherment, KeyPosterior
from lexinvariant.decipher.features import is_flat
from lexinvariant.decipher.judge import rank_by_judge
from lexinvariant.decipher.language import Language, Stages, bundled_languages, load_language
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.notation import Notation
from lexinvariant.decipher.ordered_keys import read_in_order
from lexinvariant.decipher.search import Candidates, SearchProblem
from lexinvariant.decipher.which_language import Attempt, can_hold, letters_of, read_in_best_language
from lexinvariant.decipher.workers import read_on_all_cores
from lexinvariant.errors import UserError

if TYPE_CHECKING:  # jax takes a second to import, and most texts need none
    from lexinvariant.model.weights import Weights

MIN_TEXTS_FOR_WORKERS = 64
"""Texts from which on it pays to start other processes."""
_N_WINDOWS = 4  # samples of a long text
_HALF_WINDOW = 20  # symbols kept on either side of a symbol that no sample holds
_MAX_CLIMBS = 20
_CERTAIN = 0.99  # a reading by one of few keys that is so likely needs no search
_HOPELESS = 0.005  # a reading that is less likely is not shown to the judge


class Solver:
    """Reads ciphertexts of the language given, or else of any that comes with the package: English is tried first.

    Models and n-grams are loaded when a text first needs them.
    """

    def __init__(
        self, model: Weights | None = None, *, language: Language | None = None, use_judge: bool = True
    ) -> None:
        self.language = load_language() if language is None else language
        self.finds_language = language is None
        self._model, self._use_judge = model, use_judge

    def _spellings(self) -> Iterator[Language]:
        """Every spelling of every language that a text may be in; languages are loaded when it comes to them."""
        yield from self.language.spellings
        if self.finds_language:
            for name in bundled_languages():
                if name != self.language.name:
                    yield from load_language(name).spellings

    @cached_property
    def model(self) -> Weights | None:
        """The lexinvariant model that names symbols; None where the language has none, or the package came without."""
        if self._model is not None or self.language.model is None:
            return self._model
        from lexinvariant.model.weights import BUNDLED, load_weights

        try:
            return load_weights(self.language.model)
        except UserError:
            if self.language.model != BUNDLED:
                raise
            return None

    def read(
        self,
        texts: Sequence[str | Sequence[str]],
        *,
        cribs: Mapping[str, str] | None = None,
        crib_text: str | None = None,
        crib_words: Sequence[str] = (),
        alphabet: Alphabet = "auto",
        unspaced: bool = False,
        notation: Notation = "auto",
        top: int = 3,
    ) -> list[Decipherment]:
        """Read ciphertexts, each under its own key; a text may also be a list of symbols.

        Cribs (cipher symbol -> character) hold for every text; `crib_text` is the known beginning of the plaintext,
        and `crib_words` stand somewhere in it. The result for a text does not depend on the other texts.
        """
        kind: dict[str, Any] = {"alphabet": alphabet, "unspaced": unspaced, "notation": notation}
        attempts = [self._attempts(text, cribs or {}, crib_text, crib_words, **kind) for text in texts]
        firsts = [next(tries) for tries in attempts]

        def read_one(number: int) -> Decipherment:
            started = time.perf_counter()
            first = firsts[number]
            certain = [first.puzzle.symbols[symbol] for symbol in first.known]

            def read(attempt: Attempt, patient: bool) -> KeyPosterior:
                puzzle, known = attempt.puzzle, attempt.known
                pinned = pinned_by_words(puzzle, known, crib_words) if crib_words else known
                return self._posterior(puzzle, pinned, alphabet, unspaced, patient)

            posterior = read_in_best_language(first, attempts[number], read, self.finds_language)
            return replace(posterior.decipherment(top, certain), seconds=time.perf_counter() - started)

        numbers = range(len(texts))
        light = [number for number in numbers if self._needs_no_model(firsts[number].puzzle)]
        found: dict[int, Decipherment] = {}
        if len(light) >= MIN_TEXTS_FOR_WORKERS:
            options = {"cribs": cribs, "crib_text": crib_text, "crib_words": crib_words, "top": top} | kind
            done = read_on_all_cores(self, [texts[number] for number in light], options)
            found = dict(zip(light, done, strict=True))
        rest = [number for number in numbers if number not in found]
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # one text's search beside another's judging
            found |= zip(rest, pool.map(read_one, rest), strict=True)
        return [found[number] for number in numbers]

    def _attempts(
        self,
        text: str | Sequence[str],
        cribs: Mapping[str, str],
        crib_text: str | None,
        crib_words: Sequence[str],
        **kind: Any,
    ) -> Iterator[Attempt]:
        """The text in every spelling that its letters and what is known of it allow; if none does, the error."""
        letters, n_made, refused = letters_of(text), 0, None
        for spelling in self._spellings():
            is_first = spelling is self.language
            if not can_hold(letters, spelling) or not (is_first or all(map(spelling.unspaced, crib_words))):
                continue
            try:
                puzzle = make_puzzle(text, spelling, **kind)
                known = check_cribs(puzzle, cribs, crib_text)
            except UserError as error:
                refused = refused or error
                continue
            if is_first or puzzle.kind != "ascii":
                n_made += 1
                yield Attempt(puzzle, known)
        if refused is not None and n_made == 0:
            raise refused
        if not can_hold(letters, self.language):  # letters of another alphabet may be signs like any others
            try:
                puzzle = make_puzzle(text, self.language, **kind)
                known = check_cribs(puzzle, cribs, crib_text)
            except UserError:
                if n_made == 0:
                    raise
                return
            if n_made == 0 or puzzle.kind == "glyphs":
                yield Attempt(puzzle, known)

    def key_posterior(
        self, text: str | Sequence[str], *, alphabet: Alphabet = "auto", unspaced: bool = False
    ) -> KeyPosterior:
        """All candidate keys of one text that a search finds, before they are calibrated."""
        return self._search(make_puzzle(text, self.language, alphabet, unspaced), {}, alphabet, unspaced)

    def _needs_no_model(self, puzzle: Puzzle) -> bool:
        return puzzle.kind == "letters" and int(puzzle.count_S.sum()) > puzzle.language.judging.max_symbols

    def _posterior(
        self, puzzle: Puzzle, known: Mapping[int, str], alphabet: Alphabet, unspaced: bool, patient: bool
    ) -> KeyPosterior:
        """The best keys; one who is not patient does not search again where a search got stuck."""
        ordered = None
        if puzzle.letter_S is not None:
            ordered = read_in_order(puzzle, self._letter_problem(puzzle, known, puzzle.spaced))
        if ordered is not None and ordered.reading().probability >= _CERTAIN:
            return ordered
        searched = self._search(puzzle, known, alphabet, unspaced, patient)
        if ordered is not None and ordered.description < searched.description:
            return ordered
        return searched

    def _search(
        self,
        puzzle: Puzzle,
        known: Mapping[int, str],
        alphabet: Alphabet,
        unspaced: bool,
        patient: bool = True,
    ) -> KeyPosterior:
        """The best keys of all."""
        if puzzle.kind == "ascii":
            return self._search_characters(puzzle, known)
        tries = [self._search_letters(puzzle, known, puzzle.spaced, patient)]
        if puzzle.kind == "glyphs" and not puzzle.spaced and not unspaced:
            # One of the glyphs may be the space.
            tries.append(self._search_letters(puzzle, known, True, patient))
        best = min(tries, key=lambda posterior: posterior.nats_per_symbol)
        settings = puzzle.language.letter_search
        may_be_other = (
            patient and puzzle.kind == "glyphs" and alphabet == "auto" and puzzle.language is self.language
        )
        long_enough = len(puzzle.symbol_T) >= settings.not_language_min_symbols
        if may_be_other and long_enough and best.nats_per_symbol > settings.not_language_above:
            # Letters alone make no sense of it: perhaps capitals, digits and punctuation are among the glyphs.
            wider = make_puzzle(puzzle.cells, puzzle.language, "ascii", notation=puzzle.notation)
            renamed = {wider.symbols.index(puzzle.symbols[s]): plain for s, plain in known.items()}
            other = self._search_characters(wider, renamed)
            return min(best, other, key=lambda posterior: posterior.nats_per_symbol)
        return best

    def _search_letters(
        self, puzzle: Puzzle, known: Mapping[int, str], spaced: bool, patient: bool
    ) -> KeyPosterior:
        """Search with short n-grams, then with long ones, then ask the judge about a short text.

        `spaced` is whether the n-grams know the space, which then is either seen or one of the symbols.
        """
        language, settings = puzzle.language, puzzle.language.letter_search
        short = language.ngram("spaced-short" if spaced else "unspaced-short")
        row, n_symbols = puzzle.words, len(puzzle.symbols)
        problem = self._letter_problem(puzzle, known, spaced)
        n = int(puzzle.count_S.sum())
        band = settings.band(n)
        candidates = _anneal_in_stages(problem, short, band.first, settings.first_key_rank_noise)
        is_stuck = _nats_per_symbol(problem, candidates) > settings.stuck_above(spaced)
        if patient and band.retry and is_stuck and not is_flat(puzzle.count_S, language.letter_frequencies):
            again = _anneal_in_stages(problem, short, band.retry, settings.first_key_rank_noise)
            candidates = search.merge_candidates(problem, [candidates, again])
        if len(row) > settings.searched_symbols:
            problem = replace(problem, pieces=_sample_pieces(row, settings.compared_symbols, n_symbols))
            key_NS = candidates.key_NS[: settings.compared_keys]
            candidates = search.unique_candidates(problem, key_NS.T, search.costs(problem, key_NS))
        candidates = _hill_climb(problem, candidates)
        found = KeyPosterior(puzzle, problem, candidates, "spaced" if spaced else "unspaced")
        words_known = puzzle.spaced or not spaced
        asks = (
            n <= language.judging.max_symbols and words_known and n_symbols > len(known) and self._use_judge
        )
        if not asks or found.reading().probability < _HOPELESS:
            return found
        judge = language.judge
        if judge is None:
            return found
        judged = rank_by_judge(judge, language, problem, candidates)
        return replace(found, candidates=judged, evidence="judge_spaced" if spaced else "judge_unspaced")

    def _letter_problem(self, puzzle: Puzzle, known: Mapping[int, str], spaced: bool) -> SearchProblem:
        """Which letters the symbols of (samples of) a text stand for, under long n-grams."""
        language = puzzle.language
        ngram = language.ngram("spaced" if spaced else "unspaced")
        n_symbols = len(puzzle.symbols)
        n_letters = ngram.size if spaced and not puzzle.spaced else len(language.letters)
        pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in known.items()}
        pieces = _sample_pieces(puzzle.words, language.letter_search.searched_symbols, n_symbols)
        return SearchProblem(ngram, pieces, n_symbols, np.arange(n_letters), pinned)

    def _search_characters(self, puzzle: Puzzle, known: Mapping[int, str]) -> KeyPosterior:
        """The lexinvariant model names the symbols; an n-gram of characters refines what it said."""
        n_symbols = len(puzzle.symbols)
        ngram, settings = self.language.ngram("characters"), self.language.character_search
        if n_symbols > ngram.size:
            raise UserError(
                f"The text has {n_symbols} different symbols and there are {ngram.size} printable characters: a "
                "substitution of one character by several symbols cannot be read."
            )
        pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in known.items()}
        pieces = _sample_pieces(puzzle.symbol_T, settings.searched_symbols, n_symbols)
        problem = SearchProblem(ngram, pieces, n_symbols, np.arange(ngram.size), pinned)
        rng = np.random.default_rng(0)
        effort = settings.effort
        if self.model is None:
            noise = self.language.letter_search.first_key_rank_noise
            first_SR = search.keys_by_frequency(problem, effort.n_keys, noise, rng)
        else:
            from lexinvariant.decipher.symbol_posterior import symbol_posterior

            logp_SV = symbol_posterior(self.model, puzzle.symbol_T, n_symbols, ngram.alphabet)
            problem = replace(problem, prior_SV=-settings.model_weight * logp_SV)
            first_SR = search.keys_by_posterior(problem, logp_SV, effort.n_keys, rng)
        candidates, _ = search.anneal(problem, first_SR, effort, rng)
        return KeyPosterior(puzzle, problem, _hill_climb(problem, candidates), "characters")


def _anneal_in_stages(problem: SearchProblem, short: NGram, stages: Stages, rank_noise: float) -> Candidates:
    """From frequencies with short n-grams, whose landscape is smooth, and from there with the problem's own."""
    rng = np.random.default_rng(0)  # the same for every text, so that none depends on the others
    smooth = replace(problem, ngram=short)
    key_SR = search.keys_by_frequency(smooth, stages.short.n_keys, rank_noise, rng)
    _, key_SR = search.anneal(smooth, key_SR, stages.short, rng)
    return search.anneal(problem, key_SR, stages.long, rng)[0]


def _sample_pieces(row: NDArray[np.integer], most: int, n_symbols: int) -> list[NDArray[np.integer]]:
    """A text of up to `most` symbols as it is; of a longer one windows from all over, and one around every symbol that
    these do not hold.
    """
    if len(row) <= most:
        return [row]
    width = most // _N_WINDOWS
    starts = np.linspace(0, len(row) - width, _N_WINDOWS).astype(int).tolist()
    pieces = [_whole_words(row, start, start + width) for start in starts]
    missing = set(range(n_symbols)) - set(np.concatenate(pieces).tolist())
    for symbol in sorted(missing):
        place = int(np.argmax(row == symbol))
        pieces.append(_whole_words(row, max(0, place - _HALF_WINDOW), place + _HALF_WINDOW))
    return pieces


def _whole_words(row: NDArray[np.integer], start: int, end: int) -> NDArray[np.integer]:
    """A window, without the word that its beginning cuts in two and the one that its end does."""
    piece = row[start:end]
    (breaks,) = np.nonzero(piece == WORD_BREAK)
    if len(breaks) < 3:
        return piece
    return piece[breaks[0] + 1 if start else 0 : breaks[-1] if end < len(row) else len(piece)]


def _nats_per_symbol(problem: SearchProblem, candidates: Candidates) -> float:
    """What the best key costs the n-gram alone."""
    problem = replace(problem, prior_SV=None)
    return float(search.costs(problem, candidates.key_NS[:1])[0]) / sum(map(len, problem.pieces))


def _hill_climb(problem: SearchProblem, candidates: Candidates) -> Candidates:
    """From the best key, by best swaps, to one that no swap betters; all keys met on the way are candidates too."""
    for _ in range(_MAX_CLIMBS):
        near = search.one_swap_away(problem, candidates.key_NS[0])
        better = near.cost_N[0] < candidates.cost_N[0] - 1e-9
        candidates = search.merge_candidates(problem, [candidates, near])
        if not better:
            break
    return candidates
