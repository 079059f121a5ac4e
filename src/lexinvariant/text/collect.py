"""Source code in many languages, gathered from packages and folders into JSON Lines with a manifest.

The manifest names every package with its version, hash and licence, so that the same text can be gathered again and
compared. Left out are files that are binary, generated, minified, tables, too short or too long, copies of what is
there already, and whatever repeats Python's standard library, which the demo measures on.
"""

import hashlib
import json
import lzma
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lexinvariant.checks import finite_number
from lexinvariant.errors import UserError, nearest
from lexinvariant.files import check_can_fill, check_name, write_remedy
from lexinvariant.progress import Log
from lexinvariant.text.batch import SPLITS
from lexinvariant.text.collection import Collection, PackageEntry, SplitEntry
from lexinvariant.text.hashing import key_of
from lexinvariant.text.overlap import standard_library
from lexinvariant.text.packages import Package, fetch_debian, fetch_npm, folder_package, installed_python
from lexinvariant.text.source_code import LANGUAGES, language_of, read_code
from lexinvariant.text.tags import tag_of

KINDS = ("debian", "npm", "python")
READY = Path(__file__).with_name("packages.toml")
"""Packages that hold much source code, for sources without a name."""
MEGABYTES = 12.0
TIMES_AS_MUCH = {"python": 2.5}
"""Of a language that most is asked of."""
FILES_HELD_OUT, HELD_OUT = 60, 0.01
"""At least so many files and this share of the text of each language for validation, and for testing: what is
measured on few files says little."""
MOST_HELD_OUT = 0.06
"""But no more than this share of its text."""
_MOST_OF_A_PACKAGE = FILES_HELD_OUT // 5  # of the files held out, where there are enough others
_LARGEST_HELD_OUT = MOST_HELD_OUT / 10  # of a language's text in one file
_MOST_SHARED = 0.2  # of a document's runs of words with the standard library
_MOST_SEEN_LINES = 0.5
_LONG_LINE = 25  # characters of a line that two texts do not have in common by chance


class _Found(NamedTuple):
    """A document that was taken; its text waits in a file."""

    digest: str
    language: str
    source: str
    package: int
    offset: int
    size: int


def collect(
    sources: Sequence[str],
    out: Path,
    *,
    languages: Sequence[str] = (),
    megabytes: float | None = None,
    newer_versions: bool = False,
    log: Log = lambda line: None,
) -> Collection:
    """Gather source code of `sources` in `out`: train, valid and test.jsonl.xz and the manifest, collection.json.

    Sources are debian:NAME, npm:NAME and python:NAME, with a version or without; `debian` and `npm` for the packages
    that packages.toml lists and `python` for all that are installed; folders; and the manifest of an earlier
    collection, for the same packages in the same versions, or with `newer_versions` in newer ones where Debian no
    longer has those. At most `megabytes` of text are taken of a language, of Python 2.5 times as much, from all
    packages alike.
    """
    manifests = [Collection.read(Path(source)) for source in sources if _is_manifest(source)]
    languages = languages or (manifests[0].languages if manifests else LANGUAGES)
    if megabytes is None:
        megabytes = manifests[0].megabytes if manifests else MEGABYTES
    _check(sources, out, languages, megabytes)
    with tempfile.TemporaryDirectory(prefix="lexinvariant-collect-") as scratch:
        packages = _find_packages(sources, Path(scratch), newer_versions, log)
        for manifest in manifests:
            _check_hashes(packages, manifest)
        with (Path(scratch) / "texts").open("w+b") as spool:
            found, left_out = _read_packages(packages, frozenset(languages), spool, log)
            chosen = _choose(found, megabytes)
            if not chosen:
                raise UserError(
                    "the sources hold no source code that could be taken: name others or more of them"
                )
            try:
                out.mkdir(parents=True, exist_ok=True)
                splits = {
                    split: _write_split(out, split, documents, spool)
                    for split, documents in _split(chosen).items()
                }
                collection = Collection(
                    sources=tuple(sources),
                    languages=tuple(languages),
                    megabytes=megabytes,
                    packages=tuple(_entries(packages, found, chosen)),
                    bytes_by_tag=_bytes_by_tag(chosen),
                    splits=splits,
                    left_out=dict(left_out),
                )
                collection.write(out)
            except OSError as error:
                raise UserError(
                    f"cannot write {out} ({error.strerror or error}): {write_remedy(error)}"
                ) from error
    for manifest in manifests:
        same = "the same text as" if collection.splits == manifest.splits else "other text than"
        log(f"this is {same} the manifest lists")
        listed = {entry.spec for entry in manifest.packages}
        newer = [package.spec for package in packages if package.spec not in listed]
        if newer_versions and newer:
            log(f"in versions that the manifest does not list: {' '.join(newer)}")
    return collection


def _is_manifest(source: str) -> bool:
    return source.endswith(".json")


def _check(sources: Sequence[str], out: Path, languages: Sequence[str], megabytes: float) -> None:
    """Before anything is downloaded."""
    unknown = [language for language in languages if language not in LANGUAGES]
    if unknown:
        raise UserError(
            f"there is no language {unknown[0]!r}, did you mean {nearest(unknown[0], LANGUAGES)!r}: choose from "
            f"{', '.join(LANGUAGES)}"
        )
    for source in sources:
        check_name(source)
    if not sources or finite_number(megabytes, "the number of megabytes") <= 0:
        raise UserError(
            "give at least one source, such as debian or npm:lodash, and a number of megabytes above 0"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(
            f"{out} exists already and is not empty: choose another folder, it will not be touched"
        )
    check_can_fill(out)


def _check_hashes(packages: list[Package], manifest: Collection) -> None:
    expected = {entry.spec: entry.sha256 for entry in manifest.packages}
    for package in packages:
        if package.sha256 and package.sha256 != expected.get(package.spec, package.sha256):
            raise UserError(
                f"{package.spec} is not what the manifest lists, its hash differs: name it without one"
            )


def _find_packages(sources: Sequence[str], scratch: Path, newer_versions: bool, log: Log) -> list[Package]:
    """The packages of all sources, each once; archives are downloaded into folders of their own."""
    ready = tomllib.loads(READY.read_text(encoding="utf-8"))
    found: dict[str, Package] = {}
    for number, (kind, names) in enumerate(_by_kind(sources)):
        folder = scratch / str(number)
        folder.mkdir()
        log(f"{kind}: {' '.join(names[:6])}{' ...' if names[6:] else ''}" if names else f"{kind} ...")
        if kind == "debian":
            packages = fetch_debian(
                names or ready["debian"], folder, skip_unknown=not names, newer_versions=newer_versions
            )
        elif kind == "npm":
            packages = fetch_npm(names or ready["npm"], folder)
        elif kind == "python":
            packages = installed_python(names)
        else:
            packages = [folder_package(kind)]
        found |= {package.spec: package for package in packages}
    return [found[spec] for spec in sorted(found)]


def _by_kind(sources: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """(kind, names), all names of a kind together, and none for the ready packages; a folder is a kind by itself."""
    named: dict[str, list[str]] = {}
    for source in sources:
        entries = Collection.read(Path(source)).packages if _is_manifest(source) else ()
        for spec in [entry.spec for entry in entries] or [source]:
            kind, colon, name = spec.partition(":")
            if kind not in KINDS:
                yield spec, []
            elif colon:
                named.setdefault(kind, []).append(name)
            else:
                yield kind, []
    yield from named.items()


def _read_packages(
    packages: list[Package], languages: frozenset[str], spool: BinaryIO, log: Log
) -> tuple[list[_Found], Counter[str]]:
    """All documents worth taking, their texts appended to `spool`; and how many files were left out for what."""
    known = standard_library()
    digests: set[str] = set()
    seen_lines: set[int] = set()
    found: list[_Found] = []
    left_out: Counter[str] = Counter()
    for number, package in enumerate(packages):
        before = len(found)
        for path, data in package.files():
            language = language_of(path, data[:4000])
            if language not in languages:
                continue
            text = read_code(path, data)
            if text is None:
                left_out["binary, generated, minified, tables, too short or too long"] += 1
                continue
            digest, lines = hashlib.sha256(" ".join(text.split()).encode()).hexdigest(), _some_lines(text)
            if digest in digests or (lines and len(lines & seen_lines) > _MOST_SEEN_LINES * len(lines)):
                left_out["copies of other files"] += 1
            elif known.share(text) > _MOST_SHARED:
                left_out["Python's standard library"] += 1
            else:
                digests.add(digest)
                seen_lines |= lines
                encoded = text.encode()
                source = f"code-{language}:{package.name}/{path}"
                found.append(_Found(digest, language, source, number, spool.tell(), len(encoded)))
                spool.write(encoded)
        log(f"{package.spec}: {len(found) - before} files")
    return found, left_out


def _some_lines(text: str) -> set[int]:
    """Hashes of a quarter of the long lines, always the same ones: enough to know a copy by, and small in memory."""
    long_lines = (line.strip() for line in text.split("\n"))
    hashes = (key_of(line) for line in long_lines if len(line) >= _LONG_LINE)
    return {number for number in hashes if number % 4 == 0}


def _choose(found: list[_Found], megabytes: float) -> list[_Found]:
    """Of every language as much as there may be, from all packages alike: they take turns, each with one file after
    another in an order that has nothing to do with how files are split.
    """
    given: Counter[tuple[str, int]] = Counter()
    turns: list[tuple[int, str, _Found]] = []
    for document in sorted(found, key=lambda document: document.digest[::-1]):
        turns.append((given[document.language, document.package], document.digest[::-1], document))
        given[document.language, document.package] += 1
    taken: Counter[str] = Counter()
    chosen = []
    for _, _, document in sorted(turns):
        most_bytes = megabytes * 1e6 * TIMES_AS_MUCH.get(document.language, 1)
        if taken[document.language] + document.size <= most_bytes:
            taken[document.language] += document.size
            chosen.append(document)
    return sorted(chosen)


def _split(chosen: list[_Found]) -> dict[str, list[_Found]]:
    """By the hash of the text, for every language by itself."""
    splits: dict[str, list[_Found]] = {split: [] for split in SPLITS}
    for language in sorted({document.language for document in chosen}):
        rest = [document for document in chosen if document.language == language]
        total = sum(document.size for document in rest)
        for split in ("test", "valid"):
            held_out = _hold_out(rest, total)
            splits[split] += held_out
            rest = sorted(set(rest) - set(held_out))
        splits["train"] += rest
    return {split: sorted(documents) for split, documents in splits.items()}


def _hold_out(documents: list[_Found], total: int) -> list[_Found]:
    """The first in the order of their hashes, without large ones; those come last that a package has too many of."""
    of_package: Counter[int] = Counter()
    order: list[tuple[bool, _Found]] = []
    for document in documents:
        order.append((of_package[document.package] >= _MOST_OF_A_PACKAGE, document))
        of_package[document.package] += 1
    taken: list[_Found] = []
    size = 0
    for _, document in sorted(order):
        if len(taken) >= FILES_HELD_OUT and size >= HELD_OUT * total:
            break
        if document.size <= _LARGEST_HELD_OUT * total and size + document.size <= MOST_HELD_OUT * total:
            taken.append(document)
            size += document.size
    # Of a few files one is held out all the same.
    return taken or (documents[:1] if len(documents) > 1 else [])


def _write_split(out: Path, split: str, documents: list[_Found], spool: BinaryIO) -> SplitEntry:
    """A file of JSON lines, in the order of their hashes: shuffled, and always the same."""
    sha = hashlib.sha256()
    with lzma.open(out / f"{split}.jsonl.xz", "wb", preset=3) as file:
        for document in documents:
            spool.seek(document.offset)
            text = spool.read(document.size).decode()
            line = (json.dumps({"text": text, "source": document.source}) + "\n").encode()
            sha.update(line)
            file.write(line)
    return SplitEntry(len(documents), sum(document.size for document in documents), sha.hexdigest())


def _entries(packages: list[Package], found: list[_Found], chosen: list[_Found]) -> Iterator[PackageEntry]:
    """All packages that had anything to take: what was found in one decides what counts as a copy in the next."""
    for number in sorted({document.package for document in found}):
        package, documents = packages[number], [document for document in chosen if document.package == number]
        texts = hashlib.sha256("".join(document.digest for document in documents).encode()).hexdigest()
        size = sum(document.size for document in documents)
        yield PackageEntry(package.spec, package.licence, package.sha256 or texts, len(documents), size)


def _bytes_by_tag(chosen: list[_Found]) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for document in chosen:
        sizes[tag_of(document.source)] += document.size
    return dict(sizes.most_common())
