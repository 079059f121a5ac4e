"""One model, and all that is asked of it."""

import json
from collections.abc import Hashable
from concurrent.futures import Future
from typing import Any

import lexinvariant
from lexinvariant.api import Model
from lexinvariant.decipher.solve import Decipherment, Solver
from lexinvariant.decipher.symbol_posterior import check_head
from lexinvariant.decipher.trace import LENGTHS, Trace, trace
from lexinvariant.web.examples import MESSAGE, examples
from lexinvariant.web.requests import CipherRequest, DecipherRequest, TraceRequest
from lexinvariant.web.worker import Worker


class Service:
    """Readings and traces of one model, made by one worker."""

    def __init__(
        self, model: Model, name: str, *, solver: Solver | None = None, warm_up: bool = True
    ) -> None:
        check_head(model)  # without it no question could be answered: better told at the start
        self.model, self.name = model, name
        self.solver = solver or Solver(model)
        self.worker = Worker(self._answer)
        self.warming: list[Future[bytes]] = []
        for example in examples() if warm_up else []:
            # Their programs are then compiled before anyone asks, and a click on an example is answered at once.
            asked = {name: example[name] for name in ("text", "alphabet", "unspaced")}
            self.warming += [
                self.ask(kind(**asked), when_idle=True) for kind in (DecipherRequest, TraceRequest)
            ]
        for n in LENGTHS if warm_up else ():
            self.warming.append(self.ask(TraceRequest((MESSAGE * 2)[:n]), when_idle=True))

    def ask(self, question: CipherRequest, *, when_idle: bool = False) -> "Future[bytes]":
        """The answer to come, as JSON."""
        return self.worker.ask(question, when_idle=when_idle)

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

    def _answer(self, question: Hashable) -> bytes:
        assert isinstance(question, CipherRequest)
        known: dict[str, Any] = {
            "cribs": question.cribs,
            "crib_text": question.crib_text,
            "alphabet": question.alphabet,
            "unspaced": question.unspaced,
        }
        answer: Decipherment | Trace
        if isinstance(question, DecipherRequest):
            answer = self.solver.read([question.symbols], **known, top=question.top)[0]
        else:
            answer = trace(self.model, question.symbols, **known)
        return json.dumps(
            answer.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
