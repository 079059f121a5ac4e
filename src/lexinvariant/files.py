"""Files that anybody may have written: regular ones alone, and JSON of a bounded size and depth; what is wrong with one
is told in a sentence.
"""

import errno
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from lexinvariant.errors import UserError

LARGEST_FILE = 1 << 28
"""Bytes; the manifest of the largest corpus is far below."""
MOST_NESTED = 64
"""Levels of lists and objects: whoever walks through a value may do so by recursion."""


def expand_user(place: str | os.PathLike[str]) -> Path:
    """With the user's home for ~. A file may be called ~x where there is no user x: then it stays what it is."""
    if not isinstance(place, (str, os.PathLike)):
        raise UserError(f"Give a file or folder as str or Path, not a value of type {type(place).__name__}.")
    return Path(os.path.expanduser(place))  # noqa: PTH111 (Path.expanduser fails there)


def real_path(place: str | os.PathLike[str]) -> Path:
    """Absolute, and without links. Path.resolve fails at links that lead in a circle; here they stay what they are."""
    return Path(os.path.realpath(expand_user(place)))


def check_name(place: str) -> str:
    """The name of a file or folder, if it is one: an empty one, as of a variable that is not set, would be the current
    folder.
    """
    if not place:
        raise UserError("A file or folder was given no name: name it, or write . for the current folder.")
    return place


def write_whole(path: Path, text: str) -> None:
    """Write a file that is the old one or the new one, whatever happens meanwhile."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_bytes(text.encode())
    unfinished.replace(path)


def check_can_fill(folder: Path) -> None:
    """Before long work: whether files can be written to a folder, which may not be there yet. Nothing is left in it."""
    there = folder.absolute()
    while not os.path.lexists(there):
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise UserError(
            f"Nothing can be written to {folder} ({error.strerror}: {there}): {write_remedy(error)}."
        ) from error


def check_can_write(path: Path) -> None:
    """The same of a file, which may be there: then it stays as it is."""
    if not os.path.lexists(path):
        check_can_fill(path.parent)
        return
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): {write_remedy(error)}.") from error


def write_remedy(error: OSError) -> str:
    """What to do where writing has failed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some space or choose another place"
    if error.errno == errno.EROFS:
        return "that disk can only be read, so choose a place on another"
    return "choose another place"


def user_cache() -> Path:
    """Our folder among the user's caches."""
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "lexinvariant"
    home = expand_user("~")
    if not home.is_absolute():
        raise UserError("This user has no home for copies to lie in: let LEXINVARIANT_CACHE name a folder.")
    return home / ".cache" / "lexinvariant"


def parse_json(data: str | bytes, name: str, remedy: str) -> Any:
    """The value that a text in JSON stands for; `name` and `remedy` make a sentence of what is wrong with it."""
    try:
        value = json.loads(data)
    except RecursionError as error:
        raise UserError(_too_deep(name, remedy)) from error
    except ValueError as error:  # also of bytes that are not UTF-8
        raise UserError(f"{name} is not valid JSON ({error}): {remedy}") from error
    if _is_deeper(value, MOST_NESTED):
        raise UserError(_too_deep(name, remedy))
    return value


def parse_json_object(data: str | bytes, name: str, remedy: str) -> dict[str, Any]:
    value = parse_json(data, name, remedy)
    if not isinstance(value, dict):
        raise UserError(f"{name} is not a JSON object: {remedy}")
    return value


def read_json_object(path: Path, remedy: str) -> dict[str, Any]:
    """The object that a file in JSON holds."""
    return parse_json_object(read_small_file(path, remedy), str(path), remedy)


def read_small_file(path: Path, remedy: str) -> bytes:
    """All bytes of a file, if it is one and not too large."""
    try:
        check_regular(path, remedy)
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path} is larger than {LARGEST_FILE >> 20} MiB: {remedy}")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}): {remedy}") from error


def check_regular(path: Path, remedy: str) -> None:
    """Opening a named pipe waits for whoever writes to it, perhaps for ever, and a device may have no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise UserError(f"{path} is not a regular file: {remedy}")


def _too_deep(name: str, remedy: str) -> str:
    return f"{name} is not valid JSON here (it is nested more than {MOST_NESTED} levels deep): {remedy}"


def _is_deeper(value: Any, most: int) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    return bool(level)
