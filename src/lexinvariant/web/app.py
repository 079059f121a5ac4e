"""The ASGI application: the static page and the JSON interface."""

import asyncio
import logging
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from lexinvariant.errors import UserError
from lexinvariant.web.guard import Guard
from lexinvariant.web.openapi import openapi
from lexinvariant.web.requests import (
    MAX_QUOTED,
    DecipherRequest,
    EncipherRequest,
    Question,
    RequestError,
    TraceRequest,
    WordsRequest,
    parse,
)
from lexinvariant.web.service import Service
from lexinvariant.web.worker import BusyError

log = logging.getLogger("lexinvariant.web")
FOLDER = Path(__file__).parent
LONGEST_WAIT = 10  # time limits that a question waits while no other is taken up: all threads are stuck
# Some systems know another type, and with it no browser runs a module.
mimetypes.add_type("text/javascript", ".js")


@dataclass(frozen=True)
class Limits:
    """What one request may take."""

    body_bytes: int = 1_000_000
    seconds: float = 60.0
    """Of work on an answer; the wait for others does not count."""
    body_seconds: float = 15.0
    """A body must be there by then."""


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status, headers)


async def read_body(request: Request, limits: Limits) -> bytes:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        # Another site's page cannot send this type without asking first, and is then refused.
        raise RequestError(415, "Send the body as JSON, with the header 'Content-Type: application/json'.")
    body, parts = bytearray(), request.stream()
    announced = request.headers.get("content-length", "0")
    too_large = announced.isdecimal() and int(announced[:20]) > limits.body_bytes
    try:
        async with asyncio.timeout(limits.body_seconds):
            while not too_large and (part := await anext(parts, None)) is not None:
                body += part
                too_large = len(body) > limits.body_bytes
    except TimeoutError as error:
        raise RequestError(408, "The body did not arrive in time: send it again.") from error
    if too_large:  # and what there is of it is dropped by the guard
        raise RequestError(413, f"This is larger than {limits.body_bytes:,} bytes: send a shorter text.")
    return bytes(body)


async def wait_for(request: Request, service: Service, question: Question, limits: Limits) -> Response:
    """The answer, unless it takes too long; a client that has gone takes its question along."""
    future = service.ask(question)
    coming = asyncio.wrap_future(future)
    asked, worked = monotonic(), 0.0
    while True:
        in_work, before = future.running(), monotonic()
        if (await asyncio.wait({coming}, timeout=min(0.25, limits.seconds / 4)))[0]:
            return Response(coming.result(), media_type="application/json")
        worked += monotonic() - before if in_work else 0.0
        stood_still = monotonic() - max(asked, service.worker.last_taken)
        if worked >= limits.seconds or stood_still >= LONGEST_WAIT * limits.seconds:
            coming.cancel()
            future.cancel()
            raise RequestError(
                504, f"No answer within {limits.seconds:g} seconds: try again, or send a shorter text."
            )
        if await request.is_disconnected():
            coming.cancel()
            future.cancel()
            raise ClientDisconnect


async def explain(request: Request, error: Exception) -> Response:
    """Whatever goes wrong, the client gets a status and a sentence."""
    match error:
        case RequestError():
            return refusal(error.status, str(error))
        case UserError():
            return refusal(422, str(error))
        case BusyError():
            busy = "Too many questions are waiting: try again in a moment."
            return refusal(503, busy, {"Retry-After": "5"})
        case ClientDisconnect():
            return refusal(400, "The connection was cut off.")
        case HTTPException():
            path, method = request.url.path[:MAX_QUOTED], request.method[:MAX_QUOTED]
            sentences = {
                404: f"There is nothing at {path}: the interface is at /api/, the page at /.",
                405: f"{method} is not possible at {path}.",
            }
            sentence = sentences.get(error.status_code, error.detail)
            return refusal(error.status_code, sentence, dict(error.headers or {}))
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal(500, "Something went wrong here: the server's log has the details.")


def create_app(service: Service, limits: Limits = Limits(), served_as: str = "localhost") -> ASGIApp:  # noqa: B008
    """The application around a service; `served_as` is the host name it answers for besides addresses."""

    def ask(
        kind: type[DecipherRequest] | type[TraceRequest] | type[WordsRequest],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                question = parse(await read_body(request, limits), kind)
                return await wait_for(request, service, question, limits)
            except asyncio.CancelledError:
                return refusal(503, "The server is stopping.")

        return endpoint

    async def encipher(request: Request) -> Response:
        return JSONResponse(parse(await read_body(request, limits), EncipherRequest).answer())

    async def show_examples(request: Request) -> Response:
        return JSONResponse({"examples": service.examples()})

    async def health(request: Request) -> Response:
        return JSONResponse(service.health())

    async def describe(request: Request) -> Response:
        return JSONResponse(openapi())

    async def page(request: Request) -> Response:
        return FileResponse(FOLDER / "index.html")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        # What is in work may take a moment; what waits is dropped, or a full queue would hold up the end.
        await asyncio.to_thread(service.worker.stop, 1.0)

    interface = [
        Route("/decipher", ask(DecipherRequest), methods=["POST"]),
        Route("/trace", ask(TraceRequest), methods=["POST"]),
        Route("/words", ask(WordsRequest), methods=["POST"]),
        Route("/encipher", encipher, methods=["POST"]),
        Route("/examples", show_examples),
        Route("/health", health),
    ]
    explained = (RequestError, UserError, BusyError, ClientDisconnect, HTTPException, Exception)
    app = Starlette(
        routes=[
            Mount("/api", routes=interface),
            Route("/openapi.json", describe),
            Route("/", page),
            Mount("/", StaticFiles(directory=FOLDER / "static")),
        ],
        exception_handlers=dict.fromkeys(explained, explain),
        lifespan=lifespan,
    )
    return Guard(app, served_as, limits.body_seconds)
