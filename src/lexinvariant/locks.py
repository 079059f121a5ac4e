"""Locks that die with their process, whatever ends it: one writer to a folder, and no doubt about what a kill left."""

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lexinvariant.errors import UserError

LOCK_FILE = ".lock"


@contextmanager
def lock_folder(folder: Path, sentence: str) -> Iterator[None]:
    """Within, nobody else gets past here with this folder: they are told the sentence."""
    lock = folder / LOCK_FILE
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _take(descriptor):
            raise UserError(sentence)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def staging_folder(out: Path) -> Iterator[Path]:
    """An empty folder beside `out`, to be filled and moved there. It is gone in the end; if a kill leaves it behind,
    whoever writes to `out` next removes it.
    """
    for abandoned in out.parent.glob(f".{out.name}.partial-*"):
        _remove_unless_in_use(abandoned)
    while True:
        staged = out.with_name(f".{out.name}.partial-{os.getpid()}-{secrets.token_hex(3)}")
        staged.mkdir(parents=True)
        descriptor = os.open(staged, os.O_RDONLY)  # the folder itself: a lock that is moved along with it
        if _take(descriptor) and staged.exists():
            break
        os.close(descriptor)  # taken for abandoned in the very moment between: another one
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # A disk that knows no locks keeps nobody out, and nobody from working.
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _remove_unless_in_use(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass  # somebody is at work there, or nobody can tell
    finally:
        os.close(descriptor)
