"""A connection that must ask for something within a time, and take its answer: uvicorn waits for both without end."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""From the first moment of a connection, or the first byte of a further request, to the end of the request's head."""
SEND_SECONDS = 30.0
"""For an answer to be taken by a client that does not listen. A connection that is only closed waits for that too."""


class Connection(H11Protocol):
    """Closed when it keeps us waiting, so that half-open ones do not add up."""

    _late: asyncio.TimerHandle | None = None
    _deaf: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)  # which resumes writing

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deaf = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._deaf is not None:
            self._deaf.cancel()
            self._deaf = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.loop.call_later(SEND_SECONDS, self.transport.abort)

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
