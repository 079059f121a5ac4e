"""A run's folder on an object store: the run is in a local folder, and a copy of it follows, save after save.

The copy has config.json, the vocabulary, metrics, every sealed checkpoint and, at the end, model/ and curves;
TensorBoard's files stay here. A store that fails does not hold up training: the copy is tried again at the next save,
and at the end it must succeed. Imports no jax.
"""

import fnmatch
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lexinvariant.errors import UserError
from lexinvariant.locks import lock_folder
from lexinvariant.remote import (
    DamagedFileError,
    FileEntry,
    Lease,
    RemoteFolder,
    StoreError,
    cache_folder,
    cache_name,
    describe,
)

MOST_LISTINGS = 10
CONFIG, SEALS = "config.json", "checkpoints/step_*/manifest.json"


class RunMirror:
    """Where a run works that is to be at an address: `folder`. `copy_soon` is for whenever a checkpoint is sealed."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.home = cache_folder() / "runs" / cache_name(url)
        self.folder = self.home / "run"
        self._was_copied = self.home / "copied"
        self._remote = RemoteFolder(url)
        self._known: dict[Path, tuple[tuple[int, int], FileEntry]] = {}
        self._wanted = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._copy_when_asked, daemon=True)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Within, nobody else trains here; `folder` has what the store has. In the end the store has it all."""
        self.home.mkdir(parents=True, exist_ok=True)
        told = f"Another process is training in {self.folder}: wait for it, stop it, or give another --out."
        with lock_folder(self.home, told), Lease(self._remote, self._token()) as self._lease:
            self._fetch()
            self._thread.start()
            try:
                yield
            except Exception:
                self._end_thread()
                with suppress(StoreError, OSError):
                    self._copy()
                raise
            except BaseException:  # who is asked to end for the second time does not wait for a store
                self._ending = True
                raise
            self._end_thread()
            try:
                self._copy(with_model=True)
            except StoreError as error:
                raise UserError(
                    f"The last copy of the run failed, and all of it is in {self.folder}: give the same command "
                    f"again to copy it. {error}"
                ) from error

    def _token(self) -> str:
        """What this folder is known by: a run that was killed here has left its lease to the next."""
        noted = self.home / "token"
        if not noted.is_file():
            noted.write_text(secrets.token_hex(16), encoding="utf-8")
        return noted.read_text("utf-8")

    def copy_soon(self) -> None:
        """Ask for a copy, and do not wait for it."""
        self._wanted.set()

    def _end_thread(self) -> None:
        self._ending = True
        self._wanted.set()
        self._thread.join()

    def _copy_when_asked(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._ending:
                return
            try:
                self._copy()
            except (StoreError, OSError) as error:
                print(
                    f"lexinvariant: warning: the run was not copied to {self.url}, which is tried again at the next "
                    f"save. {error}",
                    file=sys.stderr,
                    flush=True,
                )

    def _copy(self, with_model: bool = False) -> None:
        """Half a model must not be taken for the end of the run, so it is copied when nobody writes to it."""
        self._lease.check()
        for _ in range(MOST_LISTINGS if self.folder.exists() else 0):
            with suppress(FileNotFoundError):  # a checkpoint was dropped meanwhile: look again
                files = self._files(with_model)
                self._remote.upload(files, {path: self._entry(path) for path in files.values()})
                self._was_copied.touch()
                return
        raise StoreError(f"{self.url}: checkpoints are dropped faster than they are copied: save less often.")

    def _files(self, with_model: bool) -> dict[str, Path]:
        snapshot = self.home / "copying"
        shutil.rmtree(snapshot, ignore_errors=True)
        snapshot.mkdir()
        files = {}
        for path in self.folder.iterdir():
            if path.is_file() and not path.name.startswith(".") and path.suffix != ".part":
                # Metrics go on growing while they are read.
                files[path.name] = Path(shutil.copyfile(path, snapshot / path.name))
        folders = list((self.folder / "checkpoints").glob("step_*"))
        if with_model:
            folders.append(self.folder / "model")
        for folder in folders:
            inside = [path for path in folder.rglob("*") if path.is_file()]
            files |= {path.relative_to(self.folder).as_posix(): path for path in inside}
        if gone := [folder for folder in folders if folder.name != "model" and not folder.is_dir()]:
            raise FileNotFoundError(gone[0])  # what was listed of it may be a part
        return files

    def _entry(self, path: Path) -> FileEntry:
        """Its size and hash; checkpoints do not change, and are read once for that."""
        if not path.is_relative_to(self.folder / "checkpoints"):
            return describe(path)
        status = path.stat()
        stamp = status.st_size, status.st_mtime_ns
        if self._known.get(path, (None,))[0] != stamp:
            self._known[path] = stamp, describe(path)
        return self._known[path][1]

    def _fetch(self) -> None:
        """What the store has, unless this machine has as much of the run or more; nothing is lost by that."""
        contents = self._remote.contents()
        if contents is None:
            if self.folder.exists() and self._was_copied.exists():
                raise UserError(
                    f"{self.url} is empty, and {self.folder} has a run that was there: remove that folder to start "
                    "anew, or give another --out."
                )
            return
        if CONFIG not in contents.files:
            raise UserError(f"{self.url} is not a run's folder: give another --out.")
        if (self.folder / CONFIG).exists():
            if describe(self.folder / CONFIG) != contents.files[CONFIG]:
                raise UserError(
                    f"{self.url} has a different run from {self.folder}: remove that folder to continue the one at the "
                    "address, or give another --out."
                )
            here = {path.relative_to(self.folder).as_posix() for path in self.folder.glob(SEALS)}
            if max(here, default="") >= max(fnmatch.filter(contents.files, SEALS), default=""):
                return
        fetched = self.home / "fetched"
        if self.folder.exists() and not fetched.exists():
            self.folder.rename(fetched)  # what is the same is not fetched again
        fetched.mkdir(exist_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._remote.download(contents, fetched, on_damage=_warn)
        fetched.rename(self.folder)
        self._was_copied.touch()


def _warn(error: DamagedFileError) -> None:
    """Of a checkpoint with a file less the one before is used."""
    print(f"lexinvariant: warning: {error}", file=sys.stderr, flush=True)
