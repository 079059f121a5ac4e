"""`lexinvariant evaluate MODEL --data DIR`: loss on held-out data."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lexinvariant.config import LexiconKind
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Arguments:
    """Loss, perplexity at the end of the context and, with a deciphering head, the share of symbols it names rightly.

    examples:
      lexinvariant evaluate runs/mine/model --data data/stdlib --split test
      lexinvariant evaluate bundled --data data/stdlib --lexicon gaussian --json
    """

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A model's folder, OWNER/NAME on the Hugging Face Hub, or `bundled`: the one that comes with the package."""
    data: str
    """A folder written by `lexinvariant data prepare`, or `markov12`."""
    split: Literal["valid", "test", "train"] = "valid"
    """Which part of the data is read."""
    sequences: int = 1000
    """Whole contexts to average over."""
    batch_size: int = 16
    """Sequences at a time."""
    lexicon: LexiconKind | None = None
    """Use the model under another lexicon than its own, such as gaussian."""
    seed: int = 0
    """The same seed draws the same lexicons."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the arithmetic; bfloat16 is faster on a GPU."""
    json: bool = False
    """Print one JSON object with all numbers, the loss at every position among them."""
    out: Path | None = None
    """Write that object to a file."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant evaluate")
    from lexinvariant.api import load
    from lexinvariant.text import open_data
    from lexinvariant.training.evaluate import evaluate

    model, data = load(arguments.model), open_data(arguments.data)
    if arguments.lexicon is not None:
        model = model.with_lexicon(arguments.lexicon)
    if data.vocab_size > model.config.vocab_size:
        raise UserError(
            f"The data has a vocabulary of {data.vocab_size} and the model one of {model.config.vocab_size}: prepare "
            "the data with the model's own."
        )
    result = evaluate(
        model.params,
        model.config,
        data.split(arguments.split, model.config.context),
        sequences=arguments.sequences,
        batch_size=arguments.batch_size,
        seed=arguments.seed,
        dtype=arguments.dtype,
    )
    metrics = result.metrics | {"tail_perplexity": result.tail_perplexity}
    row = {
        "model": arguments.model,
        "data": data.fingerprint,
        "split": arguments.split,
        "lexicon": model.config.lexicon.at_evaluation.kind,
        "seed": arguments.seed,
        **metrics,
        "loss_by_position": result.loss_by_position,
    }
    if arguments.json:
        print(json.dumps(row))
    else:
        width = max(map(len, metrics))
        for name, value in metrics.items():
            print(f"{name:>{width}}  {value:.4f}")
    if arguments.out:
        arguments.out.write_text(json.dumps(row) + "\n", "utf-8")
    return 0
