"""A few threads that work off what was asked, so that any number of clients share one model in turn."""

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from lexinvariant.interruption import interruptible
from lexinvariant.web.memory import give_memory_back

MOST_WAITING = 512
MOST_REMEMBERED = 128
LARGEST_REMEMBERED = 500_000  # bytes, of a question and its answer: together at most 64 MB
MOST_THREADS = 8
SECONDS_BETWEEN_TRIMS = 2.0


class BusyError(Exception):
    """More is waiting than can be answered in time."""


class Answer(Future[bytes]):
    """An answer to come. Cancelling it takes the question back: at once if it waits, and what is in work on it ends at
    the next occasion.
    """

    def __init__(self) -> None:
        super().__init__()
        self.given_up = threading.Event()

    def cancel(self) -> bool:
        self.given_up.set()
        return super().cancel()


@dataclass(frozen=True, eq=False)
class Job:
    """A question on its way, and where its answer goes."""

    question: Hashable
    answer: Answer


class Worker:
    """Answers questions in the order in which they came, as many at once as there are cores, and remembers the last
    answers.
    """

    def __init__(
        self,
        answer: Callable[[Hashable], bytes],
        most_waiting: int = MOST_WAITING,
        n_threads: int = min(MOST_THREADS, os.cpu_count() or 1),
    ) -> None:
        self._answer = answer
        self._most_waiting = most_waiting
        self._waiting: deque[Job] = deque()
        self._idle: deque[Job] = deque()
        self._remembered: OrderedDict[Hashable, bytes] = OrderedDict()
        self._changed = threading.Condition()
        self._stopped = False
        self._last_trim = time.monotonic()
        self.last_taken = time.monotonic()
        """When a question was last taken up: one that waits is not forgotten as long as this moves on."""
        self._threads = [
            threading.Thread(target=self._work, name=f"worker {i}", daemon=True) for i in range(n_threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def n_waiting(self) -> int:
        return len(self._waiting)

    def ask(self, question: Hashable, *, when_idle: bool = False) -> Answer:
        """The answer to come; with `when_idle`, every other question comes first."""
        answer = Answer()
        with self._changed:
            if (known := self._remembered.get(question)) is not None:
                self._remembered.move_to_end(question)
                answer.set_result(known)
                return answer
            if self._stopped or len(self._waiting) >= self._most_waiting:
                raise BusyError
            queue, job = self._idle if when_idle else self._waiting, Job(question, answer)
            queue.append(job)
            self._changed.notify()
        answer.add_done_callback(lambda done: self._take_back(queue, job) if done.cancelled() else None)
        return answer

    def _take_back(self, queue: deque[Job], job: Job) -> None:
        """A question that nobody waits for must not keep others out."""
        with self._changed, suppress(ValueError):  # it may have been taken up a moment ago
            queue.remove(job)

    def stop(self, patience: float) -> bool:
        """Take no more questions, drop those that wait; whether those in work were finished in time."""
        with self._changed:
            self._stopped = True
            dropped = [*self._waiting, *self._idle]
            self._waiting, self._idle = deque(), deque()
            self._changed.notify_all()
        for job in dropped:
            job.answer.cancel()
        until = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _take(self) -> Job | None:
        """The next job; nothing when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._idle or self._stopped)
            if self._stopped:
                return None
            self.last_taken = time.monotonic()
            return (self._waiting or self._idle).popleft()

    def _work(self) -> None:
        while job := self._take():
            if not job.answer.set_running_or_notify_cancel():
                continue
            try:
                # Another client may have asked the same while this one waited.
                with interruptible(job.answer.given_up):
                    answer = self._remembered.get(job.question) or self._answer(job.question)
            except Exception as error:
                job.answer.set_exception(error)
            else:
                self._remember(job.question, answer)
                job.answer.set_result(answer)
            if time.monotonic() - self._last_trim > SECONDS_BETWEEN_TRIMS:
                self._last_trim = time.monotonic()
                give_memory_back()

    def _remember(self, question: Hashable, answer: bytes) -> None:
        # A trace answers a megabyte with a few kilobytes, and the question is kept as well: four bytes a character.
        if len(answer) + 4 * len(repr(question)) > LARGEST_REMEMBERED:
            return
        with self._changed:
            self._remembered[question] = answer
            if len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
