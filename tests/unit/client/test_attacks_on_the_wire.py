"""Attacks by a collector or a network: answers that never end, lie, or come too late."""

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
from rappor.client.outbox import STATES, Outbox
from rappor.client.preview import look
from rappor.client.sender import FIRST_WAIT, Sender
from rappor.client.transport import Answer, HttpTransport, retry_after
from rappor.wire import Batch, encode_batch
from support.client import Collector, FakeClock, FakeTransport, MemoryDisk, homepage

DAY = datetime.timedelta(days=1)


def batch(token: int = 0, period: str = "2026-11-16", collection: str = "homepage") -> Batch:
    return Batch(bytes([token]) * 16, collection, 1, period, (), 8, b"\1\0", b"\5")


class Setting:
    """A sender over a disk in memory."""

    def __init__(self, *answers: Answer | Exception, jitter: float = 0.0) -> None:
        self.disk, self.clock = MemoryDisk(), FakeClock()
        self.outbox = Outbox(self.disk)
        self.transport = FakeTransport(list(answers))
        self.sender = Sender(self.disk, self.clock, self.outbox, self.transport, jitter)

    def send(self, now: bool = True) -> bool:
        return self.sender.send(until=self.clock.monotonic() + 60, now=now)


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Serves one connection in any way at all; gives the address."""
    made: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(behave: Callable[[socket.socket], None]) -> str:
        listening = socket.create_server(("127.0.0.1", 0))
        made.append(listening)

        def run() -> None:
            accepted, _ = listening.accept()
            with accepted:
                accepted.recv(100_000)
                with contextlib.suppress(OSError):  # the client has had enough
                    behave(accepted)

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield serve
    for each in made:
        each.close()
    for thread in threads:
        thread.join(10)


def endless(start: bytes, part: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    def behave(accepted: socket.socket) -> None:
        accepted.sendall(start)
        while True:
            accepted.sendall(part)
            time.sleep(pause)

    return behave


OK = b"HTTP/1.1 503 No\r\n"
ENDLESS = {
    "one byte a tenth of a second": endless(OK, b"x", 0.1),
    "headers without end": endless(OK, b"a: b\r\n"),
    "a header line without end": endless(OK + b"a: ", b"b" * 10_000),
    "go on, go on": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "a status line, drop by drop": endless(b"HTTP/1.1 204 N", b"o", 0.1),
    "a body, drop by drop": endless(OK + b"Content-Length: 99999\r\n\r\n", b"z", 0.1),
    "chunks, drop by drop": endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.1),
    "nothing": lambda accepted: time.sleep(3),
}


@pytest.mark.parametrize("how", ENDLESS)
def test_an_answer_that_never_ends_takes_no_longer_than_the_limit(
    server: Callable[[Callable[[socket.socket], None]], str], how: str
) -> None:
    transport = HttpTransport(server(ENDLESS[how]), clock=FakeClock())
    before, spent = time.monotonic(), time.process_time()
    with pytest.raises(OSError, match=r".*"):
        transport.post(encode_batch(batch()), 0.7)
    assert time.monotonic() - before < 2.5
    assert time.process_time() - spent < 1.5


def test_a_body_without_end_at_full_speed_is_read_up_to_a_limit(
    server: Callable[[Callable[[socket.socket], None]], str],
) -> None:
    url = server(endless(OK + b"Content-Encoding: gzip\r\n\r\n", b"\0" * 65_536))
    assert HttpTransport(url, clock=FakeClock()).post(encode_batch(batch()), 5) == Answer(503)


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
            assert not client.flush(10)
            assert "no answer" in (client.status().upload or "")
            clock.forward(1)
        assert client.flush(10)
        assert client.status().upload is None


@pytest.mark.parametrize("host", ["a..example", "x" * 64 + ".example"])
def test_a_host_that_no_name_can_be_is_no_answer(host: str) -> None:
    transport = HttpTransport(f"https://{host}", clock=FakeClock())
    with pytest.raises(OSError, match=r".*"):
        transport.post(encode_batch(batch()), 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_with_a_cookie_is_kept_and_tried_at_the_same_place(status: int) -> None:
    collector = Collector()
    try:
        collector.status = status
        collector.answer_headers = {"Location": "http://127.0.0.1:9/x", "Set-Cookie": "id=7"}
        transport = HttpTransport(collector.url, clock=FakeClock())
        assert not transport.post(encode_batch(batch()), 5).permanent
        collector.status, collector.answer_headers = 204, {}
        assert transport.post(encode_batch(batch()), 5).stored
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
    assert later.send(until=later._clock.monotonic() + 5, now=True)  # the key was added meanwhile
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
        assert not sender.send(until=setting.clock.monotonic() + 60, now=True)
    assert setting.outbox.counts() == {"sent": 10}
    assert len(setting.transport.bodies) == 20  # none was asked about again and again


# What is shown is what left.


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Answer(204), "sent"),
        (Answer(422, "wrong-params"), "sent, and refused"),
        (OSError("the answer was lost"), STATES["sent", ".tried"]),
    ],
)
def test_every_batch_that_left_is_shown_as_sent_whatever_came_of_it(
    answer: Answer | Exception, state: str
) -> None:
    setting = Setting(answer)
    setting.outbox.put(1, batch())
    setting.send()
    if isinstance(answer, Exception):
        (waiting,) = look(setting.disk)[1]
        assert waiting.state == STATES["outbox", ".tried"]
        setting.clock.forward(20)
        setting.send()
    sent, waits = look(setting.disk)
    assert waits == ()
    (shown,) = sent
    assert (shown.state, bytes.fromhex(shown.body)) == (state, encode_batch(batch()))


def test_a_batch_that_may_have_left_is_shown_after_opting_out_and_when_crowded_out() -> None:
    for end in ("opted out", "crowded out"):
        setting = Setting(OSError("lost"))
        small = Outbox(setting.disk, 2)
        small.put(1, batch())
        setting.send()
        if end == "opted out":
            small.clear()
        else:
            small.put(2, batch(2))
            small.put(3, batch(3))
        assert [each.state for each in look(setting.disk)[0]] == [STATES["sent", ".tried"]]


def test_that_a_batch_is_on_its_way_is_written_before_it_leaves() -> None:
    class Dies(FakeTransport):
        def post(self, body: bytes, timeout: float) -> Answer:
            raise SystemExit  # killed in the middle of the request

    setting = Setting()
    setting.outbox.put(1, batch())
    sender = Sender(setting.disk, setting.clock, setting.outbox, Dies(), 0)
    with pytest.raises(SystemExit):
        sender.send(until=setting.clock.monotonic() + 5, now=True)
    setting.outbox.clear()
    assert [each.state for each in look(setting.disk)[0]] == [STATES["sent", ".tried"]]


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
            client.flush(10)
            clock.forward(1)
    text = caplog.text
    assert "private" not in text
    assert all(each.token.hex() not in text for each in collector.batches)
