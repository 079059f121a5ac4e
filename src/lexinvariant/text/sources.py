"""Where text comes from. A source is written as one word, with options after a question mark:

    book.txt  notes.md.gz    a text file: one document, or several consecutive pieces when it is long
    corpus/                  a folder: every file in it, in sorted order, without hidden and binary ones and without
                             what `data prepare` has written there
    corpus.jsonl.xz          JSON Lines (plain, .gz, .xz, .zst): one document a line
    corpus.parquet           Parquet: one document a row
    hub:NAME[:CONFIG]        a Hugging Face Hub dataset, streamed; ready names: pile, wiki40b, github
    stdlib                   the Python standard library: its source and pydoc's topics
    stdlib:code              its source alone
    stdlib:prose             pydoc's topics and all docstrings
    records:N                N documents of made-up records, in symbols that mean nothing
    sums:N                   N documents of sums in words, a language that is learned in minutes

Options are joined by `&`, for example `prose.jsonl.xz?source=wiki:&limit=1000`:

    field=NAME       the JSON field or Parquet column that holds the text (default: text)
    source=PREFIX    only documents whose source begins with PREFIX
    limit=N          only the first N documents
    errors=replace   undecodable bytes become U+FFFD instead of an error
    split=NAME       which split of a Hub dataset (default: train)
    fold=letters     lower case a-z, anything else as one space; fold=unspaced: a-z alone; fold=words: one character a
                     word, drawn anew for each document
"""

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from urllib.parse import unquote

from lexinvariant.errors import UserError
from lexinvariant.files import check_name, expand_user
from lexinvariant.text import hub, stdlib
from lexinvariant.text.formats import (
    JSON_LINES,
    Document,
    ReadProgress,
    looks_binary,
    plain_suffix,
    read_json_lines,
    read_parquet,
    read_text,
    source_of,
    tell_unreadable,
)
from lexinvariant.text.letters import letters_only, unspaced
from lexinvariant.text.manifest import MANIFEST_FILE
from lexinvariant.text.records import read_records
from lexinvariant.text.sums import read_sums
from lexinvariant.text.vocab import nearest_file
from lexinvariant.text.word_symbols import words_as_symbols

__all__ = ["Document", "ReadProgress", "SourceSpec", "read_documents", "size_on_disk"]

_STDLIB = {"stdlib": "all", "stdlib:code": "code", "stdlib:prose": "prose"}
_MADE_UP = {"records:": read_records, "sums:": read_sums}
_FOLDS: dict[str, Callable[[Document], Iterable[Document]]] = {
    "letters": lambda document: [Document(letters_only(document.text), document.source)],
    "unspaced": lambda document: [Document(unspaced(document.text), document.source)],
    "words": words_as_symbols,
}
_COUNT = re.compile(r"0*[1-9][0-9]{0,17}")  # of a size that all can count to
_OPTIONS = ("field", "source", "limit", "errors", "split", "fold")


@dataclass(frozen=True)
class SourceSpec:
    """A source as the user wrote it, taken apart."""

    place: str
    field: str | None = None
    source: str = ""
    limit: int | None = None
    errors: str = "strict"
    split: str = "train"
    fold: str | None = None

    @classmethod
    def parse(cls, spec: str) -> "SourceSpec":
        # A file may have a question mark in its name.
        place, mark, query = (spec, "", "") if os.path.exists(spec) else spec.partition("?")  # noqa: PTH110
        check_name(place)
        options: dict[str, str] = {}
        for option in query.split("&") if mark else ():
            name, equals, value = option.partition("=")
            if name not in _OPTIONS or not equals or not value:
                close = difflib.get_close_matches(name, _OPTIONS, n=1)
                hint = f"did you mean {close[0]}=VALUE?" if close else f"options are {'=, '.join(_OPTIONS)}="
                raise UserError(
                    f"the source {spec!r} has the unknown or incomplete option {option!r}: {hint}"
                )
            if name in options:
                raise UserError(f"the source {spec!r} has {name}= twice: give it once")
            options[name] = unquote(value)
        limit = options.pop("limit", None)
        if limit is not None and not _COUNT.fullmatch(limit):
            raise UserError(f"the source {spec!r} has limit={limit}: give a whole number above 0")
        if options.get("errors", "strict") not in ("strict", "replace"):
            raise UserError(f"the source {spec!r} has errors={options['errors']}: give strict or replace")
        if options.get("fold", "letters") not in _FOLDS:
            raise UserError(f"the source {spec!r} has fold={options['fold']}: give {' or '.join(_FOLDS)}")
        return cls(place, limit=int(limit) if limit else None, **options)


def listed_sources(sources: Iterable[str | os.PathLike[str]], name: str = "sources") -> tuple[str, ...]:
    """Sources as they are written; a single one in place of a list would be read as a list of letters."""
    if isinstance(sources, (str, bytes, os.PathLike)) or not isinstance(sources, Iterable):
        raise UserError(f"{name} is {sources!r}: give a list of files, folders or other sources.")
    listed = tuple(sources)
    for source in listed:
        if not isinstance(source, (str, os.PathLike)):
            raise UserError(f"{name} has {source!r} in it: give every source as str or Path.")
    return tuple(os.fspath(source) for source in listed)


def read_documents(
    spec: str | os.PathLike[str], *, progress: ReadProgress | None = None
) -> Iterator[Document]:
    """The documents of a source (see the top of this file), read as they are asked for.

    `progress` counts the bytes read from files.
    """
    spec = os.fspath(spec)
    parsed = SourceSpec.parse(spec)
    documents = _read_place(parsed, progress or ReadProgress())
    if parsed.source:
        documents = _only(documents, parsed.source, spec)
    documents = islice(documents, parsed.limit)
    if parsed.fold:
        documents = chain.from_iterable(map(_FOLDS[parsed.fold], documents))
    first = next(documents, None)
    if first is None:
        raise UserError(f"the source {spec!r} has no text in it: check that it is the right one")
    yield first
    yield from documents


def size_on_disk(spec: str) -> int | None:
    """Bytes that reading the source will read from files, or None where nobody knows."""
    parsed = SourceSpec.parse(spec)
    path = expand_user(parsed.place)
    if parsed.limit is not None or _is_virtual(parsed.place) or not path.exists():
        return None
    return sum(file.stat().st_size for file in _files(path)) if path.is_dir() else path.stat().st_size


def _is_virtual(place: str) -> bool:
    return place in _STDLIB or place.startswith(("hub:", *_MADE_UP))


def _only(documents: Iterator[Document], prefix: str, spec: str) -> Iterator[Document]:
    seen, found = None, False
    for document in documents:
        seen = seen or document.source
        if document.source.startswith(prefix):
            found = True
            yield document
    if not found:
        example = f" (the first source in it is {seen!r})" if seen else ""
        raise UserError(
            f"no document of {spec!r} has a source that begins with {prefix!r}{example}: change source="
        )


def _read_place(spec: SourceSpec, progress: ReadProgress) -> Iterator[Document]:
    if spec.place in _STDLIB:
        return _read_stdlib(_STDLIB[spec.place])
    if spec.place.startswith("stdlib:"):
        raise UserError(f"there is no source {spec.place!r}: choose stdlib, stdlib:code or stdlib:prose")
    if spec.place.startswith("hub:"):
        return _read_hub(spec)
    for kind, read in _MADE_UP.items():
        if spec.place.startswith(kind):
            return read(_count_of(spec.place, kind))
    path = expand_user(spec.place)
    try:
        if path.is_dir():
            return _read_folder(path, spec, progress)
        if path.is_file():
            return _read_file(path, f"file:{path.name}", spec, progress)
    except OSError as error:  # a name that is too long
        raise UserError(f"{path} cannot be read ({error.strerror}): check the path") from error
    names = difflib.get_close_matches(
        spec.place, [*_STDLIB, *(f"{kind}N" for kind in _MADE_UP)], n=1, cutoff=0.8
    )
    raise UserError(
        f"there is no source at {path}{f': did you mean {names[0]}?' if names else nearest_file(path)}"
    )


def _count_of(place: str, kind: str) -> int:
    count = place.removeprefix(kind)
    if not _COUNT.fullmatch(count):
        raise UserError(f"the source {place!r} does not say how many: write {kind}N, such as {kind}16000")
    return int(count)


def _read_stdlib(part: str) -> Iterator[Document]:
    if part == "prose":
        yield from stdlib.read_prose()
        return
    yield from stdlib.read_code()
    if part == "all":
        yield from stdlib.read_topics()


def _read_hub(spec: SourceSpec) -> Iterator[Document]:
    name, _, config = spec.place.removeprefix("hub:").partition(":")
    if not name:
        raise UserError(f"the source {spec.place!r} names no dataset: write hub:NAME, such as hub:wiki40b")
    tag = name.replace(":", "/")
    for index, text, record in hub.stream_dataset(name, config or None, spec.split, spec.field):
        yield Document(text, source_of(record.get("source"), f"{tag}:{spec.split}/{index}"))


def _read_file(path: Path, source: str, spec: SourceSpec, progress: ReadProgress) -> Iterator[Document]:
    suffix = plain_suffix(path)
    if suffix in JSON_LINES:
        return read_json_lines(path, spec.field or "text", spec.errors, progress)
    if suffix == ".parquet":
        return read_parquet(path, spec.field or "text", spec.errors, progress)
    return read_text(path, source, spec.errors, progress)


def _files(folder: Path) -> Iterator[Path]:
    for parent, subfolders, names in os.walk(folder, onerror=tell_unreadable):
        if MANIFEST_FILE in names and any(name.endswith(".tokens") for name in names):
            # A prepared corpus. Its tokens are ASCII, and would be read as text: that of its test split too.
            subfolders.clear()
            continue
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _read_folder(folder: Path, spec: SourceSpec, progress: ReadProgress) -> Iterator[Document]:
    name = folder.resolve().name
    for path in _files(folder):
        if plain_suffix(path) == ".parquet" or not looks_binary(path):
            yield from _read_file(path, f"{name}:{path.relative_to(folder).as_posix()}", spec, progress)
