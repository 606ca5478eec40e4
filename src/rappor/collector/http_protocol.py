"""uvicorn's HTTP protocol with limits on time, size and the number of connections.

- Headers must arrive within 5 s and have at most 16 KiB. A body must arrive within 10 s. A whole
  request has at most 4 MiB.
- A client must read its answer within 10 s, unless the answer fits the system's buffers.
- One address prefix may use only a part of all connections. A TLS connection counts from before
  its handshake.
- A report whose request arrives whole is taken at once, without the task, the coroutines and the
  messages of ASGI, and without uvicorn's objects for them: they take as much time as everything
  else. All other requests go through ASGI.
- A client may send a few requests without waiting for answers. More could fill the memory, because
  everything that one read returns is parsed at once.

The times are checked for all connections together, twice a second. This costs a normal request
nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rappor.collector import log
from rappor.collector.cors import Cors
from rappor.collector.metrics import Metrics
from rappor.collector.quota import prefix
from rappor.collector.refusal import Headers, Refusal, header_lines
from rappor.collector.settings import (
    ANSWER_SECONDS,
    BODY_SECONDS,
    HEADER_SECONDS,
    IDLE_SECONDS,
    KIB,
    MAX_HEADER,
    MAX_MESSAGE,
    MAX_PIPELINED,
    MAX_URL,
    CollectorSettings,
)
from rappor.host import LOOPBACK_ADDRESSES
from rappor.wire import REPORTS_PATH

IN_HEADERS, IN_BODY, ARRIVED, IDLE = 0, 1, 2, 3
_REPORTS = REPORTS_PATH.encode("ascii")
_SECONDS = {IN_HEADERS: HEADER_SECONDS, IN_BODY: BODY_SECONDS, IDLE: IDLE_SECONDS}
_STORED = b"HTTP/1.1 204 No Content\r\n"
_CLOSE = b"connection: close\r\n"

Outcome = str | None  # the code of a problem, or None if the batch is on disk
Take = Callable[[tuple[str, int] | None, Headers, bytes, Callable[[Outcome], None]], None]


class _TooManyRequests(Exception):
    """Too many requests without waiting for an answer; stops the parser."""


class _NoEvent:
    """Nobody waits for the parts of a request that is taken whole."""

    def set(self) -> None:
        """Do nothing."""


class WholeReport:
    """A report whose request arrives whole, in the place of uvicorn's cycle of an ASGI request.

    It has the attributes of a cycle that uvicorn's protocol reads and writes.
    """

    __slots__ = (
        "body",
        "disconnected",
        "headers",
        "keep_alive",
        "more_body",
        "protocol",
        "response_complete",
        "response_started",
    )
    message_event: ClassVar[_NoEvent] = _NoEvent()

    def __init__(self, protocol: GuardedProtocol, headers: Headers, keep_alive: bool) -> None:
        """A request whose headers are complete."""
        self.protocol, self.headers, self.keep_alive = protocol, headers, keep_alive
        self.body = bytearray()
        self.more_body = True
        self.disconnected = self.response_started = self.response_complete = False

    def answer(self, outcome: Outcome) -> None:
        """Answer: the report is on disk, or it could not be stored."""
        self.protocol.answer(self, outcome)


class StoredAnswer:
    """The bytes that acknowledge a report, made again when the header fields of all answers change.

    Those are the date, so they change once a second.
    """

    def __init__(self) -> None:
        """Start without header fields."""
        self._fields: Headers | None = None
        self._stays = self._closes = b""

    def text(self, fields: Headers, added: Headers, *, keep_alive: bool) -> bytes:
        """The answer with the header fields of all answers, and those added to this one."""
        if added:
            head = _STORED + header_lines([*fields, *added])
            return head + (b"" if keep_alive else _CLOSE) + b"\r\n"
        if fields is not self._fields:
            self._fields = fields
            head = _STORED + header_lines(fields)
            self._stays, self._closes = head + b"\r\n", head + _CLOSE + b"\r\n"
        return self._stays if keep_alive else self._closes


class GuardedProtocol(HttpToolsProtocol):
    """One connection; `guarded` makes subclasses that have metrics and settings."""

    metrics: Metrics
    settings: CollectorSettings
    take: Take | None  # `App.take`
    cors: Cors | None  # which web pages may send reports; None: none
    stored: StoredAnswer
    neighbours: ClassVar[Counter[bytes]]  # open connections by address prefix

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """As uvicorn calls it."""
        super().__init__(*arguments, **named)
        self.phase = IN_HEADERS
        self.since = self.loop.time()
        self.taken = 0  # bytes of the current request
        self.url = b""
        self.unread_since: float | None = None  # when an answer that nobody reads was written
        self._network: bytes | None = None
        self._receiving = False
        self._report: WholeReport | None = None  # of the data that is being parsed

    # Typed as in uvicorn; asyncio's stubs say BaseTransport.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        has_place = self.arrive("" if self.client is None else self.client[0])
        if not has_place or len(self.connections) > self.settings.max_connections:
            self.refuse("overloaded")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self.leave()

    def arrive(self, host: str) -> bool:
        """Count the connection for its address prefix, once; False if the prefix has too many."""
        if self.settings.forwarded or host in LOOPBACK_ADDRESSES:
            return True
        if self._network is None:
            self._network = prefix(host) or b""
            self.neighbours[self._network] += 1
        return self.neighbours[self._network] <= self.settings.max_prefix_connections

    def leave(self) -> None:
        """Stop counting the connection."""
        if self._network is not None:
            self.neighbours[self._network] -= 1
            if not self.neighbours[self._network]:
                del self.neighbours[self._network]
            self._network = None

    def data_received(self, data: bytes) -> None:
        """Parse the data; refuse a request that is too large."""
        self.taken += len(data)
        self._receiving = True
        super().data_received(data)
        self._receiving = False
        report = self._report
        if report is not None:
            self._report = None
            if report.more_body:
                self._leave_to_asgi(report)
            else:
                self._take(report)
        if self.phase == ARRIVED and not self.pipeline and self.timeout_keep_alive_task is None:
            self._restart_timer_if_idle()
        if self.taken > MAX_HEADER:
            if self.phase == IN_HEADERS:
                self.refuse("uri-too-long" if len(self.url) > MAX_URL else "headers-too-large")
            elif self.taken > MAX_MESSAGE:
                self.refuse("body-too-large")

    def _arrives_whole(self) -> bool:
        """Whether the request may be a report that arrives whole, by its head."""
        parser = self.parser
        return (
            self._receiving
            and self.take is not None
            and not self.expect_100_continue
            and not self.flow.write_paused
            and (self.cycle is None or self.cycle.response_complete)
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and not parser.should_upgrade()
        )

    def _leave_to_asgi(self, report: WholeReport) -> None:
        """Go on as uvicorn does with a request whose body comes in parts."""
        report.response_complete = True  # else this request would wait for itself
        super().on_headers_complete()
        if report.body:
            self.cycle.body += report.body
            self.cycle.message_event.set()

    def _take(self, report: WholeReport) -> None:
        """Take a report whose request has arrived whole."""
        if self.take is None:
            return
        try:
            self.take(self.client, report.headers, bytes(report.body), report.answer)
        except Refusal as refusal:
            self._refuse_report(report, refusal)
        except Exception as error:
            log.failure("request-failed", error)
            self._refuse_report(report, Refusal("internal-error"))

    def answer(self, report: WholeReport, outcome: Outcome) -> None:
        """Answer a report that is on disk, or that could not be stored."""
        if outcome is not None:
            self._refuse_report(report, Refusal(outcome))
            return
        fields, added = self.server_state.default_headers, self._added(report)
        self._write(report, self.stored.text(fields, added, keep_alive=report.keep_alive))

    def _refuse_report(self, report: WholeReport, refusal: Refusal) -> None:
        self.metrics.refuse(refusal.code)
        report.keep_alive = report.keep_alive and not refusal.close
        refusal.close = not report.keep_alive
        fields = self.server_state.default_headers
        self._write(report, refusal.raw(fields, self._added(report)))

    def _added(self, report: WholeReport) -> Headers:
        """What the browser that sent a report is told in addition."""
        return [] if self.cors is None else self.cors.answer("POST", report.headers)

    def _write(self, report: WholeReport, answer: bytes) -> None:
        """Write a whole answer and go on as uvicorn does after one, but without its timer."""
        transport = self.transport
        if report.response_complete or transport.is_closing():
            return
        report.response_started = report.response_complete = True
        transport.write(answer)
        if not report.keep_alive:
            transport.close()
        if self.pipeline or self.flow.read_paused:
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        if self.phase == ARRIVED:  # else the next request has begun
            self.phase, self.since = IDLE, self.loop.time()

    def on_message_begin(self) -> None:
        """Start the time of the headers."""
        self.phase = IN_HEADERS
        self.since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start the time of the body."""
        self.phase = IN_BODY
        self.since = self.loop.time()
        if self.url == _REPORTS and self._arrives_whole():
            keep_alive = self.parser.should_keep_alive()
            report = WholeReport(self, self.headers, keep_alive)
            self._report = self.cycle = report  # type: ignore[assignment]  # see WholeReport
            return
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            self.metrics.refuse("overloaded")
            self.transport.close()  # no answer: it would be taken for that of an earlier request
            raise _TooManyRequests

    def on_message_complete(self) -> None:
        """The whole request has arrived."""
        self.phase = ARRIVED
        self.taken = 0
        super().on_message_complete()

    def _restart_timer_if_idle(self) -> None:
        """Start the time of the headers after data that began no request.

        Such data are line ends, or bytes after a refused tunnel. uvicorn has stopped the timer of
        the idle connection for them, and only a request would start it again.
        """
        if self.cycle is None or self.cycle.response_complete:
            self.phase, self.since = IN_HEADERS, self.loop.time()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not valid HTTP."""
        del msg
        self.refuse("bad-request")

    def refuse(self, code: str) -> None:
        """Answer with a problem and close the connection."""
        if self.transport is None or self.transport.is_closing():
            return
        self.metrics.refuse(code)
        if not self._answer_is_pending():
            self.transport.write(Refusal(code, close=True).raw())
        self.transport.close()

    def _answer_is_pending(self) -> bool:
        """Whether the next answer belongs to an earlier request, or has begun."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        return bool(self.pipeline) or self.cycle.response_started or self.phase == IN_HEADERS

    def forgive(self, seconds: float) -> None:
        """Do not count time in which the process did not run."""
        self.since += seconds
        if self.unread_since is not None:
            self.unread_since += seconds

    def check_time(self, now: float) -> None:
        """Close the connection if its request is late or its answer is not read."""
        if not self.transport.get_write_buffer_size():
            self.unread_since = None
        elif self.unread_since is None:
            self.unread_since = now
        elif now - self.unread_since > ANSWER_SECONDS:
            self.metrics.refuse("request-timeout")
            self.transport.abort()  # close() would wait until the answer is read
            return
        if self.phase == ARRIVED or now - self.since <= _SECONDS[self.phase]:
            return
        if self.phase == IDLE:
            self.transport.close()
        else:
            self.refuse("request-timeout")


class GuardedTls(SSLProtocol):
    """TLS for a guarded connection, which is counted before its handshake.

    asyncio's own servers tell a protocol about a connection only after the handshake. A connection
    that is refused here gets no answer, because an answer would need the handshake.
    """

    max_size = 32 * KIB  # the buffer of each connection; asyncio's own has 256 KiB

    def __init__(self, guard: GuardedProtocol, context: ssl.SSLContext, seconds: float) -> None:
        """Wrap a protocol; a handshake may take this many seconds."""
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
        """Begin the handshake, or cut off a connection too many of its address prefix."""
        guard, address = self._guard, transport.get_extra_info("peername")
        if guard is None or guard.arrive(address[0] if address else ""):
            super().connection_made(transport)
        else:
            self._refused = True
            guard.metrics.refuse("overloaded")
            transport.abort()  # type: ignore[attr-defined]  # the transport of a socket has it

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop counting the connection, during its handshake or later."""
        guard, self._guard = (
            self._guard,
            None,
        )  # breaks a cycle: frees memory at once
        if guard is not None:
            guard.leave()
        if not self._refused:
            super().connection_lost(exc)


def guarded(
    server_metrics: Metrics,
    server_settings: CollectorSettings,
    server_take: Take | None = None,
    server_cors: Cors | None = None,
) -> type[GuardedProtocol]:
    """The protocol class of one server; `server_take` takes reports without ASGI."""

    class Guarded(GuardedProtocol):
        metrics = server_metrics
        settings = server_settings
        stored = StoredAnswer()
        take = None if server_take is None else staticmethod(server_take)
        cors = server_cors
        neighbours: ClassVar[Counter[bytes]] = Counter()

    return Guarded
