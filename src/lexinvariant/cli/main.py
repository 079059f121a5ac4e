"""`lexinvariant COMMAND ...`: finds the command."""

import importlib
import io
import sys
import warnings

from lexinvariant import __version__
from lexinvariant.errors import UserError, exit_code, nearest

COMMANDS = {
    "demo": "see all of it at work on small models",
    "train": "train a model from a preset, or go on with a run",
    "plan": "what a run would take, before it is paid for",
    "export": "turn a run into a model that can be loaded and shared",
    "decipher": "read a substitution cipher",
    "semantic": "read a text whose words were replaced by made-up ones",
    "language": "build another language for the solver of ciphers",
    "score": "log-probabilities of texts under a model",
    "evaluate": "loss of a model on held-out data",
    "generate": "sample text from a model",
    "serve": "a page that shows a model deciphering, and the same as JSON",
    "data": "collect, prepare and check training data",
    "tokenizer": "train a tokenizer",
    "bench": "measure training speed on this machine",
    "experiment": "run an experiment of the paper",
    "reproduce": "train a pair, run every experiment, write the report",
    "report": "turn experiment rows into one page",
    "completion": "let your shell complete all this: bash, zsh or tcsh",
}

EXAMPLES = """examples:
  lexinvariant demo
  lexinvariant data prepare stdlib data/stdlib
  lexinvariant train char-tiny --data data/stdlib --out runs/mine
  lexinvariant score bundled "a big banana" "e cop cekeke" --draws 8
  lexinvariant generate runs/mine/model "def main" --n-tokens 200

`bundled` is the model that comes with the package.
"""


def usage() -> str:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return (
        "usage: lexinvariant COMMAND [options]\n\nLanguage models without fixed token embeddings.\n\ncommands:\n"
        f"{listed}\n\n`lexinvariant COMMAND --help` tells a command's options.\n\n{EXAMPLES}"
    )


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets a question mark, and nobody a traceback; stderr never complains.
        sys.stdout.reconfigure(errors="replace")
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0
    if argv[0] == "--version":
        print(f"lexinvariant {__version__}")
        return 0
    warnings.formatwarning = lambda message, *_, **__: f"lexinvariant: warning: {message}\n"
    return exit_code(lambda: run(argv[0], argv[1:]))


def run(name: str, argv: list[str]) -> int:
    if name not in COMMANDS:
        raise UserError(
            f"There is no command {name!r}: did you mean `lexinvariant {nearest(name, COMMANDS)}`?"
        )
    from lexinvariant.cli.paths import LOCAL_PATHS  # loads tyro: not for --version

    with LOCAL_PATHS:
        return importlib.import_module(f"lexinvariant.cli.{name}").main(argv)


if __name__ == "__main__":
    sys.exit(main())
