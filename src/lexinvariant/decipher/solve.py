"""The solver of ciphertexts, of whatever kind and in whatever language.

`which_language.py` decides what is tried and in which order, and takes the reading that describes the text shortest:
a key of symbols (`substitution.py`), one of the few keys in the alphabet's order, several alphabets in turn, or letters
in other places.

The key that is returned minimises the expected number of wrong symbols under the candidates' probabilities.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from lexinvariant.decipher.alphabet import Alphabet, Puzzle, check_cribs, make_puzzle
from lexinvariant.decipher.arguments import check_arguments, check_language
from lexinvariant.decipher.decipherment import Decipherment, KeyPosterior
from lexinvariant.decipher.language import Language, bundled_languages, load_language
from lexinvariant.decipher.notation import Notation, detect, split_symbols
from lexinvariant.decipher.substitution import KeySearch
from lexinvariant.decipher.text_reading import Solution
from lexinvariant.decipher.which_alphabet import Others, may_be_letters, read_in_best_alphabet
from lexinvariant.decipher.which_language import (
    ENOUGH,
    Attempt,
    can_hold,
    letters_of,
    read_in_best_language,
)
from lexinvariant.decipher.workers import read_on_all_cores
from lexinvariant.errors import UserError

if TYPE_CHECKING:  # jax takes a second to import, and most texts need none
    from lexinvariant.model.weights import Weights

MIN_TEXTS_FOR_WORKERS = 64
"""Texts from which on it pays to start other processes."""


@dataclass(frozen=True)
class _Question:
    """A text, what is known of its plaintext, and how it is to be taken apart."""

    text: str | Sequence[str]
    cribs: Mapping[str, str]
    crib_text: str | None
    crib_words: tuple[str, ...]
    alphabet: Alphabet
    unspaced: bool
    notation: Notation


def _is_read_with(solution: Solution, words: Sequence[str]) -> bool:
    """Whether the text was read well, and the plaintext has these words."""
    language = solution.puzzle.language
    plain = language.letters_only(solution.decipherment(top=0).plaintext)
    letters = [language.unspaced(word) for word in words]
    return solution.reading().probability >= ENOUGH and all(word and word in plain for word in letters)


class Solver:
    """Reads ciphertexts of the language given, or else of any that comes with the package: English is tried first.

    Models and n-grams are loaded when a text first needs them.
    """

    def __init__(
        self, model: Weights | None = None, *, language: Language | None = None, use_judge: bool = True
    ) -> None:
        check_language(language)
        self.language = load_language() if language is None else language
        self.finds_language = language is None
        self._keys = KeySearch(model, self.language, use_judge)

    @property
    def model(self) -> Weights | None:
        """The lexinvariant model that names symbols; None where the language has none, or the package came without."""
        return self._keys.model

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
        check_arguments(texts, cribs=cribs, crib_text=crib_text, crib_words=crib_words, top=top, **kind)
        questions = [_Question(text, cribs or {}, crib_text, tuple(crib_words), **kind) for text in texts]
        attempts = [self._attempts(question) for question in questions]
        firsts = [next(tries) for tries in attempts]

        def read_one(number: int) -> Decipherment:
            started = time.perf_counter()
            question, solution = questions[number], None
            if question.crib_words:
                # A reading that has the words by itself is taken as it is: where they stand is only guessed.
                without = replace(question, crib_words=())
                tries = self._attempts(without)
                solution = self._solve(without, next(tries), tries)
            if solution is None or not _is_read_with(solution, crib_words):
                solution = self._solve(question, firsts[number], attempts[number])
            known = check_cribs(solution.puzzle, question.cribs, crib_text)
            certain = [solution.puzzle.symbols[symbol] for symbol in known]
            return replace(solution.decipherment(top, certain), seconds=time.perf_counter() - started)

        numbers = range(len(texts))
        light = [number for number in numbers if self._needs_no_model(firsts[number].puzzle)]
        found: dict[int, Decipherment] = {}
        if len(light) >= MIN_TEXTS_FOR_WORKERS:
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
        puzzle = make_puzzle(text, self.language, alphabet, unspaced)
        return self._keys.best_keys(puzzle, {}, alphabet, unspaced)

    def _solve(self, question: _Question, first: Attempt, others: Iterable[Attempt]) -> Solution:
        """The best reading; `others` are the text in all spellings but the first."""

        @cache  # a text may be looked at more than once
        def search(attempt: Attempt, patient: bool) -> KeyPosterior:
            alphabet, unspaced = question.alphabet, question.unspaced
            return self._keys.best_keys(attempt.puzzle, attempt.pinned, alphabet, unspaced, patient)

        if not may_be_letters(first.puzzle, question.alphabet):
            return read_in_best_language(first, others, search, self.finds_language)

        def taken_apart(alphabet: Alphabet) -> list[Attempt]:
            try:
                return list(self._attempts(replace(question, alphabet=alphabet)))
            except UserError:  # what is known of the key does not fit
                return []

        letters = taken_apart("letters")
        if question.crib_words:
            # They are placed among letters, and else among the signs that the text looks like.
            if letters and (letters[0].has_places or not first.has_places):
                first, *others = letters
            return read_in_best_language(first, others, search, self.finds_language)
        is_ascii = first.puzzle.kind == "ascii"
        characters = first if is_ascii else next(iter(taken_apart("ascii")), None)
        otherwise = Others(letters, characters)
        return read_in_best_alphabet(first, others, otherwise, search, self.finds_language)

    def _attempts(self, question: _Question) -> Iterator[Attempt]:
        """The text in every spelling that its letters and what is known of it allow; if none does, the error."""
        text, notation = question.text, question.notation
        split = text
        if isinstance(text, str):  # how it is written is the same in every language
            notation = detect(text) if notation == "auto" else notation
            split = split_symbols(text, notation)
            text = text if isinstance(split, str) else split
        letters = letters_of(split)
        refused: UserError | None = None
        n_made = 0

        def attempt(spelling: Language) -> Attempt:
            puzzle = make_puzzle(text, spelling, question.alphabet, question.unspaced, notation)
            return Attempt(
                puzzle, check_cribs(puzzle, question.cribs, question.crib_text), question.crib_words
            )

        for spelling in self._spellings():
            is_first = spelling is self.language
            fits = is_first or all(map(spelling.unspaced, question.crib_words))
            if not can_hold(letters, spelling) or not fits:
                continue
            try:
                made = attempt(spelling)
            except UserError as error:
                refused = refused or error
                continue
            if is_first or made.puzzle.kind != "ascii":
                n_made += 1
                yield made
        if refused is not None and n_made == 0:
            raise refused
        if not can_hold(letters, self.language):  # letters of another alphabet may be signs like any others
            try:
                made = attempt(self.language)
            except UserError:
                if n_made == 0:
                    raise
                return
            if n_made == 0 or (made.puzzle.kind == "glyphs" and not made.puzzle.is_homophonic):
                yield made

    def _spellings(self) -> Iterator[Language]:
        """Every spelling of every language that a text may be in; languages are loaded when it comes to them."""
        yield from self.language.spellings
        if self.finds_language:
            for name in bundled_languages():
                if name != self.language.name:
                    yield from load_language(name).spellings

    def _needs_no_model(self, puzzle: Puzzle) -> bool:
        return puzzle.kind == "letters" and int(puzzle.count_S.sum()) > puzzle.language.judging.max_symbols
