"""`lexinvariant experiment NAME`: run one experiment and write its rows."""

from __future__ import annotations

import shlex

import tyro

from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.cli.repeats import check_given_once
from lexinvariant.experiments.registry import EXPERIMENTS, find_experiment


def main(argv: list[str]) -> int:
    """Dispatch on the name of the experiment."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: lexinvariant experiment NAME [options]\n")
        print("Run one experiment and write its results as rows of JSON.\n")
        for experiment in EXPERIMENTS:
            print(f"  {experiment.name:<12} {experiment.about}")
        print("\n`lexinvariant experiment NAME --help` lists an experiment's options.")
        print("example: lexinvariant experiment theory --quick --out runs/theory")
        return 0
    experiment, rest = find_experiment(argv[0]), argv[1:]
    keep_compiled_programs()  # before the experiment's module imports jax
    prog = f"lexinvariant experiment {experiment.name}"
    check_given_once(rest, experiment.Options)
    options = tyro.cli(experiment.Options, args=rest, prog=prog)
    command = shlex.join([*prog.split(), *rest])
    experiment.run(options, command, log=lambda line: print(line, flush=True))
    print(
        f"Rows are in {options.out / experiment.name}.jsonl; draw them with: lexinvariant report {options.out}"
    )
    return 0
