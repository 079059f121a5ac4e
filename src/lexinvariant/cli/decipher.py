"""`lexinvariant decipher TEXT`: the plaintext of a substitution cipher, its key, and how sure both are."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console
from rich.text import Text

from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.cli.files import text_or_file
from lexinvariant.errors import UserError

if TYPE_CHECKING:
    from lexinvariant.decipher.language import Language
    from lexinvariant.decipher.solve import Decipherment

LEVELS = ((0.9, "green"), (0.6, "yellow"), (0.0, "bold red underline"))
"""From which probability on a symbol is shown so."""
LONGEST_KEY_LINE = 100


@dataclass(frozen=True)
class Arguments:
    """Read a substitution cipher: print its plaintext (coloured by confidence on a terminal), the key, and how sure it
    is. Works for letters, digits, glyphs, emoji or numbers, up to 128 different ones, with spaces kept or not.

    example: lexinvariant decipher "Myyv my qw vgy chk avcdy qpxkfy, zdk qpxdf dcqckw txvg wcu." --crib y=e
    """

    text: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TEXT")] = ""
    """The ciphertext; - reads standard input."""
    file: str = ""
    """Read the ciphertext from this file instead."""
    crib: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Something known of the key, as CIPHER=plain; may be given several times."""
    crib_text: str | None = None
    """The known beginning of the plaintext."""
    alphabet: Literal["auto", "letters", "ascii"] = "auto"
    """What is enciphered: letters (the rest is kept), ascii (everything, the space too), or auto, by looking."""
    unspaced: bool = False
    """The plaintext has no spaces, or they are not where words end."""
    tokens: bool = False
    """Symbols are numbers or words parted by spaces."""
    top: int = 3
    """How many other readings to tell."""
    language: str = "english"
    """The language of the plaintext: english, or a folder that `lexinvariant language build` wrote."""
    model: str | None = None
    """The lexinvariant model that names symbols, if not the language's own: a folder, a name on the Hub, or bundled."""
    json: bool = False
    """Print {"plaintext", "key", "confidence", "alternatives", "seconds"} instead."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant decipher")
    if arguments.top < 0:
        raise UserError(f"--top {arguments.top} is no number of readings: give 0 or more.")
    text = text_or_file(arguments.text, arguments.file, "decipher")
    cribs = _cribs(arguments.crib)
    keep_compiled_programs()
    from lexinvariant.decipher.alphabet import split_symbols
    from lexinvariant.decipher.language import load_language
    from lexinvariant.decipher.solve import Solver

    language, model = load_language(arguments.language), None
    if arguments.model is not None:
        from lexinvariant.model.weights import load_weights

        model = load_weights(arguments.model)
    solver = Solver(model, language=language)
    symbols = split_symbols(text, arguments.tokens)
    found = solver.read(
        [symbols],
        cribs=cribs,
        crib_text=arguments.crib_text,
        alphabet=arguments.alphabet,
        unspaced=arguments.unspaced,
        top=arguments.top,
    )[0]
    if arguments.json:
        print(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        show(found, symbols, language, Console(highlight=False, soft_wrap=True))
    return 0


def _cribs(pairs: Sequence[str]) -> dict[str, str]:
    cribs: dict[str, str] = {}
    for pair in pairs:
        rest, _, plain = pair[1:].partition("=")  # from the second character on: the symbol itself may be "="
        symbol = pair[:1] + rest
        if not plain:
            raise UserError(f"The crib {pair!r} is not of the form CIPHER=plain, such as --crib X=e.")
        if cribs.setdefault(symbol, plain) != plain:
            raise UserError(
                f"The cribs contradict each other: {symbol} cannot be both {cribs[symbol]} and {plain}."
            )
    return cribs


def show(found: "Decipherment", symbols: str | Sequence[str], language: "Language", console: Console) -> None:
    """The plaintext, the key and how sure they are."""
    # Letters are enciphered in either case alike, and the key knows the small one.
    p_T = [found.confidence.get(s, found.confidence.get(language.letter(s) or s)) for s in symbols]
    console.print(coloured(found.plaintext, symbols, p_T) if console.is_terminal else Text(found.plaintext))
    console.print()
    sure = [p for p in p_T if p is not None]
    total = len(sure)
    right = sum(sure) / max(1, total)
    pairs = sorted(found.key.items(), key=lambda pair: pair[1])
    items = [f"{_shown(symbol)}={_shown(plain)} {found.confidence[symbol]:.0%}" for symbol, plain in pairs]
    per_line = max(1, LONGEST_KEY_LINE // (3 + max(map(len, items))))
    for start in range(0, len(items), per_line):
        console.print(
            Text(("key: " if start == 0 else "     ") + "   ".join(items[start : start + per_line]))
        )
    console.print(
        Text(f"sure: {right:.1%} of {total} symbols are expected to be right ({found.seconds:.2f} s)")
    )
    for other in found.alternatives:
        shown = other.plaintext if len(other.plaintext) <= 200 else other.plaintext[:197] + "..."
        console.print(Text(f"or, {other.probability:.1%}: {shown}"))


def colour(p: float) -> str:
    return next(colour for least, colour in LEVELS if p >= least)


def coloured(plaintext: str, symbols: Sequence[str], p_T: Sequence[float | None]) -> Text:
    """The plaintext, each character in the colour of its probability; a symbol that was kept (None) has none."""
    pieces = []
    start = 0
    for symbol, p in zip(symbols, p_T, strict=True):
        end = start + (len(symbol) if p is None else 1)  # what was kept may be a sign of several characters
        pieces.append(("" if p is None else colour(p), plaintext[start:end]))
        start = end
    runs = groupby(pieces, key=itemgetter(0))
    return Text.assemble(*(("".join(piece for _, piece in run), style) for style, run in runs))


def _shown(symbol: str) -> str:
    return {" ": "space", "\n": "newline"}.get(symbol, symbol)
