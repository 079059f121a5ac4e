"""What every answer has in common: who may ask, and what a browser may do with the answer."""

import asyncio
import ipaddress
from collections.abc import Mapping
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(f"{what} {where}" for what, where in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def may_ask(host_header: str, served_as: str) -> bool:
    """Whether a request for this host is meant for this server.

    A page elsewhere can point a name of its own at this machine (DNS rebinding) and so read what only we should.
    It cannot do that with an address: only addresses, localhost and the name we were told to serve are answered.
    """
    host = host_header.strip().lower()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    if host in ("localhost", served_as.lower()):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Guard:
    """Refuses requests that are meant for another host, puts the headers on every answer, and sees to it that an answer
    can be heard: most clients listen only when they have sent all of a body, so what nobody has read of it is read and
    dropped first, for as long as a body may take.
    """

    def __init__(self, app: ASGIApp, served_as: str, body_seconds: float) -> None:
        self.app = app
        self.served_as = served_as
        self.body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        # Files are small and sent whole: what is wrong with a range would be answered in plain text.
        scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"range"]}
        headers = Headers(scope=scope)
        began, all_there = False, False

        async def receive_noted() -> Message:
            nonlocal began, all_there
            message = await receive()
            began, all_there = True, not message.get("more_body", False)
            return message

        async def drop_the_rest() -> None:
            # Who asked leave to send a body gets none, and need not send it.
            if all_there or (not began and headers.get("expect", "").lower() == "100-continue"):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self.body_seconds):
                    while not all_there:
                        await receive_noted()

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                await drop_the_rest()
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if may_ask(headers.get("host", ""), self.served_as):
            await self.app(scope, receive_noted, send_guarded)
            return
        refusal = JSONResponse(
            {"error": "This server does not answer for that host: use its own address."}, 421
        )
        await refusal(scope, receive_noted, send_guarded)
