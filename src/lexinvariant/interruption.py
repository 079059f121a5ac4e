"""Long work that is given up when nobody wants its result any more.

A thread cannot be ended from outside. So whoever starts work says what ends it, and the work asks now and then.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_given_up: ContextVar[threading.Event | None] = ContextVar("given_up", default=None)


class InterruptedWorkError(Exception):
    """Nobody waits for the result."""


@contextmanager
def interruptible(given_up: threading.Event) -> Iterator[None]:
    """What is done within, in this thread and in those that run in its context, ends soon after the event is set."""
    token = _given_up.set(given_up)
    try:
        yield
    finally:
        _given_up.reset(token)


def stop_if_given_up() -> None:
    """Asked by long work wherever it can end."""
    given_up = _given_up.get()
    if given_up is not None and given_up.is_set():
        raise InterruptedWorkError
