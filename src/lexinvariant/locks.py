"""Locks that die with their process, whatever ends it: one writer to a folder, and no doubt about what a kill left.

Windows has no such locks: there nobody is kept out, and what a kill left stays.
"""

import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from lexinvariant.errors import UserError

LOCK_FILE = ".lock"
_LOOK_EVERY = 0.2  # seconds


@contextmanager
def lock_folder(folder: Path, sentence: str, *, waits: bool = False) -> Iterator[None]:
    """Within, nobody else gets past here with this folder: they are told the sentence, and that is an error or they
    wait.
    """
    lock = folder / LOCK_FILE
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _take(descriptor):
            if not waits:
                raise UserError(sentence)
            print(sentence, file=sys.stderr, flush=True)
            while not _take(descriptor):
                time.sleep(_LOOK_EVERY)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Within, others who ask the same of this folder wait; for what is done in a moment. It leaves no file there."""
    descriptor = _open_folder(folder)
    try:
        while not _take(descriptor):
            time.sleep(_LOOK_EVERY)
        yield
    finally:
        os.close(descriptor)


def keep_in_use(lock: Path) -> int:
    """Until this process ends, or closes the descriptor, nobody gets this file by `unless_in_use`."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    if sys.platform != "win32":
        import fcntl

        with suppress(OSError):  # a disk that knows no locks: there nothing counts as unused
            fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def unless_in_use(lock: Path) -> Iterator[bool]:
    """Whether nobody keeps this file in use, for certain; within, nobody begins to."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def staging_folder(out: Path) -> Iterator[Path]:
    """An empty folder beside `out`, to be filled and moved there. It is gone in the end; if a kill leaves it behind,
    whoever writes to `out` next removes it.
    """
    for abandoned in out.parent.glob(f".{escape(out.name)}.partial-*"):
        _remove_unless_in_use(abandoned)
    while True:
        staged = out.with_name(f".{out.name}.partial-{os.getpid()}-{secrets.token_hex(3)}")
        staged.mkdir(parents=True)
        with suppress(FileNotFoundError):  # taken for abandoned in the very moment between: another one
            descriptor = _open_folder(staged)  # the folder itself: a lock that is moved along with it
            if _take(descriptor) and staged.exists():
                break
            os.close(descriptor)
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        os.close(descriptor)


def _open_folder(folder: Path) -> int:
    return os.open(os.devnull if sys.platform == "win32" else folder, os.O_RDONLY)


def _take(descriptor: int) -> bool:
    """Whether nobody else has it. A disk that knows no locks keeps nobody out, and nobody from working."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _remove_unless_in_use(folder: Path) -> None:
    if sys.platform == "win32" or not folder.is_dir():
        return
    import fcntl

    descriptor = _open_folder(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass  # somebody is at work there, or nobody can tell
    finally:
        os.close(descriptor)
