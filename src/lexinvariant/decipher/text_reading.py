"""A plaintext that no key of symbols gives: several alphabets in turn, or the letters in other places.

It is tested, calibrated and told as the reading of a substitution is (decipherment.py): how much it costs a letter, out
of how many keys it was chosen, and how sure each letter is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.alphabet import Puzzle
from lexinvariant.decipher.decipherment import (
    Decipherment,
    KeyPosterior,
    in_its_language,
    n_telling,
    tested_reading,
    verdict_of,
)
from lexinvariant.decipher.language import Evidence
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.repeats import new_symbols
from lexinvariant.decipher.spacing import LONGEST, put_spaces
from lexinvariant.decipher.verdict import MOST_UNREAD, Kind, Reading

Ids = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TextReading:
    """The best plaintext that one kind of cipher makes of a text."""

    puzzle: Puzzle
    kind: Kind
    parameters: Mapping[str, int | str]
    ngram: NGram
    """What it was chosen by."""
    plain_N: Ids
    """Its letters (and spaces, where these were moved too) as numbers of the n-gram's alphabet."""
    plaintext: str
    """The same as people want to see it."""
    shows_words: bool
    cost: float
    """Nats of the letters that were looked at..."""
    n_letters: int
    """... and how many these are."""
    log_keys: float
    """The logarithm of how many keys there were to choose from."""
    sure_N: Floats
    """For each letter: how likely it is right, if the text was read."""
    languages: Mapping[str, float] = field(default_factory=dict)
    """As in KeyPosterior."""

    @property
    def evidence(self) -> Evidence:
        return "spaced" if " " in self.ngram.alphabet else "unspaced"

    @property
    def description(self) -> float:
        """Nats a letter to write the text down: what it costs, and which of all keys it is."""
        return self.cost / self.n_letters + self.log_keys / max(1, int(self.new_N.sum()))

    @cached_property
    def new_N(self) -> NDArray[np.bool_]:
        """Which of the letters that were looked at are no repeats."""
        return new_symbols([self.plain_N[: self.n_letters]])[0]

    @property
    def may_be_read(self) -> bool:
        return self.reading().probability > MOST_UNREAD

    def reading(self) -> Reading:
        test = self.puzzle.language.calibrations.of(self.evidence).fit
        looked_at = [self.plain_N[: self.n_letters]]
        telling = n_telling(looked_at, [self.new_N], self.ngram.order, int(self.new_N.sum()))
        cost = self.cost / self.n_letters
        return tested_reading(
            self.puzzle, test, self.kind, self.parameters, cost, [self.plain_N], telling, self.log_keys
        )

    def decipherment(self, top: int, certain: Collection[str] = ()) -> Decipherment:
        """The plaintext, how sure each of its letters is, and the verdict; there are no cribs and no other readings."""
        puzzle, reading = self.puzzle, in_its_language(self.reading(), self.languages)
        sure_N = reading.probability * self.sure_N
        letters = "".join(self.ngram.alphabet[v] for v in self.plain_N)
        letter_N = np.array([c != " " for c in letters])
        verdict = verdict_of(puzzle, reading, self.languages)
        put_back = not self.shows_words and verdict.status != "unread" and len(letters) <= LONGEST
        return Decipherment(
            verdict=verdict,
            right=round(float(sure_N[letter_N].mean()), 4),
            plaintext=self.plaintext,
            spaced=put_spaces(letters, puzzle.language.ngram("spaced")) if put_back else None,
            key={},
            confidence={},
            alternatives=[],
            notation=puzzle.notation,
            cells=puzzle.cells,
            symbol_of={},
            letter_confidence=tuple(round(float(p), 4) for p in sure_N[letter_N]),
            alphabet=puzzle.alphabet,
            folded=puzzle.language.is_folded,
        )


Solution = KeyPosterior | TextReading
"""What a solver finds in one language: both tell their cost, a `Reading` and, in the end, a `Decipherment`."""
