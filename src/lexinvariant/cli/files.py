"""Reading the texts that a user names."""

import sys
from pathlib import Path

from lexinvariant.errors import UserError
from lexinvariant.text.formats import LARGEST_TEXT, check_size_of_text, decode_utf8, read_whole_text


def read_text(name: str) -> str:
    """The text of a UTF-8 file, which may be compressed; - is standard input."""
    text = _read_standard_input() if name == "-" else read_whole_text(Path(name))
    if not text:
        raise UserError(f"{name} is empty: give a file with some text.")
    return text


def _read_standard_input() -> str:
    data = sys.stdin.buffer.read(LARGEST_TEXT + 1)
    check_size_of_text(len(data), "standard input")
    return decode_utf8(data, "-")


def text_or_file(text: str, file: str, what_for: str) -> str:
    """The text of a command that takes TEXT, --file F, or - for standard input."""
    if text and file:
        raise UserError(f"A TEXT and --file {file} are both given: give the one to {what_for}.")
    if not text and not file:
        raise UserError(f"There is nothing to {what_for}: give a TEXT, --file F, or - for standard input.")
    if not file and text != "-":
        return text
    name = file or "-"
    read = read_text(name).rstrip("\r\n")
    if "\0" in read:
        raise UserError(f"{name} is a binary file: give a text.")
    return read
