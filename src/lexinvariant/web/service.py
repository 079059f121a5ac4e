"""The models of a page, and all that is asked of them."""

import json
from collections.abc import Hashable
from time import perf_counter
from typing import Any

import lexinvariant
from lexinvariant.api import Model
from lexinvariant.decipher.arguments import note_on_cribs
from lexinvariant.decipher.language import AUTO, Language, bundled_languages, load_language
from lexinvariant.decipher.solve import Solver
from lexinvariant.decipher.trace import LENGTHS, trace
from lexinvariant.decipher.votes import check_head
from lexinvariant.decipher.words import check_word_model, read_words
from lexinvariant.errors import UserError
from lexinvariant.web.examples import MESSAGE, examples, word_example
from lexinvariant.web.requests import CipherRequest, DecipherRequest, Question, TraceRequest, WordsRequest
from lexinvariant.web.worker import Answer, Worker

LONGEST_IN_WORDS = 20_000
"""Characters; all of a text in made-up words is read, so that a longer one would hold up the others."""


class Service:
    """Readings and traces of one model of characters, and readings of another one of words, made by one worker."""

    def __init__(
        self,
        model: Model,
        name: str,
        *,
        word_model: Model | None = None,
        solver: Solver | None = None,
        warm_up: bool = True,
    ) -> None:
        check_head(model)  # without it no question could be answered: better told at the start
        if word_model is not None:
            check_word_model(word_model)
        self.model, self.word_model, self.name = model, word_model, name
        self.solver = solver or Solver(model)
        self.worker = Worker(self._answer)
        self.warming: list[Answer] = []
        for example in examples() if warm_up else []:
            # Their programs are then compiled before anyone asks, and a click on an example is answered at once.
            asked = {name: example[name] for name in ("text", "alphabet", "unspaced")}
            questions = (DecipherRequest(**asked), TraceRequest(**asked, language=example["language"]))
            self.warming += [self.ask(question, when_idle=True) for question in questions]
        for n in LENGTHS if warm_up else ():
            self.warming.append(self.ask(TraceRequest((MESSAGE * 2)[:n]), when_idle=True))
        if word_model is not None and warm_up:
            self.warming.append(self.ask(WordsRequest(word_example()["text"]), when_idle=True))

    def examples(self) -> list[dict[str, Any]]:
        return examples() + ([word_example()] if self.word_model is not None else [])

    def ask(self, question: Question, *, when_idle: bool = False) -> Answer:
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
            "names_words": self.word_model is not None,
            "languages": bundled_languages(),
            "waiting": self.worker.n_waiting,
        }

    def _answer(self, question: Hashable) -> bytes:
        assert isinstance(question, Question)
        answer = self._read_words(question) if isinstance(question, WordsRequest) else self._read(question)
        return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def _read(self, question: CipherRequest) -> dict[str, Any]:
        known: dict[str, Any] = {
            "cribs": question.cribs,
            "crib_text": question.crib_text,
            "alphabet": question.alphabet,
            "unspaced": question.unspaced,
            "notation": question.notation,
        }
        language = _language(question.language)
        if isinstance(question, TraceRequest):
            if question.folded:
                language = (language or load_language()).spellings[-1]
            return trace(self.model, question.text, **known, language=language).to_json()
        assert isinstance(question, DecipherRequest)
        known |= {"crib_words": question.crib_words, "top": question.top}
        solver = self.solver if language is None else Solver(self.model, language=language)
        found = solver.read([question.text], **known)[0]
        return found.to_json() | {"note": note_on_cribs(found, question.cribs, question.crib_words)}

    def _read_words(self, question: WordsRequest) -> dict[str, Any]:
        if self.word_model is None:
            raise UserError(
                "This server has no model that names words: start it with --model and a lexinvariant model of tokens."
            )
        if len(question.text) > LONGEST_IN_WORDS:
            raise UserError(
                f"Up to {LONGEST_IN_WORDS:,} characters of made-up words are read here at a time: send a shorter text, "
                "or use `lexinvariant semantic`."
            )
        before = perf_counter()
        reading = read_words(self.word_model, question.text, marks_too=question.marks_too)
        number = {word: s for s, word in enumerate(reading.words)}
        # The text as read, and the number of each word in it: a page need not find words itself.
        pieces = [[piece, number.get(word or "", -1)] for piece, word in reading.pieces() if piece]
        return reading.to_json(question.top) | {
            "pieces": pieces,
            "seconds": round(perf_counter() - before, 3),
        }


def _language(name: str) -> Language | None:
    """The language of this name; None where it is to be found out."""
    if name == AUTO:
        return None
    if name not in bundled_languages():
        raise UserError(f"There is no language {name!r}: give {AUTO} or {', '.join(bundled_languages())}.")
    return load_language(name)
