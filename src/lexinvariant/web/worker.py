"""One thread that works off what was asked, so that any number of clients share one model in turn."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

MOST_WAITING = 512
MOST_TOGETHER = 8
MOST_REMEMBERED = 128


class BusyError(Exception):
    """More is waiting than can be answered in time."""


@dataclass(frozen=True)
class Job:
    """A question on its way, and where its answer goes."""

    question: Hashable
    kind: Hashable
    """Questions of one kind may be answered together."""
    answer: "Future[bytes]"


class Worker:
    """Answers questions in the order in which they came, those of one kind together, and remembers the last answers.

    `answer_all` gets questions of one kind and returns an answer or an exception for each.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Hashable]], Sequence[bytes | Exception]],
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._answer_all = answer_all
        self._most_waiting = most_waiting
        self._waiting: deque[Job] = deque()
        self._idle: deque[Job] = deque()
        self._remembered: OrderedDict[Hashable, bytes] = OrderedDict()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)
        self._thread.start()

    @property
    def n_waiting(self) -> int:
        return len(self._waiting)

    def ask(self, question: Hashable, kind: Hashable, *, when_idle: bool = False) -> "Future[bytes]":
        """The answer to come. Cancelling it takes the question back as long as nobody works on it.

        `when_idle`: every other question comes first.
        """
        answer: Future[bytes] = Future()
        with self._changed:
            if (known := self._remembered.get(question)) is not None:
                self._remembered.move_to_end(question)
                answer.set_result(known)
                return answer
            if self._stopped or len(self._waiting) >= self._most_waiting:
                raise BusyError
            (self._idle if when_idle else self._waiting).append(Job(question, kind, answer))
            self._changed.notify()
        return answer

    def stop(self, patience: float) -> bool:
        """Take no more questions, drop those that wait; whether the one in work was finished in time."""
        with self._changed:
            self._stopped = True
            dropped = [*self._waiting, *self._idle]
            self._waiting, self._idle = deque(), deque()
            self._changed.notify()
        for job in dropped:
            job.answer.cancel()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _take(self) -> list[Job]:
        """The next job, and others of its kind that wait; nothing when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._idle or self._stopped)
            if self._stopped:
                return []
            if not self._waiting:
                return [self._idle.popleft()]
            kind = self._waiting[0].kind
            together = [job for job in self._waiting if job.kind == kind][:MOST_TOGETHER]
            taken = set(map(id, together))
            self._waiting = deque(job for job in self._waiting if id(job) not in taken)
        return together

    def _work(self) -> None:
        while jobs := self._take():
            jobs = [job for job in jobs if job.answer.set_running_or_notify_cancel()]
            if not jobs:
                continue
            asked = dict.fromkeys(job.question for job in jobs)
            answers: dict[Hashable, bytes | Exception] = {
                q: self._remembered[q] for q in asked if q in self._remembered
            }
            new = [question for question in asked if question not in answers]
            try:
                answers |= zip(new, self._answer_all(new) if new else (), strict=True)
            except Exception as error:
                answers |= dict.fromkeys(new, error)
            for job in jobs:
                answer = answers[job.question]
                if isinstance(answer, Exception):
                    job.answer.set_exception(answer)
                else:
                    self._remember(job.question, answer)
                    job.answer.set_result(answer)

    def _remember(self, question: Hashable, answer: bytes) -> None:
        with self._changed:
            self._remembered[question] = answer
            if len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
