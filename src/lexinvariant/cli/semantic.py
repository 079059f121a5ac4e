"""`lexinvariant semantic TEXT --model FOLDER`: what each made-up word of a text stands for, and how sure that is."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.text import Text

from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.cli.decipher import colour
from lexinvariant.cli.files import text_or_file
from lexinvariant.cli.terminal import plain_console, visible
from lexinvariant.decipher.word_cipher import LIKELY, encipher_words
from lexinvariant.errors import UserError

if TYPE_CHECKING:
    from lexinvariant.decipher.words import WordReading

NO_MODEL = (
    "No model that names words comes with the package: give --model FOLDER with one made by `lexinvariant train "
    'tokens-small` ("Words" in docs/python.md says how: minutes on a GPU).'
)


@dataclass(frozen=True)
class Arguments:
    """Read a text whose words were replaced one for one by made-up ones: print it with the model's guess for each
    word, coloured by confidence on a terminal, and a table of the words with their likeliest meanings. Needs a
    lexinvariant model of tokens with a deciphering head. It works best for frequent words in long texts.

    example: lexinvariant semantic --file story.txt --encipher --model runs/words/model
    """

    text: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TEXT")] = ""
    """The text in made-up words; - reads standard input."""
    file: str = ""
    """Read the text from this file instead."""
    model: str | None = None
    """The model: a folder, or OWNER/NAME on the Hugging Face Hub."""
    encipher: bool = False
    """The text is plain: first replace its words by made-up ones, then report how many the model gets right."""
    seed: int = 0
    """With --encipher: the same seed makes up the same words."""
    marks_too: bool = False
    """Numbers and punctuation marks were replaced too."""
    likely: float = LIKELY
    """Words whose guess is less likely than this stay as they are."""
    top: int = 3
    """How many guesses to show for a word."""
    rows: int = 20
    """How many words to list, the most frequent first."""
    draws: int = 1
    """Lexicons to average over."""
    json: bool = False
    """Print {"plaintext", "words", "n_words", "n_expected", "seconds"} as JSON instead, with --encipher also the
    truth."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant semantic")
    _check(arguments)
    text = text_or_file(arguments.text, arguments.file, "read")
    truth: dict[str, str] = {}
    if arguments.encipher:
        enciphered = encipher_words(text, arguments.seed)
        text, truth = enciphered.ciphertext, enciphered.key
    if arguments.model is None:
        raise UserError(NO_MODEL)
    keep_compiled_programs()
    from lexinvariant.decipher.words import read_words
    from lexinvariant.model.weights import load_weights

    model, before = load_weights(arguments.model), perf_counter()
    reading = read_words(
        model,
        text,
        marks_too=arguments.marks_too,
        draws=arguments.draws,
        log=lambda line: print(line, file=sys.stderr),
    )
    seconds = perf_counter() - before
    if arguments.json:
        print(json.dumps(_as_json(reading, truth, arguments, seconds), ensure_ascii=False))
    else:
        show(reading, truth, arguments, seconds, plain_console())
    return 0


def _check(arguments: Arguments) -> None:
    for name, least in (("top", 1), ("rows", 0), ("draws", 1)):
        if getattr(arguments, name) < least:
            raise UserError(f"--{name} {getattr(arguments, name)} is too few: give {least} or more.")
    if not 0 <= arguments.likely <= 1:
        raise UserError(f"--likely {arguments.likely:g} is not a probability: give a number from 0 to 1.")
    if arguments.encipher and arguments.marks_too:
        raise UserError("--encipher replaces words alone: leave --marks-too out.")


def _as_json(
    reading: "WordReading", truth: Mapping[str, str], arguments: Arguments, seconds: float
) -> dict[str, Any]:
    told = reading.to_json(arguments.top, arguments.likely)
    if truth:
        words = [row | {"truth": truth[row["word"]]} for row in told["words"]]
        told |= {"ciphertext": reading.text, "words": words, "n_right": reading.n_right(truth)}
    return told | {"seconds": round(seconds, 3)}


def show(
    reading: "WordReading",
    truth: Mapping[str, str],
    arguments: Arguments,
    seconds: float,
    console: Console,
) -> None:
    """The text as it is read, its words and how sure they are; with the truth, how many are right."""
    if truth:
        console.print(Text(visible(reading.text) if console.is_terminal else reading.text))
        console.print()
    plaintext = Text(reading.plaintext(arguments.likely))
    console.print(_coloured(reading, arguments.likely) if console.is_terminal else plaintext)
    console.print()
    frequent = sorted(zip(reading.words, reading.counts, strict=True), key=lambda row: -row[1])
    listed = frequent[: arguments.rows]
    width = max((len(word) for word, _ in listed), default=0)
    for word, count in listed:
        line = Text(f"{word:<{width}} {count:4}x  ")
        line.append(f"{reading.key[word]} {reading.confidence[word]:.0%}", colour(reading.confidence[word]))
        others = {
            name: p for name, p in reading.best(word, arguments.top).items() if name != reading.key[word]
        }
        told = [f"{name} {p:.0%}" for name, p in list(others.items())[: arguments.top - 1]]
        line.append(f"   or {', '.join(told)}" if told else "")
        if truth:
            line.append(f"   really {truth[word]}", "green" if truth[word] == reading.key[word] else "")
        console.print(line)
    if len(frequent) > len(listed):
        console.print(
            Text(f"and {len(frequent) - len(listed)} other words (--rows {len(frequent)} lists them all)")
        )
    total = sum(reading.counts)
    console.print(
        Text(f"sure: {reading.n_expected:.0f} of {total} words are expected to be right ({seconds:.1f} s)")
    )
    if truth:
        unknown = sum(n for word, n in frequent if truth[word] not in reading.names)
        right = f"right: {reading.n_right(truth)} of {total} words"
        several = (
            f" ({unknown} of them not single tokens of this model, so it cannot name them)" if unknown else ""
        )
        console.print(Text(right + several))


def _coloured(reading: "WordReading", likely: float) -> Text:
    """The text as read, each word in the colour of its probability; words that stay made up are dim."""
    shown = Text()
    for piece, word in reading.pieces(likely):
        p = reading.confidence[word] if word else 1.0
        shown.append(visible(piece), "" if word is None else colour(p) if p >= likely else "dim")
    return shown
