"""Decipherment what the user names."""

import sys
from pathlib import Path

from lexinvariant.errors import UserError


def read_text(name: str) -> str:
    """A UTF-8 file's text; - is standard input."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise UserError(f"{name} cannot be read ({error.strerror}): check its name.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8 text (byte {error.start}): convert it first.") from error
    if not text:
        raise UserError(f"{name} is empty: give a file with some text.")
    return text
