"""How a ciphertext is written down: which of its characters together are one symbol, and where words end.

characters  every sign is a symbol (an emoji of several characters is one), groups of five letters included
numbers     numbers parted by spaces, commas or hyphens
pairs       digits, or a few other signs, two by two: 0723110519, ADFGX
tokens      groups of signs parted by spaces: made-up codes, Bacon's fives of a and b, single signs spaced out
morse       Morse code, in dots and dashes or in any two signs; it is turned into its letters
base64, hex, binary, codes   encoded characters, to which it is turned back (encodings.py)

`detect` tells which it is. Where symbols are parted by one sign and words by another (`20-8-5 5-14-4`, `.- / -...`), a
space stands for the end of a word in what `split_symbols` returns.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Literal

from lexinvariant.decipher.encodings import decode, detect_encoding
from lexinvariant.errors import UserError

Notation = Literal[
    "auto", "characters", "numbers", "pairs", "tokens", "morse", "base64", "hex", "binary", "codes"
]
OF_CHARACTERS = ("characters", "base64", "hex", "binary", "codes")
"""Notations in which a word is a word, without spaces between its letters."""

MARKS = "\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
"""Modify the character before: combining accents, keycaps, variation selectors, skin tones, flag tags."""
FLAGS = "\U0001f1e6-\U0001f1ff"
JOINED = re.compile(f"[{MARKS}{FLAGS}\u200d]")
WHOLE = re.compile(f"[{FLAGS}]{{2}}|.(?:[{MARKS}]|\u200d.)*", re.DOTALL)
NUMBERS = re.compile(r"[\s,;:.\-\u2013/|_+]*\d[\d\s,;:.\-\u2013/|_+]*", re.ASCII)
LONGEST_NUMBER = 3  # digits: codes of letters are hardly longer
LEAST_DIGITS = 10  # in a row, to be taken for pairs
LEAST_TOKENS = 10  # single signs parted by spaces, to be taken for symbols one by one
MOST_SIGNS_OF_PAIRS, LEAST_SIGNS_IN_PAIRS, LEAST_PAIRS = 10, 40, 8  # no language is written in so few letters
DOTS, DASHES = ".\u00b7\u2022\u2219\u22c5", "-_\u2013\u2014\u2212\u2010"
WORD_MARKS = "/|"

_MORSE = {
    "a": ".-", "b": "-...", "c": "-.-.", "d": "-..", "e": ".", "f": "..-.", "g": "--.", "h": "....", "i": "..",
    "j": ".---", "k": "-.-", "l": ".-..", "m": "--", "n": "-.", "o": "---", "p": ".--.", "q": "--.-", "r": ".-.",
    "s": "...", "t": "-", "u": "..-", "v": "...-", "w": ".--", "x": "-..-", "y": "-.--", "z": "--..",
    "0": "-----", "1": ".----", "2": "..---", "3": "...--", "4": "....-", "5": ".....", "6": "-....", "7": "--...",
    "8": "---..", "9": "----.", ".": ".-.-.-", ",": "--..--", "?": "..--..", "'": ".----.", "!": "-.-.--",
    "/": "-..-.", "(": "-.--.", ")": "-.--.-", "&": ".-...", ":": "---...", ";": "-.-.-.", "=": "-...-",
    "+": ".-.-.", "-": "-....-", "_": "..--.-", '"': ".-..-.", "@": ".--.-.",
}  # fmt: skip
_OF_MORSE = {code: character for character, code in _MORSE.items()}


def detect(text: str) -> Notation:
    """How a text is written; `characters` where nothing else is plain to see."""
    text = text.strip()
    signs = {c for c in text[:20_000] if not c.isspace()}
    if not signs or len(text) == 1:
        return "characters"
    if (encoding := detect_encoding(text)) is not None:
        return encoding
    plain = signs - set(WORD_MARKS)
    tokens = re.split(rf"[\s{WORD_MARKS}]+", text)
    if len(tokens) > 1 and plain <= set(DOTS + DASHES) and plain & set(DOTS) and plain & set(DASHES):
        return "tokens" if _morse_code(text) is None else "morse"  # such as Morse code of another script
    if len(plain) == 2 and len(set(tokens)) >= LEAST_TOKENS:
        in_code = len(set(map(len, tokens))) > 1 and _morse_code(text) is not None
        return "morse" if in_code else "tokens"
    if NUMBERS.fullmatch(text):
        return _detect_digits(text)
    widths = Counter(len(_signs(token)) for token in tokens if token)
    if len(tokens) >= LEAST_TOKENS and widths[1] >= 0.95 * widths.total():
        return "tokens"
    few = 2 < len(signs) <= MOST_SIGNS_OF_PAIRS
    if few and widths[2] >= 0.95 * widths.total() and len(tokens) >= LEAST_TOKENS:
        return "tokens"
    if few and len(set(_pairs(text))) >= LEAST_PAIRS and _is_even(text, LEAST_SIGNS_IN_PAIRS):
        return "pairs"
    return "characters"


def _detect_digits(text: str) -> Notation:
    runs = re.findall(r"\d+", text)
    longest = max(map(len, runs))
    if longest <= LONGEST_NUMBER:
        return "numbers" if len(runs) >= 3 else "characters"
    return "pairs" if _is_even(text, LEAST_DIGITS) and len(set(_pairs(text))) > 1 else "characters"


def _is_even(text: str, least: int) -> bool:
    n = len("".join(text.split()))
    return n >= least and n % 2 == 0


def _pairs(text: str) -> list[str]:
    visible = "".join(text.split())
    return [visible[i : i + 2] for i in range(0, len(visible), 2)]


def _signs(text: str) -> str | list[str]:
    """Single characters, or what is displayed as one sign though it be several."""
    if not JOINED.search(text):
        return text
    return WHOLE.findall(unicodedata.normalize("NFC", text))


def split_symbols(text: str, notation: Notation = "auto") -> str | list[str]:
    """A text's symbols, and spaces where words end; a text of single characters is returned as it is."""
    notation = detect(text) if notation == "auto" else notation
    match notation:
        case "pairs":
            return _pairs(text)
        case "numbers":
            return _with_breaks(re.split(r"(\D+)", text.strip()))
        case "tokens":
            return _with_breaks(re.split(rf"([\s{WORD_MARKS}]+)", text.strip()), WORD_MARKS)
        case "morse":
            if (code := _morse_code(text)) is None:
                raise UserError("The text is not Morse code: give another notation, or auto to detect it.")
            return code
        case "base64" | "hex" | "binary" | "codes":
            return split_symbols(decode(text, notation))  # which may be numbers, Morse code, or encoded again
        case _:
            return _signs(text)


def _with_breaks(pieces: list[str], marks: str = "") -> list[str]:
    """Symbols and separators in turn; a separator other than the commonest one ends a word, and one of the marks in any
    case; a line's end does not.
    """
    kinds = [_separator(piece) for piece in pieces[1::2]]
    count = Counter(kind for kind in kinds if kind != "\n" and not set(kind) & set(marks))
    usual = min(count, key=lambda kind: (-count[kind], len(kind)), default="")
    cells = []
    for symbol, kind in zip(pieces[::2], [*kinds, usual], strict=True):
        cells += [symbol] if symbol else []
        is_shorter = kind.isspace() and usual.isspace() and len(kind) < len(usual)
        if kind not in (usual, "\n") and not is_shorter:
            cells.append(" ")
    return cells


def _separator(piece: str) -> str:
    """What a separator is apart from how long its lines are: its sign, one space, more of them, or a line's end."""
    signs = piece.strip()
    return signs or ("\n" if "\n" in piece and "\n\n" not in piece else " " if len(piece) == 1 else "  ")


def _morse_code(text: str) -> str | None:
    """The characters of a Morse code in any two signs; None where it is none."""
    count = Counter(c for c in text if not c.isspace() and c not in WORD_MARKS)
    tables = [dict.fromkeys(DOTS, ".") | dict.fromkeys(DASHES, "-")]
    if not set(count) <= set(tables[0]):
        if len(count) != 2:
            return None
        (one, _), (other, _) = count.most_common()  # there are more dots than dashes in most languages
        tables = [{one: ".", other: "-"}, {one: "-", other: "."}]
    pieces = re.split(rf"([\s{WORD_MARKS}]+)", text.strip(f"{WORD_MARKS} \t\r\n"))
    for table in tables:
        cells = _with_breaks(["".join(table.get(c, c) for c in piece) for piece in pieces], WORD_MARKS)
        if all(cell == " " or cell in _OF_MORSE for cell in cells):
            return "".join(_OF_MORSE.get(cell, " ") for cell in cells)
    return None
