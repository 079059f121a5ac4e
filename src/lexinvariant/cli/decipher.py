"""`lexinvariant decipher TEXT`: what a text is, its plaintext and key, and how sure all that is."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.text import Text

from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.cli.files import text_or_file
from lexinvariant.cli.many_puzzles import read_many
from lexinvariant.cli.terminal import plain_console, visible
from lexinvariant.decipher.notation import Notation
from lexinvariant.errors import UserError

if TYPE_CHECKING:
    from lexinvariant.decipher.decipherment import Decipherment

LEVELS = ((0.9, "green"), (0.6, "yellow"), (0.0, "bold red underline"))
"""From which probability on a symbol is shown so."""
LONGEST_KEY_LINE = 100
NOT_READ = 3
"""Exit status where the verdict is that the text was not read."""
# The symbol itself may be "=", "," or a space; other spaces may stand on either side of a pair and of its "=".
_CRIB = re.compile(r"\s*(.[^=]*)=\s*?(.)\s*(?:,|$)", re.DOTALL)


@dataclass(frozen=True)
class Arguments:
    """Read a substitution cipher: print its plaintext (coloured by confidence on a terminal), what kind of text it is,
    the key, how sure the reading is, and why. Works for letters, digits, glyphs, emoji, numbers or Morse code, with or
    without spaces; also for Vigenere ciphers and their relatives, and for columnar transpositions. If it cannot read a
    text, it says so, says what the text may be, and exits with status 3.

    examples:
      lexinvariant decipher "Myyv my qw vgy chk avcdy qpxkfy, zdk qpxdf dcqckw txvg wcu." --crib y=e,v=t
      lexinvariant decipher --file puzzles.txt --many
    """

    text: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TEXT")] = ""
    """The ciphertext, in quotes; - reads standard input."""
    file: str = ""
    """Read the ciphertext from this file instead."""
    many: bool = False
    """Read many puzzles, separated by blank lines or as JSON Lines of {"text": ..., "name": ...}; prints a table."""
    crib: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A known part of the key, as CIPHER=plain or a=b,c=d; may be given several times."""
    crib_text: str | None = None
    """The known beginning of the plaintext."""
    crib_word: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A whole word from somewhere in the plaintext, tried wherever it fits; may be given several times."""
    alphabet: Literal["auto", "letters", "ascii"] = "auto"
    """What is enciphered: letters (the rest is kept), ascii (everything, including spaces), or auto to detect it."""
    unspaced: bool = False
    """The plaintext has no spaces, or they do not separate words."""
    notation: Notation = "auto"
    """What one symbol is: a character, a number, two digits, a group between spaces or a Morse code, or a character
    encoded in Base64, in hexadecimal or binary digits or by its number; auto detects it."""
    top: int = 3
    """How many other readings to show."""
    language: str = "auto"
    """The language of the plaintext: auto to detect it, one that comes with the package (listed by `lexinvariant
    language show`), or a folder written by `lexinvariant language build`."""
    model: str | None = None
    """The lexinvariant model that names symbols, if not the language's own: a folder, a name on the Hub, or
    `bundled`."""
    json: bool = False
    """Print {"verdict", "right", "plaintext", "spaced", "key", "confidence", "alternatives", ...} as JSON instead."""


def main(argv: list[str]) -> int:
    arguments = _parse(argv)
    if arguments.top < 0:
        raise UserError(f"--top {arguments.top} is not a number of readings: give 0 or more.")
    text = text_or_file(arguments.text, arguments.file, "decipher")
    options: dict[str, Any] = {
        "cribs": _cribs(arguments.crib),
        "crib_text": arguments.crib_text,
        "crib_words": arguments.crib_word,
        "alphabet": arguments.alphabet,
        "unspaced": arguments.unspaced,
        "notation": arguments.notation,
        "top": arguments.top,
    }
    keep_compiled_programs()
    from lexinvariant.decipher.arguments import note_on_cribs
    from lexinvariant.decipher.language import AUTO, load_language
    from lexinvariant.decipher.solve import Solver

    language = None if arguments.language == AUTO else load_language(arguments.language)
    model = None
    if arguments.model is not None:
        from lexinvariant.model.weights import load_weights

        model = load_weights(arguments.model)
    solver = Solver(model, language=language)
    console = plain_console()
    if arguments.many:
        return NOT_READ if read_many(solver, text, options, console, as_json=arguments.json) else 0
    found = solver.read([text], **options)[0]
    note = note_on_cribs(found, options["cribs"], arguments.crib_word)
    if arguments.json:
        print(json.dumps(found.to_json() | {"note": note}, ensure_ascii=False))
    else:
        show(found, console)
        if note is not None:
            print(f"note: {note}", file=sys.stderr)
    return NOT_READ if found.verdict.status == "unread" else 0


def _parse(argv: list[str]) -> Arguments:
    arguments, stray = tyro.cli(Arguments, args=argv, prog="lexinvariant decipher", return_unknown_args=True)
    if not stray:
        return arguments
    if any(word.startswith("-") for word in stray):
        return tyro.cli(Arguments, args=argv, prog="lexinvariant decipher")  # tells which option is none
    raise UserError(
        f"TEXT is one argument and {stray[0]!r} is another: put the ciphertext in quotes, or give it with --file or -."
    )


def _cribs(given: Sequence[str]) -> dict[str, str]:
    cribs: dict[str, str] = {}
    for pairs in given:
        start = 0
        while start < len(pairs):
            pair = _CRIB.match(pairs, start)
            if pair is None:
                raise UserError(
                    f"The crib {pairs!r} is not of the form CIPHER=plain, such as --crib X=e or X=e,Y=t."
                )
            symbol, plain, start = pair[1].rstrip() or pair[1], pair[2], pair.end()
            if cribs.setdefault(symbol, plain) != plain:
                raise UserError(
                    f"The cribs contradict each other: {symbol} cannot be both {cribs[symbol]} and {plain}."
                )
    return cribs


def show(found: "Decipherment", console: Console) -> None:
    """The plaintext, what the text is, the key, how sure all that is and why."""
    unread = found.verdict.status == "unread"
    if not unread:
        console.print(_plaintext(found, console.is_terminal))
        console.print()
    console.print(Text(found.verdict.sentence, style="bold" if console.is_terminal else ""))
    if not unread and found.key:
        _show_key(found, console)
    total = len(found.letter_confidence) or sum(p is not None for p in _confidences(found))
    seconds = f"({found.seconds:.2f} s)"
    console.print(Text(f"sure: {found.right:.1%} of {total} symbols are expected to be right {seconds}"))
    for i, reason in enumerate(found.verdict.reasons):
        console.print(Text(("why:  " if i == 0 else "      ") + reason))
    if unread:
        console.print(Text(f"The best attempt, probably wrong: {visible(_short(found.plaintext))}"))
        return
    for other in found.alternatives:
        if other.probability < 0.0005:  # would be shown as 0.0%
            break
        console.print(Text(f"or, {other.probability:.1%}: {visible(_short(other.plaintext))}"))


def _short(plaintext: str) -> str:
    return plaintext if len(plaintext) <= 200 else plaintext[:197] + "..."


def _show_key(found: "Decipherment", console: Console) -> None:
    pairs = sorted(found.key.items(), key=lambda pair: pair[1])
    items = [f"{_shown(symbol)}={_shown(plain)} {found.confidence[symbol]:.0%}" for symbol, plain in pairs]
    per_line = max(1, LONGEST_KEY_LINE // (3 + max(map(len, items))))
    for start in range(0, len(items), per_line):
        console.print(
            Text(("key:  " if start == 0 else "      ") + "   ".join(items[start : start + per_line]))
        )


def _confidences(found: "Decipherment") -> list[float | None]:
    """How sure each piece of the ciphertext is; None where it stands for itself."""
    p = {cell: found.confidence[symbol] for cell, symbol in found.symbol_of.items()}
    return [p.get(cell) for cell in found.cells]


def _plaintext(found: "Decipherment", in_colour: bool) -> Text:
    """The plaintext, with spaces put back where there were none, each character in the colour of its probability."""
    shown = found.spaced or found.plaintext
    if not in_colour:
        return Text(shown)
    p_T = _confidences(found)
    if found.spaced is not None or found.letter_confidence:
        sure = iter(found.letter_confidence or [p for p in p_T if p is not None])
        return _coloured((next(sure, None) if c.isalpha() else None, c) for c in shown)
    pieces, start = [], 0
    for symbol, p in zip(found.cells, p_T, strict=True):
        end = start + (len(symbol) if p is None else 1)  # what was kept may be a sign of several characters
        pieces.append((p, found.plaintext[start:end]))
        start = end
    return _coloured(pieces)


def _coloured(pieces: Iterable[tuple[float | None, str]]) -> Text:
    styled = [("" if p is None else colour(p), visible(piece)) for p, piece in pieces]
    runs = groupby(styled, key=itemgetter(0))
    return Text.assemble(*(("".join(piece for _, piece in run), style) for style, run in runs))


def colour(p: float) -> str:
    return next(colour for least, colour in LEVELS if p >= least)


def _shown(symbol: str) -> str:
    return {" ": "space", "\n": "newline", "\t": "tab", "\r": "return"}.get(symbol) or visible(symbol)
