"""Packages with source code in them: Debian's and npm's by name, installed Python packages, and folders.

Nothing is installed, run or unpacked: archives are read as streams, file by file.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from lexinvariant.errors import UserError, likely
from lexinvariant.files import expand_user

File = tuple[str, bytes]
"""A file's path in its package, and what it holds."""
_LARGEST_FILE = 1 << 20
_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[\w.+:~-]+)?")
_NPM_NAME = re.compile(r"(@[\w.-]+/)?[\w.-]+(@[\w.+-]+)?")
_NPM_UNKNOWN = re.compile(
    r"resource '(\S+?)(?:@\*)?' could not be found|No matching version found for (\S+?)\.(?:\s|$)"
)
_NPM_AT_ONCE = 20


@dataclass(frozen=True)
class Package:
    """Something that source code comes from."""

    spec: str
    """How to name it to `data collect`, with its version: debian:NAME=VERSION, npm:NAME@VERSION, python:NAME==VERSION,
    or a folder."""
    licence: str | None
    sha256: str | None
    """Of its archive, where there is one."""
    files: Callable[[], Iterator[File]]

    @property
    def name(self) -> str:
        """What its documents are called by: no version, and of a folder the last part."""
        kind, colon, rest = self.spec.partition(":")
        return re.sub(r"(?<=.)(=|@).*", "", rest) if colon else Path(kind).resolve().name


def fetch_debian(
    names: Sequence[str], folder: Path, *, skip_unknown: bool = False, newer_versions: bool = False
) -> list[Package]:
    """Download Debian packages by NAME or NAME=VERSION; those that this release lacks are an error, or skipped.

    Debian keeps no version that a newer one has replaced: then that is an error too, or the newer one is taken.
    """
    _check_names(names, _DEBIAN_NAME, "debian:NAME or debian:NAME=VERSION")
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        _need_tool(tool, "debian", "Debian or Ubuntu")
    known = set(_run(["apt-cache", "pkgnames"], folder).stdout.split())
    unknown = [name for name in names if name.partition("=")[0] not in known]
    if unknown and (not skip_unknown or len(unknown) == len(names)):
        meant = likely(unknown[0], known)
        unmeant = "check the name" if known else "run `apt-get update` first"
        remedy = f"did you mean {meant!r}?" if meant else unmeant
        raise UserError(f"apt-get knows no package {unknown[0]!r}: {remedy}")
    wanted = [name for name in names if name not in unknown]
    while (done := _run(["apt-get", "download", "--quiet", *wanted], folder)).returncode:
        gone = re.search(r"Version '(\S+)' for '([^\s':]+)\S*' was not found", done.stderr)
        if not gone:
            raise _failure("apt-get", done)
        if not newer_versions:
            raise UserError(
                f"apt-get knows no version {gone[1]} of {gone[2]!r}: run `apt-get update` first, and where it is gone "
                "add --newer-versions to take the version that there is"
            )
        others = [name for name in wanted if name != f"{gone[2]}={gone[1]}"]
        if others == wanted:
            raise _failure("apt-get", done)
        wanted = [*others, gone[2]]
    return [_debian_package(path) for path in sorted(folder.glob("*.deb"))]


def _debian_package(path: Path) -> Package:
    fields = _run(["dpkg-deb", "--show", "--showformat", "${Package}=${Version}", str(path)], path.parent)
    if fields.returncode:
        raise _failure("dpkg-deb", fields)
    licences: set[str] = set()
    for name, data in _read_deb(path):
        if name.endswith("/copyright"):
            licences |= {*re.findall(r"^License: *(\S.*)$", data.decode("utf-8", "replace"), re.MULTILINE)}
    licence = ", ".join(sorted(licences)) or None
    return Package(f"debian:{fields.stdout}", licence, _hash_of(path), partial(_read_deb, path))


def fetch_npm(names: Sequence[str], folder: Path) -> list[Package]:
    """Download npm packages by NAME or NAME@VERSION."""
    _check_names(names, _NPM_NAME, "npm:NAME or npm:NAME@VERSION")
    _need_tool("npm", "npm", "a machine with Node.js")
    packages = []
    for first in range(0, len(names), _NPM_AT_ONCE):
        some = names[first : first + _NPM_AT_ONCE]
        done = _run(["npm", "pack", "--json", "--ignore-scripts", "--loglevel", "error", *some], folder)
        if done.returncode:
            unknown = _NPM_UNKNOWN.search(done.stderr)
            if unknown:
                raise UserError(f"npm knows no {unknown[1] or unknown[2]!r}: check the name and the version")
            raise _failure("npm", done)
        packages += [_npm_package(folder, entry) for entry in json.loads(done.stdout)]
    return packages


def _npm_package(folder: Path, entry: dict[str, str]) -> Package:
    path = folder / entry["filename"].removeprefix("@").replace(
        "/", "-"
    )  # old releases of npm tell @scope/name.tgz
    stated = None
    for name, data in _read_tgz(path):
        if name == "package.json":
            stated = json.loads(data).get("license")
    licence = stated if isinstance(stated, str) else None
    return Package(
        f"npm:{entry['name']}@{entry['version']}", licence, _hash_of(path), partial(_read_tgz, path)
    )


def installed_python(names: Sequence[str] = ()) -> list[Package]:
    """Installed Python packages by NAME or NAME==VERSION, or all of them; the standard library is none."""
    installed = {found.name.lower(): found for found in metadata.distributions()}
    packages = []
    for wanted in names or sorted(installed):
        name, _, version = wanted.partition("==")
        found = installed.get(name.lower())
        if found is None:
            meant = likely(name.lower(), installed)
            raise UserError(
                f"no Python package {name!r} is installed here: install it"
                + (f", or did you mean {meant!r}?" if meant else "")
            )
        if version and version != found.version:
            raise UserError(
                f"the Python package {name!r} is installed in version {found.version}, not {version}: install that one"
            )
        described = found.metadata.json
        stated = str(described.get("license_expression") or described.get("license") or "")
        licence = stated.strip().partition("\n")[0] or None  # some state all of its text
        packages.append(
            Package(
                f"python:{found.name}=={found.version}", licence, None, partial(_read_distribution, found)
            )
        )
    return packages


def folder_package(place: str) -> Package:
    folder = expand_user(place)
    if not folder.is_dir():
        raise UserError(
            f"there is no folder {place}: give folders, debian:NAME, npm:NAME, python:NAME, a collection.json, or the "
            "words debian, npm and python for the packages that are ready"
        )
    return Package(str(folder), None, None, partial(_read_folder, folder))


def _read_deb(path: Path) -> Iterator[File]:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(path)], stdout=subprocess.PIPE) as unpacking:
        assert unpacking.stdout is not None
        with tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive:
            yield from _members(archive, "./")


def _read_tgz(path: Path) -> Iterator[File]:
    with tarfile.open(path) as archive:
        yield from _members(archive, "package/")


def _members(archive: tarfile.TarFile, prefix: str) -> Iterator[File]:
    for member in archive:
        file = archive.extractfile(member) if member.isfile() and member.size <= _LARGEST_FILE else None
        if file is not None:
            yield member.name.removeprefix(prefix), file.read()


def _read_distribution(found: metadata.Distribution) -> Iterator[File]:
    for file in sorted(found.files or (), key=str):
        path = Path(str(found.locate_file(file)))
        if ".." not in file.parts and path.is_file() and path.stat().st_size <= _LARGEST_FILE:
            yield file.as_posix(), path.read_bytes()


def _read_folder(folder: Path) -> Iterator[File]:
    for parent, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST_FILE:
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def _check_names(names: Sequence[str], form: re.Pattern[str], written: str) -> None:
    for name in names:
        if not form.fullmatch(name):
            raise UserError(f"{name!r} is not a package's name: write {written}")


def _need_tool(tool: str, kind: str, where: str) -> None:
    if shutil.which(tool) is None:
        raise UserError(
            f"{tool} is not installed here: run it on {where}, or leave out what begins with {kind}"
        )


def _run(command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, check=False, cwd=folder, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}
    )


def _failure(tool: str, done: "subprocess.CompletedProcess[str]") -> UserError:
    complaints = [
        line for line in done.stderr.splitlines() if re.match(r"E: |npm error|dpkg-deb: error", line)
    ]
    reason = (complaints or done.stderr.splitlines() or ["no reason given"])[0]
    return UserError(f"{tool} could not fetch the packages ({reason}): check the network and try again")


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
