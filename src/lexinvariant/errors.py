"""The one exception that is meant for the person at the keyboard."""

import difflib
import os
import sys
from collections.abc import Callable, Iterable


class UserError(Exception):
    """Something the user can put right: the message is one sentence that says what is wrong and what to do.

    The command line prints the message without a traceback and exits with status 2.
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that a mistyped one most likely means."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


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
        print(f"lexinvariant: {error.strerror or error}{where}.", file=sys.stderr)
        return 2
