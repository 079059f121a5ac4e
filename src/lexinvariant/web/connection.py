"""A connection that must ask for something within a time: uvicorn waits without end for the head of a request."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""From the first moment of a connection, or the first byte of a further request, to the end of the request's head."""


class Connection(H11Protocol):
    """Closed when it keeps us waiting, so that half-open ones do not add up."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Every byte may be the last one needed; if it was not, the clock goes on and does not start again."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forgive()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _forgive(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
