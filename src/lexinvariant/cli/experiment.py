"""`lexinvariant experiment NAME`: run one experiment and write its rows."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import tyro

from lexinvariant.errors import UserError, nearest


def _theory(argv: list[str]) -> int:
    from lexinvariant.experiments.theory import TheoryOptions, run

    prog = "lexinvariant experiment theory"
    options = tyro.cli(TheoryOptions, args=argv, prog=prog)
    run(options, command=shlex.join([*prog.split(), *argv]), say=lambda line: print(line, flush=True))
    print(f"Rows are in {options.out / 'theory.jsonl'}; draw them with: lexinvariant report {options.out}")
    return 0


EXPERIMENTS: dict[str, tuple[str, Callable[[list[str]], int]]] = {
    "theory": ("convergence of the lexinvariant mixture, its bounds, and the limit for English", _theory),
}
"""Name, one line about it, and its command. A new experiment adds its line here."""


def main(argv: list[str]) -> int:
    """Dispatch on the name of the experiment."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: lexinvariant experiment NAME [options]\n")
        print("Run one experiment and write its rows as JSON lines.\n")
        for name, (about, _) in EXPERIMENTS.items():
            print(f"  {name:<12} {about}")
        print("\nOptions of one experiment: lexinvariant experiment NAME --help")
        print("Example: lexinvariant experiment theory --quick --out runs/theory")
        return 0
    name, rest = argv[0], argv[1:]
    if name not in EXPERIMENTS:
        raise UserError(
            f"There is no experiment called {name!r}; did you mean {nearest(name, EXPERIMENTS)!r}?"
        )
    return EXPERIMENTS[name][1](rest)
