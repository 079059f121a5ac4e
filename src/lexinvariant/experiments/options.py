"""Options that experiments share, and their checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from lexinvariant.errors import UserError
from lexinvariant.results import paper


@dataclass(frozen=True)
class AtLeast:
    """A lower bound on an option, checked by `check_counts`."""

    least: int


Count = Annotated[int, AtLeast(1)]
CountOrZero = Annotated[int, AtLeast(0)]
"""A count that may be 0."""


@dataclass(frozen=True)
class CommonOptions:
    """Options of every experiment that measures models."""

    model: str = "bundled"
    """A model's folder, OWNER/NAME on the Hugging Face Hub, or `bundled`: the one that comes with the package."""
    out: Path = Path("runs/report")
    """Folder for the rows (NAME.jsonl); rows are appended, and the report shows the newest run."""
    seed: int = 0
    """Seed of every lexicon, key and text drawn."""
    batch_size: Count = 16
    """Sequences per batch; results do not depend on it."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the arithmetic; bfloat16 is faster on a GPU."""


@dataclass(frozen=True)
class PairOptions(CommonOptions):
    """Options of the experiments that measure a model beside its standard twin."""

    baseline: str | None = None
    """The model's standard twin, trained on the same data; without it the model is measured alone."""
    draws: Count = 1
    """Lexicons to average a lexinvariant model's probabilities over."""


def flag(field: str) -> str:
    """The option on the command line that sets a field."""
    return "--" + field.replace("_", "-")


def check_counts(options: Any) -> None:
    """Refuse what is below the least that its type allows."""
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        for least in (mark.least for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, AtLeast)):
            if getattr(options, name) < least:
                raise UserError(f"{flag(name)} is {getattr(options, name)}: give at least {least}.")


def choose_window(wanted: int | None, context: int) -> int:
    """The paper's window, or a quarter of a context that is short for it."""
    window = max(1, min(paper.WINDOW, context // 4)) if wanted is None else wanted
    if not 1 <= window <= context:
        raise UserError(
            f"A window of {window} symbols does not fit the model's context of {context}: give --window a number "
            f"from 1 to {context}."
        )
    return window
