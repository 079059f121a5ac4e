"""From a local folder to the store, and from the store to a copy that is fetched once."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lexinvariant.errors import UserError
from lexinvariant.files import check_name, expand_user
from lexinvariant.locks import lock_folder, staging_folder
from lexinvariant.remote.cache import (
    cache_folder,
    cache_name,
    copies_folder,
    keep_copy,
    make_room,
    unfinished_copy,
)
from lexinvariant.remote.folder import Contents, DamagedFileError, RemoteFolder, is_remote
from lexinvariant.remote.lease import Lease


def local_copy(place: str | Path) -> Path:
    """A local folder as it is; one on a store, or a folder within it, as a copy that is fetched once."""
    if not is_remote(place):
        return expand_user(place)
    url = str(place).rstrip("/")
    copies = copies_folder() / cache_name(url)
    copies.mkdir(parents=True, exist_ok=True)
    remote, inside, contents = _find(url)
    while True:
        wanted = contents.below(inside)
        copy = copies / wanted.hash[:16]
        keep_copy(copy)
        if copy.is_dir():
            return copy
        make_room(copy, sum(entry.size for entry in wanted.files.values()))
        try:
            with lock_folder(copies, f"waiting for another process that fetches {url}", waits=True):
                if not copy.is_dir():
                    _fetch(remote, inside, wanted, copy)
            return copy
        except DamagedFileError:
            before, (remote, inside, contents) = contents, _find(url)
            if contents.hash == before.hash:
                raise  # it was not replaced meanwhile


def _fetch(remote: RemoteFolder, inside: str, contents: Contents, copy: Path) -> None:
    unfinished = unfinished_copy(copy)  # what a kill leaves here is gone on with
    unfinished.mkdir(exist_ok=True)
    remote.download(contents, unfinished, inside=inside)
    unfinished.rename(copy)


def _find(url: str) -> tuple[RemoteFolder, str, Contents]:
    """The uploaded folder at an address or around it, what is meant within it, and its contents."""
    outer, inside = url, ""
    while re.search(r"://.", outer):
        remote = RemoteFolder(outer)
        contents = remote.contents()
        if contents is not None and contents.below(inside).files:
            return remote, inside, contents
        outer, _, last = outer.rpartition("/")
        inside = f"{last}/{inside}".rstrip("/")
    raise UserError(
        f"There is nothing of lexinvariant's at {url}: check the address; `lexinvariant data prepare SOURCE {url}` and "
        "`lexinvariant train --out` write there."
    )


@contextmanager
def uploaded(out: str, *, kind: str, recognised_by: str, replaces: bool) -> Iterator[Path]:
    """Where to write what is to be at `out`: right there, if that is a local folder. What is to be on a store is made
    elsewhere and uploaded in the end. There it is replaced only if asked to, and by its kind: one has such a file.
    """
    if not is_remote(out):
        yield expand_user(check_name(out))
        return
    remote = RemoteFolder(out)
    waiting = cache_folder() / "uploads" / cache_name(out)
    with Lease(remote) as lease, staging_folder(waiting) as staged:
        before = remote.contents()
        if before is not None and recognised_by not in before.files:
            raise UserError(
                f"{out} exists and is not a {kind}: choose another place, it will not be touched."
            )
        if before is not None and not replaces:
            raise UserError(f"{out} holds a {kind} already: choose another place or give --overwrite.")
        folder = staged / waiting.name
        yield folder
        lease.check()
        paths = [path for path in folder.rglob("*") if path.is_file()]
        files = {path.relative_to(folder).as_posix(): path for path in paths}
        remote.upload(files, send_all=before is not None)
