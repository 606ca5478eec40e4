"""A hostile collector or network: answers that never end, lie, refuse, or come too late."""

import contextlib
import datetime
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.client.sender import FIRST_WAIT, Sender
from rappor.client.transport import Answer, HttpTransport, retry_after
from rappor.wire import encode_batch
from support.client import (
    LIMIT,
    Collector,
    FakeClock,
    FakeTransport,
    Setting,
    batch,
    homepage,
)

DAY = datetime.timedelta(days=1)


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Serves one connection in any way at all; gives the address."""
    made: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(behave: Callable[[socket.socket], None]) -> str:
        listening = socket.create_server(("127.0.0.1", 0))
        made.append(listening)

        def run() -> None:
            with contextlib.suppress(OSError):  # the client has had enough, or never came
                accepted, _ = listening.accept()
                with accepted:
                    accepted.recv(100_000)
                    behave(accepted)

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield serve
    for each in made:
        each.shutdown(socket.SHUT_RDWR)  # wakes a thread that still waits for a connection
    for thread in threads:
        thread.join(LIMIT)
    for each in made:
        each.close()


def endless(start: bytes, part: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    def behave(accepted: socket.socket) -> None:
        accepted.sendall(start)
        while True:
            accepted.sendall(part)
            time.sleep(pause)

    return behave


def silent(accepted: socket.socket) -> None:
    while accepted.recv(1000):  # up to the end of the connection
        pass


class Hastening(FakeClock):
    """A clock on which a second goes by whenever it is looked at."""

    seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1.0
        return self.seconds


OK = b"HTTP/1.1 503 No\r\n"
DROPS = {
    "a header, drop by drop": endless(OK, b"x", 0.001),
    "a status line, drop by drop": endless(b"HTTP/1.1 204 N", b"o", 0.001),
    "a body, drop by drop": endless(OK + b"Content-Length: 99999\r\n\r\n", b"z", 0.001),
    "chunks, drop by drop": endless(
        OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.001
    ),
}
FLOODS = {
    "headers without end": (endless(OK, b"a: b\r\n"), "not an HTTP answer"),
    "a header line without end": (endless(OK + b"a: ", b"b" * 10_000), "not an HTTP answer"),
    "go on, go on": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "answer is too long"),
}


@pytest.mark.parametrize("how", DROPS)
def test_an_answer_that_never_ends_takes_no_longer_than_the_limit(
    server: Callable[[Callable[[socket.socket], None]], str], how: str
) -> None:
    transport = HttpTransport(server(DROPS[how]), clock=Hastening())
    with pytest.raises(TimeoutError):  # each drop came in time, and all of them together did not
        transport.post(encode_batch(batch()), 60.0)


def test_an_answer_that_never_begins_takes_no_longer_than_the_limit(
    server: Callable[[Callable[[socket.socket], None]], str],
) -> None:
    url = server(silent)
    with pytest.raises(TimeoutError):
        HttpTransport(url, clock=FakeClock()).post(encode_batch(batch()), 0.1)


@pytest.mark.parametrize("how", FLOODS)
def test_an_answer_without_end_at_full_speed_is_no_longer_than_the_limit(
    server: Callable[[Callable[[socket.socket], None]], str], how: str
) -> None:
    behave, message = FLOODS[how]
    transport = HttpTransport(server(behave), clock=FakeClock())
    with pytest.raises(OSError, match=message):
        transport.post(encode_batch(batch()), LIMIT)


def test_a_body_without_end_at_full_speed_is_read_up_to_a_limit(
    server: Callable[[Callable[[socket.socket], None]], str],
) -> None:
    url = server(endless(OK + b"Content-Encoding: gzip\r\n\r\n", b"\0" * 65_536))
    assert HttpTransport(url, clock=FakeClock()).post(encode_batch(batch()), LIMIT) == Answer(503)


DATES = [
    "Mon, 16 Nov 99999999999999999999 00:00:00 GMT",
    "Mon, 99999999999999999999 Nov 2026 00:00:00 GMT",
    "Mon, 16 Nov 2026 99999999999999999999:00:00 GMT",
    "Mon, 16 Nov 2026 00:00:00 +9999",
    "16 Nov 2026 00:00:00 +" + "9" * 5000,
    "\x00",
    "9" * 4000,
]


@pytest.mark.parametrize("text", DATES)
def test_no_retry_after_breaks_anything(text: str) -> None:
    assert retry_after(text, 0.0) in (None, 86_400.0)


def test_the_upload_thread_survives_what_the_way_out_raises(tmp_path: Path) -> None:
    """A ValueError of a name that cannot be resolved, a bug, anything."""
    collector = FakeTransport([ValueError("label too long"), KeyError("a bug")])
    clock = FakeClock()
    given: dict[str, Any] = {"consent": True, "clock": clock, "transport": collector}
    with Client.open(tmp_path, [homepage()], **given) as client:
        client.report("homepage", "a.org")
        for _ in range(2):
            assert not client.flush(LIMIT)
            assert "no answer" in (client.status().upload or "")
            clock.forward(1)
        assert client.flush(LIMIT)
        assert client.status().upload is None


@pytest.mark.parametrize("host", ["a..example", "x" * 64 + ".example"])
def test_a_host_that_no_name_can_be_is_no_answer(host: str) -> None:
    transport = HttpTransport(f"https://{host}", clock=FakeClock())
    with pytest.raises(OSError, match=r".*"):
        transport.post(encode_batch(batch()), LIMIT)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_with_a_cookie_is_kept_and_tried_at_the_same_place(status: int) -> None:
    collector = Collector()
    try:
        collector.status = status
        collector.answer_headers = {"Location": "http://127.0.0.1:9/x", "Set-Cookie": "id=7"}
        transport = HttpTransport(collector.url, clock=FakeClock())
        assert not transport.post(encode_batch(batch()), LIMIT).permanent
        collector.status, collector.answer_headers = 204, {}
        assert transport.post(encode_batch(batch()), LIMIT).stored
        assert "Cookie" not in collector.headers[1]
        assert collector.headers[0] == collector.headers[1]
    finally:
        collector.close()


def test_a_collector_that_always_asks_for_a_second_does_not_get_one_every_second() -> None:
    setting = Setting(*[Answer(503, "overloaded", 1.0)] * 12)
    setting.outbox.put(1, batch())
    waits = []
    for _ in range(12):
        setting.send()
        waits.append(setting.sender.waits())
        setting.clock.now += waits[-1] + 1
    assert waits[0] < 3  # it is obeyed at first
    assert min(waits[4:]) > 4 * FIRST_WAIT


def test_after_an_outage_the_batches_do_not_leave_in_one_burst() -> None:
    setting = Setting(OSError("down"), jitter=80_000.0)
    for number in range(10):
        setting.outbox.put(number, batch(number, f"2026-11-{7 + number:02d}"))
    setting.send(now=False)
    setting.sender._moments = dict.fromkeys(setting.outbox.names(), 0.0)  # all their times came
    assert not setting.send(now=False)
    assert len(setting.transport.bodies) == 1
    setting.clock.forward(0.5)
    assert setting.sender.waits() == 0
    setting.send(now=False)
    assert len(setting.transport.bodies) <= 2  # one more by chance; never all of them


def test_nothing_is_sent_while_what_waits_is_still_to_be_cleared() -> None:
    setting = Setting()
    setting.outbox.put(1, batch())
    setting.disk.files["clearing"] = b""
    assert not setting.send()
    assert setting.transport.bodies == []


# Keys and collections that the operator is about to set right.


@pytest.mark.parametrize(
    ("status", "code"), [(401, "unauthorized"), (403, "forbidden"), (404, "unknown-collection")]
)
def test_a_report_waits_for_an_operator_but_not_for_ever(status: int, code: str) -> None:
    setting = Setting(Answer(status, code, 3600.0))
    setting.outbox.put(1, batch())
    assert not setting.send()
    assert len(setting.outbox.names()) == 1
    assert code in (setting.sender.error or "")
    setting.clock.forward(0.5)
    later = Sender(setting.disk, setting.clock, setting.outbox, setting.transport, 0)
    assert later.send(until=later._clock.monotonic() + LIMIT, now=True)  # with a key
    assert setting.outbox.counts() == {"sent": 1}
    setting.transport.answers = [Answer(status, code)] * 99
    setting.outbox.put(2, batch(2))
    for _ in range(20):
        setting.send()
        setting.clock.forward(1)
    assert setting.outbox.names() == []
    assert setting.outbox.counts() == {"sent": 1, "dropped: too old": 1}


def test_one_collection_that_is_refused_does_not_hold_up_the_others() -> None:
    class Picky(FakeTransport):
        def post(self, body: bytes, timeout: float) -> Answer:
            super().post(body, timeout)
            good = self.batches[-1].collection == "homepage"
            return Answer(204) if good else Answer(404, "unknown-collection", 3600.0)

    setting = Setting()
    setting.transport = Picky()
    sender = Sender(setting.disk, setting.clock, setting.outbox, setting.transport, 0)
    for number in range(20):
        setting.outbox.put(number, batch(number, collection="new" if number % 2 else "homepage"))
    for _ in range(3):
        assert not sender.send(until=setting.clock.monotonic() + LIMIT, now=True)
    assert setting.outbox.counts() == {"sent": 10}
    assert len(setting.transport.bodies) == 20  # none was asked about again and again


def test_nothing_that_is_logged_holds_a_token_a_value_or_an_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    collector = FakeTransport([Answer(503), OSError("www.private.example"), Answer(400)])
    clock = FakeClock()
    given: dict[str, Any] = {"consent": True, "clock": clock, "transport": collector}
    with Client.open(tmp_path, [homepage()], **given) as client:
        client.report("homepage", "www.private.example")
        client.report("www.private.example", "homepage")
        client.report("homepage", object())
        for _ in range(3):
            client.flush(LIMIT)
            clock.forward(1)
    text = caplog.text
    assert "private" not in text
    assert all(each.token.hex() not in text for each in collector.batches)
