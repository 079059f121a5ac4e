"""The manifest of a prepared corpus: what its shards hold, with counts and hashes."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from lexinvariant.errors import UserError
from lexinvariant.files import read_json_object
from lexinvariant.text.batch import SPLITS

MANIFEST_FILE = "manifest.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Shard:
    """Three files: little-endian tokens; int64 offsets of its documents (first 0, last `tokens`); for each document a
    byte, the number of its tag in the manifest. Corpora of older releases lack the last."""

    name: str
    documents: int
    tokens: int
    tokens_sha256: str
    documents_sha256: str
    tags_sha256: str = ""

    @property
    def tokens_file(self) -> str:
        return f"{self.name}.tokens"

    @property
    def documents_file(self) -> str:
        return f"{self.name}.documents"

    @property
    def tags_file(self) -> str:
        return f"{self.name}.tags"


@dataclass(frozen=True)
class Manifest:
    """All about a corpus but its tokens; `fingerprint` depends on the tokens and the vocabulary alone."""

    vocab: str
    vocab_size: int
    dtype: str
    sources: tuple[str, ...]
    bytes_in: int
    dropped_characters: int
    tokens_by_tag: dict[str, int]
    splits: dict[str, tuple[Shard, ...]]
    fingerprint: str
    tags: tuple[str, ...] = ()
    version: int = FORMAT_VERSION

    def documents(self, split: str) -> int:
        return sum(shard.documents for shard in self.splits[split])

    def tokens(self, split: str) -> int:
        return sum(shard.tokens for shard in self.splits[split])

    @property
    def dropped_share(self) -> float:
        """Of all characters: only vocabularies of single characters drop any, and there a token is one."""
        kept = sum(map(self.tokens, self.splits))
        return self.dropped_characters / max(1, kept + self.dropped_characters)

    def shards(self) -> Iterator[Shard]:
        for shards in self.splits.values():
            yield from shards

    def write(self, folder: Path) -> None:
        (folder / MANIFEST_FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        path = folder / MANIFEST_FILE
        record = read_json_object(path, "prepare the corpus again")
        if record.get("version") != FORMAT_VERSION:
            raise UserError(
                f"{folder} was prepared in format {record.get('version')!r}, but this release reads format "
                f"{FORMAT_VERSION}: prepare it again"
            )
        try:
            if unknown := record.keys() - {field.name for field in fields(cls)}:
                raise ValueError(f"it has the unknown field {min(unknown)}")
            manifest = msgspec.convert(record, cls)
            manifest._check()
        except ValueError as error:
            raise UserError(f"{path} is damaged ({error}): prepare the corpus again") from error
        return manifest

    def _check(self) -> None:
        """What the types do not say."""
        if not set(SPLITS) <= set(self.splits):
            raise ValueError("a split is missing")
        if self.dtype not in ("uint8", "uint16", "uint32", "uint64") or self.vocab_size < 1:
            raise ValueError("no such tokens")
        for shard in self.shards():
            if not re.fullmatch(r"[\w-]+", shard.name):
                raise ValueError("a shard lies outside the folder")
            if min(shard.documents, shard.tokens) < 0:
                raise ValueError("a shard has less than nothing")


def fingerprint_of(vocab: str, dtype: str, splits: dict[str, tuple[Shard, ...]]) -> str:
    """Equal for equal text under the same vocabulary, wherever it was prepared and however it is tagged."""

    def text_of(shard: Shard) -> dict[str, Any]:
        return {name: value for name, value in asdict(shard).items() if name != "tags_sha256"}

    record = [vocab, dtype, {name: [text_of(shard) for shard in shards] for name, shards in splits.items()}]
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
