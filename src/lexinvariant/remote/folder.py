"""A folder on an object store: its files under their hashes, and contents.json, which says what it holds."""

import errno
import hashlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from lexinvariant.errors import UserError
from lexinvariant.files import parse_json_object

T = TypeVar("T")

CONTENTS, FILES = "contents.json", "files"
FORMAT = 1
ATTEMPTS = 6
FIRST_WAIT = 0.5
"""Seconds before the second attempt; each further one waits twice as long."""
TRANSFERS = 8
"""Files that are on their way at once."""
DEEPEST = 32
"""Folders within folders."""
LONGEST_CAUSE = 200  # characters of another library's complaint


class StoreError(UserError):
    """The store did not do what it was asked, however often."""


class DamagedFileError(StoreError):
    """The store has lost a file, or has other bytes than were given to it."""


def is_remote(place: object) -> bool:
    return isinstance(place, str) and re.match(r"[\w+.:-]+://", place) is not None


@dataclass(frozen=True)
class FileEntry:
    """One file of a remote folder."""

    size: int
    sha256: str


class Contents:
    """What a remote folder holds, by name."""

    def __init__(self, files: Mapping[str, FileEntry]) -> None:
        self.files = dict(sorted(files.items()))

    def to_bytes(self) -> bytes:
        files = {name: asdict(entry) for name, entry in self.files.items()}
        return (json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n").encode()

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def below(self, folder: str) -> "Contents":
        """Of one of its folders."""
        prefix = f"{folder}/" if folder else ""
        return Contents({n.removeprefix(prefix): e for n, e in self.files.items() if n.startswith(prefix)})

    @classmethod
    def parse(cls, data: bytes, where: str) -> "Contents":
        remedy = "upload the folder again."
        record = parse_json_object(data, where, remedy)
        files = record.get("files")
        if record.get("format") != FORMAT or not isinstance(files, dict):
            raise UserError(f"{where} is not what this release of lexinvariant writes: {remedy}")
        for name, entry in files.items():
            if not _is_inside(name) or not isinstance(entry, dict) or entry.keys() != {"size", "sha256"}:
                raise UserError(f"{where} is damaged (at {name!r}): {remedy}")
            if (
                type(entry["size"]) is not int
                or entry["size"] < 0
                or not re.fullmatch(r"[0-9a-f]{64}", str(entry["sha256"]))
            ):
                raise UserError(f"{where} is damaged (at {name!r}): {remedy}")
        return cls({name: FileEntry(**entry) for name, entry in files.items()})


def _is_inside(name: str) -> bool:
    """Whether this is the name of a file in a folder, or in a folder within it, on whatever system."""
    path = PurePosixPath(name)
    is_plain = name.isprintable() and not re.search(r"^/|[\\:]", name) and path.as_posix() == name
    return is_plain and 0 < len(path.parts) <= DEEPEST and ".." not in path.parts


class RemoteFolder:
    """A folder on an object store. One process writes to it at a time (`lease.py`), any may read."""

    def __init__(self, url: str) -> None:
        self._fs, self._root = _open_store(url)
        self.url = url.rstrip("/")
        self._damaged: set[str] = set()

    def read(self, name: str) -> bytes | None:
        """The bytes of a small file that may be replaced at any time; None if there is none."""
        with suppress(FileNotFoundError):
            return self._patiently(
                f"{name} cannot be read", lambda: self._fs.cat_file(f"{self._root}/{name}")
            )
        return None

    def write(self, name: str, data: bytes) -> None:
        """Readers see the old bytes or the new: so it is with a store's objects, and with files when they are moved."""
        path = f"{self._root}/{name}"

        def put() -> None:
            if "file" in self._fs.protocol:
                self._fs.pipe_file(f"{path}.part", data)
                Path(f"{path}.part").replace(path)
            else:
                self._fs.pipe_file(path, data)

        try:
            self._patiently(f"{name} cannot be written", put)
        except FileNotFoundError as error:
            raise self._no_bucket() from error

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._patiently(f"{name} cannot be deleted", lambda: self._fs.rm_file(f"{self._root}/{name}"))

    def contents(self) -> Contents | None:
        data = self.read(CONTENTS)
        return None if data is None else Contents.parse(data, f"{self.url}/{CONTENTS}")

    def upload(
        self,
        files: Mapping[str, Path],
        known: Mapping[Path, FileEntry] | None = None,
        *,
        send_all: bool = False,
    ) -> Contents:
        """Make these the folder's files; `known` spares hashing. What is there already is not sent again, unless this
        is to mend what the store has spoilt.
        """
        known = known or {}
        contents = Contents({name: known.get(path) or describe(path) for name, path in files.items()})
        there = self._sizes()
        paths = {self._path(name, entry): (files[name], entry) for name, entry in contents.files.items()}
        _each(
            lambda path: self._put(path, *paths[path]),
            [
                path
                for path, (_, entry) in paths.items()
                if send_all or path in self._damaged or there.get(path) != entry.size
            ],
        )
        self.write(CONTENTS, contents.to_bytes())
        self._damaged -= paths.keys()
        with suppress(StoreError):  # the next upload tries again
            _each(self._remove, there.keys() - paths.keys())
        return contents

    def download(
        self,
        contents: Contents,
        folder: Path,
        *,
        inside: str = "",
        on_damage: Callable[[DamagedFileError], None] | None = None,
    ) -> None:
        """Make `folder` hold these files and no others; those that are there and right are not fetched again.

        `contents` are those of this folder, or those of `inside`, a folder within it.
        A file that the store has lost or spoilt is an error, or left out if somebody is told.
        """
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir():
                with suppress(OSError):  # not empty
                    path.rmdir()
            elif path.relative_to(folder).as_posix() not in contents.files:
                path.unlink()

        def fetch(name: str) -> None:
            try:
                self._get(f"{inside}/{name}" if inside else name, contents.files[name], folder / name)
            except DamagedFileError as error:
                if on_damage is None:
                    raise
                on_damage(error)

        _each(fetch, contents.files)

    def _path(self, name: str, entry: FileEntry) -> str:
        return f"{self._root}/{FILES}/{name}/{entry.sha256}"

    def _sizes(self) -> dict[str, int]:
        """Everything that was uploaded, also by those who were killed before they had finished."""

        def find() -> dict[str, Any]:
            self._fs.invalidate_cache()
            return self._fs.find(f"{self._root}/{FILES}", detail=True)

        try:
            found = self._patiently("its files cannot be listed", find)
        except FileNotFoundError:
            return {}
        return {path: entry["size"] for path, entry in found.items() if re.search(r"/[0-9a-f]{64}$", path)}

    def _put(self, path: str, local: Path, entry: FileEntry) -> None:
        def put() -> None:
            self._fs.put_file(str(local), path)
            try:
                arrived = self._fs.info(path)["size"]
            except FileNotFoundError:
                arrived = 0
            if arrived != entry.size:
                raise OSError(f"{arrived} of {entry.size} bytes have arrived")

        try:
            self._patiently(f"{local.name} cannot be written", put)
        except FileNotFoundError as error:
            if local.exists():
                raise self._no_bucket() from error
            raise

    def _get(self, name: str, entry: FileEntry, target: Path) -> None:
        if target.is_file() and describe(target) == entry:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        path, unfinished = self._path(name, entry), target.with_name(f"{target.name}.part")

        def get() -> None:
            self._fs.get_file(path, str(unfinished))
            if describe(unfinished) != entry:
                raise DamagedFileError(
                    f"{name} in {self.url} does not have the hash that it was written with: upload the folder again."
                )

        try:
            self._patiently(f"{name} cannot be read", get)
        except FileNotFoundError as error:
            raise DamagedFileError(
                f"{name} is missing in {self.url}: upload the folder again, or try again if it is being replaced."
            ) from error
        except DamagedFileError:
            self._damaged.add(path)
            raise
        unfinished.replace(target)

    def _no_bucket(self) -> StoreError:
        return StoreError(f"{self.url} cannot be written to: create the bucket, or check its name.")

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._patiently("old files cannot be deleted", lambda: self._fs.rm_file(path))

    def _patiently(self, what: str, action: Callable[[], T]) -> T:
        """Stores fail now and then: ask again, each time after a longer wait."""
        failure: StoreError | None = None
        was_damaged = False
        for attempt in range(ATTEMPTS):
            if failure is not None:
                time.sleep(FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
            try:
                return action()
            except FileNotFoundError:
                raise  # an answer, and no failure
            except PermissionError as error:
                raise StoreError(f"{self.url}: {what} ({_cause(error)}): check your credentials.") from error
            except DamagedFileError as error:
                if was_damaged:
                    raise  # twice the same: it was not on the way
                was_damaged, failure = True, error
            except Exception as error:  # of whichever package speaks to the store
                if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise StoreError(
                        f"{self.url}: {what}, there is no room left ({error.strerror}): free some space, or let "
                        "LEXINVARIANT_CACHE name a folder on another disk."
                    ) from error
                tried = f"{self.url}: {what} after {ATTEMPTS} attempts ({_cause(error)})"
                failure = StoreError(f"{tried}: check the store and the network.")
                failure.__cause__ = error
        assert failure is not None
        raise failure


def describe(path: Path) -> FileEntry:
    with path.open("rb") as file:
        return FileEntry(os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _open_store(url: str) -> tuple[Any, str]:
    import fsspec
    from fsspec.registry import known_implementations

    protocol, _, path = url.partition("://")
    if not path.strip("/"):
        raise UserError(f"{url} names no folder: give one, such as s3://bucket/mine.")
    try:
        options = {"auto_mkdir": True} if protocol in ("file", "local") else {}
        fs, root = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        package = known_implementations.get(protocol, {}).get("class", "").partition(".")[0]
        remedy = f"pip install {package}" if package not in ("", "fsspec") else str(error)
        raise UserError(f"{protocol}:// needs a package of its own: {remedy}.") from error
    except ValueError as error:
        raise UserError(
            f"{url} cannot be used ({_cause(error)}): give a folder, or s3://, gs:// ..."
        ) from error
    return fs, root.rstrip("/")


def _each(action: Callable[[str], None], items: Iterable[str]) -> None:
    with ThreadPoolExecutor(TRANSFERS) as pool:
        pending = [pool.submit(action, item) for item in items]
        try:
            for one in pending:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _cause(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_CAUSE]
