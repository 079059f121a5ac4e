"""A prepared corpus: memory-mapped shards, cut into pieces of one length."""

import hashlib
import json
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexinvariant.checks import whole_number
from lexinvariant.errors import UserError
from lexinvariant.files import expand_user, read_json_object
from lexinvariant.text.batch import SPLITS, Batch, check_pieces, check_split_name, shuffled_pieces
from lexinvariant.text.manifest import MANIFEST_FILE, Manifest
from lexinvariant.text.tags import WORDS
from lexinvariant.text.vocab import VOCAB_FILE, Vocab, load_vocab, nearest_file

VERIFIED_FILE = "verified.json"
_REMEDY = "copy the corpus again or prepare it again"
_WORTH_A_WORD = 4e9  # bytes that take a while to read


class Corpus:
    """What `prepare` wrote. Opening it reads the manifest only; tokens are paged in as they are used."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    def __repr__(self) -> str:
        sizes = ", ".join(f"{self.manifest.tokens(name):,} {name}" for name in SPLITS)
        return (
            f"Corpus({self.folder}, {self.manifest.vocab} vocabulary of {self.vocab_size}, tokens: {sizes})"
        )

    @classmethod
    def open(cls, path: Path | str, *, verify: bool = False) -> "Corpus":
        """File sizes and the vocabulary's name are always checked, and with `verify` every byte against its hash."""
        folder = expand_user(path)
        if not folder.exists():
            raise UserError(
                f"there is no prepared corpus at {folder}{nearest_file(folder)} "
                f"(or make it with: lexinvariant data prepare SOURCE {folder})"
            )
        if not (folder / MANIFEST_FILE).is_file():
            raise UserError(
                f"{folder} is not a prepared corpus, it has no {MANIFEST_FILE}: "
                f"make one with: lexinvariant data prepare {folder} OUT"
            )
        corpus = cls(folder, Manifest.read(folder))
        corpus._check_sizes()
        corpus._check_vocab_file()
        if verify:
            corpus.verify()
            corpus._check_is_own(corpus.vocab.name, corpus.vocab.size)
        return corpus

    @property
    def vocab_size(self) -> int:
        """How many different tokens there are."""
        return self.manifest.vocab_size

    @property
    def fingerprint(self) -> str:
        """A hash of the vocabulary and of every shard: corpora with the same one hold the same tokens."""
        return self.manifest.fingerprint

    @property
    def tokens_by_tag(self) -> dict[str, int]:
        """What the text is made of: its sources by the first part of their names."""
        return self.manifest.tokens_by_tag

    def tags_in(self, split: str) -> set[str]:
        """The kinds of text of which a split has documents."""
        return {self.manifest.tags[tag] for tag in np.unique(self.tag_of_documents(split))}

    def tag_of_documents(self, split: str) -> NDArray[np.uint8]:
        """tag_D: the number of each document's tag in the manifest's list."""
        if not self.manifest.tags:
            raise UserError(
                f"{self.folder} was prepared by an older release, which did not note kinds of text: prepare it again"
            )
        files = [self.folder / shard.tags_file for shard in self.manifest.splits[split]]
        return np.concatenate([np.empty(0, np.uint8), *(np.fromfile(file, np.uint8) for file in files)])

    @cached_property
    def vocab(self) -> Vocab:
        return load_vocab(self.folder)

    def split(self, name: str, length: int, packed: bool = False) -> "Pieces":
        """The split as sequences of `length` tokens.

        Each document is cut into consecutive pieces and the last one is padded (the paper's way);
        `packed` cuts the split's whole token stream instead, documents adjoining, and leaves out the last
        incomplete piece.
        """
        check_split_name(name)
        length = whole_number(length, "length")
        if length < 1:
            raise UserError(f"sequences of {length} tokens cannot be made: give a length of 1 or more")
        tokens = self.manifest.tokens(name)
        if tokens < length:
            share = "" if name == "train" else f" or a larger {name} share"
            raise UserError(
                f"the {name} split of {self.folder} has {tokens} tokens, fewer than one sequence of "
                f"{length}: prepare more text{share}, or use shorter sequences"
            )
        return Pieces(self, name, length, packed)

    def verify(self) -> None:
        """Compare every shard with its hash."""
        for file, expected in self._hashes().items():
            with (self.folder / file).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != expected:
                    raise UserError(
                        f"{self.folder / file} is corrupt, its hash does not match the manifest: {_REMEDY}"
                    )

    def verify_once(self) -> None:
        """The same, unless it was done before and no file has been written to since."""
        noted = self.folder / VERIFIED_FILE
        # A copy of the corpus has other times, and is verified anew.
        status = {file: (self.folder / file).stat() for file in self._hashes()}
        now = {file: [s.st_size, s.st_mtime_ns, s.st_ctime_ns] for file, s in status.items()}
        with suppress(UserError):
            if read_json_object(noted, "") == {"fingerprint": self.fingerprint, "files": now}:
                return
        size = sum(s.st_size for s in status.values())
        if size > _WORTH_A_WORD:
            print(
                f"checking {size / 1e9:,.0f} GB in {self.folder} against their hashes, once", file=sys.stderr
            )
        self.verify()
        with suppress(OSError):  # a corpus that may not be written to is verified every time
            noted.write_text(json.dumps({"fingerprint": self.fingerprint, "files": now}), encoding="utf-8")

    def _hashes(self) -> dict[str, str]:
        return {
            file: expected
            for shard in self.manifest.shards()
            for file, expected in (
                (shard.tokens_file, shard.tokens_sha256),
                (shard.documents_file, shard.documents_sha256),
                (shard.tags_file, shard.tags_sha256),
            )
            if expected  # an older release knew no tags
        }

    def _check_vocab_file(self) -> None:
        """Only what it says: the tokenizer that may lie beside it takes a while to load."""
        path = self.folder / VOCAB_FILE
        if path.is_file():
            described = read_json_object(path, _REMEDY)
            self._check_is_own(described.get("name"), described.get("size", self.vocab_size))

    def _check_is_own(self, name: Any, size: Any) -> None:
        """With another vocabulary the tokens would be another text, and a model of them be saved with it."""
        if (name, size) != (self.manifest.vocab, self.vocab_size):
            raise UserError(
                f"{self.folder / VOCAB_FILE} belongs to something else, it has the vocabulary {name} of {size} tokens "
                f"and the manifest {self.manifest.vocab} of {self.vocab_size}: {_REMEDY}"
            )

    def _check_sizes(self) -> None:
        itemsize = np.dtype(self.manifest.dtype).itemsize
        for shard in self.manifest.shards():
            expected = {
                shard.tokens_file: shard.tokens * itemsize,
                shard.documents_file: (shard.documents + 1) * 8,
            }
            if shard.tags_sha256:
                expected[shard.tags_file] = shard.documents
            for file, size in expected.items():
                path = self.folder / file
                if not path.is_file():
                    raise UserError(f"{path} is missing: {_REMEDY}")
                if path.stat().st_size != size:
                    raise UserError(
                        f"{path} is corrupt, it has {path.stat().st_size} bytes and not {size}: {_REMEDY}"
                    )


class Pieces:
    """All sequences of one split. Takes eight bytes of memory a document, and none for packed pieces."""

    def __init__(self, corpus: Corpus, name: str, length: int, packed: bool) -> None:
        self.name, self.length, self.packed = name, length, packed
        self._vocab_size = corpus.vocab_size
        shards = corpus.manifest.splits[name]
        dtype = np.dtype(corpus.manifest.dtype).newbyteorder("<")
        self.where = f"the {name} split of {corpus.folder}"
        self._corpus = corpus
        self._tokens: list[NDArray[Any]] = [
            _map(corpus.folder / shard.tokens_file, dtype) for shard in shards
        ]
        self._documents: list[NDArray[np.int64]] = [
            _map(corpus.folder / shard.documents_file, np.dtype("<i8")) for shard in shards
        ]
        files = [
            [corpus.folder / name for name in (shard.tokens_file, shard.documents_file)] for shard in shards
        ]
        self._mapped = [{path: path.stat() for path in paths} for paths in files]
        self._first_token = _starts([shard.tokens for shard in shards])
        self._first_document = _starts([shard.documents for shard in shards])
        if packed:
            self._n = int(self._first_token[-1]) // length
        else:
            for shard, offsets in zip(shards, self._documents, strict=True):
                if offsets[0] != 0 or offsets[-1] != shard.tokens or (np.diff(offsets) < 0).any():
                    path = corpus.folder / shard.documents_file
                    raise UserError(f"{path} is corrupt, its documents do not follow each other: {_REMEDY}")
            counts = [-(-np.diff(offsets) // length) for offsets in self._documents]
            self._first_piece = _starts(np.concatenate(counts))
            self._n = int(self._first_piece[-1])

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"Pieces({self.where}, {len(self):,} sequences of {self.length} tokens)"

    @cached_property
    def pieces_by_tag(self) -> dict[str, NDArray[np.int64]]:
        """The pieces of every kind of text that occurs; a packed piece is of the kind that it begins with."""
        tag_P = self._tag_numbers(np.arange(len(self)))
        return {self._corpus.manifest.tags[tag]: np.flatnonzero(tag_P == tag) for tag in np.unique(tag_P)}

    def tags_of(self, piece_B: NDArray[np.int64]) -> list[str]:
        """The kind of text of each piece."""
        return [self._corpus.manifest.tags[tag] for tag in self._tag_numbers(piece_B)]

    def _tag_numbers(self, piece_B: NDArray[np.int64]) -> NDArray[np.integer]:
        return self._tag_D[self._documents_of(piece_B)]

    @cached_property
    def _tag_D(self) -> NDArray[np.uint8]:
        """Read once: asked batch by batch, a large corpus would be read over and over."""
        return self._corpus.tag_of_documents(self.name)

    def _documents_of(self, piece_B: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document that each piece begins in."""
        if not self.packed:
            return np.searchsorted(self._first_piece, piece_B, side="right") - 1
        ends = [
            offsets[1:] + start for offsets, start in zip(self._documents, self._first_token, strict=False)
        ]
        return np.searchsorted(np.concatenate(ends), piece_B * self.length, side="right")

    @cached_property
    def _of_words_D(self) -> NDArray[np.bool_]:
        """Whether symbols stand for words in each document; empty where they do in none."""
        tags = self._corpus.manifest.tags
        if WORDS not in tags:
            return np.empty(0, np.bool_)
        return self._tag_D == tags.index(WORDS)

    def _is_named(self, piece_B: NDArray[np.int64]) -> NDArray[np.bool_]:
        of_words_D = self._of_words_D
        return (
            ~of_words_D[self._documents_of(piece_B)] if len(of_words_D) else np.ones(len(piece_B), np.bool_)
        )

    def __getitem__(self, piece_B: NDArray[np.int64] | list[int], /) -> Batch:
        piece_B = check_pieces(piece_B, len(self))
        tok_BT = np.zeros((len(piece_B), self.length), np.int32)
        mask_BT = np.zeros((len(piece_B), self.length), np.bool_)
        fill = self._fill_packed if self.packed else self._fill_from_documents
        fill(piece_B, tok_BT, mask_BT)
        # A token that no vocabulary has would be NaN in one place of the model and wrap around in another.
        if tok_BT.size and not 0 <= tok_BT.min() <= tok_BT.max() < self._vocab_size:
            raise UserError(f"{self.where} is corrupt, it has tokens outside its vocabulary: {_REMEDY}")
        return Batch(tok_BT, mask_BT, self._is_named(piece_B), piece_B)

    def batch(self, seed: int, step: int, size: int, rows: slice | range = slice(None)) -> Batch:
        """Rows `rows` of batch `step` of an endless shuffled stream: a pure function of its arguments."""
        if size > len(self):
            raise UserError(
                f"{self.where} has {int(self._first_token[-1])} tokens, that is {len(self)} sequences of "
                f"{self.length}, fewer than one batch of {size}: prepare more text or use smaller batches"
            )
        return self[shuffled_pieces(len(self), seed, step, size, rows)]

    def _fill_from_documents(
        self, piece_B: NDArray[np.int64], tok_BT: NDArray[np.int32], mask_BT: NDArray[np.bool_]
    ) -> None:
        document_B = self._documents_of(piece_B)
        shard_B = np.searchsorted(self._first_document, document_B, side="right") - 1
        skipped_B = (piece_B - self._first_piece[document_B]) * self.length
        local_B = document_B - self._first_document[shard_B]
        self._check_whole(shard_B)
        for row, (shard, local, skipped) in enumerate(zip(shard_B, local_B, skipped_B, strict=True)):
            begin, end = self._documents[shard][local : local + 2]
            piece = self._tokens[shard][begin + skipped : min(begin + skipped + self.length, end)]
            tok_BT[row, : len(piece)] = piece
            mask_BT[row, : len(piece)] = True

    def _fill_packed(
        self, piece_B: NDArray[np.int64], tok_BT: NDArray[np.int32], mask_BT: NDArray[np.bool_]
    ) -> None:
        mask_BT[:] = True
        first_B, last_B = piece_B * self.length, (piece_B + 1) * self.length - 1
        self._check_whole(np.searchsorted(self._first_token, [first_B, last_B], side="right") - 1)
        for row, at in enumerate(piece_B * self.length):
            filled = 0
            shard = int(np.searchsorted(self._first_token, at, side="right")) - 1
            while filled < self.length:  # a piece may run over the end of its shard
                begin = int(at) + filled - int(self._first_token[shard])
                part = self._tokens[shard][begin : begin + self.length - filled]
                tok_BT[row, filled : filled + len(part)] = part
                filled, shard = filled + len(part), shard + 1

    def _check_whole(self, shards: NDArray[np.int64]) -> None:
        """Before what is mapped is read: where a file has lost its end, that would end the process without a word."""
        for shard in np.unique(shards):
            for path, then in self._mapped[shard].items():
                with suppress(FileNotFoundError):  # what was removed or replaced stays mapped as it was
                    now = path.stat()
                    if now.st_size < then.st_size and now.st_ino == then.st_ino:
                        raise UserError(f"{path} has lost its end while it was in use: {_REMEDY}")


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A plain array over the mapped file: slices of `np.memmap` itself are ten times slower."""
    return np.memmap(path, dtype, "r").view(np.ndarray)


def _starts(counts: NDArray[np.int64] | list[int]) -> NDArray[np.int64]:
    """Cumulative counts from 0: where each group begins, and last where all end."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
