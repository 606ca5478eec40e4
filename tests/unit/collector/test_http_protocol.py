"""The limits of one connection, under a clock that the test sets."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from rappor.collector.http_protocol import GuardedProtocol, guarded
from rappor.collector.metrics import Metrics
from rappor.collector.settings import (
    ANSWER_SECONDS,
    BODY_SECONDS,
    HEADER_SECONDS,
    MAX_HEADER,
    CollectorSettings,
)

POST = b"POST /v1/reports HTTP/1.1\r\nHost: a\r\n"


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = self.aborted = False
        self.unread = 0

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.closed = self.aborted = True

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
        made = guarded(Metrics(), CollectorSettings("data", "collections", max_connections=8))
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
    connection.protocol.data_received(POST + b"A: " + b"b" * MAX_HEADER)
    assert connection.transport.closed
    assert connection.transport.written.startswith(b"HTTP/1.1 431 ")


def test_an_answer_that_nobody_reads_has_ten_seconds(connection: Connection) -> None:
    """Also after the end of the connection was asked for: closing waits for what is not read."""
    connection.protocol.data_received(POST + b"Content-Length: 1\r\n\r\nx")
    connection.transport.unread = 5000
    assert not connection.after(100)  # seen for the first time
    connection.transport.unread = 1  # a little was read: that buys no time
    assert not connection.after(100 + ANSWER_SECONDS)
    connection.transport.closed = True
    connection.after(100 + ANSWER_SECONDS + 0.001)
    assert connection.transport.aborted
    assert ANSWER_SECONDS == 10


def test_an_answer_that_is_read_in_time_begins_anew(connection: Connection) -> None:
    connection.protocol.data_received(POST + b"Content-Length: 1\r\n\r\nx")
    for second in range(0, 1000, 9):
        connection.transport.unread = 5000 if second % 2 else 0
        assert not connection.after(second)
    assert not connection.transport.aborted


def test_time_in_which_the_process_slept_does_not_count(connection: Connection) -> None:
    connection.protocol.data_received(POST)
    assert not connection.after(4)
    connection.protocol.forgive(3600)
    assert not connection.after(3605)
    assert connection.after(3605.001)


class Peer(Transport):
    """A connection from an address."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.address, 4000) if name == "peername" else default


@pytest.mark.parametrize(
    ("addresses", "forwarded", "refused"),
    [
        ([f"192.0.2.{i}" for i in range(5)], False, 2),
        ([f"2001:db8:0:1:{i}::1" for i in range(5)], False, 2),  # neighbours in one /64
        ([f"::ffff:192.0.2.{i}" for i in range(5)], False, 2),
        ([f"192.0.{i}.2" for i in range(5)], False, 0),
        (["127.0.0.1"] * 5, False, 0),
        (["::1"] * 5, False, 0),
        (["10.0.0.1"] * 5, True, 0),  # a proxy's
    ],
)
def test_a_neighbourhood_has_its_share_of_connections(
    addresses: list[str], forwarded: bool, refused: int
) -> None:
    config = uvicorn.Config(silent, interface="asgi3", log_config=None, ws="none")
    settings = CollectorSettings(
        "data", "collections", max_prefix_connections=3, forwarded=forwarded
    )
    made, state = guarded(Metrics(), settings), ServerState()
    peers = [Peer(address) for address in addresses]
    protocols: list[GuardedProtocol] = []
    for peer in peers:
        protocols.append(made(config, state, {}, Loop()))
        protocols[-1].connection_made(peer)
    assert [peer.closed for peer in peers] == [False] * (5 - refused) + [True] * refused
    assert all(peer.written.startswith(b"HTTP/1.1 503") for peer in peers if peer.closed)
    for protocol in protocols:
        protocol.connection_lost(None)
    assert not made.neighbours  # nothing of an address is kept
