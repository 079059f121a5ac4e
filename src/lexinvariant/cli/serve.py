"""`lexinvariant serve`: a local page that shows a model deciphering."""

import contextlib
import os
import socket
import sys
import threading
import webbrowser
from dataclasses import dataclass
from pathlib import Path

import tyro

from lexinvariant.checks import finite_number
from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.errors import UserError
from lexinvariant.web.memory import share_arenas


@dataclass(frozen=True)
class Arguments:
    """Serve a page for your browser: paste or encipher a text, and watch the model work out its key.

    Works without a network. The same server has a JSON API, described in docs/api.md. Ctrl-C stops it.

    example: lexinvariant serve --open
    """

    model: str = "bundled"
    """A model's folder, OWNER/NAME on the Hugging Face Hub, or `bundled`: the one that comes with the package. A model
    of tokens reads texts in made-up words, beside the bundled one, which reads ciphers of characters."""
    host: str = "127.0.0.1"
    """Address to listen on. With any but your own machine's, whoever reaches it can use the page."""
    port: int = 8765
    """Port to listen on; 0 takes any free one."""
    open: bool = False
    """Open the page in your browser."""
    time_limit: float = 60.0
    """Seconds of work on one answer, not counting the wait for others."""
    warm_up: bool = True
    """Read the examples in advance, so that the first answers are quick."""


def main(argv: list[str]) -> int:
    arguments = tyro.cli(Arguments, args=argv, prog="lexinvariant serve")
    if finite_number(arguments.time_limit, "--time-limit") <= 0:
        raise UserError(
            f"A time limit of {arguments.time_limit:g} seconds leaves no time to answer: give a number above 0."
        )
    keep_compiled_programs()
    share_arenas()
    import uvicorn

    from lexinvariant.api import load
    from lexinvariant.text import HuggingFaceVocab
    from lexinvariant.web.app import Limits, create_app
    from lexinvariant.web.connection import Connection
    from lexinvariant.web.service import Service

    with listen(arguments.host, arguments.port) as listening:
        model = load(arguments.model)
        names_words = isinstance(model.vocab, HuggingFaceVocab)
        service = Service(
            load() if names_words else model,
            model_name(arguments.model),
            word_model=model if names_words else None,
            warm_up=arguments.warm_up,
        )
        app = create_app(service, Limits(seconds=arguments.time_limit), served_as=arguments.host)
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="on",
            log_level="critical",  # what goes wrong in an answer is logged where it is answered
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        url = address(listening)
        print(f"The page is at {url} (Ctrl-C stops it).", flush=True)
        if arguments.open:
            threading.Timer(0.5, webbrowser.open, [url]).start()
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    print("Stopped.", flush=True)
    if not service.worker.stop(patience=0):
        # A program that is being compiled cannot be interrupted, and nobody wants to wait for it.
        sys.stderr.flush()
        os._exit(0)
    return 0


def listen(host: str, port: int) -> socket.socket:
    """Taken before the model is loaded, so that a port in use is told at once."""
    if not 0 <= port <= 65535:
        raise UserError(f"There is no port {port}: give one from 0 to 65535.")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen()  # who comes before the server is ready waits and is not refused
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise UserError(
            f"Cannot listen on {host} port {port} ({error.strerror}): give another --host or --port (0 takes any "
            "free one)."
        ) from error
    return listening


def address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def model_name(place: str) -> str:
    folder = Path(place)
    return folder.resolve().name if folder.exists() else place
