"""Clients of all sorts at once: those who ask for a reading, for a long one or many, for nonsense, those who go before
they are answered, and those who send a few bytes at a time. Every answer has to be the one that was due, and to be as
the server's own description says; who is told to come back later (503 with Retry-After) does so until there is one.
"""

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pydoc_data.topics import topics
from typing import Any

import jsonschema_rs

from lexinvariant.web.requests import EncipherRequest

PATIENCE = 600.0  # seconds until a client thinks that the server hangs
JSON = {"Content-Type": "application/json"}
PROSE = " ".join("\n".join(text for _, text in sorted(topics.items())).split())
Reply = tuple[int, http.client.HTTPMessage, bytes]


def enciphered(draw: random.Random, n: int, into: Any = "letters") -> str:
    plain = ""
    while sum(map(str.isalpha, plain)) < 8:  # some stretches are rows of dashes
        start = draw.randrange(len(PROSE) - n)
        plain = PROSE[start : start + n]
    return EncipherRequest(plain, into, seed=draw.randrange(2**53)).answer()["ciphertext"]


@dataclass
class Load:
    """What clients of one server do, and what became of it."""

    address: tuple[str, int]
    longest: int = 4_000
    """Letters of a text."""
    with_words: bool = False
    """Whether the server has a model that names words."""
    answered: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    n_left: int = 0
    """Clients that went without waiting."""
    n_put_off: int = 0
    """Times that a client was told to come back."""
    n_begun: int = 0
    _begun: set[str] = field(default_factory=set)
    _validators: dict[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        api = json.loads(self._ask("GET", "/openapi.json")[2])
        for path, operations in api["paths"].items():
            [operation] = operations.values()
            answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
            self._validators[path] = jsonschema_rs.validator_for(answer | {"components": api["components"]})

    def run(self, n_clients: int, going_on: Callable[[int], bool], seed: int = 0) -> None:
        """So many clients ask one thing after another, as long as `going_on` of the number of requests."""
        threads = [
            threading.Thread(target=self._client, args=(random.Random(f"{seed}/{number}"), going_on))
            for number in range(n_clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        if any(thread.is_alive() for thread in threads):
            self.failures.append("a client hangs")

    def percentiles(self) -> dict[str, tuple[float, ...]]:
        """Of each kind of request, and of all: how many there were, and the seconds that half, 95%, 99% and all of them
        took at most.
        """
        found = {}
        everything = {"all": [second for seconds in self.seconds.values() for second in seconds]}
        for kind, seconds in (dict(sorted(self.seconds.items())) | everything).items():
            seconds = sorted(seconds)
            found[kind] = (
                len(seconds),
                *(seconds[int(q * (len(seconds) - 1))] for q in (0.5, 0.95, 0.99, 1)),
            )
        return found

    def _client(self, draw: random.Random, going_on: Callable[[int], bool]) -> None:
        # Traces and ciphers of all characters take a second of work and more each, letters a third of that, and most
        # requests none: 5,000 of them are to keep two cores busy for less than ten minutes.
        kinds = {
            self._short: 10,
            self._long: 1.5,
            self._characters: 1,
            self._traced: 2,
            self._words: 2,
            self._many: 0.3,
            self._enciphered: 26,
            self._looked_up: 32,
            self._nonsense: 22,
            self._leaving: 1.5,
            self._slow: 1,
        }
        while going_on(self.n_begun):
            with self._lock:  # one of each to begin with
                first = next((kind for kind in kinds if kind.__name__ not in self._begun), None)
                [kind] = [first] if first else draw.choices(list(kinds), list(kinds.values()))
                self._begun.add(kind.__name__)
            began = time.monotonic()
            try:
                kind(draw)
            except Exception as error:
                with self._lock:
                    self.failures.append(f"{kind.__name__}: {error!r}")
            with self._lock:
                self.seconds.setdefault(kind.__name__.strip("_"), []).append(time.monotonic() - began)

    def _short(self, draw: random.Random) -> None:
        text = enciphered(
            draw, draw.randint(30, min(250, self.longest)), draw.choice(["letters", "letters", "shapes"])
        )
        self._question("/api/decipher", {"text": text, "top": draw.randint(0, 5)})

    def _long(self, draw: random.Random) -> None:
        self._question(
            "/api/decipher", {"text": enciphered(draw, draw.randint(self.longest // 4, self.longest))}
        )

    def _characters(self, draw: random.Random) -> None:
        self._question(
            "/api/decipher", {"text": enciphered(draw, draw.randint(60, min(500, self.longest)), "ascii")}
        )

    def _traced(self, draw: random.Random) -> None:
        self._question("/api/trace", {"text": enciphered(draw, draw.randint(20, min(700, self.longest)))})

    def _words(self, draw: random.Random) -> None:
        text = enciphered(draw, draw.randint(100, min(1_500, self.longest)), "words")
        self._question("/api/words", {"text": text}, 200 if self.with_words else 422)

    def _many(self, draw: random.Random) -> None:
        """A program that has several texts, on one connection."""
        with closing(self._connection()) as connection:
            for _ in range(6):
                self._question("/api/decipher", {"text": enciphered(draw, 100)}, connection=connection)

    def _enciphered(self, draw: random.Random) -> None:
        self._question("/api/encipher", {"text": PROSE[: draw.randint(0, 3_000)]})

    def _looked_up(self, draw: random.Random) -> None:
        path = draw.choice(["/", "/openapi.json", "/api/examples", "/api/health"])
        self._check(path, 200, *self._ask("GET", path))

    def _nonsense(self, draw: random.Random) -> None:
        method, path, body, headers, due = draw.choice(
            [
                ("POST", "/api/decipher", b"{", JSON, 400),
                ("POST", "/api/decipher", b"[" * 10_000, JSON, 400),
                ("POST", "/api/trace", b"\xff", JSON, 400),
                ("POST", "/api/decipher", b'{"text": "abc", "top": -1}', JSON, 422),
                ("POST", "/api/decipher", b'{"text": ""}', JSON, 422),
                ("POST", "/api/trace", b'{"text": "abc", "no": 1}', JSON, 422),
                ("POST", "/api/encipher", b'{"text": "abc", "seed": 1e400}', JSON, 422),
                ("POST", "/api/decipher", b"{}", {}, 415),
                ("POST", "/api/decipher", b" " * 1_100_000, JSON, 413),
                ("GET", "/api/decipher", b"", {}, 405),
                ("GET", "/api/nothing", b"", {}, 404),
                ("GET", "/api/health", b"", {"Host": "elsewhere.example"}, 421),
            ]
        )
        self._check(path, due, *self._ask(method, path, body, headers))

    def _leaving(self, draw: random.Random) -> None:
        with closing(self._connection()) as connection:
            body = json.dumps({"text": enciphered(draw, draw.randint(100, self.longest))}).encode()
            self._count()
            connection.request("POST", "/api/decipher", body, JSON)
            time.sleep(draw.random() * 2)
        with self._lock:
            self.n_left += 1

    def _slow(self, draw: random.Random) -> None:
        body = json.dumps({"text": enciphered(draw, 60)}).encode()

        def parts() -> Any:
            for start in range(0, len(body), 20):
                time.sleep(draw.random() * 0.5)
                yield body[start : start + 20]

        headers = JSON | {"Content-Length": str(len(body))}
        self._check("/api/decipher", 200, *self._ask("POST", "/api/decipher", parts, headers))

    def _question(
        self, path: str, value: Any, due: int = 200, connection: http.client.HTTPConnection | None = None
    ) -> None:
        body = json.dumps(value).encode()
        self._check(path, due, *self._ask("POST", path, body, JSON, connection))

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.address, timeout=PATIENCE)

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = b"",
        headers: dict[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Reply:
        """The first answer that is not to come back later; `body` may be a function that makes one."""
        self._count()
        with nullcontext(connection) if connection else closing(self._connection()) as used:
            while True:
                used.request(method, path, body() if callable(body) else body, headers or {})
                answer = used.getresponse()
                reply = answer.status, answer.headers, answer.read()
                if answer.status != 503 or "Retry-After" not in answer.headers:
                    return reply
                with self._lock:
                    self.n_put_off += 1
                time.sleep(float(answer.headers["Retry-After"]))

    def _count(self) -> None:
        with self._lock:
            self.n_begun += 1

    def _check(self, path: str, due: int, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        with self._lock:
            self.answered[status] += 1
        assert status == due, (path, due, status, body[:200])
        if status == 200 and path in self._validators:
            self._validators[path].validate(json.loads(body))
        elif status != 200:
            assert json.loads(body).keys() == {"error"}, (path, status, body[:200])
