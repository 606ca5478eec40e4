"""uvicorn's HTTP protocol with the limits that it lacks: header and body time, size, connections.

A request's headers must arrive in 5 s and its body in 10 s; headers have at most 16 KiB, and all
that belongs to a request at most 4 MiB. An answer must be read within 10 s, or fit the system's
buffers: whoever does not read is cut off. One neighbourhood has a share of the connections only,
with TLS from before the handshake on.
A few requests may follow each other without waiting for answers; more would fill the memory,
because all that one read brings is parsed at once. One sweep over the connections twice a second
costs the requests that behave nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rappor.collector.metrics import Metrics
from rappor.collector.quota import prefix
from rappor.collector.refusal import Refusal
from rappor.collector.settings import (
    ANSWER_SECONDS,
    BODY_SECONDS,
    HEADER_SECONDS,
    KIB,
    MOST_HEADER,
    MOST_MESSAGE,
    MOST_PIPELINED,
    MOST_URL,
    CollectorSettings,
)
from rappor.host import LOOPBACK_ADDRESSES

IN_HEADERS, IN_BODY, ARRIVED = 0, 1, 2


class _Flood(Exception):
    """More requests in a row than are looked at; ends the parser's work on what came."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection; subclasses made by `guarded` know the metrics and the settings."""

    metrics: Metrics
    settings: CollectorSettings
    neighbours: ClassVar[Counter[bytes]]  # connections by prefix, as long as there are any

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """As uvicorn calls it."""
        super().__init__(*arguments, **named)
        self.phase = IN_HEADERS
        self.since = self.loop.time()
        self.taken = 0  # bytes of the current request
        self.url = b""
        self.unread_since: float | None = None  # since when an answer waits to be read
        self._network: bytes | None = None

    # Typed as uvicorn does; asyncio's stubs say BaseTransport, which a stream's never is.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        HttpToolsProtocol.connection_made(self, transport)
        has_place = self.arrive("" if self.client is None else self.client[0])
        if not has_place or len(self.connections) > self.settings.most_connections:
            self.refuse("overloaded")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, whoever ended it."""
        HttpToolsProtocol.connection_lost(self, exc)
        self.leave()

    def arrive(self, host: str) -> bool:
        """Count the connection with its neighbourhood, once; whether that may have one more."""
        if self.settings.forwarded or host in LOOPBACK_ADDRESSES:
            return True
        if self._network is None:
            self._network = prefix(host) or b""
            self.neighbours[self._network] += 1
        return self.neighbours[self._network] <= self.settings.prefix_connections

    def leave(self) -> None:
        """Count it no more."""
        if self._network is not None:
            self.neighbours[self._network] -= 1
            if not self.neighbours[self._network]:
                del self.neighbours[self._network]
            self._network = None

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless it is too much for one request."""
        self.taken += len(data)
        HttpToolsProtocol.data_received(self, data)
        if self.phase == ARRIVED and not self.pipeline and self.timeout_keep_alive_task is None:
            self._is_late_if_idle()
        if self.taken > MOST_HEADER:
            if self.phase == IN_HEADERS:
                self.refuse("uri-too-long" if len(self.url) > MOST_URL else "headers-too-large")
            elif self.taken > MOST_MESSAGE:
                self.refuse("body-too-large")

    def on_message_begin(self) -> None:
        """A request line begins."""
        self.phase = IN_HEADERS
        self.since = self.loop.time()
        HttpToolsProtocol.on_message_begin(self)

    def on_headers_complete(self) -> None:
        """The body begins; its time too."""
        self.phase = IN_BODY
        self.since = self.loop.time()
        HttpToolsProtocol.on_headers_complete(self)
        if len(self.pipeline) > MOST_PIPELINED:
            self.metrics.refuse("overloaded")
            self.transport.close()  # without an answer: it would be taken for an earlier request's
            raise _Flood

    def on_message_complete(self) -> None:
        """All of the request is there."""
        self.phase = ARRIVED
        self.taken = 0
        HttpToolsProtocol.on_message_complete(self)

    def _is_late_if_idle(self) -> None:
        """What came began no request: line ends, or what follows a tunnel that was refused.

        uvicorn has stopped the clock of an idle connection for it, and only a request starts it
        again; so this counts as the beginning of a header.
        """
        if self.cycle is None or self.cycle.response_complete:
            self.phase, self.since = IN_HEADERS, self.loop.time()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        del msg
        self.refuse("bad-request")

    def refuse(self, code: str) -> None:
        """Answer with a problem and end the connection."""
        if self.transport is None or self.transport.is_closing():
            return
        self.metrics.refuse(code)
        if not self._owes_another():
            self.transport.write(Refusal(code).raw())
        self.transport.close()

    def _owes_another(self) -> bool:
        """Whether the next answer on the wire belongs to an earlier request, or has begun."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        return bool(self.pipeline) or self.cycle.response_started or self.phase == IN_HEADERS

    def forgive(self, seconds: float) -> None:
        """The process slept: that time is nobody's fault."""
        self.since += seconds
        if self.unread_since is not None:
            self.unread_since += seconds

    def check_time(self, now: float) -> None:
        """End the connection if its request is late, or its answer not read."""
        if not self.transport.get_write_buffer_size():
            self.unread_since = None
        elif self.unread_since is None:
            self.unread_since = now
        elif now - self.unread_since > ANSWER_SECONDS:
            self.metrics.refuse("request-timeout")
            self.transport.abort()  # closing would wait for what is not read
            return
        if self.phase == ARRIVED:
            return
        if now - self.since > (HEADER_SECONDS if self.phase == IN_HEADERS else BODY_SECONDS):
            self.refuse("request-timeout")


class GuardedTls(SSLProtocol):
    """TLS below a guarded connection, which counts as one before its handshake.

    Who is refused here is cut off without an answer, which would need the handshake. asyncio's own
    servers tell a protocol of its connection only when the handshake is over.
    """

    max_size = 32 * KIB  # a buffer that each connection has; asyncio's own are of 256 KiB

    def __init__(self, guard: GuardedProtocol, context: ssl.SSLContext, seconds: float) -> None:
        """Take the protocol for what is inside, and how long a handshake may take."""
        super().__init__(
            guard.loop,
            guard,
            context,
            None,  # type: ignore[arg-type]  # nobody waits for the handshake
            server_side=True,
            ssl_handshake_timeout=seconds,  # type: ignore[arg-type]  # fractions are fine
            ssl_shutdown_timeout=seconds,
        )
        self._guard: GuardedProtocol | None = guard
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake, unless there are too many of this neighbourhood."""
        guard, address = self._guard, transport.get_extra_info("peername")
        if guard is None or guard.arrive(address[0] if address else ""):
            super().connection_made(transport)
        else:
            self._refused = True
            guard.metrics.refuse("overloaded")
            transport.abort()  # type: ignore[attr-defined]  # a socket's has it

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is gone, during its handshake or later."""
        guard, self._guard = self._guard, None  # else a circle that would stay for a while
        if guard is not None:
            guard.leave()
        if not self._refused:
            super().connection_lost(exc)


def guarded(counted: Metrics, told: CollectorSettings) -> type[GuardedProtocol]:
    """The protocol for one server."""

    class Guarded(GuardedProtocol):
        metrics = counted
        settings = told
        neighbours: ClassVar[Counter[bytes]] = Counter()

    return Guarded
