"""`lexinvariant tokenizer train`: a tokenizer of one's own."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from lexinvariant.cli.paths import local_path
from lexinvariant.errors import UserError
from lexinvariant.text import train_tokenizer


@dataclass(frozen=True)
class Arguments:
    """Train a byte-level BPE tokenizer and write it as tokenizer.json.

    example: lexinvariant tokenizer train prose.jsonl.xz tokenizers/prose --size 32000
    """

    action: tyro.conf.Positional[Literal["train"]]
    """What to do."""
    paths: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE ... OUT")]
    """One or more sources (as for `data prepare`), then the folder to write."""
    size: int = 32_000
    """Tokens in the vocabulary."""
    max_bytes: int = 200_000_000
    """Read at most this much text."""
    overwrite: bool = False
    """Replace an existing tokenizer."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant tokenizer")
    if len(arguments.paths) < 2:
        raise UserError(
            "Give at least one source and the folder to write: lexinvariant tokenizer train SOURCE OUT."
        )
    *sources, out = arguments.paths
    vocab = train_tokenizer(
        sources,
        local_path(out),
        size=arguments.size,
        max_bytes=arguments.max_bytes,
        progress=sys.stdout.isatty(),  # the library ends the process where it cannot print
        overwrite=arguments.overwrite,
    )
    print(
        f"Wrote {out}: {vocab.size:,} tokens. Use it with `lexinvariant data prepare SOURCE OUT --vocab {out}`."
    )
    return 0
