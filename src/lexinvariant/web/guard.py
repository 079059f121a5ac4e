"""What every answer has in common: who may ask, and what a browser may do with the answer."""

import ipaddress
from collections.abc import Mapping

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
    """Refuses requests that are meant for another host, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, served_as: str) -> None:
        self.app = app
        self.served_as = served_as

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if may_ask(Headers(scope=scope).get("host", ""), self.served_as):
            await self.app(scope, receive, send_guarded)
            return
        refusal = JSONResponse(
            {"error": "This server does not answer for that host: use its own address."}, 421
        )
        await refusal(scope, receive, send_guarded)
