"""`lexinvariant data prepare` and `lexinvariant data check`."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from lexinvariant.errors import UserError
from lexinvariant.text import SPLITS, Corpus, Manifest, prepare

FEWEST_HELD_OUT = 5
"""Fewest documents of a held-out split whose loss can be relied on."""


@dataclass(frozen=True)
class Prepare:
    """Turn text into token shards that training reads.

    Sources: text files, folders, JSON Lines (.jsonl, also .gz .xz .zst), Parquet, `stdlib`, `hub:NAME` (ready names:
    pile, wiki40b, github), `records:N` (N documents of made-up records, which teach to reason about symbols). Options
    of a source follow a question mark: `prose.jsonl.xz?source=wiki:`.

    examples:
      lexinvariant data prepare stdlib data/stdlib
      lexinvariant data prepare prose.jsonl.xz code.jsonl.xz data/mine --valid prose.valid.jsonl.xz
      lexinvariant data prepare hub:pile data/pile --vocab t5-base
    """

    paths: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE ... OUT")]
    """One or more sources, then the folder to write."""
    vocab: str = "char128"
    """char128, a tokenizer.json, a folder that holds one, or the name of one on the Hub."""
    valid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")] = ()
    """Sources of the validation split; without any, documents are split by a hash of their names."""
    test: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")] = ()
    """Sources of the test split."""
    valid_fraction: float = 0.01
    """Share of the documents that is held out for validation, where no sources are named."""
    test_fraction: float = 0.01
    """Share of the documents that is held out for testing, where no sources are named."""
    overwrite: bool = False
    """Replace a corpus that is already there."""


@dataclass(frozen=True)
class Check:
    """Verify a prepared corpus against the hashes in its manifest.

    example: lexinvariant data check data/stdlib
    """

    corpus: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CORPUS")]
    """A folder that `data prepare` wrote."""


def summary(manifest: Manifest) -> str:
    counts = ", ".join(
        f"{split} {manifest.tokens(split):,} tokens in {manifest.documents(split):,} documents"
        for split in SPLITS
    )
    dropped = manifest.dropped_characters
    return counts + (
        f"; {dropped:,} characters had no place in the vocabulary and were dropped" if dropped else ""
    )


def warn_of_few_documents(manifest: Manifest, splits: Sequence[str]) -> None:
    """Warn where the hash of the documents' names has held out too few of them."""
    total = sum(map(manifest.documents, SPLITS))
    for split in splits:
        n = manifest.documents(split)
        # One or two long texts are each cut into train, valid and test: then all splits have as many documents.
        if 0 < n < min(FEWEST_HELD_OUT, manifest.documents("train")):
            fraction = min(0.2, math.ceil(100 * 4 * FEWEST_HELD_OUT / total) / 100)
            print(
                f"lexinvariant: warning: the {split} split has {n} of {total:,} documents, too few for a loss to "
                f"rely on: give --{split}-fraction {fraction:g}, or held-out text with --{split} SOURCE.",
                file=sys.stderr,
            )


def main(argv: list[str]) -> int:
    arguments: Prepare | Check = tyro.cli(
        Annotated[Prepare, tyro.conf.subcommand("prepare")] | Annotated[Check, tyro.conf.subcommand("check")],
        args=argv,
        prog="lexinvariant data",
        description="Prepare and check training data.\n\nexample: lexinvariant data prepare stdlib data/stdlib",
    )
    if isinstance(arguments, Check):
        corpus = Corpus.open(arguments.corpus, verify=True)
        print(f"{arguments.corpus} is whole: {summary(corpus.manifest)}.")
        return 0
    if len(arguments.paths) < 2:
        raise UserError(
            "Give at least one source and the folder to write: lexinvariant data prepare SOURCE OUT."
        )
    *sources, out = arguments.paths
    manifest = prepare(
        sources,
        Path(out),
        vocab=arguments.vocab,
        valid=arguments.valid,
        test=arguments.test,
        valid_fraction=arguments.valid_fraction,
        test_fraction=arguments.test_fraction,
        overwrite=arguments.overwrite,
    )
    print(f"Wrote {out}: {summary(manifest)}.")
    named = {"valid": arguments.valid, "test": arguments.test}
    warn_of_few_documents(manifest, [split for split, sources in named.items() if not sources])
    return 0
