"""The model that a row is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Role = Literal["lexinvariant", "standard"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class MeasuredModel:
    """A model as rows and tables name it."""

    name: str
    hash: str
    role: Role
    vocab: str
    vocab_size: int
    characters: bool
    """Reads characters, and not the tokens of a tokenizer."""
    records_share: float = 0.0
    """The share of made-up records in the text that it was trained on, as far as that is noted."""

    @property
    def symbols(self) -> str:
        """What it reads, for people: the vocabulary's own name has a hash in it."""
        return f"{self.vocab_size:,} {'characters' if self.characters else 'tokens'}"

    def __str__(self) -> str:
        return self.name if self.name == self.role else f"{self.name} ({self.role})"
