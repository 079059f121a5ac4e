"""The one exception that is meant for the person at the keyboard."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right: the message is one sentence that says what is wrong and what to do.

    The command line prints the message without a traceback and exits with status 2.
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that a mistyped one most likely means."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)[0]
