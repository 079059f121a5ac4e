"""The ASGI application: the static page and the JSON interface."""

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from time import monotonic
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lexinvariant.errors import UserError
from lexinvariant.web.examples import examples
from lexinvariant.web.guard import Guard
from lexinvariant.web.requests import (
    LONGEST_NAME,
    Decipher,
    RequestError,
    TraceRequest,
    decipher_request,
    encipher_request,
    parse_json,
    trace_request,
)
from lexinvariant.web.service import Service
from lexinvariant.web.worker import BusyError

log = logging.getLogger("lexinvariant.web")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
LONGEST_WAIT = 10  # time limits that a question waits while no other is taken up: all threads are stuck
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Limits:
    """What one request may take."""

    body_bytes: int = 1_000_000
    seconds: float = 60.0
    """Of work on an answer; the wait for others does not count."""
    body_seconds: float = 15.0
    """A body must be there by then."""


def answer(value: Any, status: int = 200) -> Response:
    body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    return Response(body, status, media_type="application/json")


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    response = answer({"error": sentence}, status)
    response.headers.update(headers or {})
    return response


async def read_object(request: Request, limits: Limits) -> dict[str, Any]:
    """The JSON object that a request brings, or a sentence about what it brings instead."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        # Another site's page cannot send this type without asking first, and is then refused.
        raise RequestError(415, "Send the body as JSON, with the header 'Content-Type: application/json'.")
    body, n_read = bytearray(), 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                n_read += len(part)
                if n_read <= limits.body_bytes:
                    body += part
                elif n_read > 20 * limits.body_bytes:
                    break  # a little more than the limit is read and dropped: most clients listen only after sending
    except TimeoutError as error:
        raise RequestError(408, "The body did not arrive in time: send it again.") from error
    if n_read > limits.body_bytes:
        raise RequestError(413, f"This is larger than {limits.body_bytes:,} bytes: send a shorter text.")
    return parse_json(bytes(body))


async def wait_for(
    request: Request, service: Service, question: Decipher | TraceRequest, limits: Limits
) -> Response:
    """The answer, unless it takes too long; a client that has gone takes its question along."""
    future = service.ask(question)
    coming = asyncio.wrap_future(future)
    asked, worked = monotonic(), 0.0
    while True:
        in_work, before = future.running(), monotonic()
        if (await asyncio.wait({coming}, timeout=min(0.25, limits.seconds / 4)))[0]:
            return answer(coming.result())
        worked += monotonic() - before if in_work else 0.0
        stood_still = monotonic() - max(asked, service.worker.last_taken)
        if worked >= limits.seconds or stood_still >= LONGEST_WAIT * limits.seconds:
            future.cancel()
            return refusal(
                504, f"No answer within {limits.seconds:g} seconds: try again, or send a shorter text."
            )
        if await request.is_disconnected():
            future.cancel()
            raise ClientDisconnect


def errors_as_json(endpoint: Endpoint) -> Endpoint:
    """Whatever goes wrong, the client gets a status and a sentence."""

    async def call(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RequestError as error:
            return refusal(error.status, str(error))
        except UserError as error:
            return refusal(422, str(error))
        except BusyError:
            return refusal(
                503, "Too many questions are waiting: try again in a moment.", {"Retry-After": "5"}
            )
        except asyncio.CancelledError:
            return refusal(503, "The server is stopping.")
        except ClientDisconnect:
            return refusal(400, "The connection was cut off.")
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return refusal(500, "Something went wrong here: the server's log tells what.")

    return call


def create_app(service: Service, limits: Limits = Limits(), served_as: str = "localhost") -> ASGIApp:  # noqa: B008
    """The application around a service; `served_as` is the host name it answers for besides addresses."""

    @errors_as_json
    async def decipher(request: Request) -> Response:
        question = decipher_request(await read_object(request, limits))
        return await wait_for(request, service, question, limits)

    @errors_as_json
    async def trace(request: Request) -> Response:
        question = trace_request(await read_object(request, limits))
        return await wait_for(request, service, question, limits)

    @errors_as_json
    async def encipher(request: Request) -> Response:
        question = encipher_request(await read_object(request, limits), fresh_seed=secrets.randbelow(2**53))
        return answer(question.answer())

    @errors_as_json
    async def show_examples(request: Request) -> Response:
        return answer({"examples": examples()})

    @errors_as_json
    async def health(request: Request) -> Response:
        return answer(service.health())

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentences = {
            404: f"There is nothing at {request.url.path[:LONGEST_NAME]}: the interface is at /api/, the page at /.",
            405: f"{request.method[:LONGEST_NAME]} is not possible at {request.url.path}.",
        }
        sentence = sentences.get(error.status_code, error.detail)
        return refusal(error.status_code, sentence, dict(error.headers or {}))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        # What is in work may take a moment; what waits is dropped, or a full queue would hold up the end.
        await asyncio.to_thread(service.worker.stop, 1.0)

    app = Starlette(
        routes=[
            Route("/api/decipher", decipher, methods=["POST"]),
            Route("/api/trace", trace, methods=["POST"]),
            Route("/api/encipher", encipher, methods=["POST"]),
            Route("/api/examples", show_examples),
            Route("/api/health", health),
            *static_routes(),
        ],
        exception_handlers={HTTPException: refuse},
        lifespan=lifespan,
    )
    return Guard(app, served_as)


def static_routes() -> list[Route]:
    """One route a file, read once: no path of a request ever touches the disk."""

    def route(path: str, body: bytes, media_type: str) -> Route:
        async def show(request: Request) -> Response:
            return Response(body, media_type=media_type)

        return Route(path, show)

    files = [
        file for file in resources.files("lexinvariant.web").joinpath("static").iterdir() if file.is_file()
    ]
    routes = []
    for file in sorted(files, key=lambda file: file.name):
        media_type = TYPES.get(file.name[file.name.rindex(".") :])
        if media_type is not None:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            routes.append(route(path, file.read_bytes(), media_type))
    return routes
