"""Connections that are held on purpose: answers that nobody reads, slow requests and handshakes.

Addresses of 127.0.0.0/8 but for 127.0.0.1 are strangers to a collector, each /24 a neighbourhood.
"""

import contextlib
import http.client
import itertools
import os
import select
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import parser

from support.collecting import (
    PATIENCE,
    Client,
    Process,
    batch,
    client_of,
    collector,
    connected,
    page,
    planted_command,
    running,
)
from support.planted_collector import HONEST
from support.waiting import wait_for

STRANGERS = "127.0.5"
PAGES = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 8
POST = b"POST /v1/reports HTTP/1.1\r\nHost: a\r\n"


def dial(port: int, source: str) -> socket.socket:
    """A connection with a buffer that is as small as can be."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    made.bind((source, 0))
    made.connect(("127.0.0.1", port))
    return made


def sockets_of(process: Process) -> int:
    """Sockets that the process has open."""
    folder, found = f"/proc/{process.process.pid}/fd", 0
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            found += os.readlink(f"{folder}/{name}").startswith("socket:")
    return found


def refused(process: Process, code: str) -> int:
    """How often it has refused something for this reason."""
    return refused_in(page(process, "/metrics"), code)


def refused_in(metrics: str, code: str) -> int:
    for family in parser.text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name == "rappor_refused_total" and sample.labels["code"] == code:
                return int(sample.value)
    return 0


def answered(process: Process) -> None:
    """An honest client, whom nobody cuts off, sends a report on a connection of its own."""
    with client_of(process, source=HONEST) as client:
        assert client.send(batch()).status == 204


@pytest.mark.parametrize("number", [12, pytest.param(40, marks=pytest.mark.long)])
def test_answers_that_nobody_reads_do_not_hold_connections(tmp_path: Path, number: int) -> None:
    """From this machine itself, whose connections and requests are not limited."""
    with running(planted_command("impatient-while-read", tmp_path)) as process:
        with connected(process):
            pass
        before = sockets_of(process)
        held = [dial(process.port, "127.0.0.1") for _ in range(number)]
        for each in held:
            each.sendall(PAGES)
        wait_for(lambda: refused(process, "request-timeout") >= number)
        wait_for(lambda: sockets_of(process) <= before + 1)  # one may be idle for a while
        answered(process)
        for each in held:
            each.close()


class Held:
    """One stranger's connection, which does its worst for as long as it is let."""

    SLOW: tuple[tuple[bytes, bytes], ...] = (
        (PAGES, b""),  # never reads
        (POST, b"A: b\r\n"),  # headers without end
        (POST + b"Content-Length: 99999\r\n\r\n", b"x"),  # a body without end
        (b"", b""),  # nothing at all
    )

    def __init__(self, port: int, source: str, kind: int) -> None:
        self.begin, self.more = self.SLOW[kind % len(self.SLOW)]
        self.socket = dial(port, source)
        self.socket.setblocking(False)
        self.ended = False
        self._send(self.begin)

    def _send(self, data: bytes) -> None:
        try:
            if data:
                self.socket.send(data)
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True

    def drip(self) -> None:
        """Send a little more; see whether it was cut off, without reading what was sent."""
        if self.more:
            self._send(self.more)
        events = select.poll()
        events.register(self.socket, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        self.ended = self.ended or bool(events.poll(0))

    def close(self) -> None:
        self.socket.close()


@contextlib.contextmanager
def crowd(port: int, number: int) -> Iterator[Callable[[], None]]:
    """So many held connections; each call drips into all, and replaces those that were cut off."""
    kinds = itertools.count()
    held: list[Held] = []

    def more() -> Held:
        kind = next(kinds)
        return Held(port, f"{STRANGERS}.{1 + kind % 250}", kind)

    def turn() -> None:
        for index, each in enumerate(held):
            each.drip()
            if each.ended:
                each.close()
                held[index] = more()

    try:
        held += [more() for _ in range(number)]
        yield turn
    finally:
        for each in held:
            each.close()


@pytest.mark.parametrize(
    ("bug", "number", "turns"),
    [
        ("impatient", 100, 10),
        pytest.param("impatient", 300, 200, marks=pytest.mark.long),
        pytest.param("none", 1000, 0, marks=pytest.mark.soak),  # for three minutes
    ],
)
def test_one_neighbourhood_cannot_keep_others_out(
    tmp_path: Path, bug: str, number: int, turns: int
) -> None:
    """More of its connections than there may be in all; an honest client is answered each time."""
    until = time.monotonic() + 180
    with running(planted_command(bug, tmp_path)) as process:
        with connected(process):
            pass
        with crowd(process.port, number) as turn:
            for count in itertools.count():
                turn()
                answered(process)
                if count >= turns and (turns or time.monotonic() > until):
                    break
        assert refused(process, "overloaded") > 0
        assert page(process, "/healthz")
        assert process.end() == 0


def test_a_neighbourhood_gets_its_connections_back(tmp_path: Path) -> None:
    with collector(tmp_path, "--prefix-connections", "3") as process:
        clients = [Client(process.port, source=f"127.0.5.{i}") for i in range(1, 4)]
        for client in clients:
            assert client.send(batch()).status == 204
        before = refused(process, "overloaded")
        with contextlib.closing(dial(process.port, "127.0.5.77")) as fourth:
            fourth.settimeout(PATIENCE)
            assert fourth.recv(65536).startswith(b"HTTP/1.1 503")
        assert refused(process, "overloaded") == before + 1
        answered(process)
        clients[0].close()

        def is_answered() -> bool:
            with client_of(process, source="127.0.5.4") as client, contextlib.suppress(OSError):
                return client.send(batch()).status == 204
            return False

        wait_for(is_answered)
        for client in clients:
            client.close()


def certificate(folder: Path) -> Path:
    """A certificate for localhost and its key, in one file next to a planted collector's data."""
    file = folder / "tls.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    command += ["-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("openssl made no certificate")
    file.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return file


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the beginning of a handshake


def page_over_tls(
    process: Process, trusted: ssl.SSLContext, path: str, source: str = "127.0.0.1"
) -> str:
    """A page; empty where there is none, or no connection."""
    connection = http.client.HTTPSConnection(
        "localhost", process.port, context=trusted, timeout=PATIENCE, source_address=(source, 0)
    )
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read().decode() if answer.status == 200 else ""
    return ""


@pytest.mark.parametrize("number", [30, pytest.param(200, marks=pytest.mark.long)])
def test_handshakes_that_never_end_keep_nobody_out(tmp_path: Path, number: int) -> None:
    """With 0.3 s for a handshake, so that an honest client may need several; normally 5 s."""
    trusted = ssl.create_default_context(cafile=str(certificate(tmp_path)))
    with running(planted_command("impatient", tmp_path)) as process:
        before = sockets_of(process)
        held = [dial(process.port, f"{STRANGERS}.1") for _ in range(number)]
        for each in held:
            with contextlib.suppress(ConnectionError):  # one of too many
                each.sendall(HELLO)
        wait_for(lambda: page_over_tls(process, trusted, "/healthz"))
        wait_for(lambda: sockets_of(process) <= before + 1)
        for each in held:
            each.close()
        assert process.end() == 0


def test_a_handshake_counts_as_a_connection_of_its_neighbourhood(tmp_path: Path) -> None:
    pem = str(certificate(tmp_path))
    trusted = ssl.create_default_context(cafile=pem)
    options = ("--prefix-connections", "3", "--tls-cert", pem, "--tls-key", pem)
    with collector(tmp_path, *options) as process:

        def over_tls(path: str, source: str = "127.0.0.1") -> str:
            return page_over_tls(process, trusted, path, source)

        def is_one_refused() -> bool:
            """One of four, unless the first were cut off before the last came."""
            held = [dial(process.port, f"{STRANGERS}.{number}") for number in range(1, 5)]
            try:
                for each in held:
                    with contextlib.suppress(ConnectionError):
                        each.sendall(HELLO)
                assert over_tls("/healthz", HONEST)
                return refused_in(over_tls("/metrics"), "overloaded") > 0
            finally:
                for each in held:
                    each.close()

        wait_for(is_one_refused)
        wait_for(lambda: over_tls("/healthz", f"{STRANGERS}.9"))  # it has its places back
        assert process.end() == 0
