"""docs/cli.md, made from the commands' own --help: `make docs`; a test keeps the two equal."""

import contextlib
import io
import os
import sys

from lexinvariant.cli import main as command_line

PAGES: tuple[list[str], ...] = (
    [],
    ["demo"],
    ["data", "prepare"],
    ["data", "check"],
    ["tokenizer"],
    ["train"],
    ["train", "char-small"],
    ["export"],
    ["decipher"],
    ["language", "build"],
    ["language", "show"],
    ["score"],
    ["evaluate"],
    ["generate"],
    ["serve"],
    ["bench"],
    ["bench", "decipher"],
    ["experiment"],
    ["experiment", "theory"],
    ["experiment", "convergence"],
    ["experiment", "cipher-key"],
    ["experiment", "uncertainty"],
    ["experiment", "synthetic"],
    ["experiment", "semantic"],
    ["reproduce"],
    ["report"],
)


def help_text(command: list[str]) -> str:
    """What `lexinvariant COMMAND --help` prints, at a fixed width and without colours."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        command_line.main([*command, "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def document() -> str:
    parts = ["# The command line", "Made from `--help` by `make docs`.", ""]
    for command in PAGES:
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
