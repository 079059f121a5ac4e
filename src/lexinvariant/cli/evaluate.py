"""`lexinvariant evaluate MODEL --data DIR`: loss on held-out data."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from lexinvariant.config import LexiconKind
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Arguments:
    """Loss, perplexity at the end of the context and, with a deciphering head, the share of symbols it names rightly.

    example: lexinvariant evaluate runs/mine/model --data data/stdlib --split test
    """

    model: tyro.conf.Positional[str]
    """A model's folder, or OWNER/NAME on the Hugging Face Hub."""
    data: str
    """A folder written by `lexinvariant data prepare`, or `markov12`."""
    split: Literal["valid", "test", "train"] = "valid"
    sequences: int = 1000
    """Whole contexts to average over."""
    batch_size: int = 16
    lexicon: LexiconKind | None = None
    """Use the model under another lexicon than its own, such as gaussian."""
    seed: int = 0
    dtype: Literal["float32", "bfloat16"] = "float32"
    out: Path | None = None
    """Write the numbers, with the loss at every position, as JSON."""


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
    for name, value in result.metrics.items():
        print(f"{name:>16}  {value:.4f}")
    print(f"{'tail_perplexity':>16}  {result.tail_perplexity:.4f}")
    if arguments.out:
        row = {
            "model": arguments.model,
            "data": data.fingerprint,
            "split": arguments.split,
            "lexicon": model.config.lexicon.at_evaluation.kind,
            "seed": arguments.seed,
        }
        row |= result.metrics | {"tail_perplexity": result.tail_perplexity}
        arguments.out.write_text(json.dumps(row | {"loss_by_position": result.loss_by_position}) + "\n")
    return 0
