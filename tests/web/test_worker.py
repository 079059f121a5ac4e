"""The worker alone: order, memory, and the end."""

import threading
import time
from concurrent.futures import CancelledError

import pytest

from lexinvariant.errors import UserError
from lexinvariant.interruption import stop_if_given_up
from lexinvariant.web.worker import LARGEST_REMEMBERED, BusyError, Worker


class Desk:
    """Answers with the question itself, once the gate is open, and notes what was asked in which order."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.began = threading.Event()
        self.asked: list[str] = []

    def answer(self, question: str) -> bytes:
        self.asked.append(question)
        self.began.set()
        assert self.gate.wait(10)
        if question == "bad":
            raise UserError("bad")
        return question.encode()

    def worker(self, **options: int) -> Worker:
        return Worker(self.answer, **{"n_threads": 1, **options})  # type: ignore[arg-type]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_questions_are_answered_in_turn_and_the_same_one_once(desk: Desk) -> None:
    worker = desk.worker()
    first = worker.ask("a")
    assert desk.began.wait(10)
    later = [worker.ask(question) for question in ("b", "c", "b")]
    assert worker.n_waiting == 3
    desk.gate.set()
    assert first.result(10) == b"a"
    assert [future.result(10) for future in later] == [b"b", b"c", b"b"]
    assert desk.asked == ["a", "b", "c"]
    assert worker.stop(10)


def test_a_slow_question_holds_up_none_but_its_own_thread() -> None:
    gate = threading.Event()

    def answer(question: object) -> bytes:
        assert question == "quick" or gate.wait(10)
        return b"done"

    worker = Worker(answer, n_threads=2)
    slow = worker.ask("slow")
    assert worker.ask("quick").result(10) == b"done"
    assert not slow.done()
    gate.set()
    assert slow.result(10) == b"done"
    assert worker.stop(10)


def test_idle_work_waits_for_everything_else(desk: Desk) -> None:
    worker = desk.worker()
    worker.ask("first")
    assert desk.began.wait(10)
    idle = worker.ask("idle", when_idle=True)
    urgent = worker.ask("urgent")
    desk.gate.set()
    assert (urgent.result(10), idle.result(10)) == (b"urgent", b"idle")
    assert desk.asked == ["first", "urgent", "idle"]
    worker.stop(10)


def test_an_answer_is_remembered_and_a_failure_is_not(desk: Desk) -> None:
    desk.gate.set()
    worker = desk.worker()
    assert worker.ask("a").result(10) == worker.ask("a").result(10) == b"a"
    assert desk.asked == ["a"]
    for _ in range(2):
        with pytest.raises(UserError, match="bad"):
            worker.ask("bad").result(10)
    assert desk.asked == ["a", "bad", "bad"]
    assert worker.ask("good").result(10) == b"good"  # and the worker survives
    worker.stop(10)


def test_a_large_answer_is_not_kept() -> None:
    asked = []

    def answer(question: object) -> bytes:
        asked.append(question)
        return b"x" * (LARGEST_REMEMBERED + 1)

    worker = Worker(answer, n_threads=1)
    for _ in range(2):
        worker.ask("a").result(10)
    assert asked == ["a", "a"]
    worker.stop(10)


def test_a_large_question_is_not_kept(desk: Desk) -> None:
    desk.gate.set()
    worker = desk.worker()
    for question in ("a" * LARGEST_REMEMBERED, "b") * 2:
        worker.ask(question).result(10)
    assert [question[0] for question in desk.asked] == ["a", "b", "a"]
    worker.stop(10)


def test_a_full_queue_refuses_and_a_question_can_be_taken_back(desk: Desk) -> None:
    worker = desk.worker(most_waiting=2)
    worker.ask("a")
    assert desk.began.wait(10)
    taken_back, kept = worker.ask("b"), worker.ask("c")
    with pytest.raises(BusyError):
        worker.ask("d")
    assert taken_back.cancel()
    desk.gate.set()
    assert kept.result(10) == b"c"
    assert desk.asked == ["a", "c"]
    worker.stop(10)


def test_a_question_that_is_taken_back_makes_room_at_once(desk: Desk) -> None:
    worker = desk.worker(most_waiting=2)
    worker.ask("a")
    assert desk.began.wait(10)
    leaving = [worker.ask("b"), worker.ask("c")]
    assert all(answer.cancel() for answer in leaving)
    assert worker.n_waiting == 0
    stays = worker.ask("d")
    desk.gate.set()
    assert stays.result(10) == b"d"
    assert desk.asked == ["a", "d"]
    worker.stop(10)


def test_work_that_nobody_waits_for_ends() -> None:
    began = threading.Event()

    def answer(question: object) -> bytes:
        began.set()
        while question == "endless":
            stop_if_given_up()
            time.sleep(0.001)
        return b"done"

    worker = Worker(answer, n_threads=1)
    endless = worker.ask("endless")
    assert began.wait(10)
    endless.cancel()
    assert worker.ask("next").result(10) == b"done"
    assert worker.stop(10)


def test_stopping_drops_what_waits_and_tells_whether_work_was_finished(desk: Desk) -> None:
    worker = desk.worker()
    in_work = worker.ask("a")
    assert desk.began.wait(10)
    waiting = worker.ask("b")
    assert not worker.stop(0.05)
    with pytest.raises(CancelledError):
        waiting.result(10)
    with pytest.raises(BusyError):
        worker.ask("c")
    desk.gate.set()
    assert worker.stop(10)
    assert in_work.result(10) == b"a"
