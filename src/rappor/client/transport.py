"""Transport: one batch, one HTTPS request, nothing in it that is not needed (R8, R70).

No cookies, no user agent, no kept connection, no redirects; certificates are verified. Plain HTTP
is for the machine itself only.
"""

from __future__ import annotations

import datetime
import email.utils
import http.client
import json
import os
import socket
import ssl
import struct
import threading
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from rappor.checks import show
from rappor.client.clock import Clock
from rappor.errors import ParamsError
from rappor.wire import BINARY, PROBLEM_JSON, PROBLEMS

PATH = "/v1/reports"
MOST_ANSWER = 64 * 1024
LONGEST_WAIT = 86_400.0
_HERE = ("localhost", "127.0.0.1", "::1")
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
        connection = self._connection(timeout)
        try:
            connection.connect()
            with self._gate:  # from here on abort() finds the socket, or we find the gate shut
                if not self._open:
                    raise ConnectionAbortedError("sending was stopped")
                self._socket = connection.sock
            self._send(connection, body)
            return self._answer(connection.getresponse())
        except http.client.HTTPException as error:
            raise OSError(f"not an answer of HTTP: {type(error).__name__}") from None
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

    def _answer(self, response: http.client.HTTPResponse) -> Answer:
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
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    return min(max(when.timestamp() - now, 0.0), LONGEST_WAIT)


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
