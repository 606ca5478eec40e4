"""Hostile HTTP over real sockets: requests that are ambiguous, endless, idle or costly."""

import contextlib
import gzip
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.wire import BINARY, JSON, encode_batch
from support.collecting import (
    PATIENCE,
    Process,
    batch,
    client_of,
    collector,
    connected,
    planted_command,
    running,
)

MB = 10**6
IDLE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


def post(body: bytes, *headers: str) -> bytes:
    """A request for one batch, as bytes."""
    lines = [
        "POST /v1/reports HTTP/1.1",
        "Host: x",
        f"Content-Type: {BINARY}",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def dial(port: int, seconds: float = PATIENCE) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def heard(connection: socket.socket) -> bytes:
    """All that the other side says until it closes; TimeoutError if it does not."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            found += piece
    return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One collector for tests that leave it as it was."""
    with collector(tmp_path_factory.mktemp("shared")) as process:
        yield process


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: +5",),
        ("Content-Length : 5",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked, identity",),
        ("X: a\r\n folded", "Content-Length: 5"),
    ],
)
def test_a_request_whose_length_can_be_read_in_two_ways_ends_the_connection(
    shared: Process, fields: tuple[str, ...]
) -> None:
    head = "\r\n".join(("POST /v1/reports HTTP/1.1", "Host: x", *fields)).encode()
    smuggled = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with dial(shared.port) as connection:
        connection.sendall(head + b"\r\n\r\n0\r\n\r\n" + smuggled)
        said = heard(connection)
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"rappor_healthy" not in said


def test_a_pipeline_without_end_does_not_take_the_memory(tmp_path: Path) -> None:
    """Promised: 60 MB and 256 KiB a connection. Here twenty send 2 MB of tiny requests each."""
    flood = b"GET / HTTP/1.1\r\n\r\n" * 110_000
    with collector(tmp_path) as process:
        before = process.peak_memory()
        connections = [dial(process.port) for _ in range(20)]

        def send(connection: socket.socket) -> None:
            with contextlib.suppress(OSError):
                connection.sendall(flood)
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                heard(connection)  # until it has read everything, or has closed the connection

        threads = [threading.Thread(target=send, args=(each,)) for each in connections]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for connection in connections:
            connection.close()
        assert process.peak_memory() - before < 100 * MB
        with client_of(process) as client:
            assert client.send(batch()).status == 204


@pytest.mark.long
def test_empty_lines_do_not_hold_a_connection_for_ever(tmp_path: Path) -> None:
    """An idle connection ends after 15 s; one line end must not buy it eternity.

    It counts as the beginning of a header, for which this collector leaves 0.3 s.
    """
    with running(planted_command("impatient", tmp_path)) as process, connected(process) as client:
        client.connection.sock.sendall(b"\r\n")
        heard(client.connection.sock)


def test_a_tunnel_that_was_refused_is_closed_too(shared: Process) -> None:
    with dial(shared.port) as connection:
        connection.sendall(b"CONNECT /v1/reports HTTP/1.1\r\nHost: x\r\n\r\nabc")
        assert connection.recv(65536).startswith(b"HTTP/1.1 405")
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"def")
        heard(connection)


def test_an_answer_is_not_given_to_the_wrong_request(shared: Process) -> None:
    """A good batch, and behind it something that is no HTTP: a 400 first would have it dropped."""
    with dial(shared.port) as connection:
        connection.sendall(post(encode_batch(batch())) + b"NONSENSE\r\n\r\n")
        said = heard(connection)
    assert not said or said.startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[' + "1," * 500_000 + "1]}",
        "{" + ",".join(f'"{number:x}":1' for number in range(90_000)) + "}",
    ],
    ids=["numbers", "keys"],
)
def test_a_small_body_that_is_large_inside_is_refused(shared: Process, text: str) -> None:
    """What each costs is measured by benchmarks/ingest.py."""
    body = gzip.compress(text.encode())
    with client_of(shared) as client:
        answer = client.send(body, content_type=JSON, content_encoding="gzip")
        assert answer.code == "malformed-batch"
