"""Transport: one batch is one HTTPS request, with nothing in it that is not needed.

No cookies, no user agent, no connection kept open, no redirects; certificates are verified. Plain
HTTP is for the same machine only. One deadline covers an upload: the lookup of the name, the
connection to one of its addresses, the handshake, the sending and the answer. When a connection
ends without an answer, what the operating system has not sent yet is discarded.
"""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import http.client
import io
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable
from urllib.parse import urlsplit

from rappor.client.arguments import check_address, check_file, check_key
from rappor.client.clock import Clock
from rappor.client.resolver import Address, Resolver
from rappor.errors import ParamsError
from rappor.wire import BINARY, PROBLEM_JSON, PROBLEMS

__all__ = [
    "LONGEST_WAIT",
    "Aborted",
    "Answer",
    "Connecting",
    "HttpTransport",
    "Transport",
    "UploadConnection",
    "connect",
    "retry_after",
]


LONGEST_WAIT = 86_400.0  # seconds
MAX_ANSWER_BYTES = 64 * 1024  # of an answer's body; its head may have the same size
_ABOUT_COLLECTION = frozenset({"forbidden", "unknown-collection"})
_PERMANENT = frozenset({400, 410, 413, 414, 415, 422})  # used when the answer has no known code


class Answer(NamedTuple):
    """What a collector said.

    Attributes:
        status: the HTTP status; only 204 means that the batch is stored.
        code: the code of the problem, if it is one of `rappor.wire.PROBLEMS`.
        retry_after: the seconds that the collector asks the client to wait.
    """

    status: int
    code: str | None = None
    retry_after: float | None = None

    @property
    def stored(self) -> bool:
        """Whether the batch is durably stored, by this upload or an earlier one."""
        return self.status == 204

    @property
    def permanent(self) -> bool:
        """Whether the collector will never accept this batch."""
        if self.code is not None:
            return not PROBLEMS[self.code].retry
        return self.status in _PERMANENT

    @property
    def about_collection(self) -> bool:
        """Whether the refusal concerns this collection only, not those of other batches."""
        return self.code in _ABOUT_COLLECTION


def retry_after(text: str | None, now: float) -> float | None:
    """Seconds to wait, from a header with a number of seconds or a date; at most a day.

    >>> retry_after("120", 0.0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 0.0)
    (120.0, 60.0)
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), LONGEST_WAIT)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    return min(max(when.timestamp() - now, 0.0), LONGEST_WAIT)


class Transport(Protocol):
    """Sends batches. Raises OSError if there is no answer."""

    def post(self, body: bytes, timeout: float) -> Answer:
        """Send one batch."""

    def abort(self) -> None:
        """Stop all sending, even in the middle of a batch."""

    def resume(self) -> None:
        """Allow sending again."""


class UploadConnection(Protocol):
    """A connection that is ready to send."""

    def send(self, body: bytes) -> Answer:
        """Send one batch; nothing is sent before this call."""

    def close(self) -> None:
        """End the connection; what was not sent yet is discarded. May be called twice."""


@runtime_checkable
class Connecting(Protocol):
    """A transport that connects first, so that consent can be checked just before sending."""

    def connect(self, timeout: float) -> UploadConnection:
        """Connect; the timeout covers the connection, the sending and the answer."""


def connect(transport: Transport, timeout: float) -> UploadConnection:
    """A connection of any transport; some transports connect only when they send."""
    if isinstance(transport, Connecting):
        return transport.connect(timeout)
    return _InOneStep(transport, timeout)


class _InOneStep:
    """The connection of a transport that only has `post`."""

    def __init__(self, transport: Transport, timeout: float) -> None:
        self._transport = transport
        self._timeout = timeout

    def send(self, body: bytes) -> Answer:
        """Send one batch."""
        return self._transport.post(body, self._timeout)

    def close(self) -> None:
        """Nothing is open."""


class HttpTransport:
    """Sends over HTTP(S), each batch on its own connection."""

    def __init__(
        self, url: str, *, clock: Clock, ingest_key: str | None = None, ca_file: str | None = None
    ) -> None:
        """Check the address and the key, or raise ParamsError."""
        secure, host, port, path = check_address(url)
        self.address = url if urlsplit(url).path.strip("/") else url.rstrip("/") + path
        headers = {"Content-Type": BINARY}
        if ingest_key is not None:
            headers["Authorization"] = f"Bearer {check_key(ingest_key)}"
        default = http.client.HTTPS_PORT if secure else http.client.HTTP_PORT
        resolver = Resolver(host, default if port is None else port)
        tls = _tls(ca_file) if secure else None
        self._target = Target(host, port, path, headers, tls, resolver)
        self._clock = clock
        self._gate = Gate()

    def after_fork(self) -> None:
        """In the child: start with a new gate and no sockets; the parent keeps its own."""
        self._gate.leave()
        self._gate = Gate()
        self._target.resolver.after_fork()

    def post(self, body: bytes, timeout: float) -> Answer:
        """Send one batch."""
        with contextlib.closing(self.connect(timeout)) as connection:
            return connection.send(body)

    def connect(self, timeout: float) -> HttpConnection:
        """Look up the name, connect to one of its addresses, and do the TLS handshake."""
        connection = HttpConnection(self._target, self._gate, self._clock, timeout)
        try:
            connection.open()
        except BaseException:
            connection.close()
            raise
        return connection

    def abort(self) -> None:
        """Stop all sending, even in the middle of a batch."""
        self._gate.abort()

    def resume(self) -> None:
        """Allow sending again."""
        self._gate.resume()


def _tls(ca_file: str | None) -> ssl.SSLContext:
    path = check_file("ca_file", ca_file)
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, TypeError, ValueError) as error:
        raise ParamsError(f"ca_file must be a file of certificates: {error}") from None


class Aborted(ConnectionAbortedError):
    """This client stopped the sending, not the network."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where uploads go; without `tls`, unencrypted."""

    host: str
    port: int | None
    path: str
    headers: Mapping[str, str]
    tls: ssl.SSLContext | None
    resolver: Resolver


class Gate:
    """Lets connections send, or stops all of them, even those that are sending."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open = True
        self.aborts = 0  # a connection from before an abort stays stopped after resume()
        self.sockets: set[socket.socket] = set()

    def abort(self) -> None:
        """Stop all sending, even in the middle of a batch."""
        with self.lock:
            self.open = False
            self.aborts += 1
            for connected in self.sockets:
                _cut(connected)

    def resume(self) -> None:
        """Allow sending again, on new connections."""
        with self.lock:
            self.open = True

    def leave(self) -> None:
        """In the child of a fork: close the inherited sockets without ending their connections.

        Otherwise the parent's data could still be sent after the parent has ended.
        """
        for inherited in self.sockets:
            inherited.close()


class HttpConnection:
    """One connection of an `HttpTransport`, with one deadline for everything on it."""

    def __init__(self, target: Target, gate: Gate, clock: Clock, timeout: float) -> None:
        """Take the target and the time for everything; Aborted if sending is stopped."""
        self._target = target
        self._gate = gate
        self._clock = clock
        self._until = clock.monotonic() + timeout
        with gate.lock:
            if not gate.open:
                raise Aborted("sending was stopped")
            self._aborts = gate.aborts
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Connect to the first address that answers within its share of the time."""
        with self._translated():
            self._connect(self._target.resolver.addresses(self._left()))
            tls, connected = self._target.tls, self._connected()
            if tls is not None:
                with self._gate.lock:
                    self._check()
                    self._gate.sockets.discard(connected)
                    wrapped = tls.wrap_socket(
                        connected,
                        server_hostname=self._target.host,
                        do_handshake_on_connect=False,
                    )
                    self._socket = wrapped
                    self._gate.sockets.add(wrapped)
                wrapped.settimeout(self._left())
                wrapped.do_handshake()

    def send(self, body: bytes) -> Answer:
        """Send one batch and read the answer."""
        with self._translated():
            with self._gate.lock:  # an abort() either comes before this or finds the socket
                self._check()
            bounded = _Bounded(self._connected(), self._left)
            self._write(bounded, body)
            answer = self._answer(bounded)
            self._linger(False)  # everything has arrived: end the connection normally
            return answer

    def close(self) -> None:
        """End the connection; what is still in its buffer is discarded."""
        with self._gate.lock:
            connected, self._socket = self._socket, None
            if connected is not None:
                self._gate.sockets.discard(connected)
                connected.close()

    def _connect(self, addresses: list[Address]) -> None:
        failure: OSError = TimeoutError("no address of the collector answered in time")
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            left = self._left()
            try:
                self._adopt(socket.socket(family, kind, protocol))
                connected = self._connected()
                connected.settimeout(left / (len(addresses) - number))
                connected.connect(address)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return
            except Aborted:
                raise
            except OSError as error:
                failure = error
                self.close()
        raise failure

    def _adopt(self, made: socket.socket) -> None:
        """Register the socket for abort(), and let its end discard what was not sent."""
        with self._gate.lock:
            self._socket = made
            self._gate.sockets.add(made)
            self._check()
        self._linger(True)

    def _linger(self, discard: bool) -> None:
        option = struct.pack("ii", discard, 0)
        self._connected().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)

    def _check(self) -> None:
        """Raise Aborted if sending was stopped. Call it while holding the gate's lock."""
        if not self._gate.open or self._gate.aborts != self._aborts:
            raise Aborted("sending was stopped")

    def _connected(self) -> socket.socket:
        if self._socket is None:
            raise OSError("the connection is closed")
        return self._socket

    def _left(self) -> float:
        left = self._until - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("the upload took too long")
        return left

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn every failure into OSError, or into Aborted if this client stopped the sending."""
        try:
            try:
                yield
            except http.client.HTTPException as error:
                raise OSError(f"not an HTTP answer: {type(error).__name__}") from None
            except OSError:  # before ValueError: a certificate error is both
                raise
            except ValueError:  # the host is not a valid name
                raise OSError("the collector's name cannot be looked up") from None
        except OSError:
            with self._gate.lock:
                self._check()
            raise

    def _write(self, bounded: _Bounded, body: bytes) -> None:
        target = self._target
        secure = target.tls is not None
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        request = kind(target.host, target.port)
        request.sock = bounded
        request.putrequest("POST", target.path, skip_accept_encoding=True)
        for name, value in target.headers.items():
            request.putheader(name, value)
        request.putheader("Content-Length", str(len(body)))
        request.putheader("Connection", "close")
        request.endheaders(body)

    def _answer(self, bounded: _Bounded) -> Answer:
        response = http.client.HTTPResponse(cast(socket.socket, bounded), method="POST")
        response.begin()
        body = response.read(MAX_ANSWER_BYTES)
        code = None
        if response.headers.get_content_type() == PROBLEM_JSON:
            try:
                code = json.loads(body)["code"]
            except (ValueError, KeyError, TypeError, RecursionError):
                code = None
        now = self._clock.time()
        wait = retry_after(response.headers.get("Retry-After"), now)
        known = code if isinstance(code, str) and code in PROBLEMS else None
        return Answer(response.status, known, wait)


class _Bounded(io.RawIOBase):
    """A socket with a limit on time and bytes: against slow or endless answers."""

    def __init__(self, connected: socket.socket, left: Callable[[], float]) -> None:
        """Take the socket, and a function that gives the seconds left or raises TimeoutError."""
        self._connected = connected
        self._seconds_left = left
        self._bytes_left = 2 * MAX_ANSWER_BYTES

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What `http.client` expects of a socket."""
        return io.BufferedReader(self)

    def sendall(self, data: bytes) -> None:
        """Send everything within the time; `http.client` expects this method of a socket."""
        view = memoryview(data)
        while view:
            self._connected.settimeout(self._seconds_left())
            view = view[self._connected.send(view) :]

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; OSError if there were too many, or if they took too long."""
        self._connected.settimeout(self._seconds_left())
        if self._bytes_left <= 0:
            raise OSError("the answer is too long")
        got = self._connected.recv_into(memoryview(buffer)[: self._bytes_left])
        self._bytes_left -= got
        return got


def _cut(connected: socket.socket) -> None:
    """End a connection and discard what is still in its buffer.

    It shuts down the socket below TLS: `SSLSocket.shutdown` would remove the encryption first.
    """
    try:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        pass  # the connection has ended already
