"""The one exception that is meant for the person at the keyboard."""

import difflib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

OUT_OF_MEMORY = (
    "RESOURCE_EXHAUSTED"  # how jax's errors begin, which cannot be named here without importing it
)
SMALLER = "give smaller batches or sizes, split a batch with --accumulate, or end other programs"
LONGEST_CAUSE = 200  # characters of another library's complaint


class UserError(Exception):
    """Something the user can put right: the message is one sentence that says what is wrong and what to do.

    The command line prints the message without a traceback and exits with status 2.
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that a mistyped one most likely means, of few that there are to choose from."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to say of an unknown name: the known one that it resembles, or all of them where it resembles none."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(names)}."


def likely(name: str, known: Iterable[str]) -> str | None:
    """The same of many: files or packages, where nothing may have been meant that is there."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)), None)


def exit_code(command: Callable[[], int]) -> int:
    """What a process that runs the command ends with: errors that a person can put right are told in one sentence."""
    try:
        return command()
    except UserError as error:
        print(f"lexinvariant: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has gone, as in `| head`; keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A full disk, a folder where a file stands: nobody is helped by a traceback.
        where = f" ({error.filename})" if error.filename else ""
        print(f"lexinvariant: {error.strerror or error}{where}{_remedy(error)}.", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and OUT_OF_MEMORY not in str(error):
            raise
        what = " ".join(str(error).removeprefix(OUT_OF_MEMORY).split()).strip(": .")[:LONGEST_CAUSE]
        print(
            f"lexinvariant: There is too little memory ({what or 'none is left'}): {SMALLER}.",
            file=sys.stderr,
        )
        return 2


def _remedy(error: OSError) -> str:
    """What to do about a path that belongs to nothing, since the current folder is gone."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return ": the current folder was removed, so change to another one" if not error.filename else ""
    return ""
