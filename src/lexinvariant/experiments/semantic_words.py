"""Words by meaning, and the sentences in which those of one kind are used, from `semantic_words.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lexinvariant.results.semantic import Kind

WordList = Literal["test", "development"]


@dataclass(frozen=True)
class Category:
    """A class of words that are used alike."""

    name: str
    words: frozenset[str]
    frames: tuple[str, ...] = ()
    """Sentences with _ for a word; empty where passages are not generated of it."""
    test: tuple[str, ...] = ()
    development: tuple[str, ...] = ()

    def generated_of(self, which: WordList) -> tuple[str, ...]:
        return self.test if which == "test" else self.development

    @property
    def asked_frames(self) -> tuple[str, ...]:
        """Those that end in the word, so that a model can complete them."""
        return tuple(frame for frame in self.frames if frame.endswith("_."))


@dataclass(frozen=True)
class Relation:
    """Pairs of words that stand to each other in one way."""

    name: Kind
    told: str
    """The sentence, with A and B, that says it; the question is its beginning."""
    frames: tuple[str, ...]
    """Sentences in which such pairs are used."""
    test: tuple[tuple[str, str], ...]
    development: tuple[tuple[str, str], ...]

    def generated_of(self, which: WordList) -> tuple[tuple[str, str], ...]:
        return self.test if which == "test" else self.development


def _pair(words: str) -> tuple[str, str]:
    first, second = words.split()
    return first, second


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CATEGORIES = {
    table["name"]: Category(
        name=table["name"],
        words=frozenset(table["words"].split()),
        frames=tuple(table.get("frames", ())),
        test=tuple(table.get("test", "").split()),
        development=tuple(table.get("development", "").split()),
    )
    for table in _TABLES["category"]
}
CATEGORY_OF = {word: category.name for category in CATEGORIES.values() for word in category.words}
RELATIONS = tuple(
    Relation(
        name=table["name"],
        told=table["told"],
        frames=tuple(table["frames"]),
        test=tuple(map(_pair, table["test"])),
        development=tuple(map(_pair, table["development"])),
    )
    for table in _TABLES["relation"]
)
