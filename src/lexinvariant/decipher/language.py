"""A language for the solver: its letters, n-grams and judge, and every number that depends on the language.

A language is a folder: language.json (the fields of `Language`), five tables of n-grams and, where there is one, the
model that judges short texts. Where people also write it in fewer letters (ä as ae, é as e), that spelling is a
language of its own in the folder within. `lexinvariant language build` writes it; nothing in the code is about English.
"""

from __future__ import annotations

import dataclasses
import json
import types
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from lexinvariant.checks import check_settings
from lexinvariant.decipher.calibration import Calibration
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.ngram_cache import NGramCache
from lexinvariant.decipher.verdict import KindClassifier
from lexinvariant.errors import UserError
from lexinvariant.files import expand_user, read_json_object

if TYPE_CHECKING:
    from lexinvariant.decipher.judge_lm import JudgeLM

LANGUAGES = Path(__file__).parents[1] / "weights" / "languages"
ENGLISH = "english"
AUTO = "auto"
"""In the place of a language's name: it is to be found out."""
LANGUAGE_FILE = "language.json"
JUDGE_FOLDER = "judge"
FOLDED_FOLDER = "folded"
_NGRAMS = NGramCache()
Table = Literal["spaced", "spaced-short", "unspaced", "unspaced-short", "characters"]
"""n-grams of words, of letters without spaces (long ones, and short ones for the first search), of all characters."""
Evidence = Literal["spaced", "unspaced", "judge_spaced", "judge_unspaced", "characters", "homophonic"]
"""What a key was chosen by: n-grams of letters, with word breaks or without; n-grams and the judge, which knows less
where it sees no spaces; n-grams of characters, with the lexinvariant model where there is one; or n-grams of letters
among many-to-one keys, under which nonsense reads better."""


@dataclass(frozen=True)
class Recognition:
    """Thresholds that decide whether only letters were enciphered, and whether word breaks are visible."""

    min_letter_share: float
    """If a smaller share of the visible characters are letters, more than letters was enciphered."""
    max_inner_capital_share: float
    """The largest share of adjacent letters in which a capital follows a small letter."""
    max_mean_word_length: float
    """Visible characters for each space, beyond which spaces are not word breaks."""
    max_word_length: int
    """Letters in a row, beyond which a text was written without spaces."""


@dataclass(frozen=True)
class Effort:
    """How long a population of keys is annealed."""

    n_keys: int
    n_swaps: int
    """Swaps of two symbols that each key tries."""
    start_inverse_temperature: float
    """0 takes every swap; 1, where every search ends, is the n-gram's own temperature."""
    swaps_per_symbol: int | None = None
    """A text of few different symbols gets at most this many swaps for each."""
    resample_every: int = 32
    """Swaps between two resamplings of the population."""


@dataclass(frozen=True)
class Stages:
    """One search: with short n-grams, whose landscape is smooth, and from there with long ones."""

    short: Effort
    long: Effort


@dataclass(frozen=True)
class LengthBand:
    """How texts of some lengths are searched: a longer text needs fewer keys, since more of it tells them apart."""

    below: int | None
    """For texts of fewer enciphered symbols than this (and not of a band before); null: for all."""
    first: Stages
    retry: Stages | None
    """Searched once more with this where the first search got stuck."""


@dataclass(frozen=True)
class LetterSearch:
    """The search for keys where letters were enciphered."""

    bands: tuple[LengthBand, ...]
    first_key_rank_noise: float
    """Standard deviation of the ranks of letters by frequency, in the first keys."""
    stuck_above_spaced: float
    """Nats a symbol beyond which a search is taken to be stuck: one held-out text in fifty costs more."""
    stuck_above_unspaced: float
    not_language_above: float
    """Nats a symbol beyond which glyphs do not stand for letters alone: other characters are tried as well."""
    not_language_min_symbols: int
    """A shorter text costs too little or too much by chance."""
    searched_symbols: int
    """Of a longer text only samples of this length in all are searched..."""
    compared_symbols: int
    """... and the best keys compared on samples of this length."""
    compared_keys: int

    def stuck_above(self, spaced: bool) -> float:
        return self.stuck_above_spaced if spaced else self.stuck_above_unspaced

    def band(self, n: int) -> LengthBand:
        return next(band for band in self.bands if band.below is None or n < band.below)


@dataclass(frozen=True)
class CharacterSearch:
    """The search where every character was enciphered."""

    effort: Effort
    searched_symbols: int
    model_weight: float
    """Weight of the lexinvariant model's log-probabilities; the n-gram's have weight 1."""
    letters_weight: float = 0.0
    """Weight of what a reading costs as letters, capitals as small ones and all else as spaces; 0 is off."""
    judge_weight: float = 0.0
    """Weight of what the judge makes of these letters; 0 is off."""


@dataclass(frozen=True)
class Judging:
    """When and how the judge, a standard language model, is asked about short texts."""

    weight: float
    """The judge's part in the cost of a key; the n-gram has the rest."""
    max_symbols: int
    """Longer texts need no judge: the n-grams leave nothing to ask."""
    max_ngram_excess: float
    """Nats that a key may cost the n-gram more than its best: beyond that the judge cannot overrule it."""
    max_characters: int
    """Characters that the judge is given for one text, in all candidate plaintexts together..."""
    min_readings: int
    """... but always at least so many candidates."""


@dataclass(frozen=True)
class Calibrations:
    """One for each kind of evidence."""

    spaced: Calibration
    unspaced: Calibration
    judge_spaced: Calibration
    judge_unspaced: Calibration
    characters: Calibration
    homophonic: Calibration | None = None
    """None: as for letters without word breaks."""

    def of(self, evidence: Evidence) -> Calibration:
        calibration: Calibration | None = getattr(self, evidence)
        return self.unspaced if calibration is None else calibration


@dataclass(frozen=True)
class Language:
    """Everything about a language; tables and the judge are read from its folder when they are first used."""

    name: str
    letters: str
    """The small letters; where only letters were enciphered, they are the cipher's alphabet too."""
    capitals: str
    """The capital of each letter, or the letter itself where it has none."""
    folds: Mapping[str, str]
    """How other characters are written in letters, such as accented ones; all others part words."""
    characters: str
    """What a symbol may stand for where every character was enciphered."""
    model: str | None
    """The lexinvariant model that names symbols: "bundled", a folder or a name on the Hub; null: n-grams do without."""
    recognition: Recognition
    letter_search: LetterSearch
    character_search: CharacterSearch
    judging: Judging
    calibrations: Calibrations
    unread_kinds: KindClassifier
    """Tells what a text may be that was not read."""
    trace_decay: float
    """In the trace of a key: the weight of an occurrence of a symbol, relative to the next one."""
    folder: Path = dataclasses.field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        if len(self.letters) < 2 or len(set(self.letters)) < len(self.letters) or " " in self.letters:
            raise UserError(
                f"The letters {self.letters!r} are not an alphabet: give two or more, each once, and no space."
            )
        if len(self.capitals) != len(self.letters):
            raise UserError(
                f"There are {len(self.letters)} letters and {len(self.capitals)} capitals: give one capital for each "
                "letter, in the same order."
            )

    @cached_property
    def _letter_of(self) -> dict[str, str]:
        single = {character: plain for character, plain in self.folds.items() if len(plain) == 1}
        return single | dict(zip(self.capitals + self.letters, self.letters * 2, strict=True))

    @cached_property
    def _fold_table(self) -> _FoldTable:
        letter_of = {
            ord(character): plain for character, plain in (dict(self.folds) | self._letter_of).items()
        }
        return _FoldTable(letter_of)

    def letter(self, character: str) -> str | None:
        """The small letter that a character is, or None."""
        return self._letter_of.get(character)

    def capital(self, letter: str) -> str:
        return self.capitals[self.letters.index(letter)]

    def letters_only(self, text: str) -> str:
        """Small letters, with every run of anything else as one space."""
        text = text if text.isascii() else unicodedata.normalize("NFC", text)
        return " ".join(text.translate(self._fold_table).split())

    def unspaced(self, text: str) -> str:
        """Small letters and nothing else."""
        return self.letters_only(text).replace(" ", "")

    @cached_property
    def _own(self) -> object:
        """Under which its tables are kept: another language in the same folder may have others."""
        return object()

    def has_table(self, table: Table) -> bool:
        return (self.folder / f"{table}.xz").is_file()

    def ngram(self, table: Table) -> NGram:
        return _NGRAMS.read((self._own, table), self.folder / f"{table}.xz")

    @cached_property
    def letter_frequencies(self) -> NDArray[np.float64]:
        """How common each letter is."""
        return self.ngram("unspaced-short").stationary_distribution()

    @cached_property
    def judge(self) -> JudgeLM | None:
        """The judge of short texts; None where the language has none."""
        folder = self.folder / JUDGE_FOLDER
        if not folder.is_dir():
            return None
        from lexinvariant.decipher.judge_lm import load_judge

        return load_judge(folder, self.letters)

    @cached_property
    def spellings(self) -> tuple[Language, ...]:
        """The language as it is written with all its letters and, where it has one, its spelling in fewer."""
        folder = self.folder / FOLDED_FOLDER
        return (self, _read(folder)) if (folder / LANGUAGE_FILE).is_file() else (self,)

    @property
    def is_folded(self) -> bool:
        """Whether this is the spelling in fewer letters."""
        return self.folder.name == FOLDED_FOLDER

    def save(self) -> None:
        """Write language.json to the folder."""
        values = dataclasses.asdict(self)
        del values["folder"]
        text = json.dumps(values, indent=2, ensure_ascii=False)
        (self.folder / LANGUAGE_FILE).write_text(text + "\n", encoding="utf-8")


class _FoldTable(dict[int, str]):
    """For str.translate: what is not a letter is a space."""

    def __missing__(self, character: int) -> str:
        return " "


def load_language(place: str | Path = ENGLISH) -> Language:
    """A bundled language by its name, or one in a folder that `lexinvariant language build` wrote."""
    return _bundled(place) if place in bundled_languages() else _read(expand_user(place))


def bundled_languages() -> list[str]:
    return sorted(path.parent.name for path in LANGUAGES.glob(f"*/{LANGUAGE_FILE}"))


@cache
def _bundled(name: str) -> Language:
    """Cached, so its tables and judge are read once in a process."""
    return _read(LANGUAGES / name)


def _read(folder: Path) -> Language:
    path = folder / LANGUAGE_FILE
    if not path.is_file():
        raise UserError(
            f"There is no language {str(folder)!r} ({', '.join(bundled_languages())} come with the package): give a "
            "folder that `lexinvariant language build` wrote."
        )
    described = read_json_object(path, "build the language again.")
    try:
        language: Language = _typed(Language, described | {"folder": folder})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"{path} is not a language of this version ({error}): build the language again."
        ) from error
    return language


def _typed(kind: Any, value: Any) -> Any:
    """JSON's values as the (nested) dataclasses, tuples and mappings that a type says."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        if unknown := set(value) - set(hints):
            raise KeyError(f"it has the unknown field {sorted(unknown)[0]}")
        made = kind(**{name: _typed(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
        check_settings(made, "")
        return made
    if get_origin(kind) in (Union, types.UnionType):
        return None if value is None else _typed(get_args(kind)[0], value)
    if get_origin(kind) is tuple:
        return tuple(_typed(get_args(kind)[0], item) for item in value)
    return value
