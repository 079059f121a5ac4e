"""What was collected, and from where: the manifest beside collected source code."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lexinvariant.errors import UserError
from lexinvariant.text.formats import ReadProgress, open_bytes

COLLECTION_FILE = "collection.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class PackageEntry:
    """A package in the manifest."""

    spec: str
    licence: str | None
    sha256: str
    """Of the archive; of the texts taken where there is none."""
    documents: int
    bytes: int


@dataclass(frozen=True)
class SplitEntry:
    """A file of documents; its hash is that of the lines before compression."""

    documents: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Collection:
    """The manifest of what was collected."""

    sources: tuple[str, ...]
    languages: tuple[str, ...]
    megabytes: float
    packages: tuple[PackageEntry, ...]
    bytes_by_tag: dict[str, int]
    splits: dict[str, SplitEntry]
    left_out: dict[str, int]
    version: int = FORMAT_VERSION

    @classmethod
    def read(cls, path: Path) -> "Collection":
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if record["version"] != FORMAT_VERSION:
                raise UserError(
                    f"{path} is of format {record['version']} and this release reads {FORMAT_VERSION}"
                )
            record |= {name: tuple(record[name]) for name in ("sources", "languages")}
            record["packages"] = tuple(PackageEntry(**entry) for entry in record["packages"])
            record["splits"] = {name: SplitEntry(**entry) for name, entry in record["splits"].items()}
            return cls(**record)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is not the manifest of a collection ({error}): collect anew") from error

    def write(self, folder: Path) -> None:
        (folder / COLLECTION_FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    def verify(self, folder: Path) -> None:
        """Compare every file with its hash."""
        for split, entry in self.splits.items():
            path = folder / f"{split}.jsonl.xz"
            with open_bytes(path, ReadProgress()) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256:
                    raise UserError(
                        f"{path} is corrupt, its hash does not match the manifest: collect it again"
                    )
