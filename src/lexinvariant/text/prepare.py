"""From documents to token shards on disk, in one pass and in flat memory."""

import errno
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import escape
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import BinaryIO

from lexinvariant.checks import finite_number
from lexinvariant.errors import UserError
from lexinvariant.files import real_path, write_remedy
from lexinvariant.locks import staging_folder
from lexinvariant.text.batch import SPLITS
from lexinvariant.text.formats import Document, ReadProgress
from lexinvariant.text.manifest import MANIFEST_FILE, Manifest, Shard, fingerprint_of
from lexinvariant.text.sources import listed_sources, read_documents, size_on_disk
from lexinvariant.text.splits import assign
from lexinvariant.text.tags import TagFilter, tag_of
from lexinvariant.text.vocab import Ids, Vocab, dtype_for, load_vocab

SHARD_TOKENS = 1 << 27
_GROUP_CHARACTERS = 1 << 20  # documents are tokenised in groups, so that tokenizers can use every core
_MOST_DROPPED = 0.5  # share of the characters: what is left of a text in another script is blanks and digits
_MOST_TAGS = 64  # beyond these, tags are counted together as "other"; the number of a tag is one byte


@dataclass
class _OpenShard:
    """A shard as it is being written; hashes grow with the files, so nothing is read twice."""

    name: str
    tokens_file: BinaryIO
    documents_file: BinaryIO
    tags_file: BinaryIO
    tokens: int = 0
    documents: int = 0
    tokens_sha: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    documents_sha: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    tags_sha: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @classmethod
    def create(cls, folder: Path, name: str) -> "_OpenShard":
        tokens_file = (folder / f"{name}.tokens").open("wb", buffering=1 << 20)
        documents_file, tags_file = ((folder / f"{name}.{part}").open("wb") for part in ("documents", "tags"))
        shard = cls(name, tokens_file, documents_file, tags_file)
        shard._write_offset()
        return shard

    @property
    def files(self) -> tuple[BinaryIO, ...]:
        return self.tokens_file, self.documents_file, self.tags_file

    def add(self, ids: Ids, tag: int) -> None:
        data = ids.astype(ids.dtype.newbyteorder("<"), copy=False).data
        self.tokens_file.write(data)
        self.tokens_sha.update(data)
        self.tokens += len(ids)
        self.documents += 1
        self._write_offset()
        self.tags_file.write(bytes([tag]))
        self.tags_sha.update(bytes([tag]))

    def _write_offset(self) -> None:
        data = self.tokens.to_bytes(8, "little")
        self.documents_file.write(data)
        self.documents_sha.update(data)

    def close(self) -> Shard:
        with self.tokens_file, self.documents_file, self.tags_file:
            for file in self.files:
                file.flush()
                os.fsync(file.fileno())
        return Shard(
            self.name,
            self.documents,
            self.tokens,
            self.tokens_sha.hexdigest(),
            self.documents_sha.hexdigest(),
            self.tags_sha.hexdigest(),
        )


class _SplitWriter:
    """Rolls over to a new shard at the first document boundary after `shard_tokens`."""

    def __init__(self, folder: Path, split: str, shard_tokens: int) -> None:
        self._folder, self._split, self._shard_tokens = folder, split, shard_tokens
        self._done: list[Shard] = []
        self._open: _OpenShard | None = None

    def add(self, ids: Ids, tag: int) -> None:
        if self._open is None:
            self._open = _OpenShard.create(self._folder, f"{self._split}-{len(self._done):05d}")
        self._open.add(ids, tag)
        if self._open.tokens >= self._shard_tokens:
            self.close()

    def close(self) -> tuple[Shard, ...]:
        if self._open is not None:
            # Forget it first: a file that cannot be flushed must not be flushed again by the clean-up.
            shard, self._open = self._open, None
            self._done.append(shard.close())
        return tuple(self._done)

    def abandon(self) -> None:
        """Close the files whatever is left in their buffers; the folder is about to go."""
        if self._open is not None:
            for file in self._open.files:
                with suppress(OSError):
                    file.close()


@dataclass
class _Counts:
    """What the manifest tells of the text that was read."""

    bytes_in: int = 0
    dropped: int = 0
    tokens_by_tag: Counter[str] = field(default_factory=Counter)
    tags: list[str] = field(default_factory=list)

    def add(self, document: Document, n_tokens: int) -> int:
        """Returns the number of the document's tag."""
        text = document.text
        self.bytes_in += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        tag = tag_of(document.source)
        if tag not in self.tokens_by_tag and len(self.tokens_by_tag) >= _MOST_TAGS:
            tag = "other"
        if tag not in self.tokens_by_tag:
            self.tags.append(tag)
        self.tokens_by_tag[tag] += n_tokens
        return self.tags.index(tag)


def prepare(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    vocab: str | Path = "char128",
    valid: Sequence[str | Path] = (),
    test: Sequence[str | Path] = (),
    valid_fraction: float = 0.01,
    test_fraction: float = 0.01,
    tags: Sequence[str] = (),
    exclude_tags: Sequence[str] = (),
    shard_tokens: int = SHARD_TOKENS,
    progress: bool = True,
    overwrite: bool = False,
) -> Manifest:
    """Tokenise `sources` (see `sources.py`) into a corpus at `out` that `Corpus.open` reads.

    Explicit `valid` and `test` sources replace the split by fraction. Of all sources only documents with one of `tags`
    are taken, if any are given, and none with one of `exclude_tags` (see `tags.py`). Everything is written beside `out`
    and moved there when complete, so `out` is either whole or untouched.
    """
    sources, valid, test = (
        listed_sources(given, name)
        for given, name in ((sources, "sources"), (valid, "valid"), (test, "test"))
    )
    if not sources:
        raise UserError(
            "there is no source to prepare: name at least one file, folder, Hub dataset or 'stdlib'"
        )
    valid_fraction = 0.0 if valid else finite_number(valid_fraction, "the fraction for validation")
    test_fraction = 0.0 if test else finite_number(test_fraction, "the fraction for testing")
    if min(valid_fraction, test_fraction) < 0 or valid_fraction + test_fraction >= 1:
        raise UserError(
            f"valid and test fractions of {valid_fraction} and {test_fraction} leave nothing to train on: "
            "give fractions from 0 that sum to less than 1"
        )
    out = real_path(out)
    _check_out(out, overwrite)
    vocabulary = load_vocab(vocab)
    read, tag_filter = ReadProgress(), TagFilter(tags, exclude_tags)

    def documents(specs: Sequence[str]) -> Iterator[Document]:
        return tag_filter(chain.from_iterable(read_documents(spec, progress=read) for spec in specs))

    assigned = chain(
        assign(documents(sources), valid_fraction, test_fraction),
        (("valid", document) for document in documents(valid)),
        (("test", document) for document in documents(test)),
    )
    try:
        with staging_folder(out) as partial:
            with _progress_bar([*sources, *valid, *test], read, progress) as show_progress:
                splits, counts = _write_shards(assigned, vocabulary, partial, shard_tokens, show_progress)
            tag_filter.check_all_used()
            manifest = _manifest(vocabulary, splits, counts, (*sources, *valid, *test))
            _check_dropped(manifest)
            vocabulary.save(partial)
            manifest.write(partial)
            _move_into_place(partial, out, overwrite)
    except OSError as error:
        raise UserError(_write_failure(out, error)) from error
    return manifest


def _check_out(out: Path, overwrite: bool) -> None:
    """Before anything is read: a long preparation must not fail at its end over a name."""
    for moved in out.parent.glob(f".{escape(out.name)}.old-*"):
        # A kill came while the new one was put in its place.
        if out.exists():
            shutil.rmtree(moved, ignore_errors=True)
        else:
            moved.rename(out)
    if out.is_symlink():  # all others have been followed
        raise UserError(f"{out} is a link that leads in a circle: repair it, or choose another place")
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / MANIFEST_FILE).is_file():
        raise UserError(
            f"{out} exists and is not a prepared corpus: choose another place, it will not be touched"
        )
    if not overwrite:
        raise UserError(
            f"{out} holds a prepared corpus already: choose another place or ask to overwrite it (--overwrite)"
        )


def _write_shards(
    assigned: Iterator[tuple[str, Document]],
    vocab: Vocab,
    folder: Path,
    shard_tokens: int,
    show_progress: Callable[[int], None],
) -> tuple[dict[str, tuple[Shard, ...]], _Counts]:
    counts = _Counts()
    writers = {split: _SplitWriter(folder, split, shard_tokens) for split in SPLITS}
    try:
        for group in _grouped(assigned):
            folded = [vocab.fold(document.text) for _, document in group]
            encoded = vocab.encode_batch([text for text, _ in folded])
            for (split, document), (_, dropped), ids in zip(group, folded, encoded, strict=True):
                tag = counts.add(document, len(ids))
                counts.dropped += dropped
                if len(ids):
                    writers[split].add(ids, tag)
            show_progress(counts.bytes_in)
        splits = {split: writer.close() for split, writer in writers.items()}
    finally:
        for writer in writers.values():
            writer.abandon()
    return splits, counts


def _grouped(assigned: Iterator[tuple[str, Document]]) -> Iterator[list[tuple[str, Document]]]:
    group: list[tuple[str, Document]] = []
    characters = 0
    for split, document in assigned:
        group.append((split, document))
        characters += len(document.text)
        if characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _manifest(
    vocab: Vocab, splits: dict[str, tuple[Shard, ...]], counts: _Counts, sources: Sequence[str]
) -> Manifest:
    if not splits["train"]:
        raise UserError(
            f"the sources leave no text to train on ({counts.dropped} characters are not in {vocab.name} and "
            "were dropped): give more text, smaller held-out fractions or another vocabulary"
        )
    dtype = dtype_for(vocab.size).name
    return Manifest(
        vocab=vocab.name,
        vocab_size=vocab.size,
        dtype=dtype,
        sources=tuple(sources),
        bytes_in=counts.bytes_in,
        dropped_characters=counts.dropped,
        tokens_by_tag=dict(counts.tokens_by_tag.most_common()),
        splits=splits,
        fingerprint=fingerprint_of(vocab.name, dtype, splits),
        tags=tuple(counts.tags),
    )


def _check_dropped(manifest: Manifest) -> None:
    if manifest.dropped_share > _MOST_DROPPED:
        raise UserError(
            f"{manifest.dropped_share:.0%} of the characters have no place in {manifest.vocab}: give a tokenizer that "
            "`lexinvariant tokenizer train` has made from this text as --vocab"
        )


def _move_into_place(partial: Path, out: Path, overwrite: bool) -> None:
    _check_out(out, overwrite)  # again: another preparation may have been faster
    old = out.with_name(f".{out.name}.old-{os.getpid()}")
    if (out / MANIFEST_FILE).exists():
        out.rename(old)
    try:
        partial.rename(out)
    except OSError:
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write_failure(out: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"there is no room left to write {out} ({error.strerror}): free some space or choose another "
            "disk; the unfinished files were removed and nothing else was touched"
        )
    if error.errno == errno.EROFS:
        return f"cannot write {out} ({error.strerror}): {write_remedy(error)}"
    return f"cannot write {out} ({error.strerror or error}): check the folder and its permissions"


@contextmanager
def _progress_bar(
    sources: Sequence[str], read: ReadProgress, wanted: bool
) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; what it yields is called with the bytes of text so far."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield lambda text_bytes: None
        return
    sizes = [size_on_disk(source) for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task, began = bar.add_task("reading", total=total), monotonic()

        def show(text_bytes: int) -> None:
            megabytes = text_bytes / 1e6
            rate = megabytes / max(monotonic() - began, 1e-9)
            bar.update(task, completed=read.done, description=f"{megabytes:,.0f} MB of text, {rate:.0f} MB/s")

        yield show
