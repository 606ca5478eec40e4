"""Transport: one batch, one HTTPS request, nothing in it that is not needed (R8, R70).

No cookies, no user agent, no kept connection, no redirects; certificates are verified. Plain HTTP
is for the machine itself only.
"""

from __future__ import annotations

import datetime
import email.utils
import http.client
import io
import json
import os
import socket
import ssl
import struct
import threading
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from rappor.checks import show
from rappor.client.clock import Clock
from rappor.errors import ParamsError
from rappor.wire import BINARY, PROBLEM_JSON, PROBLEMS

PATH = "/v1/reports"
MOST_ANSWER = 64 * 1024  # bytes of a body; as many again for its head
LONGEST_WAIT = 86_400.0
_HERE = ("localhost", "127.0.0.1", "::1")
_ABOUT_COLLECTION = frozenset({"forbidden", "unknown-collection"})
_PERMANENT = frozenset({400, 410, 413, 414, 415, 422})  # where no listed problem says otherwise


class Answer(NamedTuple):
    """What a collector said.

    Attributes:
        status: of HTTP; 204 alone means that the batch is stored.
        code: of the problem, if it is one of the listed ones.
        retry_after: seconds that the collector asks to wait.
    """

    status: int
    code: str | None = None
    retry_after: float | None = None

    @property
    def stored(self) -> bool:
        """Whether the batch is durably stored, now or before."""
        return self.status == 204

    @property
    def permanent(self) -> bool:
        """Whether the same batch will never be taken."""
        if self.code is not None:
            return not PROBLEMS[self.code].retry
        return self.status in _PERMANENT

    @property
    def about_collection(self) -> bool:
        """Whether other collections' batches may well be taken while this one's is not."""
        return self.code in _ABOUT_COLLECTION


class Transport(Protocol):
    """Sends bodies. Raises OSError when there is no answer."""

    def post(self, body: bytes, timeout: float) -> Answer:
        """Send one batch."""

    def abort(self) -> None:
        """Let nothing more leave, not even the rest of what is being sent."""

    def resume(self) -> None:
        """Allow sending again."""


class HttpTransport:
    """Sends over HTTP(S), each batch on a connection of its own."""

    def __init__(
        self, url: str, *, clock: Clock, ingest_key: str | None = None, ca_file: str | None = None
    ) -> None:
        """Check the address and the key, or raise ParamsError."""
        self._secure, self._host, self._port, self._path = _address(url)
        self.address = url if urlsplit(url).path.strip("/") else url.rstrip("/") + PATH
        self._headers = {"Content-Type": BINARY}
        if ingest_key is not None:
            self._headers["Authorization"] = f"Bearer {_key(ingest_key)}"
        self._clock = clock
        self._tls = _tls(ca_file) if self._secure else None
        self.after_fork()

    def after_fork(self) -> None:
        """Start with a gate and without a socket: those of the parent are its own."""
        self._gate = threading.Lock()
        self._open = True
        self._socket: socket.socket | None = None

    def post(self, body: bytes, timeout: float) -> Answer:
        """Send one batch."""
        until = self._clock.monotonic() + timeout
        connection = self._connection(timeout)
        try:
            connection.connect()
            with self._gate:  # from here on abort() finds the socket, or we find the gate shut
                if not self._open:
                    raise ConnectionAbortedError("sending was stopped")
                self._socket = connection.sock
            self._send(connection, body)
            return self._answer(_Bounded(connection.sock, self._clock, until))
        except http.client.HTTPException as error:
            raise OSError(f"not an answer of HTTP: {type(error).__name__}") from None
        except ValueError:  # a host that no name can be
            raise OSError("the collector's name cannot be looked up") from None
        finally:
            with self._gate:
                self._socket = None
            connection.close()

    def abort(self) -> None:
        """Let nothing more leave, not even the rest of what is being sent."""
        with self._gate:
            self._open = False
            if self._socket is not None:
                _cut(self._socket)

    def resume(self) -> None:
        """Allow sending again."""
        with self._gate:
            self._open = True

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=self._tls
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _send(self, connection: http.client.HTTPConnection, body: bytes) -> None:
        connection.putrequest("POST", self._path, skip_accept_encoding=True)
        for name, value in self._headers.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.putheader("Connection", "close")
        connection.endheaders(body)

    def _answer(self, source: _Bounded) -> Answer:
        response = http.client.HTTPResponse(cast(socket.socket, source), method="POST")
        response.begin()
        body = response.read(MOST_ANSWER)
        code = None
        if response.headers.get_content_type() == PROBLEM_JSON:
            try:
                code = json.loads(body)["code"]
            except (ValueError, KeyError, TypeError, RecursionError):
                code = None
        wait = retry_after(response.headers.get("Retry-After"), self._clock.time())
        known = code if isinstance(code, str) and code in PROBLEMS else None
        return Answer(response.status, known, wait)


def retry_after(text: str | None, now: float) -> float | None:
    """Seconds to wait, from a number of seconds or a date; at most a day.

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


class _Bounded(io.RawIOBase):
    """What a collector answers, up to a time and a length: no drop by drop, no endless "go on"."""

    def __init__(self, connected: socket.socket, clock: Clock, until: float) -> None:
        """Take the connection, and when its answer must have ended."""
        self._connected = connected
        self._clock = clock
        self._until = until
        self._left = 2 * MOST_ANSWER

    def makefile(self, _mode: str) -> io.BufferedReader:
        """As a socket has it, for `http.client`."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes, or OSError once there were too many or they took too long."""
        left = self._until - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        if self._left <= 0:
            raise OSError("the answer is too long")
        self._connected.settimeout(left)
        got = self._connected.recv_into(memoryview(buffer)[: self._left])
        self._left -= got
        return got


def _address(url: object) -> tuple[bool, str, int | None, str]:
    wanted = "upload_to must be an address such as https://reports.example.org"
    if not isinstance(url, str):
        raise ParamsError(f"{wanted}, got a {type(url).__name__}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ParamsError(f"{wanted}, got {show(url)}") from None
    host = parts.hostname
    plain = all(33 <= ord(sign) < 127 for sign in url)
    if not plain or not host or parts.scheme not in ("http", "https"):
        raise ParamsError(f"{wanted}, got {show(url)}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ParamsError("upload_to must hold no user, password, query or fragment")
    if parts.scheme == "http" and host not in _HERE:
        raise ParamsError(
            "upload_to must be https, so that reports are encrypted on their way (R70); "
            f"plain http is for {', '.join(_HERE)} only, got host {show(host)}"
        )
    return parts.scheme == "https", host, port, parts.path if parts.path.strip("/") else PATH


def _key(key: object) -> str:
    if not isinstance(key, str) or not key or not all(33 <= ord(sign) < 127 for sign in key):
        raise ParamsError("ingest_key must be a text of visible ASCII characters")
    return key


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(
            cafile=None if ca_file is None else os.path.expanduser(ca_file)
        )
    except (OSError, TypeError) as error:
        raise ParamsError(f"ca_file must be a file of certificates: {error}") from None


def _cut(connected: socket.socket) -> None:
    """End a connection so that what still waits in its buffer is thrown away.

    The plain shutdown, under TLS too: that of an SSLSocket takes the encryption off first.
    """
    try:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended by itself
