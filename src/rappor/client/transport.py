"""Transport: one batch, one HTTPS request, nothing in it that is not needed (R8, R70).

No cookies, no user agent, no kept connection, no redirects; certificates are verified. Plain HTTP
is for the machine itself only.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

from rappor.client.answer import LONGEST_WAIT, Answer, retry_after
from rappor.client.arguments import check_address, check_file, check_key
from rappor.client.clock import Clock
from rappor.client.connection import Aborted, Gate, HttpConnection, Target
from rappor.client.resolver import Resolver
from rappor.errors import ParamsError
from rappor.wire import BINARY

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


class Transport(Protocol):
    """Sends bodies. Raises OSError when there is no answer."""

    def post(self, body: bytes, timeout: float) -> Answer:
        """Send one batch."""

    def abort(self) -> None:
        """Let nothing more leave, not even the rest of what is being sent."""

    def resume(self) -> None:
        """Allow sending again."""


class UploadConnection(Protocol):
    """A connection that is ready to send."""

    def send(self, body: bytes) -> Answer:
        """Send one batch; nothing has left before this is called."""

    def close(self) -> None:
        """End the connection; what was not sent yet is thrown away. May be called twice."""


@runtime_checkable
class Connecting(Protocol):
    """A transport that connects first, so that consent is asked for between that and sending."""

    def connect(self, timeout: float) -> UploadConnection:
        """Connect; the limit is for the connection, the sending and the answer together."""


def connect(transport: Transport, timeout: float) -> UploadConnection:
    """A connection of any transport; one that cannot connect first does it when it sends."""
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
    """Sends over HTTP(S), each batch on a connection of its own."""

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
        """Start with a gate and without a socket: those of the parent are its own."""
        self._gate.leave()
        self._gate = Gate()
        self._target.resolver.after_fork()

    def post(self, body: bytes, timeout: float) -> Answer:
        """Send one batch."""
        with contextlib.closing(self.connect(timeout)) as connection:
            return connection.send(body)

    def connect(self, timeout: float) -> HttpConnection:
        """Look up the name, connect to one of its addresses, and shake hands for TLS."""
        connection = HttpConnection(self._target, self._gate, self._clock, timeout)
        try:
            connection.open()
        except BaseException:
            connection.close()
            raise
        return connection

    def abort(self) -> None:
        """Let nothing more leave, not even the rest of what is being sent."""
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
