"""`lexinvariant experiment NAME`: run one experiment and write its rows."""

from __future__ import annotations

import importlib
import shlex

import tyro

from lexinvariant.errors import UserError, nearest

EXPERIMENTS = {
    "training": "learning curves of runs, at equal compute",
    "ablation": "what each part of a recipe is worth, in short runs",
    "theory": "convergence of the lexinvariant mixture, its bounds, and the limit for English",
    "convergence": "perplexity by context length, lexinvariant beside standard",
    "uncertainty": "what a model takes one symbol of a text to be, at each of its occurrences",
    "cipher-key": "the key of a substitution cipher, read off a model's states",
    "synthetic": "LookUp and Permutation: reasoning over symbols that mean nothing",
    "semantic": "which word of a passage is a drink? multiple choice over words known from context alone",
}
"""Name and one line about it. The module experiments/NAME.py has its Options and run(options, command, say)."""


def main(argv: list[str]) -> int:
    """Dispatch on the name of the experiment."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: lexinvariant experiment NAME [options]\n")
        print("Run one experiment and write its rows as JSON lines.\n")
        for name, about in EXPERIMENTS.items():
            print(f"  {name:<12} {about}")
        print("\nOptions of one experiment: lexinvariant experiment NAME --help")
        print("Example: lexinvariant experiment theory --quick --out runs/theory")
        return 0
    name, rest = argv[0], argv[1:]
    if name not in EXPERIMENTS:
        raise UserError(
            f"There is no experiment called {name!r}; did you mean {nearest(name, EXPERIMENTS)!r}?"
        )
    experiment = importlib.import_module(f"lexinvariant.experiments.{name.replace('-', '_')}")
    prog = f"lexinvariant experiment {name}"
    options = tyro.cli(experiment.Options, args=rest, prog=prog)
    experiment.run(
        options, command=shlex.join([*prog.split(), *rest]), say=lambda line: print(line, flush=True)
    )
    print(f"Rows are in {options.out / name}.jsonl; draw them with: lexinvariant report {options.out}")
    return 0
