import errno
import gzip
import json
import lzma
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.errors import UserError
from lexinvariant.text import Document, formats, prepare, read_documents
from lexinvariant.text.formats import ReadProgress
from lexinvariant.text.sources import SourceSpec, size_on_disk

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
RECORDS = [
    {"text": "One two.", "source": "wiki:A"},
    {"text": "Three\nfour – five.", "source": "book:B#0"},
    {"text": "Six.", "source": "wiki:C"},
]


def texts(spec: str | Path) -> list[str]:
    return [document.text for document in read_documents(str(spec))]


def write_lines(path: Path, records: list[dict[str, str]]) -> Path:
    data = "\n".join(json.dumps(record) for record in records).encode() + b"\n"
    path.write_bytes(PACK[path.suffix if path.suffix in PACK else ""](data))
    return path


@pytest.mark.parametrize("suffix", PACK)
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    path = write_lines(tmp_path / f"some.jsonl{suffix}", RECORDS)
    assert list(read_documents(str(path))) == [Document(**record) for record in RECORDS]


@pytest.mark.parametrize("suffix", PACK)
def test_text_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"note.md{suffix}"
    path.write_bytes(PACK[suffix]("\ufeffNaïve\r\ntext".encode()))
    assert list(read_documents(str(path))) == [Document("Naïve\r\ntext", f"file:note.md{suffix}")]


@settings(max_examples=40, deadline=None)
@given(text=st.text(st.sampled_from("ab é漢🙂\n "), min_size=1, max_size=400), size=st.integers(8, 64))
def test_long_text_is_cut_into_consecutive_pieces(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int
) -> None:
    path = tmp_path_factory.mktemp("long") / "long.txt"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "PIECE_BYTES", size)
        pieces = list(read_documents(str(path)))
    assert "".join(piece.text for piece in pieces) == text
    assert all(0 < len(piece.text.encode()) <= size for piece in pieces)
    expected = [f"file:long.txt#{k}" for k in range(len(pieces))] if len(pieces) > 1 else ["file:long.txt"]
    assert [piece.source for piece in pieces] == expected


def test_pieces_end_at_paragraphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "PIECE_BYTES", 30)
    (tmp_path / "a.txt").write_text("First paragraph here.\n\nSecond one\nwith lines.\n\nThird.")
    assert texts(tmp_path / "a.txt")[0] == "First paragraph here.\n\n"


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    table = pyarrow.table({"text": ["a", None, "b"], "body": ["c", "d", "e"], "n": [1, 2, 3]})
    pyarrow.parquet.write_table(table, path, row_group_size=2)
    progress = ReadProgress()
    documents = list(read_documents(str(path), progress=progress))
    assert documents == [Document("a", "some.parquet:1"), Document("b", "some.parquet:3")]
    assert progress.done == pytest.approx(path.stat().st_size, abs=2)
    assert texts(f"{path}?field=body") == ["c", "d", "e"]
    with pytest.raises(UserError, match=r"no column 'words'.*text, body, n"):
        texts(f"{path}?field=words")
    with pytest.raises(UserError, match="row 1 has no text in the column 'n'"):
        texts(f"{path}?field=n")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="damaged or not a Parquet file"):
        texts(path)


def test_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden")
    (folder / ".hidden.txt").write_text("hidden")
    (folder / "z.txt").write_text("last")
    (folder / "a.txt").write_text("first")
    (folder / "empty.txt").write_text("")
    (folder / "image.bin").write_bytes(b"\x89PNG\0\0\1")
    (folder / "sub" / "b.py").write_text("below")
    write_lines(folder / "m.jsonl.xz", RECORDS[:1])
    documents = list(read_documents(str(folder)))
    assert documents == [
        Document("first", "folder:a.txt"),
        Document("One two.", "wiki:A"),
        Document("last", "folder:z.txt"),
        Document("below", "folder:sub/b.py"),
    ]
    assert size_on_disk(str(folder)) == sum(
        path.stat().st_size for path in folder.rglob("*") if path.is_file() and ".git" not in str(path)
    ) - len("hidden")


def test_options(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "some.jsonl", RECORDS)
    assert texts(f"{path}?source=wiki:") == ["One two.", "Six."]
    assert texts(f"{path}?source=wiki:&limit=1&field=source") == ["wiki:A"]
    assert texts(f"{path}?limit=2") == ["One two.", "Three\nfour – five."]
    odd = tmp_path / "what?.txt"
    odd.write_text("a question mark in a name")
    assert texts(odd) == ["a question mark in a name"]
    assert SourceSpec.parse("x.jsonl?source=a%26b").source == "a&b"


def test_sources_that_do_not_tell_documents_apart(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "some.jsonl", [{"text": "a", "source": "books"}, {"text": "b"}])
    assert [d.source for d in read_documents(str(path))] == ["books:some.jsonl:1", "some.jsonl:2"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("feild=x", r"did you mean field=VALUE\?"),
        ("nonsense", "unknown or incomplete option 'nonsense'"),
        ("limit=0", "whole number above 0"),
        ("limit=99999999999999999999", "whole number above 0"),
        ("limit=" + "9" * 5000, "whole number above 0"),
        ("errors=ignore", "strict or replace"),
        ("source=wki:", "begins with 'wki:' .*'wiki:A'"),
        ("field=body", r"line 1 has no text in the field 'body'.*text, source"),
    ],
)
def test_wrong_options(tmp_path: Path, query: str, message: str) -> None:
    path = write_lines(tmp_path / "some.jsonl", RECORDS)
    with pytest.raises(UserError, match=message):
        texts(f"{path}?{query}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "cut off', "line 2 is not valid JSON"),
        (b"[1, 2]", "line 2 has no text.*JSON object"),
        (b'{"text": 3}', "line 2 has no text in the field 'text'"),
        (b'{"text": "\xe9"}', "byte 0xe9 at offset 27 cannot"),
        (b'{"text": ' + b"[" * 200_000, "line 2 is not valid JSON here .it is nested"),
        (b'{"text": "", "meta": ' + b"[" * 99 + b"]" * 99 + b"}", "nested more than 64 levels"),
    ],
)
def test_malformed_lines(tmp_path: Path, line: bytes, message: str) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "good"}' + b"\n" + line + b"\n")
    with pytest.raises(UserError, match=message) as caught:
        texts(tmp_path / "bad.jsonl")
    assert str(tmp_path / "bad.jsonl") in str(caught.value)


def test_overlong_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "LARGEST_TEXT", 100)
    (tmp_path / "one.jsonl").write_text(json.dumps({"text": "a" * 200}))
    with pytest.raises(UserError, match="line 1 is longer"):
        texts(tmp_path / "one.jsonl")


def test_a_compressed_file_of_nothing_takes_no_memory(tmp_path: Path) -> None:
    """The bytes of one read are what counts: a few of them stand for gigabytes."""
    (tmp_path / "bomb.zst").write_bytes(zstandard.compress(bytes(1 << 27)))
    tracemalloc.start()
    with formats.open_bytes(tmp_path / "bomb.zst", ReadProgress()) as file:
        assert len(file.read(1 << 20)) == 1 << 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_a_text_that_is_read_as_a_whole_has_a_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long.txt.zst").write_bytes(zstandard.compress(b"words " * 100))
    assert len(formats.read_whole_text(tmp_path / "long.txt.zst")) == 600
    monkeypatch.setattr(formats, "LARGEST_TEXT", 500)
    with pytest.raises(UserError, match="MiB of text"):
        formats.read_whole_text(tmp_path / "long.txt.zst")


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_parquet_has_several_kinds_of_text(tmp_path: Path, kind: str) -> None:
    column = pyarrow.array(["one", None, "zwölf", "one"])
    column = column.dictionary_encode() if kind == "dictionary" else column.cast(kind)
    pyarrow.parquet.write_table(pyarrow.table({"text": column}), tmp_path / "some.parquet")
    assert texts(tmp_path / "some.parquet") == ["one", "zwölf", "one"]


def test_undecodable_rows_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    written = pyarrow.array([b"good", b"caf\xe9", None]).view(pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"text": written, "source": written}), path)
    with pytest.raises(UserError, match=r"some\.parquet, row 2 is not UTF-8 text: byte 0xe9 at offset 3"):
        texts(path)
    assert texts(f"{path}?errors=replace") == ["good", "caf\ufffd"]
    path.write_bytes(path.read_bytes().replace(b"text", b"\x80ext"))
    with pytest.raises(UserError, match="damaged or not a Parquet file"):
        texts(path)


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("several words\n" * (3 * formats.PIECE_BYTES // 14))
    documents = read_documents(str(path))
    next(documents)
    os.truncate(path, 2 * formats.PIECE_BYTES)
    with pytest.raises(UserError, match="bytes shorter while it was read"):
        list(documents)


@pytest.mark.parametrize("name", ["pipe.txt", "pipe.jsonl", "pipe.parquet"])
def test_pipes_are_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match="neither a file nor a folder"):
        texts(tmp_path / name)
    with pytest.raises(UserError, match="not a regular file"):
        formats.read_whole_text(tmp_path / name)


def test_a_link_to_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to("gone.txt")
    with pytest.raises(UserError, match=r"it is a link to gone\.txt, which does not exist"):
        texts(tmp_path / "link.txt")


def test_undecodable_text(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("caf\xe9 noir".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin\.txt is not UTF-8 text: byte 0xe9 at offset 3 "):
        texts(tmp_path / "latin.txt")
    with pytest.raises(UserError, match="offset 3"):
        texts(tmp_path)
    assert texts(f"{tmp_path / 'latin.txt'}?errors=replace") == ["caf\ufffd noir"]
    assert texts(f"{tmp_path}?errors=replace") == ["caf\ufffd noir"]


def test_offset_of_bad_bytes_in_a_later_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "PIECE_BYTES", 16)
    (tmp_path / "a.txt").write_bytes(b"0123456789\n" * 5 + b"ab\xff")
    with pytest.raises(UserError, match="byte 0xff at offset 57 "):
        texts(tmp_path / "a.txt")


def test_empty_missing_and_binary(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "binary.dat").write_bytes(b"a\0b")
    (tmp_path / "void").mkdir()
    for name in ("empty.txt", "void"):
        with pytest.raises(UserError, match=f"{name}' has no text"):
            texts(tmp_path / name)
    with pytest.raises(UserError, match="binary file"):
        texts(tmp_path / "binary.dat")
    with pytest.raises(UserError, match=r"did you mean .*empty\.txt\?"):
        texts(tmp_path / "emty.txt")
    (tmp_path / "launch").mkdir()
    with pytest.raises(UserError, match="nosuch: check the path"):
        texts(tmp_path / "nosuch")
    with pytest.raises(UserError, match="does not exist either"):
        texts(tmp_path / "no" / "such.txt")
    with pytest.raises(UserError, match=r"did you mean stdlib\?"):
        texts("stdlb")
    with pytest.raises(UserError, match="stdlib:code or stdlib:prose"):
        texts("stdlib:pose")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_damaged_compressed_files(tmp_path: Path, suffix: str) -> None:
    whole = PACK[suffix](("\n".join(json.dumps({"text": str(i) * 9}) for i in range(9999))).encode())
    path = tmp_path / f"some.jsonl{suffix}"
    for damaged in (whole[:-9], whole[: len(whole) // 2], b"not compressed at all"):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="damaged"):
            texts(path)


def test_several_zstd_frames(tmp_path: Path) -> None:
    path = tmp_path / "two.txt.zst"
    path.write_bytes(zstandard.compress(b"one " * 9) + zstandard.compress(b"two"))
    assert texts(path) == ["one " * 9 + "two"]


def test_standard_library() -> None:
    code = {document.source: document.text for document in read_documents("stdlib")}
    assert "def dumps(" in code["python:json/__init__.py"]
    assert "pydoc:for" in code
    assert not [source for source in code if "site-packages" in source or "/test" in source]
    prose = list(read_documents("stdlib:prose?limit=90"))
    assert prose[0].source.startswith("pydoc:") and prose[-1].source.startswith("docstrings:")
    assert "def " not in prose[-1].text[:200]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "given no name"),
        ("?limit=3", "given no name"),
        ("sums:" + "9" * 5000, "does not say how many"),
        ("x" * 5000, "cannot be read .*check the path"),
    ],
    ids=["nothing", "only options", "too many", "too long"],
)
def test_names_that_are_none(place: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        next(read_documents(place))


def test_a_corpus_in_a_folder_is_no_text_of_it(tmp_path: Path) -> None:
    """Its tokens are ASCII: a second preparation would train on the text that the first one has held out."""
    (tmp_path / "book.txt").write_text("It is a long story. " * 50)
    before = texts(tmp_path)
    prepare([str(tmp_path)], tmp_path / "data" / "corpus", progress=False)
    assert texts(tmp_path) == before
    with pytest.raises(UserError, match="has no text in it"):
        texts(tmp_path / "data" / "corpus")


def test_a_folder_below_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text would be missing, and nobody would know."""
    (tmp_path / "a.txt").write_text("some text")
    (tmp_path / "locked").mkdir()
    scandir = os.scandir

    def refusing(path: Any) -> Any:  # permissions keep no root out
        if Path(path).name == "locked":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(
        UserError, match=r"locked cannot be read \(Permission denied\): check its permissions"
    ):
        texts(tmp_path)


def test_every_xz_stream_of_a_file_is_read_or_it_is_damaged(tmp_path: Path) -> None:
    one, two = lzma.compress(b"first " * 1000), lzma.compress(b"second")
    path = tmp_path / "text.xz"

    def read() -> bytes:
        with formats.open_bytes(path, ReadProgress()) as file:
            return file.read()

    for padding in (b"", bytes(8)):
        path.write_bytes(one + padding + two + padding)
        assert read() == b"first " * 1000 + b"second"
    for damaged in (one + b"text", one + b"\xfe" + two[1:], one + two[:-1], one[:-1], b""):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"is damaged or not a \.xz file"):
            read()


def test_json_lines_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes("\ufeff".encode() + b'{"text": "one"}\n{"text": "two"}\n')
    assert [document.text for document in read_documents(str(path))] == ["one", "two"]


def test_an_option_of_a_source_is_given_once() -> None:
    with pytest.raises(UserError, match="has limit= twice"):
        list(read_documents("a.jsonl?limit=2&limit=3"))
