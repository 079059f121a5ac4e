"""A text that an option gives: as it is, or in a file."""

import os
import re
from pathlib import Path

from lexinvariant.errors import UserError
from lexinvariant.text import read_documents


def own_text(given: str) -> tuple[str, str]:
    """The text, and a name for it: its file's."""
    if os.path.isfile(given):  # noqa: PTH113 (Path.is_file fails where a text is too long to be a file's name)
        return "\n".join(document.text for document in read_documents(given)), Path(given).stem
    if re.fullmatch(r"\S*(/|\\)\S*|\S+\.\w{1,5}", given):
        raise UserError(f"There is no file {given}: check the path, or give a text of several words.")
    return given, "text"
