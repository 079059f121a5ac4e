"""One real server on a free port, with a model that was never trained."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from lexinvariant.api import load
from lexinvariant.cli.serve import address, listen
from lexinvariant.decipher.solve import Solver
from lexinvariant.web.app import Limits, create_app
from lexinvariant.web.connection import Connection
from lexinvariant.web.service import Service
from lexinvariant.web.worker import Worker


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json", self.body
        return json.loads(self.body)


@dataclass(frozen=True)
class Site:
    """Where a server listens, and how to ask it."""

    url: str

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        host, port = self.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, value: Any) -> Answer:
        return self.ask("POST", path, json.dumps(value).encode(), {"Content-Type": "application/json"})


@contextmanager
def serve(
    model: Path, limits: Limits, worker: Worker | None = None, word_model: Path | None = None
) -> Iterator[Site]:
    loaded = load(model)
    service = Service(
        loaded,
        "tiny",
        word_model=load(word_model) if word_model else None,
        solver=Solver(loaded, use_judge=False),
        warm_up=False,
    )
    if worker is not None:
        service.worker.stop(10)
        service.worker = worker
    listening = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        create_app(service, limits), http=Connection, ws="none", lifespan="on", log_level="warning"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Site(address(listening))
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def site(tiny_model: Path) -> Iterator[Site]:
    with serve(tiny_model, Limits(body_bytes=20_000)) as site:
        yield site


@pytest.fixture(scope="session")
def word_site(tiny_model: Path, word_model: Path) -> Iterator[Site]:
    """A server that can name words as well."""
    with serve(tiny_model, Limits(), word_model=word_model) as site:
        yield site


@pytest.fixture(scope="session")
def serve_with(tiny_model: Path) -> Callable[[Limits, Worker], AbstractContextManager[Site]]:
    """A server of its own, with a worker of the test's own."""
    return lambda limits, worker: serve(tiny_model, limits, worker)
