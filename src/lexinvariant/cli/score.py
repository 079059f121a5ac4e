"""`lexinvariant score [MODEL] [TEXT ...]`: log-probabilities of texts."""

import json
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import tyro

from lexinvariant.cli.files import read_text
from lexinvariant.cli.repeats import check_given_once
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class Arguments:
    """Compute the log-probability of texts under a model, in nats.

    examples:
      lexinvariant score bundled "a big banana" "e cop cekeke" --draws 8
      lexinvariant score --file letter.txt
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[MODEL]")] = "bundled"
    """A model's folder, OWNER/NAME on the Hugging Face Hub, or `bundled`: the one that comes with the package."""
    texts: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[TEXT ...]")] = ()
    """Texts to score."""
    file: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FILE ...")] = ()
    """Files to score, each as one text; - is standard input."""
    draws: int = 1
    """Lexicons to average over."""
    seed: int = 0
    """The same seed draws the same lexicons."""
    json: bool = False
    """Print one JSON object per text, with the log-probability of every token."""


def main(argv: list[str]) -> int:
    check_given_once(argv, Arguments)
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant score")
    texts = [*arguments.texts, *map(read_text, arguments.file)]
    if not texts:
        raise UserError(
            'There is nothing to score: give a model and texts (lexinvariant score bundled "a text"), or --file F.'
        )
    from lexinvariant.api import load

    scores = load(arguments.model).score(texts, draws=arguments.draws, seed=arguments.seed)
    for text, score in zip(texts, scores, strict=True):
        if arguments.json:
            print(json.dumps({"text": text, "total": float(score.sum()), "tokens": score.tolist()}))
        else:
            shown = text if len(text) <= 60 else text[:57] + "..."
            print(f"{score.sum():12.4f} nats, perplexity {np.exp(-score.mean()):9.3f}  {shown!r}")
    return 0
