"""`lexinvariant evaluate MODEL --data DIR`: loss on held-out data."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lexinvariant.checks import check_seed, whole_number
from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.config import LexiconKind
from lexinvariant.errors import UserError
from lexinvariant.files import check_can_write
from lexinvariant.text import ChosenPieces, Pieces, Split, open_data


@dataclass(frozen=True)
class Arguments:
    """Measure loss, perplexity at the end of the context and, with a deciphering head, the share of symbols named
    correctly.

    examples:
      lexinvariant evaluate runs/mine/model --data data/stdlib --split test
      lexinvariant evaluate bundled --data data/stdlib --lexicon gaussian --json
      lexinvariant evaluate bundled --data data/mixed --by-tag
    """

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A model's folder, OWNER/NAME on the Hugging Face Hub, or `bundled`: the one that comes with the package."""
    data: str
    """A folder written by `lexinvariant data prepare`, or `markov12`."""
    split: Literal["valid", "test", "train"] = "valid"
    """Which part of the data is read."""
    sequences: int = 1000
    """Whole contexts to average over."""
    by_tag: bool = False
    """Also measure every kind of text separately, each on up to --sequences contexts of its own."""
    batch_size: int = 16
    """Sequences per batch."""
    lexicon: LexiconKind | None = None
    """Use the model with a lexicon other than its own, such as gaussian."""
    seed: int = 0
    """The same seed draws the same lexicons."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the arithmetic; bfloat16 is faster on a GPU."""
    json: bool = False
    """Print one JSON object with all numbers, including the loss at every position."""
    out: Path | None = None
    """Also write that JSON object to a file."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant evaluate")
    keep_compiled_programs()  # before jax is imported
    from lexinvariant.api import load
    from lexinvariant.training.evaluate import Evaluation, check_vocabulary, evaluate

    whole_number(arguments.sequences, "--sequences", least=1)
    whole_number(arguments.batch_size, "--batch-size", least=1)
    check_seed(arguments.seed)
    if arguments.out:
        check_can_write(arguments.out)
    model, data = load(arguments.model), open_data(arguments.data)
    if arguments.lexicon is not None:
        model = model.with_lexicon(arguments.lexicon)
    check_vocabulary(model.config, model.vocab, data, f"{arguments.model} cannot read {arguments.data}")
    named = data.vocab.name == model.vocab.name
    if model.config.decipher_head and not named:
        print(
            f"{arguments.data} is in {data.vocab.name} and {arguments.model} names symbols of {model.vocab.name}: how "
            "well it names them is left out; how well it predicts does not depend on names.",
            file=sys.stderr,
        )

    def measure(pieces: Split) -> Evaluation:
        return evaluate(
            model.params,
            model.config,
            pieces,
            sequences=arguments.sequences,
            batch_size=arguments.batch_size,
            seed=arguments.seed,
            dtype=arguments.dtype,
            named=named,
        )

    pieces = data.split(arguments.split, model.config.context)
    by_tag: dict[str, dict[str, float]] = {}
    if arguments.by_tag:
        if not isinstance(pieces, Pieces):
            raise UserError(f"{arguments.data} has no separate kinds of text: leave out --by-tag.")
        parts = {tag: ChosenPieces(pieces, chosen) for tag, chosen in pieces.pieces_by_tag.items()}
        measured = {tag: measure(part) for tag, part in parts.items()}
        by_tag = {tag: part.all_metrics | {"sequences": part.sequences} for tag, part in measured.items()}
    result = measure(pieces)
    metrics = result.all_metrics
    row = {
        "model": arguments.model,
        "data": data.fingerprint,
        "split": arguments.split,
        "lexicon": model.config.lexicon.at_evaluation.kind,
        "seed": arguments.seed,
        "sequences": result.sequences,
        **metrics,
        "loss_by_position": result.loss_by_position,
    } | ({"by_tag": by_tag} if by_tag else {})
    if arguments.json:
        print(json.dumps(row))
    else:
        width = max(map(len, metrics))
        for name, value in metrics.items():
            print(f"{name:>{width}}  {value:.4f}")
        if by_tag:
            print(_table_by_tag(by_tag))
            print(
                f"\nEach kind is measured on up to {arguments.sequences:,} contexts of its own, and the numbers at the "
                f"top on {result.sequences:,} of all kinds: they are no mean of the rows."
            )
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(row) + "\n", "utf-8")
    return 0


def _table_by_tag(by_tag: dict[str, dict[str, float]]) -> str:
    """What is read most of a kind of text: a line each."""
    columns = {
        "perplexity at the end": "tail_perplexity",
        "deciphered there": "tail_deciphered",
        "in hindsight": "tail_hindsight_deciphered",
    }
    shown = {title: name for title, name in columns.items() if any(name in row for row in by_tag.values())}
    width = max(map(len, by_tag))
    lines = [" ".join([f"{'tag':<{width}}", f"{'contexts':>9}", *(f"{title:>22}" for title in shown)])]
    for tag, metrics in sorted(by_tag.items()):
        # Of a kind whose texts are all shorter than the context nothing is known there.
        values = [f"{metrics[name]:>22.4f}" if name in metrics else f"{'-':>22}" for name in shown.values()]
        lines.append(" ".join([f"{tag:<{width}}", f"{metrics['sequences']:>9}", *values]))
    return "\n" + "\n".join(lines)
