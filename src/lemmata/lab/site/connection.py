"""A connection that says nothing, or half of a request, is closed: it would hold its place for ever."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]

REQUEST_SECONDS = 5.0  # from the beginning, or from the last answer, to the end of the headers of a request


class Connection(H11Protocol):
    """HTTP as uvicorn speaks it, with an end to waiting for a request. Its own timer stops with the first byte."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._request_heard()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._request_heard()

    def on_response_complete(self) -> None:
        self._wait_for_request()
        super().on_response_complete()

    def _wait_for_request(self) -> None:
        self._request_heard()
        self._waiting = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _request_heard(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
