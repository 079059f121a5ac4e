"""`lexinvariant generate MODEL [PROMPT]`: sample text."""

from dataclasses import dataclass

import tyro


@dataclass(frozen=True)
class Arguments:
    """Sample a continuation of a prompt.

    example: lexinvariant generate runs/mine/model "def main" --n-tokens 200 --temperature 0.8
    """

    model: tyro.conf.Positional[str]
    """A model's folder, or OWNER/NAME on the Hugging Face Hub."""
    prompt: tyro.conf.Positional[str] = ""
    n_tokens: int = 200
    temperature: float = 1.0
    top_k: int | None = None
    """Sample among the k most likely symbols only."""
    seed: int = 0


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
