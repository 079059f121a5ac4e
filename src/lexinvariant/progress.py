"""How far long work has come: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console

Log = Callable[[str], None]
SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Counts through `total` things; short work passes in silence.

    with Progress("deciphering", len(texts), log) as advance:
        advance(1)
    """

    def __init__(
        self,
        what: str,
        total: int,
        log: Log,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._what, self._total, self._log, self._clock = what, total, log, clock
        self._done, self._spoken = 0, clock()
        self._console = console or Console(stderr=True)
        self._bar = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(what, total=total)

    def __call__(self, n: int) -> None:
        """So many more are done."""
        self._done += n
        self._bar.advance(self._task, n)
        now = self._clock()
        is_due = now - self._spoken >= SECONDS_BETWEEN_LINES and self._done < self._total
        if is_due and not self._console.is_terminal:
            self._log(f"{self._what}: {self._done:,} of {self._total:,}")
            self._spoken = now

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()
