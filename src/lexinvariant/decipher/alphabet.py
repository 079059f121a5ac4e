"""A ciphertext made ready: which of its characters are cipher symbols, which stand for themselves, and where words end.

letters  the language's letters are enciphered, in either case alike; everything else stands for itself
glyphs   every symbol but white space is enciphered and stands for a letter: emoji, digits, numbers; where there are
         more symbols than letters, several stand for the same one (homophones)
ascii    everything is enciphered, the space too, and may stand for any of the language's characters
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher.language import Language, Recognition
from lexinvariant.decipher.notation import OF_CHARACTERS, Notation, detect, split_symbols
from lexinvariant.errors import UserError

Ids = NDArray[Any]
"""Small whole numbers; two bytes each, since a text may have millions of symbols."""
Alphabet = Literal["auto", "letters", "ascii"]
Kind = Literal["letters", "glyphs", "ascii"]
MAX_SYMBOLS = 128
KEPT = -1
"""In the place of a symbol's number: this cell stands for itself."""
WORD_BREAK = -1
"""In the place of a symbol's number, in a row of symbols: a word ends here. (It is a run of kept cells.)"""
_EVEN = 0.85
"""Share of the letters' index of coincidence below which symbols are used evenly. (Of validation texts of 240
characters, all enciphered, one in twenty is below it; of homophonic ones with 36 symbols, all are.)"""
_SAMPLE = 20_000  # cells of a long text that are looked at to see what was enciphered


@dataclass(frozen=True, eq=False)
class Puzzle:
    """A ciphertext whose symbols are numbered by first occurrence."""

    cells: str | tuple[str, ...]
    """The text in pieces of one symbol each."""
    notation: Notation
    kind: Kind
    symbols: tuple[str, ...]
    symbol_T: Ids
    """The number of each cell's symbol, KEPT where it stands for itself."""
    spaced: bool
    """Whether word breaks are visible."""
    language: Language

    @cached_property
    def count_S(self) -> NDArray[np.int64]:
        return np.array([np.count_nonzero(self.symbol_T == s) for s in range(len(self.symbols))])

    @property
    def alphabet(self) -> Alphabet:
        """With which the text is taken apart in the same way again."""
        return "auto" if self.kind == "glyphs" else self.kind

    @property
    def is_homophonic(self) -> bool:
        """Whether several symbols stand for the same letter, since there are more of them."""
        return self.kind == "glyphs" and len(self.symbols) > len(self.language.letters)

    @cached_property
    def is_foreign_script(self) -> bool:
        """Whether the symbols are letters, but not those of the language: perhaps of one that nobody here knows."""
        visible = [symbol for symbol in self.symbols if not symbol.isspace()]
        is_letters = self.kind != "letters" and all(symbol.isalpha() for symbol in visible)
        return is_letters and any(self.language.letter(symbol) is None for symbol in visible)

    @cached_property
    def letter_S(self) -> NDArray[np.int64] | None:
        """The letters that the symbols are as they stand (numbers: by their places in the alphabet); None if none."""
        letters = self.language.letters
        if self.kind == "letters":
            return np.array([letters.index(symbol) for symbol in self.symbols])
        if self.kind == "glyphs" and all(
            s.isascii() and s.isdigit() and int(s) <= len(letters) for s in self.symbols
        ):
            return np.array([(int(symbol) - 1) % len(letters) for symbol in self.symbols])
        return None

    @cached_property
    def words(self) -> Ids:
        """Symbols in a row with a single WORD_BREAK between words; without breaks where none are to be seen."""
        kept_T = self.symbol_T == KEPT
        if not self.spaced:
            return self.symbol_T[~kept_T]
        first_T = ~kept_T | (np.roll(~kept_T, 1) & kept_T)  # of a run of kept cells only the first counts
        if len(first_T):
            first_T[0] = not kept_T[0]
        row = self.symbol_T[first_T]
        return row[:-1] if len(row) and row[-1] == WORD_BREAK else row

    def symbol(self, cell: str) -> str | None:
        """The cipher symbol that a cell is, whatever its case; None where it stands for itself."""
        name = self.language.letter(cell) if self.kind == "letters" else cell
        return name if name in self.symbols else None

    def plaintext(self, key: Mapping[str, str]) -> str:
        """The text with every symbol replaced by what it stands for; capitals stay capitals, and what stands for itself
        keeps its accent.
        """
        table: dict[str, Any] = dict(key)
        if self.kind == "letters":
            for cell in set(self.cells):
                letter = self.language.letter(cell)
                plain = key.get(letter or cell)
                if plain is not None and plain != letter:
                    table[cell] = self.language.capital(plain) if cell.isupper() else plain
        if isinstance(self.cells, str):
            return self.cells.translate(str.maketrans(table))
        return "".join(table.get(cell, cell) for cell in self.cells)

    def filled(self, letters: str) -> str:
        """The text with the next one of these in the place of every symbol; capitals stay capitals."""
        plain = iter(letters)
        pieces = []
        for cell, symbol in zip(self.cells, self.symbol_T.tolist(), strict=True):
            piece = cell if symbol == KEPT else next(plain)
            is_capital = symbol != KEPT and self.kind == "letters" and cell.isupper()
            pieces.append(self.language.capital(piece) if is_capital else piece)
        return "".join(pieces)


def make_puzzle(
    text: str | Sequence[str],
    language: Language,
    alphabet: Alphabet = "auto",
    unspaced: bool = False,
    notation: Notation = "auto",
) -> Puzzle:
    """Find a text's cipher symbols; a sequence of strings is a text whose symbols are its items."""
    cells: str | tuple[str, ...]
    if isinstance(text, str):
        notation = detect(text) if notation == "auto" else notation
        split = split_symbols(text, notation)
        cells = split if isinstance(split, str) else tuple(split)
    else:
        notation = "tokens" if notation == "auto" else notation
        cells = tuple(text)
    if len(cells) == 0 or (isinstance(cells, str) and not cells.strip()):
        raise UserError("There is nothing to decipher: give a text.")
    kind = _kind(cells, language, alphabet)
    symbols, symbol_T = _number(cells, language, kind)
    if not symbols:
        raise UserError(
            "The text has no letters to decipher: let every character be enciphered (alphabet ascii)."
        )
    if len(symbols) > MAX_SYMBOLS:
        raise UserError(
            f"The text has {len(symbols)} different symbols and a substitution of at most {MAX_SYMBOLS} can be read: "
            "give a text in fewer, or say how its symbols are written (notation)."
        )
    spaced = not unspaced and _shows_words(symbol_T, language.recognition, one_word=notation in OF_CHARACTERS)
    return Puzzle(cells, notation, kind, symbols, symbol_T, spaced, language)


def _kind(cells: str | tuple[str, ...], language: Language, alphabet: Alphabet) -> Kind:
    if alphabet == "ascii":
        return "ascii"
    sample = cells[:_SAMPLE]
    has_letters = any(language.letter(cell.lower()) for cell in set(sample))
    if alphabet == "letters":
        return "letters" if has_letters else "glyphs"
    if has_letters and looks_like_letters(sample, language):
        return "letters"
    count_S = np.array([n for cell, n in Counter(cells).items() if not cell.isspace()])
    return "glyphs" if len(count_S) <= len(language.letters) or is_even(count_S, language) else "ascii"


def is_even(count_S: NDArray[np.int64], language: Language) -> bool:
    """Whether symbols are used more evenly than a language's characters: common letters have several of them, then."""
    n = int(count_S.sum())
    coincidence = float((count_S * (count_S - 1)).sum()) / max(1, n * (n - 1))
    return coincidence < _EVEN * float((language.letter_frequencies**2).sum())


def looks_like_letters(cells: Sequence[str], language: Language) -> bool:
    """Whether only the letters can have been enciphered: they are most of the text, capitals stand where a language
    has them, and spaces part words of a usual length.
    """
    usual = language.recognition
    visible = [cell for cell in cells if not cell.isspace()]
    n_letters = sum(language.letter(cell) is not None for cell in visible)
    if n_letters < usual.min_letter_share * len(visible) or len(visible) == 0:
        return False
    pairs = [(a, b) for a, b in pairwise(cells) if a.isalpha() and b.isalpha()]
    inner_capitals = sum(a.islower() and b.isupper() for a, b in pairs)
    n_spaces = len(cells) - len(visible)
    has_words = (
        n_spaces == 0
        or len(visible) <= usual.max_mean_word_length * n_spaces
        or len(visible) <= usual.max_word_length
    )
    return has_words and inner_capitals <= usual.max_inner_capital_share * len(pairs)


def _number(cells: str | tuple[str, ...], language: Language, kind: Kind) -> tuple[tuple[str, ...], Ids]:
    """The cipher symbols by first occurrence, and the number of each cell's symbol."""
    names = list(dict.fromkeys(cells))  # by first occurrence
    number: dict[str, int] = {}
    number_of: dict[str, int] = {}
    for cell in names:
        name = language.letter(cell) if kind == "letters" else cell
        if name is not None and not (kind == "glyphs" and cell.isspace()):
            number_of[cell] = number.setdefault(name, len(number))
    if not isinstance(cells, str):
        number_of = {cell: number_of.get(cell, KEPT) for cell in names}
        return tuple(number), np.fromiter(map(number_of.__getitem__, cells), np.int16, len(cells))
    code_T = np.frombuffer(cells.encode("utf-32-le", "surrogatepass"), np.uint32)
    number_U = np.full(max(map(ord, names)) + 1, KEPT, np.int16)
    number_U[[ord(cell) for cell in number_of]] = list(number_of.values())
    return tuple(number), number_U[code_T]


def _shows_words(symbol_T: Ids, usual: Recognition, one_word: bool) -> bool:
    """Whether the kept cells are word breaks: not in a long text without any, nor where all groups have one size or are
    longer than words. `one_word`: a short text without any may be a single word.
    """
    (breaks,) = np.nonzero(symbol_T == KEPT)
    if len(breaks) == 0:
        return one_word and len(symbol_T) <= usual.max_word_length
    lengths = np.diff(np.concatenate([[-1], breaks, [len(symbol_T)]])) - 1
    lengths = lengths[lengths > 0]
    if lengths.mean() > usual.max_word_length:
        return False  # lines, perhaps
    in_groups = len(lengths) >= 5 and lengths[0] >= 4 and bool((lengths[:-1] == lengths[0]).all())
    return not in_groups


def check_cribs(puzzle: Puzzle, cribs: Mapping[str, str], crib_text: str | None) -> dict[int, str]:
    """What is known of the key, by symbol number; an error where it is impossible or contradicts itself."""
    pairs = [*cribs.items()]
    if crib_text is not None:
        pairs += _aligned(puzzle, crib_text)
    known: dict[int, str] = {}
    by_plain: dict[str, str] = {}
    letter = puzzle.language.letter
    for symbol, plain in pairs:
        symbol = (letter(symbol) or symbol) if puzzle.kind == "letters" else symbol
        if puzzle.kind != "ascii":
            plain = letter(plain) or plain
            possible, wanted = letter(plain) is not None, "one letter"
        else:
            possible = len(plain) == 1 and plain in puzzle.language.characters
            wanted = f"one printable character of {puzzle.language.name}"
        if not possible:
            raise UserError(f"{_shown(symbol)} cannot stand for {_shown(plain)}: give {wanted}.")
        if symbol not in puzzle.symbols:
            if puzzle.kind == "letters" and letter(symbol) is None:
                raise UserError(
                    f"{_shown(symbol)} is not a cipher symbol, so it stands for itself and not for {_shown(plain)}: "
                    "give a letter of the ciphertext."
                )
            continue  # not an error, since many texts may share their cribs (`note_on_cribs` says it of one)
        number = puzzle.symbols.index(symbol)
        if known.setdefault(number, plain) != plain:
            raise UserError(
                f"What is known contradicts itself: {_shown(symbol)} cannot be both {_shown(known[number])} and "
                f"{_shown(plain)}."
            )
        if by_plain.setdefault(plain, symbol) != symbol and not puzzle.is_homophonic:
            raise UserError(
                f"What is known contradicts itself: {_shown(by_plain[plain])} and {_shown(symbol)} cannot both stand "
                f"for {_shown(plain)}."
            )
    return known


def _aligned(puzzle: Puzzle, crib_text: str) -> list[tuple[str, str]]:
    """What a known beginning of the plaintext says about the key, cell by cell."""
    pairs = []
    for number, cell, plain in zip(puzzle.symbol_T.tolist(), puzzle.cells, crib_text, strict=False):
        if number == KEPT and cell != plain:
            raise UserError(
                f"The known text does not fit: it has {_shown(plain)} where the ciphertext keeps {_shown(cell)}; it "
                "must begin where the ciphertext begins."
            )
        if number != KEPT:
            if puzzle.kind != "ascii" and puzzle.language.letter(plain) is None:
                raise UserError(
                    f"The known text does not fit: it has {_shown(plain)} where {_shown(cell)} stands for a letter; "
                    "leave out what the ciphertext leaves out."
                )
            pairs.append((puzzle.symbols[number], plain))
    return pairs


def _shown(symbol: str) -> str:
    """A symbol as error messages show it: invisible ones are spelled out, long ones cut."""
    short = symbol if len(symbol) <= 20 else symbol[:19] + "…"
    return short if short and short.isprintable() and not short.isspace() else repr(short)
