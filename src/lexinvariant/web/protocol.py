"""HTTP as uvicorn speaks it, but what is no HTTP is refused like everything else: in JSON, with our headers."""

import json

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from lexinvariant.web.guard import HEADERS


class Protocol(H11Protocol):
    """One connection."""

    def send_400_response(self, msg: str) -> None:
        body = json.dumps(
            {"error": "This is no request in HTTP/1.1: check its first line and its headers."}
        ).encode()
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
            **HEADERS,
        }
        answer = [
            h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in answer:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
