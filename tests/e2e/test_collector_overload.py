"""B5: too much of everything: memory stays bounded, newcomers are sent away, it recovers."""

import http.client
import socket
import threading
import time
from pathlib import Path

import pytest

from rappor.wire import encode_batch, encode_batch_json
from support.collecting import (
    Client,
    Process,
    batch,
    client_of,
    collector,
    day,
    planted_command,
    running,
    stored,
)

MIB = 2**20


def offer(process: Process, threads: int, seconds: float) -> tuple[list[float], list[str | int]]:
    """Hammer it from many connections: the seconds of each accepted batch, and all answers."""
    waited: list[float] = []
    answers: list[str | int] = []
    stop = time.monotonic() + seconds

    def send() -> None:
        client = Client(process.port)
        while time.monotonic() < stop:
            started = time.monotonic()
            answer = client.send(batch())
            answers.append(answer.code or answer.status)
            if answer.status == 204:
                waited.append(time.monotonic() - started)
            else:
                assert int(answer.headers["retry-after"]) >= 1
        client.close()

    senders = [threading.Thread(target=send) for _ in range(threads)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    return waited, answers


def overload(folder: Path, threads: int, seconds: float) -> None:
    # The planted disk takes four batches each 50 ms: 80 a second.
    with running(planted_command("narrow-disk", folder)) as process:
        with client_of(process) as client:
            for _ in range(20):
                client.send(batch())
        before = process.memory()
        waited, answers = offer(process, threads, seconds)
        print(
            f"{len(answers)} answers, memory {before / MIB:.1f} -> {process.memory() / MIB:.1f} MiB"
        )
        assert set(answers) == {204, "overloaded"}
        assert len(answers) > 10 * 80 * seconds  # ten times what it can take
        assert sorted(waited)[int(0.99 * len(waited))] < 1.0
        assert process.memory() - before < 30 * MIB
        started = time.monotonic()
        with client_of(process) as client:
            while client.send(batch()).status != 204:
                assert time.monotonic() - started < 10
                time.sleep(0.05)
            assert client.get("/readyz").status == 200
        accepted = len(waited) + 21
        assert process.end() == 0
    assert stored(folder) == {(day(), ""): accepted}


def test_ten_times_what_it_can_take_is_shed_and_the_rest_is_quick(tmp_path: Path) -> None:
    overload(tmp_path, threads=96, seconds=3)


@pytest.mark.soak
def test_ten_minutes_of_overload_leave_the_memory_flat(tmp_path: Path) -> None:
    overload(tmp_path, threads=96, seconds=600)


def test_slow_senders_are_cut_off_while_others_are_served(tmp_path: Path) -> None:
    with collector(tmp_path) as process, client_of(process) as client:
        raw = {name: socket.create_connection(("127.0.0.1", process.port)) for name in SLOW}
        started = time.monotonic()
        ended: dict[str, tuple[float, bytes]] = {}
        for name, connection in raw.items():
            connection.setblocking(False)
            connection.send(SLOW[name])
        while len(ended) < len(raw):
            assert time.monotonic() - started < 14
            for name, connection in raw.items():
                if name not in ended:
                    drip(connection, name, ended, started)
            assert client.send(batch()).status == 204  # on a connection of its own
            time.sleep(0.25)
        for connection in raw.values():
            connection.close()
        assert client.get("/healthz").status == 200
    for name in ("nothing", "headers"):
        assert 4.5 < ended[name][0] < 8, (name, ended[name])
    for name in ("body", "chunks"):
        assert 9.5 < ended[name][0] < 13, (name, ended[name])
    for _, said in ended.values():
        assert b" 408 " in said.partition(b"\r\n")[0]
        assert b'"code":"request-timeout"' in said


SLOW = {
    "nothing": b"",
    "headers": b"POST /v1/reports HTTP/1.1\r\nHost: a\r\n",
    "body": b"POST /v1/reports HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
    "chunks": b"POST /v1/reports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
}
DRIP = {"nothing": b"", "headers": b"A: b\r\n", "body": b"x", "chunks": b"1\r\nx\r\n"}


def drip(
    connection: socket.socket, name: str, ended: dict[str, tuple[float, bytes]], started: float
) -> None:
    """Send a little more, and see whether it has an answer."""
    try:
        if DRIP[name]:
            connection.send(DRIP[name])
        said = connection.recv(65536)
    except BlockingIOError:
        return
    except OSError:
        said = b""
    ended[name] = (time.monotonic() - started, said)


def test_two_gigabytes_do_not_arrive(tmp_path: Path) -> None:
    with collector(tmp_path) as process, client_of(process) as client:
        client.get("/healthz")
        before = process.memory()
        for head in (
            b"Content-Length: 2147483648\r\n\r\n",
            b"Content-Length: 99999999999999999999999\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n",  # and trailers without end
        ):
            sent, said = pour(process.port, head)
            assert sent < 24 * MIB  # what the system's buffers hold, and no more
            assert b" 413 " in said or b" 400 " in said or said == b""
        assert process.memory() - before < 24 * MIB
        assert client.send(batch()).status == 204


def pour(port: int, head: bytes) -> tuple[int, bytes]:
    """Send a body without end until it is refused: bytes that were taken, and the answer."""
    part = b"8000\r\n" + bytes(0x8000) + b"\r\n" if head.endswith(b"chunked\r\n\r\n") else None
    part = part or (b"A: " + b"b" * 60 + b"\r\n") * 500
    sent, said = 0, b""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
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
                connection.settimeout(5)
        except OSError:
            pass
    return sent, said


def test_numbers_without_measure_are_refused_at_once(tmp_path: Path) -> None:
    with collector(tmp_path) as process, client_of(process) as client:
        client.send(batch())
        before = process.memory()
        text = encode_batch_json(batch()).replace(b'"k":16', b'"k":1000000000')
        assert client.send(text, content_type="application/json").code == "malformed-batch"
        data = bytearray(encode_batch(batch()))
        data[22:24] = b"\xff\xff"  # k = 65535
        assert client.send(bytes(data)).code == "malformed-batch"
        data[24:28] = b"\xff\xff\xff\xff"  # four billion reports
        assert client.send(bytes(data)).code == "malformed-batch"
        deep = b'{"rappor":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        assert client.send(deep, content_type="application/json").code == "malformed-batch"
        assert process.memory() - before < 8 * MIB


def test_more_connections_than_allowed_are_told_so(tmp_path: Path) -> None:
    with collector(tmp_path, "--connections", "8") as process:
        held = [socket.create_connection(("127.0.0.1", process.port), 5) for _ in range(8)]
        time.sleep(0.1)
        with client_of(process) as client:
            try:
                answer = client.send(batch())
                assert answer.code == "overloaded"
            except (OSError, http.client.HTTPException):
                pass  # closed while the request was on its way
        for connection in held:
            connection.close()
        time.sleep(0.1)
        with client_of(process) as client:
            assert client.send(batch()).status == 204
