"""Too much of everything: memory stays bounded, newcomers are sent away, it recovers."""

import contextlib
import http.client
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rappor.wire import encode_batch, encode_batch_json
from support.collecting import (
    PATIENCE,
    Client,
    Process,
    batch,
    client_of,
    collector,
    connected,
    day,
    planted_command,
    running,
    stored,
)
from support.planted_collector import HONEST
from support.waiting import wait_for

MIB = 2**20


@dataclass
class Offered:
    """What was said to those that sent more than it can take."""

    answers: Counter[str | int] = field(default_factory=Counter)
    without_retry_after: int = 0
    failures: list[BaseException] = field(default_factory=list)


def offer(process: Process, connections: int, accepted: int, shed: int) -> Offered:
    """Send from many connections at once until this many batches were accepted and refused."""
    offered = Offered()
    lock = threading.Lock()

    def enough() -> bool:
        answers = offered.answers
        return bool(offered.failures) or (
            answers[204] >= accepted and answers["overloaded"] >= shed
        )

    def send() -> None:
        client = Client(process.port)
        try:
            while not enough():
                answer = client.send(batch())
                with lock:
                    offered.answers[answer.code or answer.status] += 1
                    if answer.status != 204 and int(answer.headers.get("retry-after", 0)) < 1:
                        offered.without_retry_after += 1
        except BaseException as error:
            offered.failures.append(error)
        finally:
            client.close()

    senders = [threading.Thread(target=send) for _ in range(connections)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    return offered


@pytest.mark.parametrize(
    "accepted",
    [
        40,
        pytest.param(1_000, marks=pytest.mark.long),  # about a quarter of a minute
        pytest.param(48_000, marks=pytest.mark.soak),  # ten minutes
    ],
)
def test_too_much_is_sent_away_with_a_hint_and_what_is_accepted_is_stored(
    tmp_path: Path, accepted: int
) -> None:
    """The planted disk takes four batches each 50 ms: 80 a second, and 40 in the half second that
    anyone is made to wait. Of 96 that send at once, more than half have to be sent away, however
    slow the machine is."""
    with running(planted_command("narrow-disk", tmp_path)) as process:
        with client_of(process) as client:
            for _ in range(5):
                assert client.send(batch()).status == 204
        before = process.peak_memory()
        offered = offer(process, 96, accepted, shed=accepted)
        assert offered.failures == []
        assert set(offered.answers) == {204, "overloaded"}
        assert offered.without_retry_after == 0
        assert process.peak_memory() - before < 30 * MIB
        with client_of(process) as client:
            wait_for(lambda: client.send(batch()).status == 204)  # it recovers
            assert client.get("/readyz").status == 200
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 5 + offered.answers[204] + 1}


SLOW = {
    "nothing": b"",
    "headers": b"POST /v1/reports HTTP/1.1\r\nHost: a\r\n",
    "body": b"POST /v1/reports HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
    "chunks": b"POST /v1/reports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
}
DRIP = {"nothing": b"", "headers": b"A: b\r\n", "body": b"x", "chunks": b"1\r\nx\r\n"}


@pytest.mark.parametrize("bug", ["impatient", pytest.param("none", marks=pytest.mark.long)])
def test_slow_senders_are_cut_off_while_others_are_served(tmp_path: Path, bug: str) -> None:
    """With 0.3 s for headers and 0.6 s for a body; in the long programme with the 5 s and
    10 s of `rappor collect`. That nobody is cut off sooner, honest clients in particular:
    tests/unit/collector/test_http_protocol.py.
    """
    with (
        running(planted_command(bug, tmp_path)) as process,
        client_of(process, source=HONEST) as client,
    ):
        raw = {name: socket.create_connection(("127.0.0.1", process.port)) for name in SLOW}
        ended: dict[str, bytes] = {}
        for name, connection in raw.items():
            connection.setblocking(False)
            connection.send(SLOW[name])
        deadline = time.monotonic() + PATIENCE
        while len(ended) < len(raw):
            assert time.monotonic() < deadline, f"not cut off: {raw.keys() - ended.keys()}"
            for name in raw.keys() - ended.keys():
                drip(raw[name], name, ended)
            assert client.send(batch()).status == 204  # on a connection of its own
            time.sleep(0.025)  # below the 50 reports a second that anybody may send
        for connection in raw.values():
            connection.close()
        assert client.get("/healthz").status == 200
    for said in ended.values():
        assert b" 408 " in said.partition(b"\r\n")[0]
        assert b'"code":"request-timeout"' in said


def drip(connection: socket.socket, name: str, ended: dict[str, bytes]) -> None:
    """See whether it has an answer, and send a little more if not."""
    try:
        ended[name] = connection.recv(65536)
    except BlockingIOError:
        with contextlib.suppress(OSError):  # closed since: its answer is read in the next turn
            connection.send(DRIP[name])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One collector for tests that leave it as it was."""
    with collector(tmp_path_factory.mktemp("shared")) as process:
        yield process


def test_two_gigabytes_do_not_arrive(shared: Process) -> None:
    with client_of(shared) as client:
        client.get("/healthz")
        before = shared.peak_memory()
        for head in (
            b"Content-Length: 2147483648\r\n\r\n",
            b"Content-Length: 99999999999999999999999\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n",  # and trailers without end
        ):
            sent, said = pour(shared.port, head)
            assert sent < 24 * MIB  # what the system's buffers hold, and no more
            assert b" 413 " in said or b" 400 " in said or said == b""
        assert shared.peak_memory() - before < 24 * MIB
        assert client.send(batch()).status == 204


def pour(port: int, head: bytes) -> tuple[int, bytes]:
    """Send a body without end until it is refused: bytes that were taken, and the answer."""
    part = b"8000\r\n" + bytes(0x8000) + b"\r\n" if head.endswith(b"chunked\r\n\r\n") else None
    part = part or (b"A: " + b"b" * 60 + b"\r\n") * 500
    sent, said = 0, b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(
            b"POST /v1/reports HTTP/1.1\r\nHost: a\r\n"
            b"Content-Type: application/vnd.rappor.batch\r\n" + head
        )
        try:
            while sent < 2**31:
                sent += connection.send(part)
                connection.setblocking(False)
                try:
                    said += connection.recv(65536)
                    if not said or b"\r\n\r\n" in said:
                        break
                except BlockingIOError:
                    pass
                connection.settimeout(PATIENCE)
        except OSError:
            pass
    return sent, said


def test_numbers_without_measure_are_refused_and_take_no_memory(shared: Process) -> None:
    with client_of(shared) as client:
        client.send(batch())
        before = shared.peak_memory()
        text = encode_batch_json(batch()).replace(b'"k":16', b'"k":1000000000')
        assert client.send(text, content_type="application/json").code == "malformed-batch"
        data = bytearray(encode_batch(batch()))
        data[22:24] = b"\xff\xff"  # k = 65535
        assert client.send(bytes(data)).code == "malformed-batch"
        data[24:28] = b"\xff\xff\xff\xff"  # four billion reports
        assert client.send(bytes(data)).code == "malformed-batch"
        deep = b'{"rappor":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        assert client.send(deep, content_type="application/json").code == "malformed-batch"
        assert shared.peak_memory() - before < 8 * MIB


def test_more_connections_than_allowed_are_told_so(tmp_path: Path) -> None:
    with collector(tmp_path, "--connections", "8") as process:
        held = [Client(process.port) for _ in range(8)]
        for client in held:
            assert client.get("/healthz").status == 200  # so that it is counted
        with client_of(process) as client:
            try:
                answer = client.send(batch())
                assert answer.code == "overloaded"
            except (OSError, http.client.HTTPException):
                pass  # closed while the request was on its way
        assert (
            held[0].get("/metrics").body.count(b'rappor_refused_total{code="overloaded"} 1.0') == 1
        )
        for client in held:
            client.close()
        with connected(process) as client:
            assert client.send(batch()).status == 204
