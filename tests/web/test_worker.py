"""The worker alone: order, company, memory, and the end."""

import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError

import pytest

from lexinvariant.errors import UserError
from lexinvariant.web.worker import MOST_TOGETHER, BusyError, Worker


class Desk:
    """Answers with the question itself, once the gate is open, and notes what was asked together."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.began = threading.Event()
        self.together: list[list[str]] = []

    def answer_all(self, questions: Sequence[str]) -> list[bytes | Exception]:
        self.together.append(list(questions))
        self.began.set()
        assert self.gate.wait(10)
        if "all bad" in questions:
            raise ValueError("all bad")
        return [UserError("bad") if question == "bad" else question.encode() for question in questions]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_questions_of_one_kind_are_answered_together_and_in_turn(desk: Desk) -> None:
    worker = Worker(desk.answer_all)
    first = worker.ask("a", kind=1)
    assert desk.began.wait(10)
    later = [worker.ask(*asked) for asked in (("b", 1), ("c", 2), ("d", 1), ("b", 1))]
    desk.gate.set()
    assert first.result(10) == b"a"
    assert [future.result(10) for future in later] == [b"b", b"c", b"d", b"b"]
    assert desk.together == [["a"], ["b", "d"], ["c"]]
    assert worker.stop(10)


def test_no_more_than_a_few_together(desk: Desk) -> None:
    worker = Worker(desk.answer_all)
    worker.ask("first", kind=0)
    assert desk.began.wait(10)
    futures = [worker.ask(str(i), kind=0) for i in range(2 * MOST_TOGETHER + 1)]
    desk.gate.set()
    assert [future.result(10) for future in futures] == [str(i).encode() for i in range(len(futures))]
    assert [len(part) for part in desk.together] == [1, MOST_TOGETHER, MOST_TOGETHER, 1]
    worker.stop(10)


def test_idle_work_waits_for_everything_else(desk: Desk) -> None:
    worker = Worker(desk.answer_all)
    worker.ask("first", kind=0)
    assert desk.began.wait(10)
    idle = worker.ask("idle", kind=0, when_idle=True)
    urgent = worker.ask("urgent", kind=0)
    desk.gate.set()
    assert (urgent.result(10), idle.result(10)) == (b"urgent", b"idle")
    assert desk.together == [["first"], ["urgent"], ["idle"]]
    worker.stop(10)


def test_an_answer_is_remembered_and_a_failure_is_not(desk: Desk) -> None:
    desk.gate.set()
    worker = Worker(desk.answer_all)
    assert worker.ask("a", kind=0).result(10) == worker.ask("a", kind=0).result(10) == b"a"
    assert desk.together == [["a"]]
    for _ in range(2):
        with pytest.raises(UserError, match="bad"):
            worker.ask("bad", kind=0).result(10)
    assert desk.together == [["a"], ["bad"], ["bad"]]
    worker.stop(10)


def test_the_worker_survives_what_it_cannot_answer(desk: Desk) -> None:
    desk.gate.set()
    worker = Worker(desk.answer_all)
    with pytest.raises(ValueError, match="all bad"):
        worker.ask("all bad", kind=0).result(10)
    assert worker.ask("good", kind=0).result(10) == b"good"
    worker.stop(10)


def test_a_full_queue_refuses_and_a_question_can_be_taken_back(desk: Desk) -> None:
    worker = Worker(desk.answer_all, most_waiting=2)
    worker.ask("a", kind=0)
    assert desk.began.wait(10)
    taken_back, kept = worker.ask("b", kind=0), worker.ask("c", kind=0)
    with pytest.raises(BusyError):
        worker.ask("d", kind=0)
    assert taken_back.cancel()
    desk.gate.set()
    assert kept.result(10) == b"c"
    assert desk.together == [["a"], ["c"]]
    worker.stop(10)


def test_stopping_drops_what_waits_and_tells_whether_work_was_finished(desk: Desk) -> None:
    worker = Worker(desk.answer_all)
    in_work = worker.ask("a", kind=0)
    assert desk.began.wait(10)
    waiting = worker.ask("b", kind=0)
    assert not worker.stop(0.05)
    with pytest.raises(CancelledError):
        waiting.result(10)
    with pytest.raises(BusyError):
        worker.ask("c", kind=0)
    desk.gate.set()
    assert worker.stop(10)
    assert in_work.result(10) == b"a"
