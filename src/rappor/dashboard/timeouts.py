"""Timeouts for slow clients: for headers, for a body, and for reading the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0  # from the start of a connection or a request to the end of its headers
BODY_SECONDS = 120.0  # to send a form; the largest upload has 64 MB
READING_SECONDS = 60.0  # for a client that reads no byte of its answer
MAX_CONNECTIONS = 512  # at once; a browser opens six


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol; it closes connections that are too slow."""

    header_seconds = HEADER_SECONDS
    reading_seconds = READING_SECONDS
    _headers: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Parse what came; line ends between two requests begin none, and stop the idle clock."""
        super().data_received(data)
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self._headers is None and self.timeout_keep_alive_task is None:
            self._wait_for_headers()

    def on_message_begin(self) -> None:
        """Start the timer for the headers of another request."""
        if self._headers is None:
            self._wait_for_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the timer."""
        _cancel(self._headers)
        self._headers = None
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Start the timer for the client to read."""
        super().pause_writing()
        if self._reader is None:
            self._reader = self.loop.call_later(self.reading_seconds, self._end)

    def resume_writing(self) -> None:
        """Stop the timer."""
        _cancel(self._reader)
        self._reader = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        _cancel(self._headers)
        _cancel(self._reader)
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        self._headers = self.loop.call_later(self.header_seconds, self._end)

    def _end(self) -> None:
        self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
