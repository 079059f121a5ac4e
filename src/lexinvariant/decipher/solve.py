"""The solver of ciphertexts: n-grams find good keys, and a neural model chooses among them where n-grams cannot tell.

Where letters were enciphered, an n-gram search finds the keys worth looking at in a fraction of a second, and
for short texts a small standard language model (the judge) compares their plaintexts. Where everything was enciphered,
the lexinvariant model names the symbols first, and an n-gram of characters refines what it said.

The key that is returned minimises the expected number of wrong symbols under the candidates' probabilities.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import homophonic, search
from lexinvariant.decipher.alphabet import WORD_BREAK, Alphabet, Puzzle, check_cribs, make_puzzle
from lexinvariant.decipher.arguments import check_arguments
from lexinvariant.decipher.crib_words import pinned_by_words
from lexinvariant.decipher.decipherment import Decipherment, KeyPosterior
from lexinvariant.decipher.features import is_flat
from lexinvariant.decipher.judge import rank_by_judge
from lexinvariant.decipher.language import Language, Stages, load_language
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.notation import Notation
from lexinvariant.decipher.ordered_keys import read_in_order
from lexinvariant.decipher.polyalphabetic import looks_polyalphabetic, read_polyalphabetic
from lexinvariant.decipher.search import Candidates, SearchProblem
from lexinvariant.decipher.text_reading import TextReading
from lexinvariant.decipher.transposition import looks_transposed, read_transposition
from lexinvariant.decipher.verdict import LEAST_READ, MOST_UNREAD
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
_OTHER_KINDS: tuple[tuple[Callable[[Puzzle], TextReading | None], Callable[[Puzzle], bool]], ...] = (
    (read_polyalphabetic, looks_polyalphabetic),
    (read_transposition, looks_transposed),
)
"""Readers of what is no substitution, and whether a text looks so."""


class Solver:
    """Reads ciphertexts of one language. Models and n-grams are loaded when a text first needs them."""

    def __init__(
        self, model: Weights | None = None, *, language: Language | None = None, use_judge: bool = True
    ) -> None:
        self.language = load_language() if language is None else language
        self._model, self._use_judge = model, use_judge

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
        check_arguments(texts, cribs, crib_text, alphabet, top)
        puzzles = [make_puzzle(text, self.language, alphabet, unspaced, notation) for text in texts]
        known = [check_cribs(puzzle, cribs or {}, crib_text) for puzzle in puzzles]

        def read_one(number: int) -> Decipherment:
            started = time.perf_counter()
            puzzle, certain = puzzles[number], known[number]
            pinned = pinned_by_words(puzzle, certain, crib_words) if crib_words else certain
            posterior = self._posterior(puzzle, pinned, alphabet, unspaced)
            return replace(posterior.decipherment(top, certain), seconds=time.perf_counter() - started)

        numbers = range(len(puzzles))
        light = [number for number in numbers if self._needs_no_model(puzzles[number])]
        found: dict[int, Decipherment] = {}
        if len(light) >= MIN_TEXTS_FOR_WORKERS:
            kind = {"alphabet": alphabet, "unspaced": unspaced, "notation": notation}
            options = {"cribs": cribs, "crib_text": crib_text, "crib_words": crib_words, "top": top} | kind
            done = read_on_all_cores(self, [texts[number] for number in light], options)
            found = dict(zip(light, done, strict=True))
        rest = [number for number in numbers if number not in found]
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # one text's search beside another's judging
            contexts = [copy_context() for _ in rest]  # in which it is said who may interrupt
            read = pool.map(lambda context, number: context.run(read_one, number), contexts, rest)
            found |= zip(rest, read, strict=True)
        return [found[number] for number in numbers]

    def key_posterior(
        self, text: str | Sequence[str], *, alphabet: Alphabet = "auto", unspaced: bool = False
    ) -> KeyPosterior:
        """All candidate keys of one text that a search finds, before they are calibrated."""
        return self._search(make_puzzle(text, self.language, alphabet, unspaced), {}, alphabet, unspaced)

    def _needs_no_model(self, puzzle: Puzzle) -> bool:
        return puzzle.kind == "letters" and int(puzzle.count_S.sum()) > self.language.judging.max_symbols

    def _posterior(
        self, puzzle: Puzzle, known: Mapping[int, str], alphabet: Alphabet, unspaced: bool
    ) -> KeyPosterior | TextReading:
        ordered = None
        if puzzle.letter_S is not None:
            ordered = read_in_order(puzzle, self._letter_problem(puzzle, known, puzzle.spaced))
        if ordered is not None and ordered.reading().probability >= _CERTAIN:
            return ordered
        # What a text looks like is tried first: a search among all keys for one that is none takes longest.
        likely = [] if known else [read(puzzle) for read, looks_so in _OTHER_KINDS if looks_so(puzzle)]
        for other in likely:
            if other is not None and other.reading().probability >= _CERTAIN:
                return other
        searched = self._search(puzzle, known, alphabet, unspaced)
        best = ordered if ordered is not None and ordered.description < searched.description else searched
        if known or best.reading().probability >= LEAST_READ:
            return best
        likely += [read(puzzle) for read, looks_so in _OTHER_KINDS if not looks_so(puzzle)]
        found: list[KeyPosterior | TextReading] = [best]
        found += [other for other in likely if other and other.reading().probability > MOST_UNREAD]
        return min(found, key=lambda reading: reading.description)

    def _search(
        self, puzzle: Puzzle, known: Mapping[int, str], alphabet: Alphabet, unspaced: bool
    ) -> KeyPosterior:
        """The best keys of all."""
        if puzzle.kind == "ascii":
            return self._search_characters(puzzle, known)
        if puzzle.is_homophonic:
            return self._search_homophones(puzzle, known, alphabet)
        tries = [self._search_letters(puzzle, known, spaced=puzzle.spaced)]
        if puzzle.kind == "glyphs" and not puzzle.spaced and not unspaced:
            # One of the glyphs may be the space.
            tries.append(self._search_letters(puzzle, known, spaced=True))
        best = min(tries, key=lambda posterior: posterior.nats_per_symbol)
        settings = self.language.letter_search
        may_be_other = puzzle.kind == "glyphs" and alphabet == "auto"
        long_enough = len(puzzle.symbol_T) >= settings.not_language_min_symbols
        if may_be_other and long_enough and best.nats_per_symbol > settings.not_language_above:
            # Letters alone make no sense of it.
            other = self._search_all_characters(puzzle, known)
            return min(best, other, key=lambda posterior: posterior.nats_per_symbol)
        return best

    def _search_homophones(
        self, puzzle: Puzzle, known: Mapping[int, str], alphabet: Alphabet
    ) -> KeyPosterior:
        """Keys in which letters have several symbols; word breaks that make no sense may be ends of lines."""
        found = [self._search_many_to_one(puzzle, known)]
        if puzzle.spaced and found[-1].reading().probability < LEAST_READ:
            found.append(self._search_many_to_one(replace(puzzle, spaced=False), known))
        may_be_other = alphabet == "auto" and len(set(puzzle.cells)) <= len(self.language.characters)
        if may_be_other and max(p.reading().probability for p in found) < LEAST_READ:
            found.append(self._search_all_characters(puzzle, known))
        return max(found, key=lambda posterior: posterior.reading().probability)

    def _search_many_to_one(self, puzzle: Puzzle, known: Mapping[int, str]) -> KeyPosterior:
        settings, spaced, n_symbols = self.language.letter_search, puzzle.spaced, len(puzzle.symbols)
        short = self.language.ngram("spaced-short" if spaced else "unspaced-short")
        most = max(settings.searched_symbols, homophonic.LETTERS_PER_SYMBOL * n_symbols)
        problem = self._letter_problem(puzzle, known, spaced)
        problem = replace(problem, pieces=_sample_pieces(puzzle.words, most, n_symbols))
        candidates = homophonic.find_keys(problem, short, homophonic.FIRST)
        stuck_above = settings.stuck_above_spaced if spaced else settings.stuck_above_unspaced
        may_be_read = puzzle.count_S.sum() >= homophonic.LEAST_PER_SYMBOL * n_symbols
        if may_be_read and _nats_per_symbol(problem, candidates) > stuck_above:
            again = homophonic.find_keys(problem, short, homophonic.RETRY)
            candidates = search.merge_candidates(problem, [candidates, again])
        if len(puzzle.words) > most:
            pieces = _sample_pieces(puzzle.words, settings.compared_symbols, n_symbols)
            problem = replace(problem, pieces=pieces)
            candidates = homophonic.improve(problem, short, candidates.key_NS[: settings.compared_keys])
        if spaced:  # whether it is a reading is told by the letters alone, so that one test serves both
            letters = _sample_pieces(
                replace(puzzle, spaced=False).words, settings.compared_symbols, n_symbols
            )
            problem = replace(problem, ngram=self.language.ngram("unspaced"), pieces=letters)
        log_keys = homophonic.log_keys(n_symbols - len(known), self.language.letter_frequencies)
        facts = {"symbols": n_symbols}
        return KeyPosterior(puzzle, problem, candidates, "homophonic", "homophonic", facts, log_keys)

    def _search_all_characters(self, puzzle: Puzzle, known: Mapping[int, str]) -> KeyPosterior:
        """The glyphs may stand for capitals, digits and punctuation as well."""
        wider = make_puzzle(puzzle.cells, self.language, "ascii", notation=puzzle.notation)
        renamed = {wider.symbols.index(puzzle.symbols[s]): plain for s, plain in known.items()}
        return self._search_characters(wider, renamed)

    def _search_letters(self, puzzle: Puzzle, known: Mapping[int, str], spaced: bool) -> KeyPosterior:
        """Search with short n-grams, then with long ones, then ask the judge about a short text.

        `spaced` is whether the n-grams know the space, which then is either seen or one of the symbols.
        """
        language, settings = self.language, self.language.letter_search
        short = language.ngram("spaced-short" if spaced else "unspaced-short")
        row, n_symbols = puzzle.words, len(puzzle.symbols)
        problem = self._letter_problem(puzzle, known, spaced)
        n = int(puzzle.count_S.sum())
        band = settings.band(n)
        candidates = self._anneal_in_stages(problem, short, band.first)
        stuck_above = settings.stuck_above_spaced if spaced else settings.stuck_above_unspaced
        is_stuck = _nats_per_symbol(problem, candidates) > stuck_above
        if band.retry is not None and is_stuck and not is_flat(puzzle.count_S, language.letter_frequencies):
            again = self._anneal_in_stages(problem, short, band.retry)
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
        ngram = self.language.ngram("spaced" if spaced else "unspaced")
        n_symbols = len(puzzle.symbols)
        n_letters = ngram.size if spaced and not puzzle.spaced else len(self.language.letters)
        pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in known.items()}
        pieces = _sample_pieces(puzzle.words, self.language.letter_search.searched_symbols, n_symbols)
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

    def _anneal_in_stages(self, problem: SearchProblem, short: NGram, stages: Stages) -> Candidates:
        """From frequencies with short n-grams, whose landscape is smooth, and from there with the problem's own."""
        rng = np.random.default_rng(0)  # the same for every text, so that none depends on the others
        smooth = replace(problem, ngram=short)
        noise = self.language.letter_search.first_key_rank_noise
        key_SR = search.keys_by_frequency(smooth, stages.short.n_keys, noise, rng)
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
