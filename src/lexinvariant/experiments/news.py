"""News of long work, in whole lines: what `say` is given while an experiment counts through its sequences."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_BETWEEN = 10.0


class News:
    """Counts what has been done and says so now and then; short work passes in silence."""

    def __init__(
        self,
        say: Callable[[str], None],
        what: str,
        total: int,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._say, self._what, self._total, self._clock = say, what, total, clock
        self._done, self._spoken = 0, clock()

    def __call__(self, n: int) -> None:
        """So many more are done."""
        self._done += n
        now = self._clock()
        if now - self._spoken >= SECONDS_BETWEEN and self._done < self._total:
            self._say(f"{self._what}: {self._done:,} of {self._total:,}")
            self._spoken = now
