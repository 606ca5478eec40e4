"""The limits of one connection, under a clock that the test sets."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from rappor.collector.metrics import Metrics
from rappor.collector.protocol import GuardedProtocol, guarded
from rappor.collector.settings import BODY_SECONDS, HEADER_SECONDS, MOST_HEADER

POST = b"POST /v1/reports HTTP/1.1\r\nHost: a\r\n"


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Loop:
    """The part of an event loop that a connection uses. It runs no application: none answers."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def create_task(self, coroutine: Coroutine[Any, Any, None], **_: object) -> Mock:
        coroutine.close()
        return Mock()


class Connection:
    """A connection, and the clock of its loop."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.transport = Transport()
        config = uvicorn.Config(silent, interface="asgi3", log_config=None, ws="none")
        made = guarded(Metrics(), 8)
        self.protocol: GuardedProtocol = made(config, ServerState(), {}, self.loop)
        self.protocol.connection_made(self.transport)

    def after(self, seconds: float) -> bool:
        """Whether the connection is cut off when this time has passed since its beginning."""
        self.loop.now = 1000.0 + seconds
        self.protocol.check_time(self.loop.now)
        return self.transport.closed


async def silent(scope: object, receive: object, send: object) -> None:
    """An application that is never run."""


@pytest.fixture
def connection() -> Connection:
    return Connection()


def drip(connection: Connection, data: bytes, until: float) -> None:
    """Send a little every half second, which is never too late."""
    for half in range(1, int(2 * until)):
        assert not connection.after(half / 2)
        connection.protocol.data_received(data)


@pytest.mark.parametrize("begun", [b"", b"POST /v1", POST], ids=["nothing", "line", "headers"])
def test_headers_have_five_seconds(connection: Connection, begun: bytes) -> None:
    if begun:
        connection.protocol.data_received(begun)
    assert not connection.after(HEADER_SECONDS)
    assert connection.after(HEADER_SECONDS + 0.001)
    assert connection.transport.written.startswith(b"HTTP/1.1 408 ")
    assert HEADER_SECONDS == 5


@pytest.mark.parametrize("length", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
def test_a_body_has_ten_seconds(connection: Connection, length: bytes) -> None:
    connection.protocol.data_received(POST + length + b"\r\n\r\n")
    assert not connection.after(BODY_SECONDS)
    assert connection.after(BODY_SECONDS + 0.001)
    assert connection.transport.written.startswith(b"HTTP/1.1 408 ")
    assert BODY_SECONDS == 10


def test_a_little_now_and_then_buys_headers_no_time(connection: Connection) -> None:
    connection.protocol.data_received(POST)
    drip(connection, b"A: b\r\n", HEADER_SECONDS)
    assert connection.after(HEADER_SECONDS + 0.001)


def test_a_little_now_and_then_buys_a_body_no_time(connection: Connection) -> None:
    connection.protocol.data_received(POST + b"Content-Length: 1000\r\n\r\n")
    drip(connection, b"x", BODY_SECONDS)
    assert connection.after(BODY_SECONDS + 0.001)


def test_a_body_has_its_own_time_after_slow_headers(connection: Connection) -> None:
    connection.protocol.data_received(POST)
    assert not connection.after(4)
    connection.protocol.data_received(b"Content-Length: 1000\r\n\r\n")
    assert not connection.after(14)
    assert connection.after(14.001)


def test_a_request_that_arrived_is_not_late_however_long_its_answer_takes(
    connection: Connection,
) -> None:
    connection.protocol.data_received(POST + b"Content-Length: 1\r\n\r\nx")
    assert not connection.after(10_000)


def test_headers_without_end_are_refused(connection: Connection) -> None:
    connection.protocol.data_received(POST + b"A: " + b"b" * MOST_HEADER)
    assert connection.transport.closed
    assert connection.transport.written.startswith(b"HTTP/1.1 431 ")
