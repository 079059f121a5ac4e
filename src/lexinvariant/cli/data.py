"""`lexinvariant data prepare`, `lexinvariant data collect` and `lexinvariant data check`."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from lexinvariant.cli.paths import local_path
from lexinvariant.errors import UserError
from lexinvariant.remote import local_copy, uploaded
from lexinvariant.text import SPLITS, Corpus, Manifest, prepare
from lexinvariant.text.collect import collect
from lexinvariant.text.collection import COLLECTION_FILE, Collection
from lexinvariant.text.manifest import MANIFEST_FILE

FEWEST_HELD_OUT = 5
"""Fewest documents of a held-out split whose loss can be relied on."""


@dataclass(frozen=True)
class Prepare:
    """Turn text into token shards that training reads.

    Sources: text files, folders, JSON Lines (.jsonl, also .gz .xz .zst), Parquet, `stdlib`, `hub:NAME` (ready names:
    pile, wiki40b, github), `records:N` (N documents of made-up records, which teach to reason about symbols), `sums:N`
    (sums in words, a language that is learnt in minutes). Options of a source follow a question mark:
    `prose.jsonl.xz?fold=letters` (a to z alone), `?fold=words` (each word one symbol), `?limit=1000`. A document's tag
    is what its source begins with.

    examples:
      lexinvariant data prepare stdlib data/stdlib
      lexinvariant data prepare prose.jsonl.xz code.jsonl.xz data/mine --valid prose.valid.jsonl.xz
      lexinvariant data prepare technical.jsonl.xz data/mine --exclude-tags log:loghub mail
      lexinvariant data prepare technical.jsonl.xz "technical.jsonl.xz?fold=words" data/mine
      lexinvariant data prepare hub:pile data/pile --vocab t5-base
      lexinvariant data prepare stdlib s3://bucket/stdlib
    """

    paths: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE ... OUT")]
    """One or more sources, then the folder to write, which may be on an object store: s3://bucket/mine."""
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
    tags: Annotated[tuple[str, ...], tyro.conf.arg(metavar="TAG ...")] = ()
    """Take only documents with one of these tags: `wiki` takes those whose source begins with wiki:."""
    exclude_tags: Annotated[tuple[str, ...], tyro.conf.arg(metavar="TAG ...")] = ()
    """Leave out documents with one of these tags, such as log:loghub."""
    overwrite: bool = False
    """Replace a corpus that is already there."""


@dataclass(frozen=True)
class Collect:
    """Gather source code in many languages as JSON Lines, for `data prepare`.

    Sources: `debian` and `npm` (packages that are known to hold much of it), debian:NAME[=VERSION], npm:NAME[@VERSION],
    `python` (all installed packages), python:NAME[==VERSION], folders such as /usr/include, and the collection.json of
    an earlier collection, for the same packages again. Packages are downloaded with apt-get and npm, and neither
    installed nor run. Python's standard library is never taken, nor copies of it. Tags are code-c, code-rust and so on.

    examples:
      lexinvariant data collect debian npm data/code
      lexinvariant data collect npm:rxjs npm:three debian:gnulib data/code --languages typescript javascript c
      lexinvariant data collect data/code/collection.json data/again
    """

    paths: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE ... OUT")]
    """One or more sources, then the folder to write: train, valid and test.jsonl.xz, and collection.json, which lists
    packages, versions, hashes and licences."""
    languages: Annotated[tuple[str, ...], tyro.conf.arg(metavar="LANGUAGE ...")] = ()
    """Only these languages: c, cpp, css, go, html, javascript, python, rust, shell, sql, typescript."""
    megabytes: float | None = None
    """At most so much text of a language, from all packages alike, and of Python 2.5 times as much. Default: 12, or as
    the collection.json says."""
    newer_versions: bool = False
    """Where Debian no longer has the version of a package that is asked for, take the version that there is."""


@dataclass(frozen=True)
class Check:
    """Verify a prepared corpus or a collection against the hashes in its manifest.

    example: lexinvariant data check data/stdlib
    """

    corpus: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CORPUS")]
    """A folder that `data prepare` or `data collect` wrote."""


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


def warn_of_kinds_not_held_out(corpus: Corpus, splits: Sequence[str]) -> None:
    """Warn where the hash of the documents' names has held out nothing of a kind of text."""
    for split in splits:
        missing = sorted(corpus.tags_in("train") - corpus.tags_in(split))
        if missing and corpus.manifest.documents(split):
            print(
                f"lexinvariant: warning: the {split} split has nothing of {', '.join(missing[:5])}"
                f"{' and others' if missing[5:] else ''}: give a larger --{split}-fraction to measure every kind.",
                file=sys.stderr,
            )


def _check(place: str) -> None:
    folder = local_copy(place)
    if (folder / COLLECTION_FILE).is_file():
        collection = Collection.read(folder / COLLECTION_FILE)
        collection.verify(folder)
        print(f"{place} is whole: {collection_summary(collection)}.")
    else:
        print(f"{place} is whole: {summary(Corpus.open(folder, verify=True).manifest)}.")


def collection_summary(collection: Collection) -> str:
    megabytes = ", ".join(f"{tag} {size / 1e6:.1f}" for tag, size in collection.bytes_by_tag.items())
    documents = sum(entry.documents for entry in collection.splits.values())
    return f"{documents:,} documents of {len(collection.packages)} packages, in megabytes {megabytes}"


def _collect(arguments: Collect) -> None:
    *sources, out = _sources_and_out(arguments.paths, "collect")
    collection = collect(
        sources,
        local_path(out),
        languages=arguments.languages,
        megabytes=arguments.megabytes,
        newer_versions=arguments.newer_versions,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )
    left_out = "; ".join(f"{number:,} {why}" for why, number in collection.left_out.items())
    print(f"Wrote {out}: {collection_summary(collection)}." + (f" Left out: {left_out}." if left_out else ""))


def _prepare(arguments: Prepare) -> None:
    *sources, out = _sources_and_out(arguments.paths, "prepare")
    named = {"valid": arguments.valid, "test": arguments.test}
    by_fraction = [split for split, sources in named.items() if not sources]
    replaces = arguments.overwrite
    with uploaded(out, kind="prepared corpus", recognised_by=MANIFEST_FILE, replaces=replaces) as folder:
        manifest = prepare(
            sources,
            folder,
            vocab=arguments.vocab,
            valid=arguments.valid,
            test=arguments.test,
            valid_fraction=arguments.valid_fraction,
            test_fraction=arguments.test_fraction,
            tags=arguments.tags,
            exclude_tags=arguments.exclude_tags,
            overwrite=replaces,
        )
        warn_of_few_documents(manifest, by_fraction)
        warn_of_kinds_not_held_out(Corpus.open(folder), by_fraction)
    print(f"Wrote {out}: {summary(manifest)}.")


def _sources_and_out(paths: tuple[str, ...], command: str) -> tuple[str, ...]:
    if len(paths) < 2:
        raise UserError(
            f"Give at least one source and the folder to write: lexinvariant data {command} SOURCE OUT."
        )
    return paths


def main(argv: list[str]) -> int:
    arguments: Prepare | Collect | Check = tyro.cli(
        Annotated[Prepare, tyro.conf.subcommand("prepare")]
        | Annotated[Collect, tyro.conf.subcommand("collect")]
        | Annotated[Check, tyro.conf.subcommand("check")],
        args=argv,
        prog="lexinvariant data",
        description="Collect, prepare and check training data.\n\nexample: lexinvariant data prepare stdlib data/mine",
    )
    if isinstance(arguments, Check):
        _check(arguments.corpus)
    elif isinstance(arguments, Collect):
        _collect(arguments)
    else:
        _prepare(arguments)
    return 0
