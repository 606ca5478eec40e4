"""Connection: one upload over HTTP(S), with one deadline for all that happens on it.

The deadline holds for looking up the name, connecting (to all of its addresses together), the
handshake, the sending and the answer. A connection that ends without an answer throws away what
the operating system has not sent yet.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rappor.client.answer import Answer, retry_after
from rappor.client.clock import Clock
from rappor.client.resolver import Address, Resolver
from rappor.wire import PROBLEM_JSON, PROBLEMS

MAX_ANSWER_BYTES = 64 * 1024  # bytes of a body; as many again for its head


class Aborted(ConnectionAbortedError):
    """Sending was stopped by this client, and not by the network."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where uploads go; without `tls`, in plain."""

    host: str
    port: int | None
    path: str
    headers: Mapping[str, str]
    tls: ssl.SSLContext | None
    resolver: Resolver


class Gate:
    """Lets connections send, or stops them all, also those that have begun."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open = True
        self.aborts = 0  # what was begun before one stays stopped after resume()
        self.sockets: set[socket.socket] = set()

    def abort(self) -> None:
        """Let nothing more leave, not even the rest of what is being sent."""
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
        """In the child of a fork: close what the parent has open, without ending it.

        Else what the parent sends could leave after the parent has ended.
        """
        for inherited in self.sockets:
            inherited.close()


class HttpConnection:
    """One connection of an `HttpTransport`, with one deadline for all that happens on it."""

    def __init__(self, target: Target, gate: Gate, clock: Clock, timeout: float) -> None:
        """Take where to, and how long all of it may take; Aborted if sending is stopped."""
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
        """Connect; to the first address that answers within its share of the time."""
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
            with self._gate.lock:  # abort() comes before this, or finds the socket
                self._check()
            bounded = _Bounded(self._connected(), self._left)
            self._write(bounded, body)
            answer = self._answer(bounded)
            self._linger(False)  # all has arrived; the connection may end in peace
            return answer

    def close(self) -> None:
        """End the connection; what still waits in its buffer is thrown away."""
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
        """From here on abort() finds the socket, and its end throws away what was not sent."""
        with self._gate.lock:
            self._socket = made
            self._gate.sockets.add(made)
            self._check()
        self._linger(True)

    def _linger(self, throw_away: bool) -> None:
        option = struct.pack("ii", throw_away, 0)
        self._connected().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)

    def _check(self) -> None:
        """Call it with the gate held."""
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
        """OSError for whatever goes wrong; Aborted if this client stopped it."""
        try:
            try:
                yield
            except http.client.HTTPException as error:
                raise OSError(f"not an answer of HTTP: {type(error).__name__}") from None
            except OSError:  # before ValueError: a wrong certificate is both
                raise
            except ValueError:  # a host that no name can be
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
    """A socket up to a time and a length: no drop by drop, no endless "go on"."""

    def __init__(self, connected: socket.socket, left: Callable[[], float]) -> None:
        """Take the connection, and how long it has left (TimeoutError: no longer)."""
        self._connected = connected
        self._seconds_left = left
        self._bytes_left = 2 * MAX_ANSWER_BYTES

    def makefile(self, _mode: str) -> io.BufferedReader:
        """As a socket has it, for `http.client`."""
        return io.BufferedReader(self)

    def sendall(self, data: bytes) -> None:
        """As a socket has it, for `http.client`; all of it within the time."""
        view = memoryview(data)
        while view:
            self._connected.settimeout(self._seconds_left())
            view = view[self._connected.send(view) :]

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes, or OSError once there were too many or they took too long."""
        self._connected.settimeout(self._seconds_left())
        if self._bytes_left <= 0:
            raise OSError("the answer is too long")
        got = self._connected.recv_into(memoryview(buffer)[: self._bytes_left])
        self._bytes_left -= got
        return got


def _cut(connected: socket.socket) -> None:
    """End a connection so that what still waits in its buffer is thrown away.

    The plain shutdown, under TLS too: that of an SSLSocket takes the encryption off first.
    """
    try:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended by itself
