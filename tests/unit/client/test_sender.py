"""Uploading: random moments, backing off, giving up; nothing in a request but what is needed."""

import datetime
import json
from collections.abc import Iterator

import pytest

from rappor.client.outbox import Outbox
from rappor.client.sender import MAX_WAIT, Sender
from rappor.client.transport import Answer, HttpTransport, retry_after
from rappor.errors import ParamsError
from rappor.wire import encode_batch, problem_json
from support.client import (
    LIMIT,
    MONDAY,
    Collector,
    FakeClock,
    MemoryDisk,
    Setting,
    batch,
)

DAY = datetime.timedelta(days=1)


def test_a_stored_batch_is_moved_to_those_that_were_sent() -> None:
    setting = Setting()
    setting.outbox.put(1, batch())
    assert setting.send()
    assert setting.outbox.names() == []
    assert setting.disk.names("sent") == ["sent/0000000001.batch"]
    assert setting.outbox.counts() == {"sent": 1}


def test_a_retry_sends_the_same_bytes_with_the_same_token() -> None:
    setting = Setting(OSError("no answer"), Answer(503))
    setting.outbox.put(1, batch())
    for _ in range(3):
        setting.send()
        setting.clock.forward(1)
    assert setting.transport.bodies == [encode_batch(batch())] * 3
    assert setting.outbox.names() == []


def test_failures_wait_longer_each_time_with_jitter_and_have_an_end() -> None:
    waits = []
    setting = Setting(*[OSError("down")] * 14)
    setting.outbox.put(1, batch())
    for _ in range(14):
        assert not setting.send()
        waits.append(setting.sender.waits())
        assert not setting.send()  # not before the wait is over
        setting.clock.now += waits[-1] + 1
    assert len(setting.transport.bodies) == 14
    for number, wait in enumerate(waits):
        full = min(30 * 2.0**number, MAX_WAIT)
        assert 0.5 * full - 1 <= wait <= 1.5 * full + 1


def test_two_clients_do_not_back_off_alike() -> None:
    def wait() -> float:
        setting = Setting(OSError("down"))
        setting.outbox.put(1, batch())
        setting.send()
        return setting.sender._failed[0]

    assert len({wait() for _ in range(8)}) == 8


def test_retry_after_is_obeyed_also_by_the_next_process() -> None:
    setting = Setting(Answer(503, "overloaded", 1000.0))
    setting.outbox.put(1, batch())
    setting.send()
    later = Sender(setting.disk, setting.clock, setting.outbox, setting.transport, 0)
    assert 999 <= later.waits() <= 1101
    assert not later.send(until=setting.clock.monotonic() + LIMIT, now=True)
    setting.clock.now += 1101
    assert later.send(until=setting.clock.monotonic() + LIMIT, now=True)
    assert later.waits() == 0


def test_a_clock_set_back_does_not_wait_for_ever() -> None:
    setting = Setting(OSError("down"))
    setting.outbox.put(1, batch())
    setting.send()
    setting.clock.forward(-400)
    assert setting.sender.waits() == 0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(400), "dropped: refused (400)"),
        (Answer(422, "period-closed"), "dropped: refused (period-closed)"),
        (Answer(410, "expired-collection"), "dropped: refused (expired-collection)"),
    ],
)
def test_what_is_refused_for_good_is_dropped_and_counted(answer: Answer, why: str) -> None:
    setting = Setting(answer)
    setting.outbox.put(1, batch())
    setting.send()
    assert setting.outbox.names() == []
    assert setting.outbox.counts() == {why: 1}


@pytest.mark.parametrize(
    "status", [200, 301, 302, 307, 403, 404, 407, 408, 429, 500, 502, 503, 507]
)
def test_what_may_pass_is_kept(status: int) -> None:
    setting = Setting(Answer(status))
    setting.outbox.put(1, batch())
    assert not setting.send()
    assert len(setting.outbox.names()) == 1
    assert str(status) in (setting.sender.error or "")


def test_batches_older_than_the_window_are_dropped_unsent() -> None:
    setting = Setting()
    setting.outbox.put(1, batch(1, "2026-11-02"))
    setting.outbox.put(2, batch(2, "2026-11-01"))
    setting.send()
    assert [each.token[0] for each in setting.transport.batches] == [1]
    assert setting.outbox.counts()["dropped: too old"] == 1


def test_a_held_batch_leaves_only_after_its_period() -> None:
    setting = Setting()
    setting.outbox.put(1, batch(), held=True)
    assert setting.send()
    assert setting.transport.bodies == []
    setting.clock.set(MONDAY + DAY, 0.9)  # null reports of the day are being made
    assert setting.send()
    assert setting.transport.bodies == []
    setting.clock.set(MONDAY + DAY, 1)
    assert setting.send()
    assert len(setting.transport.bodies) == 1


def test_a_period_in_the_future_waits_until_it_is_accepted() -> None:
    setting = Setting()
    setting.outbox.put(1, batch(0, "2026-11-18"))
    setting.send()
    assert setting.transport.bodies == []
    setting.clock.set(MONDAY + DAY)
    setting.send()
    assert len(setting.transport.bodies) == 1


def test_a_batch_waits_for_its_random_moment_unless_flushed() -> None:
    setting = Setting(jitter=80_000.0)
    setting.outbox.put(1, batch())
    assert not setting.send(now=False)
    assert 0 < setting.sender.next_moment() <= 80_000
    assert setting.send(now=True)


@pytest.mark.parametrize("gone", ["sent", "sent by another process", "cleared"])
def test_a_batch_that_is_gone_does_not_keep_the_client_awake(gone: str) -> None:
    setting = Setting(jitter=0.0 if gone == "sent" else 80_000.0)
    setting.outbox.put(1, batch())
    assert setting.send(now=False) is (gone == "sent")
    if gone == "cleared":
        setting.outbox.clear()
    elif gone != "sent":
        setting.outbox.sent(setting.outbox.names()[0])
    setting.send(now=False)
    assert setting.sender._moments == {}
    assert setting.sender.next_moment() >= 30


def test_a_moment_that_has_passed_does_not_keep_the_client_awake() -> None:
    setting = Setting()
    setting.outbox.put(1, batch())
    setting.sender._moments[setting.outbox.names()[0]] = setting.clock.monotonic()
    setting.disk.files["opted-out"] = b""  # by another process, which could not clear the outbox
    setting.send(now=False)
    assert setting.sender.next_moment() >= 30


def test_a_disk_that_takes_nothing_does_not_make_a_busy_loop() -> None:
    class ReadOnly(MemoryDisk):
        def replace(self, name: str, data: bytes) -> None:
            raise PermissionError(13, "read-only")

        move = remove = replace  # type: ignore[assignment]

    setting = Setting()
    setting.outbox.put(1, batch())
    disk = ReadOnly()
    disk.files = setting.disk.files
    sender = Sender(disk, setting.clock, Outbox(disk), setting.transport, 0)
    for _ in range(5):
        sender.send(until=setting.clock.monotonic() + LIMIT, now=True)
    assert setting.transport.bodies == []  # what cannot be noted as sent is not sent
    assert sender.waits() > 0


def test_after_opting_out_nothing_is_posted() -> None:
    setting = Setting()
    setting.outbox.put(1, batch())
    setting.disk.files["opted-out"] = b""
    assert not setting.send()
    assert setting.transport.bodies == []


# Over real HTTP.


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def post(collector: Collector, **options: str) -> Answer:
    sent = HttpTransport(collector.url, clock=FakeClock(), **options)  # type: ignore[arg-type]
    return sent.post(encode_batch(batch()), LIMIT)


def test_a_request_carries_these_headers_and_no_others(collector: Collector) -> None:
    assert post(collector, ingest_key="public-key") == Answer(204)
    (headers,) = collector.headers
    assert headers == {
        "Host": collector.url.removeprefix("http://"),
        "Content-Type": "application/vnd.rappor.batch",
        "Authorization": "Bearer public-key",
        "Content-Length": str(len(encode_batch(batch()))),
        "Connection": "close",
    }
    assert collector.batches == [batch()]


def test_problems_and_waits_are_read_from_the_answer(collector: Collector) -> None:
    collector.status, collector.body = 503, problem_json("overloaded")
    collector.answer_headers = {"Content-Type": "application/problem+json", "Retry-After": "7"}
    assert post(collector) == Answer(503, "overloaded", 7.0)
    assert not post(collector).permanent
    collector.status, collector.body = 422, problem_json("wrong-period")
    assert post(collector).permanent


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"code": 7}', b'{"code": "made-up"}'])
def test_a_strange_problem_is_no_problem(collector: Collector, body: bytes) -> None:
    collector.status, collector.body = 503, body
    collector.answer_headers = {"Content-Type": "application/problem+json"}
    assert post(collector) == Answer(503)


def test_a_redirect_is_not_followed(collector: Collector) -> None:
    collector.status = 307
    collector.answer_headers = {"Location": f"{collector.url}/elsewhere"}
    assert post(collector) == Answer(307)
    assert len(collector.headers) == 1


def test_after_abort_nothing_is_sent_until_resumed(collector: Collector) -> None:
    transport = HttpTransport(collector.url, clock=FakeClock())
    transport.abort()
    with pytest.raises(OSError, match="stopped"):
        transport.post(encode_batch(batch()), LIMIT)
    assert collector.headers == []
    transport.resume()
    assert transport.post(encode_batch(batch()), LIMIT).stored


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://reports.example.org", "must be https"),
        ("http://127.0.0.1.example.org", "must be https"),
        ("ftp://localhost", "must be an address"),
        ("https://", "must be an address"),
        ("reports.example.org", "must be an address"),
        ("https://a b.org", "must be an address"),
        ("https://a.org:99999", "must be an address"),
        ("https://user:word@a.org", "no user, password"),
        ("https://a.org/?client=7", "no user, password, query"),
        (7, "must be an address"),
    ],
)
def test_addresses_that_would_not_be_private_are_refused(url: str, message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        HttpTransport(url, clock=FakeClock())


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", 7])
def test_a_key_that_would_break_the_header_is_refused(key: str) -> None:
    with pytest.raises(ParamsError, match="ingest_key must be"):
        HttpTransport("https://a.org", clock=FakeClock(), ingest_key=key)


def test_certificates_are_verified() -> None:
    import ssl

    transport = HttpTransport("https://a.org", clock=FakeClock())
    assert transport._target.tls is not None
    assert transport._target.tls.verify_mode is ssl.CERT_REQUIRED
    assert transport._target.tls.check_hostname
    with pytest.raises(ParamsError, match="ca_file must be"):
        HttpTransport("https://a.org", clock=FakeClock(), ca_file="/no/such/file")


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        (None, None),
        ("5", 5.0),
        ("999999999999999999999", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_retry_after_in_all_its_forms(text: str | None, wait: float | None) -> None:
    assert retry_after(text, 100.0) == wait


def test_the_listed_problems_say_what_is_permanent() -> None:
    assert json.loads(problem_json("overloaded"))["retry"] is True
    assert not Answer(429, "rate-limited").permanent
    assert not Answer(404, "unknown-collection").permanent
    assert Answer(422, "wrong-params").permanent
