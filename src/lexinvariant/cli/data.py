"""`lexinvariant data prepare`, `lexinvariant data collect` and `lexinvariant data check`."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from lexinvariant.cli.paths import local_path
from lexinvariant.cli.repeats import check_given_once
from lexinvariant.errors import UserError
from lexinvariant.remote import local_copy, uploaded
from lexinvariant.text import SPLITS, Corpus, Manifest, prepare
from lexinvariant.text.collect import collect
from lexinvariant.text.collection import COLLECTION_FILE, Collection
from lexinvariant.text.manifest import MANIFEST_FILE

FEWEST_HELD_OUT = 5
"""Fewest documents of a held-out split whose loss can be relied on."""
FEWEST_TOKENS = 5_000
"""The same of its tokens, where one or two long texts are each cut into all splits."""
MANY_DROPPED = 0.05
"""Share of characters without which a text is another one."""


@dataclass(frozen=True)
class Prepare:
    """Turn text into token shards for training.

    Sources: text files, folders, JSON Lines (.jsonl, also .gz .xz .zst), Parquet, `stdlib`, `hub:NAME` (ready names:
    pile, wiki40b, github), `records:N` (N documents of made-up records, which teach reasoning about symbols), `sums:N`
    (sums in words, a language learned in minutes). Options of a source follow a question mark:
    `prose.jsonl.xz?fold=letters` (only a to z), `?fold=words` (each word one symbol), `?limit=1000`. A document's tag
    is how its source begins.

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
    """char128, a tokenizer.json or a folder with one, or the name of a tokenizer on the Hub."""
    valid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")] = ()
    """Sources of the validation split. Default: some documents, chosen by a hash of their names."""
    test: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SOURCE ...")] = ()
    """Sources of the test split; by default as for --valid."""
    valid_fraction: float = 0.01
    """Share of documents held out for validation if --valid is not given."""
    test_fraction: float = 0.01
    """Share of documents held out for testing if --test is not given."""
    tags: Annotated[tuple[str, ...], tyro.conf.arg(metavar="TAG ...")] = ()
    """Keep only documents with one of these tags: `wiki` keeps those whose source begins with wiki:."""
    exclude_tags: Annotated[tuple[str, ...], tyro.conf.arg(metavar="TAG ...")] = ()
    """Leave out documents with any of these tags, such as log:loghub."""
    overwrite: bool = False
    """Replace an existing corpus."""


@dataclass(frozen=True)
class Collect:
    """Gather source code in many languages as JSON Lines, for `data prepare`.

    Sources: `debian` and `npm` (packages known to contain a lot of code), debian:NAME[=VERSION], npm:NAME[@VERSION],
    `python` (all installed packages), python:NAME[==VERSION], folders such as /usr/include, and the collection.json of
    an earlier collection, for the same packages again. Packages are downloaded with apt-get and npm, but neither
    installed nor run. Python's standard library, and copies of it, are never taken. Tags are code-c, code-rust and so
    on.

    examples:
      lexinvariant data collect debian npm data/code
      lexinvariant data collect npm:rxjs npm:three debian:gnulib data/code --languages typescript javascript c
      lexinvariant data collect data/code/collection.json data/again
    """

    paths: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE ... OUT")]
    """One or more sources, then the folder to write: train, valid and test.jsonl.xz, and a collection.json that lists
    packages, versions, hashes and licences."""
    languages: Annotated[tuple[str, ...], tyro.conf.arg(metavar="LANGUAGE ...")] = ()
    """Only these languages: c, cpp, css, go, html, javascript, python, rust, shell, sql, typescript."""
    megabytes: float | None = None
    """Most text to take of each language (2.5 times as much of Python), evenly from all packages. Default: 12, or what
    the collection.json says."""
    newer_versions: bool = False
    """If Debian no longer has the requested version of a package, take the one it has."""


@dataclass(frozen=True)
class Check:
    """Verify a prepared corpus or a collection against the hashes in its manifest, and a corpus's vocabulary too.

    example: lexinvariant data check data/stdlib
    """

    corpus: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CORPUS")]
    """A folder written by `data prepare` or `data collect`."""


def summary(manifest: Manifest) -> str:
    counts = ", ".join(
        f"{split} {manifest.tokens(split):,} tokens in {manifest.documents(split):,} documents"
        for split in SPLITS
    )
    dropped = manifest.dropped_characters
    return counts + (
        f"; {dropped:,} characters had no place in the vocabulary and were dropped" if dropped else ""
    )


def warn_of_little_held_out(manifest: Manifest, fractions: Mapping[str, float]) -> None:
    """Warn where too little was held out: by the hash of the documents' names, or of one or two texts. `fractions` are
    those that were asked for, by split.
    """
    documents, tokens = sum(map(manifest.documents, SPLITS)), sum(map(manifest.tokens, SPLITS))
    for split, given in fractions.items():
        n = manifest.documents(split)
        # One or two long texts are each cut into train, valid and test: then all splits have as many documents.
        if n < min(FEWEST_HELD_OUT, manifest.documents("train")):
            what, wanted = f"{n} of {documents:,} documents", 4 * FEWEST_HELD_OUT / documents
        elif manifest.tokens(split) < FEWEST_TOKENS:
            what, wanted = f"{manifest.tokens(split):,} of {tokens:,} tokens", FEWEST_TOKENS / tokens
        else:
            continue
        fraction = min(0.2, math.ceil(100 * wanted) / 100)
        is_enough = 0.2 * documents >= 1 or 0.2 * tokens >= FEWEST_TOKENS
        # Whoever has held out as large a share already has to have more to hold it out of.
        larger = f"--{split}-fraction {fraction:g}" if is_enough and given < fraction else "more text"
        print(
            f"lexinvariant: warning: the {split} split has {what}, too few for a loss to rely on: give {larger}, or "
            f"held-out text with --{split} SOURCE.",
            file=sys.stderr,
        )


def warn_of_dropped_characters(manifest: Manifest) -> None:
    if manifest.dropped_share > MANY_DROPPED:
        print(
            f"lexinvariant: warning: {manifest.dropped_share:.0%} of the characters have no place in {manifest.vocab} "
            "and were dropped: to keep them, give a tokenizer that `lexinvariant tokenizer train` has made as --vocab.",
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
    chosen = {
        "valid": (arguments.valid, arguments.valid_fraction),
        "test": (arguments.test, arguments.test_fraction),
    }
    by_fraction = {split: fraction for split, (named, fraction) in chosen.items() if fraction and not named}
    for split, (named, _) in chosen.items():
        if both := sorted(set(named) & set(sources)):
            print(
                f"lexinvariant: warning: {both[0]} is trained on and is the {split} split too, so a loss there is "
                "not one on unknown text: give another.",
                file=sys.stderr,
            )
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
        warn_of_dropped_characters(manifest)
        warn_of_little_held_out(manifest, by_fraction)
        warn_of_kinds_not_held_out(Corpus.open(folder), list(by_fraction))
    print(f"Wrote {out}: {summary(manifest)}.")


def _sources_and_out(paths: tuple[str, ...], command: str) -> tuple[str, ...]:
    if len(paths) < 2:
        raise UserError(
            f"Give at least one source and the folder to write, before any options: lexinvariant data {command} SOURCE "
            "OUT."
        )
    return paths


def main(argv: list[str]) -> int:
    check_given_once(argv, Prepare, Collect)
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
