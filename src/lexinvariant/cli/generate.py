"""`lexinvariant generate [MODEL [PROMPT]]`: sample text."""

from dataclasses import dataclass
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Arguments:
    """Sample a continuation of a prompt.

    examples:
      lexinvariant generate bundled "abcabcabc" --n-tokens 30 --temperature 0.5
      lexinvariant generate runs/mine/model "def main" --n-tokens 100 --temperature 0.8
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[MODEL]")] = "bundled"
    """A model's folder, OWNER/NAME on the Hugging Face Hub, or `bundled`: the one that comes with the package."""
    prompt: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[PROMPT]")] = ""
    """The text to continue."""
    n_tokens: int = 200
    """Symbols to sample."""
    temperature: float = 1.0
    """Below 1 makes likely symbols likelier, above 1 less likely."""
    top_k: int | None = None
    """Sample only from the k most likely symbols."""
    seed: int = 0
    """The same seed gives the same sample."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant generate")
    from lexinvariant.api import load

    continuation = load(arguments.model).generate(
        arguments.prompt,
        arguments.n_tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        seed=arguments.seed,
    )
    print(arguments.prompt + continuation)
    return 0
