"""`lexinvariant COMMAND ...`: find the command and run it."""

import importlib
import io
import os
import sys
import warnings
from typing import Any

from lexinvariant import __version__
from lexinvariant.errors import UserError, exit_code, nearest

COMMANDS = {
    "demo": "see everything at work on small models",
    "train": "train a model from a preset, or resume a run",
    "plan": "estimate what a run would take, before you pay for it",
    "export": "turn a run into a model to load and share",
    "decipher": "read a substitution cipher",
    "semantic": "read a text whose words were replaced by made-up ones",
    "language": "build another language for the cipher solver",
    "score": "compute log-probabilities of texts under a model",
    "evaluate": "measure the loss of a model on held-out data",
    "generate": "sample text from a model",
    "serve": "serve a web page that shows a model deciphering, and a JSON API",
    "data": "collect, prepare and check training data",
    "tokenizer": "train a tokenizer",
    "bench": "measure training speed on this machine",
    "experiment": "run one of the experiments",
    "reproduce": "train a pair, run the experiments on it, write the report",
    "report": "turn the results of experiments into one page",
    "completion": "print completions for bash, zsh or tcsh",
}

EXAMPLES = """examples:
  lexinvariant demo
  lexinvariant data prepare stdlib data/stdlib
  lexinvariant train char-tiny --data data/stdlib --out runs/mine
  lexinvariant score bundled "a big banana" "e cop cekeke" --draws 8
  lexinvariant generate runs/mine/model "def main" --n-tokens 100

`bundled` is the model that comes with the package.
"""


def usage() -> str:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return (
        "usage: lexinvariant COMMAND [options]\n\nLanguage models without fixed token embeddings.\n\ncommands:\n"
        f"{listed}\n\n`lexinvariant COMMAND --help` lists a command's options.\n\n{EXAMPLES}"
    )


class _LossyFile(io.FileIO):
    """What cannot be written is lost, and nobody stops for it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def open_standard_streams() -> None:
    """Descriptors that are closed are opened to nowhere: the next file to be opened, a checkpoint perhaps, would get
    their numbers, and whatever a library prints would go there. What is said on stderr is said in passing: a log whose
    disk is full, or whose reader has gone, ends no training.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is sys.__stderr__:
        lossy = io.BufferedWriter(_LossyFile(2, "w", closefd=False))
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr = io.TextIOWrapper(lossy, encoding, "backslashreplace", line_buffering=True)


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    open_standard_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets a question mark, and nobody a traceback; stderr never complains.
        sys.stdout.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *_, **__: f"lexinvariant: warning: {message}\n"
    return exit_code(lambda: _run_and_show(argv))


def _run_and_show(argv: list[str]) -> int:
    try:
        code = run(*argv[:1], argv=argv[1:])
    except SystemExit:  # after --help
        sys.stdout.flush()
        raise
    sys.stdout.flush()  # not at Python's own end, where a full disk is told in a riddle
    return code


def run(name: str = "help", *, argv: list[str]) -> int:
    if name in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0
    if name == "--version":
        print(f"lexinvariant {__version__}")
        return 0
    if name not in COMMANDS:
        raise UserError(
            f"There is no command {name!r}: did you mean `lexinvariant {nearest(name, COMMANDS)}`?"
        )
    from lexinvariant.cli.help_text import joined_docstrings
    from lexinvariant.cli.paths import LOCAL_PATHS  # loads tyro: not for --version

    with LOCAL_PATHS, joined_docstrings():
        return importlib.import_module(f"lexinvariant.cli.{name}").main(argv)


if __name__ == "__main__":
    sys.exit(main())
