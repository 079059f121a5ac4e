"""docs/cli.md, made from the commands' own --help: `make docs`; a test keeps the two equal."""

import contextlib
import io
import os
import sys

from lexinvariant.cli import main as command_line
from lexinvariant.cli.main import COMMANDS
from lexinvariant.experiments.registry import EXPERIMENTS

PARTS = {
    "data": ("prepare", "collect", "check"),
    "language": ("build", "calibrate", "verdict", "show"),
    "train": ("", "char-small"),
    "experiment": ("", *(experiment.name for experiment in EXPERIMENTS)),
}
"""Commands that have pages of their own for their parts; the empty one is the command's."""


def pages() -> list[list[str]]:
    """The words after `lexinvariant` of every page, in the order of the main help."""
    commands = [[name, part] if part else [name] for name in COMMANDS for part in PARTS.get(name, ("",))]
    return [[], *commands]


def help_text(command: list[str]) -> str:
    """What `lexinvariant COMMAND --help` prints, at a fixed width and without colours."""
    printed, before = io.StringIO(), dict(os.environ)
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            command_line.main([*command, "--help"])
    finally:
        os.environ.clear()
        os.environ.update(before)
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def document() -> str:
    parts = ["# The command line", "Made from `--help` by `make docs`.", ""]
    for command in pages():
        parts += [
            f"## `{' '.join(['lexinvariant', *command])}`",
            "",
            "```text",
            help_text(command),
            "```",
            "",
        ]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(document())
