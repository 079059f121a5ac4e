"""Documents out of single files: plain text, JSON Lines and Parquet, compressed or not, in bounded memory."""

import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from lexinvariant.errors import UserError
from lexinvariant.files import check_regular, parse_json

COMPRESSED = (".gz", ".xz", ".zst")
JSON_LINES = (".jsonl", ".ndjson")
PIECE_BYTES = 1 << 20  # a longer text file becomes several documents, so that memory stays flat
LARGEST_TEXT = 1 << 26  # bytes that one line, or a text that is read as a whole, may have
_BUFFER = 1 << 20
_ZSTD_BYTES = 512  # four bytes may stand for 128 KiB, so that these become 16 MiB at most


class Document(NamedTuple):
    """A text and where it came from: `tag:name`, with `#k` for the k-th piece of a long one."""

    text: str
    source: str


@dataclass
class ReadProgress:
    """How many bytes have been read from files so far, for a progress bar."""

    done: int = 0


class _CountingFile(io.FileIO):
    """A file that adds what is read from it to a count, and notices when it has lost its end in the meantime."""

    def __init__(self, path: Path, progress: ReadProgress) -> None:
        if not str(path).startswith("/dev/fd/"):  # the shell's <(command)
            check_regular(path, "give a file, or pass the text by standard input")
        super().__init__(path)
        self._progress, self._path = progress, path
        self._missing = os.fstat(self.fileno()).st_size  # of a pipe 0

    def readinto(self, buffer: Any, /) -> int | None:
        n = super().readinto(buffer) or 0
        self._progress.done += n
        self._missing -= n
        if len(buffer) and not n and self._missing > 0:
            raise UserError(
                f"{self._path} became {self._missing} bytes shorter while it was read: wait until nobody writes to it"
            )
        return n


class _ZstdFile(io.RawIOBase):
    """Reads Zstandard frames, a little at a time: the library gives all that a piece of them stands for at once, and
    its own stream reader takes a truncated file for a complete one.
    """

    def __init__(self, file: BinaryIO) -> None:
        import zstandard

        self._file = file
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._new_frame()
        self._fresh = True  # no byte of the present frame has been read
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._ready:
            compressed = self._frame.unused_data if self._frame.eof else b""
            compressed = compressed or self._file.read(_ZSTD_BYTES)
            if self._frame.eof:
                self._frame, self._fresh = self._new_frame(), True
            if not compressed:
                if not self._fresh:
                    raise EOFError("it ends in the middle")
                return 0
            self._fresh = False
            self._ready = memoryview(self._frame.decompress(compressed))
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n


class _XzFile(io.RawIOBase):
    """Reads xz streams one after another; where a later one is damaged at its start, the library's own file ends."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream = lzma.LZMADecompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        ready = b""
        while not ready:
            compressed = b""
            if self._stream.eof:
                compressed = self._stream.unused_data
                while not (compressed := compressed.lstrip(b"\0")):  # streams may be padded
                    compressed = self._file.read(_BUFFER)
                    if not compressed:
                        return 0
                self._stream = lzma.LZMADecompressor()
            elif self._stream.needs_input:
                compressed = self._file.read(_BUFFER)
                if not compressed:
                    raise EOFError("it ends in the middle")
            ready = self._stream.decompress(compressed, len(buffer))
        buffer[: len(ready)] = ready
        return len(ready)


def _damage_errors(suffix: str) -> tuple[type[Exception], ...]:
    if suffix == ".zst":
        import zstandard

        return (EOFError, zstandard.ZstdError)
    return (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


@contextmanager
def open_bytes(path: Path, progress: ReadProgress) -> Iterator["io.BufferedReader[Any]"]:
    """The file's bytes, decompressed by its suffix; what goes wrong in reading becomes one sentence."""
    suffix = path.suffix.lower()
    damage = _damage_errors(suffix)
    try:
        with io.BufferedReader(_CountingFile(path, progress), _BUFFER) as file:
            if suffix == ".gz":
                yield io.BufferedReader(gzip.GzipFile(fileobj=file), _BUFFER)
            elif suffix == ".xz":
                yield io.BufferedReader(_XzFile(file), _BUFFER)
            elif suffix == ".zst":
                yield io.BufferedReader(_ZstdFile(file), _BUFFER)
            else:
                yield file
    except damage as error:
        raise UserError(
            f"{path} is damaged or not a {suffix} file ({error}): fetch or compress it again"
        ) from error
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror or error}): check its name and permissions"
        ) from error


def tell_unreadable(error: OSError) -> None:
    """For os.walk, which would leave such a folder out without a word."""
    raise UserError(
        f"{error.filename} cannot be read ({error.strerror}): check its permissions, or name the folders beside it"
    ) from error


def plain_suffix(path: Path) -> str:
    """The suffix below compression: `.jsonl` for `corpus.jsonl.xz`."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSED else path.suffix.lower()


def looks_binary(path: Path) -> bool:
    with open_bytes(path, ReadProgress()) as file:
        return b"\0" in file.read(8192)


def decode_utf8(data: bytes, name: Path | str, errors: str = "strict", offset: int = 0) -> str:
    """The text of some bytes, which stand at an offset of the file `name`."""
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {offset + error.start} "
            "cannot be decoded; convert the file (or add ?errors=replace to a source of `data prepare`)"
        ) from error


def _cut(data: bytes) -> int:
    """Where to end a piece: after a paragraph, else a line, else a word, else a whole character."""
    for end in (b"\n\n", b"\n", b" "):
        at = data.rfind(end, len(data) // 2)
        if at >= 0:
            return at + len(end)
    at = len(data)
    while at > len(data) - 4 and data[at - 1] & 0xC0 == 0x80:
        at -= 1
    # `at` now follows the last byte that is not a continuation; if that byte opens a character, leave it out.
    return at - 1 if data[at - 1] >= 0xC0 else at


def read_text(path: Path, source: str, errors: str, progress: ReadProgress) -> Iterator[Document]:
    """A text file as one document, or as consecutive pieces `#0`, `#1`, ... when it is long."""
    with open_bytes(path, progress) as file:
        if b"\0" in file.peek(8192)[:8192]:
            raise UserError(f"{path} looks like a binary file (it has NUL bytes): convert it to UTF-8 text")
        data, offset, piece, more = b"", 0, 0, True
        while more or len(data) > PIECE_BYTES:
            if len(data) <= PIECE_BYTES:
                chunk = file.read(PIECE_BYTES)
                data, more = data + chunk, bool(chunk)
                continue
            end = _cut(data[:PIECE_BYTES])
            yield Document(
                _without_bom(decode_utf8(data[:end], path, errors, offset), offset), f"{source}#{piece}"
            )
            data, offset, piece = data[end:], offset + end, piece + 1
        if data:
            text = _without_bom(decode_utf8(data, path, errors, offset), offset)
            yield Document(text, f"{source}#{piece}" if piece else source)


def read_whole_text(path: Path) -> str:
    """A text file, compressed or not, as one string."""
    pieces, n = [], 0
    for piece in read_text(path, path.name, "strict", ReadProgress()):
        pieces.append(piece.text)
        n += len(piece.text)
        check_size_of_text(n, path)
    return "".join(pieces)


def check_size_of_text(n: int, name: Path | str) -> None:
    if n > LARGEST_TEXT:
        raise UserError(f"{name} has more than {LARGEST_TEXT >> 20} MiB of text: give a part of it")


def _lines(path: Path, progress: ReadProgress) -> Iterator[bytes]:
    """The lines of a file, decompressed, none longer than memory should hold."""
    with open_bytes(path, progress) as file:
        for number, line in enumerate(iter(partial(file.readline, LARGEST_TEXT), b""), 1):
            if len(line) == LARGEST_TEXT:
                raise UserError(
                    f"{path}, line {number} is longer than {LARGEST_TEXT >> 20} MiB: is it JSON Lines?"
                )
            yield line


def _without_bom(text: str, offset: int) -> str:
    return text.removeprefix("\ufeff") if offset == 0 else text


def read_json_lines(path: Path, field: str, errors: str, progress: ReadProgress) -> Iterator[Document]:
    """One document a line. A record's `source` names it; without one the file and line do."""
    offset = 0
    for number, line in enumerate(_lines(path, progress), 1):
        decoded = _without_bom(decode_utf8(line, path, errors, offset), offset)
        offset += len(line)
        if not decoded.strip():
            continue
        record = parse_json(decoded, f"{path}, line {number}", "repair or remove the line")
        if not isinstance(record, dict) or not isinstance(record.get(field), str):
            raise UserError(
                f"{path}, line {number} has no text in the field {field!r}: {_fields_hint(record)}"
            )
        yield Document(record[field], source_of(record.get("source"), f"{path.name}:{number}"))


def _fields_hint(record: Any) -> str:
    if not isinstance(record, dict):
        return "each line must be a JSON object"
    names = ", ".join(str(name) for name, value in record.items() if isinstance(value, str))
    return f"name another with ?field=NAME (its text fields: {names or 'none'})"


def source_of(named: Any, place: str) -> str:
    """A record's own source if it tells documents apart; a bare label becomes the tag of its place."""
    if not isinstance(named, str) or not named:
        return place
    return named if ":" in named else f"{named}:{place}"


def read_parquet(path: Path, field: str, errors: str, progress: ReadProgress) -> Iterator[Document]:
    """One document a row, read row group by row group."""
    import pyarrow
    import pyarrow.parquet

    try:
        check_regular(path, "give a Parquet file")
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if field not in names:
                raise UserError(
                    f"{path} has no column {field!r}: "
                    f"name another with ?field=NAME (its columns: {', '.join(names)})"
                )
            columns = [field, "source"] if "source" in names and field != "source" else [field]
            row, groups = 0, max(1, file.num_row_groups)
            size = path.stat().st_size
            for group in range(file.num_row_groups):
                # Few rows at a time: a long text that is stored once may stand in all of them.
                for batch in file.iter_batches(batch_size=32, row_groups=[group], columns=columns):
                    texts = _texts(batch.column(0))
                    sources = _texts(batch.column(1)) if len(columns) == 2 else [None] * len(texts)
                    for text, named in zip(texts, sources, strict=True):
                        row += 1
                        if text is None:
                            continue
                        if not isinstance(text, bytes):
                            raise UserError(
                                f"{path}, row {row} has no text in the column {field!r}: "
                                f"name another with ?field=NAME (its columns: {', '.join(names)})"
                            )
                        check_size_of_text(len(text), f"{path}, row {row}")
                        source = named.decode("utf-8", "replace") if isinstance(named, bytes) else None
                        yield Document(
                            decode_utf8(text, f"{path}, row {row}", errors),
                            source_of(source, f"{path.name}:{row}"),
                        )
                progress.done += size // groups
    except (OSError, ValueError, pyarrow.ArrowException) as error:  # names of columns may be no UTF-8 either
        raise UserError(
            f"{path} is damaged or not a Parquet file ({error}): fetch or write it again"
        ) from error


def _texts(column: Any) -> list[Any]:
    """A column's texts as bytes, since Parquet does not see to it that they are UTF-8; others as False."""
    import pyarrow.types

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    for kind, as_bytes in (
        ("string", "binary"),
        ("large_string", "large_binary"),
        ("string_view", "binary_view"),
    ):
        if column.type == kind:
            return column.view(as_bytes).to_pylist()
    return [False if valid else None for valid in column.is_valid().to_pylist()]
