"""`lexinvariant language build`, `calibrate`, `verdict` and `show`."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from lexinvariant.cli.paths import local_path
from lexinvariant.cli.repeats import check_given_once
from lexinvariant.decipher.language import Evidence
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Build:
    """Build a language for `lexinvariant decipher --language`: count its n-grams and fit all thresholds, search
    efforts and calibrations on validation text. Sources are as for `lexinvariant data prepare`.

    examples:
      lexinvariant language build german --text de.jsonl.xz --valid de.valid.jsonl.xz --quick
      lexinvariant language build greek --text el.jsonl.xz --valid el.valid.jsonl.xz --folded αβγδεζηθικλμνξοπρστυφχψω
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Name of the language."""
    text: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")]
    """Text to count n-grams in."""
    valid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")]
    """Other text in the language, to fit thresholds and calibrations on."""
    out: Path | None = None
    """The folder to write, if not NAME."""
    alphabet: str | None = None
    """The lower-case letters of the language. Default: all that are common in the text. Others lose their accents."""
    capitals: str | None = None
    """The capital of each letter, where the language differs from Unicode's default (Turkish: I is the capital of
    ı)."""
    folded: str | None = None
    """The letters of a second spelling with fewer letters, as puzzle makers use it. It is built too, and texts are
    read in whichever spelling fits."""
    folds: Annotated[tuple[str, ...], tyro.conf.arg(metavar="x=yz ...")] = ()
    """How that spelling writes letters that do more than lose their accents, such as ä=ae."""
    judge: Path | None = None
    """Folder of a standard model of the language's letters (`lexinvariant train judge`), to judge short readings."""
    model: str | None = None
    """The lexinvariant model that names symbols where everything is enciphered: a folder, a name on the Hub, or
    `bundled`."""
    min_counts: tuple[int, int, int] = (1, 1, 1)
    """How often an n-gram of the highest order must occur to be stored: spaced, unspaced, of characters. Higher counts
    make smaller files."""
    texts: int = 60
    """Enciphered validation texts to fit on, at each of about ten lengths."""
    quick: bool = False
    """Keep the search efforts and weights of English and fit calibrations on a sixth of the texts: minutes, not an
    hour."""
    overwrite: bool = False
    """Replace an existing language."""


@dataclass(frozen=True)
class Calibrate:
    """Fit anew how sure the solver is of each symbol of a language, on enciphered validation text. The numbers are
    written to the language's folder.

    example: lexinvariant language calibrate german --valid de.valid.jsonl.xz --only unspaced
    """

    language: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|DIR")]
    """A language that comes with the package, or a folder that `language build` wrote."""
    valid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")]
    """Text in the language."""
    only: tuple[Evidence, ...] = ()
    """What to fit: texts with spaces or without, judged by the judge or not, or all characters. Default: everything."""
    texts: int = 60
    """Enciphered texts to fit on, at each of two to six lengths."""


@dataclass(frozen=True)
class FitVerdict:
    """Fit the numbers behind a language's verdicts: what right and wrong readings cost at each length, and what
    distinguishes the kinds of unread text. They are fitted on enciphered validation text and written to the language's
    folder.

    example: lexinvariant language verdict german --valid de.valid.jsonl.xz --foreign nl.valid.jsonl.xz
    """

    language: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|DIR")]
    """A language that comes with the package, or a folder that `language build` wrote."""
    valid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")]
    """Text in the language."""
    foreign: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")] = ()
    """Text in other languages with the same letters; without it, the kinds of unread text are not refitted."""
    texts: int = 16
    """Substitution ciphers at each of seven lengths; there are fewer of the other kinds."""


@dataclass(frozen=True)
class Show:
    """Show what a language consists of.

    example: lexinvariant language show english
    """

    language: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME|DIR]")] = "english"
    """A language that comes with the package, or a folder that `language build` wrote."""


def main(argv: list[str]) -> int:
    check_given_once(argv, Build, Calibrate, FitVerdict)
    arguments: Build | Calibrate | FitVerdict | Show = tyro.cli(
        Annotated[Build, tyro.conf.subcommand("build")]
        | Annotated[Calibrate, tyro.conf.subcommand("calibrate")]
        | Annotated[FitVerdict, tyro.conf.subcommand("verdict")]
        | Annotated[Show, tyro.conf.subcommand("show")],
        args=argv,
        prog="lexinvariant language",
        description="Build and show languages for the cipher solver.\n\nexample: lexinvariant language show",
    )
    if isinstance(arguments, Show):
        from lexinvariant.decipher.language import bundled_languages, load_language

        language = load_language(arguments.language)
        print(f"{language.name} in {language.folder}")
        for spelling in language.spellings:
            print(f"letters: {spelling.letters}")
        print(f"characters: {language.characters.strip()}")
        print(f"judge: {'yes' if language.judge else 'none'}; model: {language.model or 'none'}")
        print(f"languages in the package: {', '.join(bundled_languages())}")
        return 0
    if isinstance(arguments, Calibrate):
        return _calibrate(arguments)
    if isinstance(arguments, FitVerdict):
        return _fit_verdict(arguments)
    from lexinvariant.decipher.build_language import build_language

    started = time.monotonic()
    out = arguments.out or local_path(arguments.name)
    build_language(
        arguments.name,
        arguments.text,
        arguments.valid,
        out,
        letters=arguments.alphabet,
        capitals=arguments.capitals,
        folded=arguments.folded,
        folds=_folds(arguments.folds),
        judge=arguments.judge,
        model=arguments.model,
        min_counts=arguments.min_counts,
        n_texts=arguments.texts,
        quick=arguments.quick,
        overwrite=arguments.overwrite,
        log=_say,
    )
    print(f"Wrote {out} in {time.monotonic() - started:.0f} s: lexinvariant decipher --language {out} ...")
    return 0


def _folds(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given]
    if wrong := next((pair for pair in pairs if len(pair[0]) != 1 or not pair[2]), None):
        raise UserError(f"--folds {''.join(wrong)} is not of the form letter=letters, such as ä=ae.")
    return {letter: letters for letter, _, letters in pairs}


def _calibrate(arguments: Calibrate) -> int:
    from lexinvariant.decipher.fit_calibration import ValidationText, fit_calibrations
    from lexinvariant.decipher.language import load_language

    _check_texts(arguments.texts)
    language = load_language(arguments.language)
    text = ValidationText(language, _texts_of(arguments.valid), arguments.texts)
    fit_calibrations(language, None, text, _say, arguments.only).save()
    print(f"Wrote {language.folder}.")
    return 0


def _fit_verdict(arguments: FitVerdict) -> int:
    from lexinvariant.decipher.fit_verdict import fit_verdict
    from lexinvariant.decipher.language import load_language

    _check_texts(arguments.texts)
    language = load_language(arguments.language)
    foreign = [_texts_of((source,)) for source in arguments.foreign]
    fit_verdict(language, _texts_of(arguments.valid), foreign, arguments.texts, _say).save()
    print(f"Wrote {language.folder}.")
    return 0


def _check_texts(n: int) -> None:
    if n < 1:
        raise UserError(f"--texts {n} is not a number of texts: give 1 or more.")


def _texts_of(sources: tuple[str, ...]) -> list[str]:
    from lexinvariant.text import read_documents

    return [document.text for source in sources for document in read_documents(source)]


def _say(line: str) -> None:
    print(line, flush=True)
