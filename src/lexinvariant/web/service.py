"""One model, and all that is asked of it."""

import json
import logging
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from typing import Any

import lexinvariant
from lexinvariant.decipher.solve import Solver
from lexinvariant.decipher.trace import LENGTHS, trace
from lexinvariant.errors import UserError
from lexinvariant.model.api import Model
from lexinvariant.web.examples import MESSAGE, examples
from lexinvariant.web.requests import Decipher, TraceRequest
from lexinvariant.web.worker import Worker

log = logging.getLogger("lexinvariant.web")


class Service:
    """Readings and traces of one model, made by one worker."""

    def __init__(
        self, model: Model, name: str, *, solver: Solver | None = None, warm_up: bool = True
    ) -> None:
        self.model, self.name = model, name
        self.solver = solver or Solver(model)
        self.worker = Worker(self._answer_all)
        self.warming: list[Future[bytes]] = []
        for example in examples() if warm_up else []:
            # Their programs are then compiled before anyone asks, and a click on an example is answered at once.
            asked = {name: example[name] for name in ("text", "alphabet", "unspaced")}
            self.warming += [
                self.ask(question, when_idle=True) for question in (Decipher(**asked), TraceRequest(**asked))
            ]
        for n in LENGTHS if warm_up else ():
            self.warming.append(self.ask(TraceRequest((MESSAGE * 2)[:n]), when_idle=True))

    def ask(self, question: Decipher | TraceRequest, *, when_idle: bool = False) -> "Future[bytes]":
        """The answer to come, as JSON."""
        return self.worker.ask(question, _kind(question), when_idle=when_idle)

    def health(self) -> dict[str, Any]:
        config = self.model.config
        return {
            "status": "ready" if all(future.done() for future in self.warming) else "warming up",
            "version": lexinvariant.__version__,
            "model": self.name,
            "symbols": config.vocab_size,
            "context": config.context,
            "waiting": self.worker.n_waiting,
        }

    def _answer_all(self, questions: Sequence[Hashable]) -> Sequence[bytes | Exception]:
        if isinstance(questions[0], Decipher) and len(questions) > 1:
            try:
                return self._read_together(questions)  # type: ignore[arg-type]
            except UserError:
                pass  # one of them is to blame, and the others should not pay for it
        return [self._answer(question) for question in questions]

    def _answer(self, question: Hashable) -> bytes | Exception:
        try:
            if isinstance(question, Decipher):
                return self._read_together([question])[0]
            assert isinstance(question, TraceRequest)
            traced = trace(
                self.model,
                question.text,
                dict(question.cribs),
                alphabet=question.alphabet,
                unspaced=question.unspaced,
            )
            return _json(traced.to_json())
        except UserError as error:
            return error
        except Exception as error:
            log.exception("a question could not be answered")
            return error

    def _read_together(self, questions: Sequence[Decipher]) -> list[bytes]:
        first = questions[0]
        readings = self.solver.read(
            [question.text for question in questions],
            cribs=dict(first.cribs),
            alphabet=first.alphabet,
            unspaced=first.unspaced,
            top=first.top,
        )
        return [_json(reading.to_json()) for reading in readings]


def _kind(question: Decipher | TraceRequest) -> Hashable:
    if isinstance(question, TraceRequest):
        return TraceRequest
    return Decipher, question.cribs, question.alphabet, question.unspaced, question.top


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
