"""Keys of symbols: the best ones for a puzzle of letters, of homophones, or of all characters.

Where letters were enciphered, an n-gram search finds the keys worth looking at in a fraction of a second, and
for short texts a small standard language model (the judge) compares their plaintexts. Where everything was enciphered,
the lexinvariant model names the symbols first, and an n-gram of characters refines what it said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import homophonic, search
from lexinvariant.decipher.alphabet import WORD_BREAK, Alphabet, Puzzle, make_puzzle
from lexinvariant.decipher.decipherment import KeyPosterior
from lexinvariant.decipher.features import is_flat
from lexinvariant.decipher.judge import rank_by_judge
from lexinvariant.decipher.language import Language, Stages, Table
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.rank_by_letters import rank_by_judged_letters, rank_by_letters
from lexinvariant.decipher.search import Candidates, SearchProblem
from lexinvariant.decipher.verdict import LEAST_READ
from lexinvariant.errors import UserError

if TYPE_CHECKING:  # jax takes a second to import, and most texts need none
    from lexinvariant.model.weights import Weights

_N_WINDOWS = 4  # samples of a long text
_HALF_WINDOW = 20  # symbols kept on either side of a symbol that no sample holds
_MAX_CLIMBS = 20
_HOPELESS = 0.005  # a reading that is less likely is not shown to the judge


class KeySearch:
    """Searches for keys, in any language where letters were enciphered; of all characters in `language` alone."""

    def __init__(self, model: Weights | None, language: Language, use_judge: bool) -> None:
        self.language, self._model, self._use_judge = language, model, use_judge

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

    def best_keys(
        self,
        puzzle: Puzzle,
        known: Mapping[int, str],
        alphabet: Alphabet = "auto",
        unspaced: bool = False,
        patient: bool = True,
    ) -> KeyPosterior:
        """The best keys of all; one who is not patient does not go on where what was found is no reading."""
        if puzzle.kind == "ascii":
            return self._search_characters(puzzle, known)
        if puzzle.is_homophonic:
            return self._search_homophones(puzzle, known, alphabet, patient)
        tries = [self._search_letters(puzzle, known, puzzle.spaced, patient)]
        if puzzle.kind == "glyphs" and not puzzle.spaced and not unspaced:
            # One of the glyphs may be the space.
            tries.append(self._search_letters(puzzle, known, True, patient))
        best = min(tries, key=lambda posterior: posterior.nats_per_symbol)
        settings = puzzle.language.letter_search
        long_enough = len(puzzle.symbol_T) >= settings.not_language_min_symbols
        makes_sense = best.nats_per_symbol <= settings.not_language_above
        if puzzle.kind == "letters" or makes_sense or not long_enough:
            return best
        if not self._may_be_characters(puzzle, alphabet) or not (patient or best.may_be_read):
            return best
        other = self._search_all_characters(puzzle, known)
        return min(best, other, key=lambda posterior: posterior.nats_per_symbol)

    def _may_be_characters(self, puzzle: Puzzle, alphabet: Alphabet) -> bool:
        """Whether the glyphs may stand for capitals, digits and punctuation as well."""
        few = len(set(puzzle.cells)) <= len(self.language.characters)
        possible = alphabet == "auto" and puzzle.language is self.language and few
        return possible and not puzzle.is_foreign_script  # letters of any script stand for letters

    def _search_all_characters(self, puzzle: Puzzle, known: Mapping[int, str]) -> KeyPosterior:
        # As a tuple: the text has been taken apart already.
        wider = make_puzzle(tuple(puzzle.cells), self.language, "ascii", notation=puzzle.notation)
        renamed = {wider.symbols.index(puzzle.symbols[s]): plain for s, plain in known.items()}
        return self._search_characters(wider, renamed)

    def _search_homophones(
        self, puzzle: Puzzle, known: Mapping[int, str], alphabet: Alphabet, patient: bool
    ) -> KeyPosterior:
        """Keys in which letters have several symbols; word breaks that make no sense may be ends of lines."""
        found = [self._search_many_to_one(puzzle, known, patient)]
        if puzzle.spaced and found[-1].reading().probability < LEAST_READ:
            found.append(self._search_many_to_one(replace(puzzle, spaced=False), known, patient))
        is_read = max(posterior.reading().probability for posterior in found) >= LEAST_READ
        # Before another language makes something of them: so many symbols may also be capitals, digits and signs, if no
        # two are known to stand for the same.
        one_to_one = len(set(known.values())) == len(known)
        if not is_read and one_to_one and self._may_be_characters(puzzle, alphabet):
            found.append(self._search_all_characters(puzzle, known))
        return max(found, key=lambda posterior: posterior.reading().probability)

    def _search_many_to_one(self, puzzle: Puzzle, known: Mapping[int, str], patient: bool) -> KeyPosterior:
        language, spaced, n_symbols = puzzle.language, puzzle.spaced, len(puzzle.symbols)
        settings = language.letter_search
        short = language.ngram("spaced-short" if spaced else "unspaced-short")
        most = max(settings.searched_symbols, homophonic.LETTERS_PER_SYMBOL * n_symbols)
        problem = letter_problem(puzzle, known, spaced)
        problem = replace(problem, pieces=_sample_pieces(puzzle.words, most, n_symbols))
        candidates = homophonic.find_keys(problem, short, homophonic.FIRST)
        log_keys = homophonic.log_keys(n_symbols - len(known), language.letter_frequencies)
        is_stuck = _nats_per_symbol(problem, candidates) > settings.stuck_above(spaced)
        is_long = puzzle.count_S.sum() >= homophonic.LEAST_PER_SYMBOL * n_symbols
        found = KeyPosterior(puzzle, problem, candidates, "homophonic", log_keys=log_keys)
        if is_long and is_stuck and (patient or found.may_be_read):
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
            problem = replace(problem, ngram=language.ngram("unspaced"), pieces=letters)
        facts = {"symbols": n_symbols}
        return replace(found, problem=problem, candidates=candidates, kind="homophonic", parameters=facts)

    def _search_letters(
        self, puzzle: Puzzle, known: Mapping[int, str], spaced: bool, patient: bool
    ) -> KeyPosterior:
        """Search with short n-grams, then with long ones, then ask the judge about a short text.

        `spaced` is whether the n-grams know the space, which then is either seen or one of the symbols.
        """
        language, settings = puzzle.language, puzzle.language.letter_search
        short = language.ngram("spaced-short" if spaced else "unspaced-short")
        row, n_symbols = puzzle.words, len(puzzle.symbols)
        problem = letter_problem(puzzle, known, spaced)
        n = problem.n_letters
        band = settings.band(n)
        candidates = _anneal_in_stages(problem, short, band.first, settings.first_key_rank_noise)
        is_stuck = _nats_per_symbol(problem, candidates) > settings.stuck_above(spaced)
        found = KeyPosterior(puzzle, problem, candidates, "spaced" if spaced else "unspaced")
        goes_on = is_stuck and not is_flat(puzzle.count_S, language.letter_frequencies)
        if goes_on and band.retry and (patient or found.may_be_read):
            again = _anneal_in_stages(problem, short, band.retry, settings.first_key_rank_noise)
            candidates = search.merge_candidates(problem, [candidates, again])
        if len(row) > settings.searched_symbols:
            problem = replace(problem, pieces=_sample_pieces(row, settings.compared_symbols, n_symbols))
            key_NS = candidates.key_NS[: settings.compared_keys]
            candidates = search.unique_candidates(problem, key_NS.T, search.costs(problem, key_NS))
        candidates = _hill_climb(problem, candidates)
        found = replace(found, problem=problem, candidates=candidates)
        words_known = puzzle.spaced or not spaced
        asks = (
            n <= language.judging.max_symbols and words_known and n_symbols > len(known) and self._use_judge
        )
        # To the judge, what is said again is likely, whatever it means.
        if not asks or problem.telling_row is None or found.reading().probability < _HOPELESS:
            return found
        judge = language.judge
        if judge is None:
            return found
        judged = rank_by_judge(judge, language, problem, candidates)
        return replace(found, candidates=judged, evidence="judge_spaced" if spaced else "judge_unspaced")

    def _search_characters(self, puzzle: Puzzle, known: Mapping[int, str]) -> KeyPosterior:
        """The lexinvariant model names the symbols; an n-gram of characters refines what it said."""
        problem = character_problem(puzzle, known)
        n_symbols, ngram, settings = problem.n_symbols, problem.ngram, self.language.character_search
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
        candidates = _hill_climb(problem, search.anneal(problem, first_SR, effort, rng)[0])
        if settings.letters_weight:
            candidates = rank_by_letters(self.language, problem, candidates, settings.letters_weight)
        judge = self.language.judge if settings.judge_weight and self._use_judge else None
        if judge is not None:
            candidates = rank_by_judged_letters(
                judge, self.language, problem, candidates, settings.judge_weight
            )
        return KeyPosterior(puzzle, problem, candidates, "characters")


def letter_problem(
    puzzle: Puzzle, known: Mapping[int, str], spaced: bool, short: bool = False
) -> SearchProblem:
    """Which letters the symbols of (samples of) a text stand for, under long n-grams or short ones."""
    language = puzzle.language
    tables: tuple[Table, Table] = ("spaced", "spaced-short") if spaced else ("unspaced", "unspaced-short")
    ngram = language.ngram(tables[short])
    n_symbols = len(puzzle.symbols)
    n_letters = ngram.size if spaced and not puzzle.spaced else len(language.letters)
    pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in known.items()}
    pieces = _sample_pieces(puzzle.words, language.letter_search.searched_symbols, n_symbols)
    return SearchProblem(ngram, pieces, n_symbols, np.arange(n_letters), pinned)


def character_problem(puzzle: Puzzle, known: Mapping[int, str]) -> SearchProblem:
    """Which characters the symbols of (samples of) a text stand for."""
    ngram, n_symbols = puzzle.language.ngram("characters"), len(puzzle.symbols)
    if n_symbols > ngram.size:
        raise UserError(
            f"The text has {n_symbols} different symbols and there are {ngram.size} printable characters: a "
            "substitution of one character by several symbols cannot be read."
        )
    pinned = {symbol: ngram.alphabet.index(plain) for symbol, plain in known.items()}
    pieces = _sample_pieces(puzzle.symbol_T, puzzle.language.character_search.searched_symbols, n_symbols)
    return SearchProblem(ngram, pieces, n_symbols, np.arange(ngram.size), pinned, repeats_count=True)


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
    return float(search.costs(problem, candidates.key_NS[:1])[0]) / len(problem.counted_T)


def _hill_climb(problem: SearchProblem, candidates: Candidates) -> Candidates:
    """From the best key, by best swaps, to one that no swap betters; all keys met on the way are candidates too."""
    for _ in range(_MAX_CLIMBS):
        near = search.one_swap_away(problem, candidates.key_NS[0])
        better = near.cost_N[0] < candidates.cost_N[0] - 1e-9
        candidates = search.merge_candidates(problem, [candidates, near])
        if not better:
            break
    return candidates
