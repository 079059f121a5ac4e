"""Where local copies lie, and how they make room for others: the one that was not used for longest goes first."""

import hashlib
import math
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from lexinvariant.errors import UserError
from lexinvariant.files import real_path, user_cache
from lexinvariant.locks import keep_in_use, lock_folder, unless_in_use

GIGABYTES = 100.0
"""Of copies, unless LEXINVARIANT_CACHE_GB says otherwise."""
_kept: dict[Path, int] = {}
"""Copies that this process uses, for as long as it lives: what is mapped into memory may not go."""


def cache_folder() -> Path:
    """LEXINVARIANT_CACHE, or the user's own folder for such things."""
    if chosen := os.environ.get("LEXINVARIANT_CACHE"):
        return real_path(chosen)
    return user_cache()


def copies_folder() -> Path:
    """In it a folder for every address, and in that one for every state that was read."""
    return cache_folder() / "copies"


def cache_name(url: str) -> str:
    """A folder's name for an address: no two have the same, and people recognise it."""
    url = url.rstrip("/")
    end = re.sub(r"[^\w.-]", "_", url.rpartition("/")[2])
    return f"{end}-{hashlib.sha256(url.encode(errors='surrogateescape')).hexdigest()[:12]}"


def keep_copy(copy: Path) -> None:
    """Let nobody remove this copy, whether it is there yet or not, and note that it is used now."""
    with suppress(OSError):  # of a cache that may only be read nothing is removed
        if copy not in _kept:
            _kept[copy] = keep_in_use(_lock_of(copy))
        os.utime(_lock_of(copy))


def make_room(copy: Path, size: int) -> None:
    """Remove copies that nobody uses, until this one, of so many bytes, is within the bound and has room on the disk.
    What is in use stays, also where there is no room then.
    """
    most = _most_bytes()
    found = [path for path in copies_folder().glob("*/*") if path.is_dir()]
    sizes = {path: _size(path) for path in found}
    missing = size - sizes.get(unfinished_copy(copy), 0)

    def is_enough() -> bool:
        return sum(sizes.values()) + missing <= most and shutil.disk_usage(copies_folder()).free >= missing

    for path in sorted(found, key=_last_used):
        if is_enough():
            return
        if _remove(path):
            del sizes[path]


def unfinished_copy(copy: Path) -> Path:
    return copy.with_name(f"{copy.name.removesuffix('.part')}.part")


def _remove(copy: Path) -> bool:
    """Whether it is gone. It is no copy from the first moment on, so that a kill leaves none that lacks something."""
    part = unfinished_copy(copy)
    with (
        suppress(UserError, OSError),
        lock_folder(copy.parent, "somebody fetches something here"),
        unless_in_use(_lock_of(copy)) as is_unused,
    ):
        if is_unused:
            if copy != part:
                copy.rename(part)
            shutil.rmtree(part)
            return True
    return False


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # removed meanwhile
            total += path.stat().st_size
    return total


def _lock_of(copy: Path) -> Path:
    return copy.with_name(f"{copy.name.removesuffix('.part')}.lock")


def _last_used(copy: Path) -> float:
    with suppress(OSError):
        return _lock_of(copy).stat().st_mtime
    return 0.0  # by a release that did not note it


def _most_bytes() -> float:
    given = os.environ.get("LEXINVARIANT_CACHE_GB", "")
    try:
        most = float(given) if given else GIGABYTES
    except ValueError:
        most = math.nan
    if not most >= 0:
        raise UserError(f"LEXINVARIANT_CACHE_GB is a number of gigabytes, not {given!r}.")
    return most * 1e9
