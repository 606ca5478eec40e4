"""Attacks on what was agreed: more reports, more ε, silence that speaks, values that hurt."""

import datetime
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.client.charging import Answer, Caps, ask
from rappor.client.ledger_file import load_ledger
from rappor.client.outbox import parse_batch
from rappor.client.recorder import Recorder
from rappor.client.workers import Workers
from rappor.errors import ParamsError
from rappor.params import Params
from rappor.wire import Batch
from support.client import MONDAY, FakeClock, FakeTransport, MemoryDisk, homepage, recorder_on

DAY = datetime.timedelta(days=1)


def outbox(disk: MemoryDisk) -> list[Batch]:
    found = [parse_batch(disk.files[name]) for name in disk.names("outbox")]
    return [each[0] for each in found if each is not None]


def test_a_group_never_spends_more_than_the_smallest_limit_in_it() -> None:
    small = homepage(name="small", group="g", most_epsilon=5.0)
    large = homepage(name="large", group="g", most_epsilon=50.0, most_values=9)
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, small, large)
    recorder.record("small", "a.org", clock.now)
    for number in range(9):
        recorder.record("large", f"{number}.org", clock.now)
        clock.forward(1)
    secret = bytes.fromhex(disk.files["secret"].split()[-1].decode())
    ledger = load_ledger(disk, secret)
    assert 0 < ledger.epsilon() <= 5.0
    assert recorder.counts["the limit on values or ε is reached"] == 9


def test_the_status_shows_the_limit_that_holds_for_the_group(tmp_path: Path) -> None:
    given = [
        homepage(name="small", group="g", most_epsilon=5.0),
        homepage(name="large", group="g", most_epsilon=50.0),
        homepage(name="alone", most_epsilon=50.0),
    ]
    with Client.open(tmp_path, given, consent=True, clock=FakeClock()) as client:
        found = {each.name: each.most_epsilon for each in client.status().collections}
    assert found == {"small": 5.0, "large": 5.0, "alone": 50.0}


def test_more_devices_of_a_person_are_charged_from_the_day_they_are_declared() -> None:
    clock, disk, secret = FakeClock(), MemoryDisk(), b"an account's own secret"
    one = homepage(params=Params(64, 2, 4, 0.5, 0.5, 0.52), expires=MONDAY + 9 * DAY)
    caps = Caps(shared=True)
    recorder_on(disk, clock, one, caps=caps, account_secret=secret).record(
        "homepage", "a", clock.now
    )
    clock.forward(1)
    many = replace(one, clients_per_person=5)
    recorder_on(disk, clock, many, caps=caps, account_secret=secret).record(
        "homepage", "a", clock.now
    )
    (account,) = load_ledger(disk, secret).accounts
    assert [term.charged // term.limit for term in account.terms] == [1, 5]


def test_changing_between_days_and_weeks_neither_reopens_nor_closes_a_year() -> None:
    weekly = homepage(period="week", version=2)
    ledger = load_ledger(MemoryDisk(), bytes(32))
    ledger = replace(ledger, floors={"homepage": "2026-W40"})
    ends = datetime.date(2026, 10, 4)
    for day, answer in ((ends, Answer.FULL), (ends + DAY, Answer.YES)):
        assert ask(ledger, homepage(), day, "aa" * 16, Caps())[0] is answer
    ledger = replace(ledger, floors={"homepage": "2026-10-04"})
    for day, answer in ((ends, Answer.FULL), (ends + DAY, Answer.YES)):
        assert ask(ledger, weekly, day, "aa" * 16, Caps())[0] is answer


# Silence, and what it says.


@pytest.mark.parametrize("values", [0, 1, 2, 3, 5])
def test_the_number_of_reports_does_not_tell_how_many_values_there_were(values: int) -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage(null_reports=True, reports_per_period=3))
    recorder.tick()
    for number in range(values):
        recorder.record("homepage", f"{number}.org", clock.now)
    clock.forward(1)
    recorder.tick()
    recorder.tick()
    assert [each.period for each in outbox(disk)] == ["2026-11-16"] * 3
    assert all(name.endswith(".held") for name in disk.names("outbox"))


@pytest.mark.parametrize("period", ["day", "week"])
@pytest.mark.parametrize("away", [12, 13, 14, 15, 16, 20])
def test_after_an_absence_a_period_without_a_value_is_sent_if_one_with_a_value_is(
    away: int, period: str
) -> None:
    from rappor.client.outbox import Outbox
    from rappor.client.sender import Sender

    sent = []
    for has_value in (False, True):
        clock, disk, collector = FakeClock(), MemoryDisk(), FakeTransport()
        collection = homepage(null_reports=True, period=period)
        recorder = recorder_on(disk, clock, collection)
        recorder.tick()
        if has_value:
            recorder.record("homepage", "a.org", clock.now)
        clock.forward(away)
        recorder.tick()
        sender = Sender(disk, clock, Outbox(disk), collector, 0)
        sender.send(until=clock.monotonic() + 5, now=True)
        sent.append(sorted(each.period for each in collector.batches))
    assert sent[0] == sent[1]


def test_a_host_that_never_stops_calling_does_not_keep_the_calendar_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rappor.client import workers

    monkeypatch.setattr(workers, "TICK", 0.05)
    ticks = threading.Semaphore(0)

    class Counting(Recorder):
        def tick(self) -> None:
            ticks.release()

    clock = FakeClock()
    recorder = recorder_on(MemoryDisk(), clock, homepage(), kind=Counting)
    made = Workers(recorder, None, None)
    stop = time.monotonic() + 10
    made.start()
    found = 0
    while found < 5 and time.monotonic() < stop:
        while made.calls.qsize() < 50:
            made.calls.put(("unknown", "a.org", clock.now))
        found += ticks.acquire(blocking=False)
        time.sleep(0.001)
    made.drain()
    made.flush(2, stop=True)
    assert found == 5


# Values that hurt.


@pytest.mark.parametrize(
    "value",
    ["x" * 3_000_000, b"x" * 3_000_000, [True] * 3_000_000, (True,) * 3_000_000],
    ids=["text", "bytes", "list", "tuple"],
)
def test_a_huge_value_is_refused_at_once_and_not_kept(tmp_path: Path, value: object) -> None:
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        client.flush(5)
        before = time.perf_counter()
        for _ in range(100):
            client.report("homepage", value)
        assert time.perf_counter() - before < 0.1
        assert client.status().calls == {"value refused": 100}


def test_bytes_that_change_after_the_call_are_reported_as_they_were(tmp_path: Path) -> None:
    params = Params(64, 2, 4, 0.5, 0.0, 1.0)
    collection, clock = homepage(params=params), FakeClock()
    with Client.open(tmp_path, [collection], consent=True, clock=clock) as client:
        with client._folder.lock("lock", 5):
            value = bytearray(b"a.org")
            client.report("homepage", value)
            value[:] = b"b.org"
        client.flush(5)
        clock.forward(1)
        client.report("homepage", b"a.org")
        client.flush(5)
        assert client.status().collections[0].values == 1


@pytest.mark.parametrize("value", ["", b"", "\0", "\U0010ffff", "x" * 100_000])
def test_odd_strings_are_values_like_any_other(tmp_path: Path, value: object) -> None:
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        client.report("homepage", value)
        assert client.flush(5)
        assert client.status().calls == {"made": 1}


# What an application reads.


def test_the_status_is_plain_json_with_infinity_as_a_text(tmp_path: Path) -> None:
    from rappor.client.folder import Folder
    from rappor.client.ledger_file import save_forgotten

    save_forgotten(Folder(tmp_path), {"homepage": float("inf")}, {}, {})
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        found = json.loads(json.dumps(client.status().to_dict(), allow_nan=False))
        shown: Any = client.preview().to_dict()
        json.dumps(shown, allow_nan=False)
    assert found["epsilon"] == "inf"
    assert found["collections"][0]["epsilon"] == "inf"
    assert found["state"] == "on"


@pytest.mark.parametrize("collections", [None, 7, object()])
def test_collections_that_are_no_list_are_a_params_error(tmp_path: Path, collections: Any) -> None:
    with pytest.raises(ParamsError, match="collections must"):
        Client.open(tmp_path, collections, consent=True)


def test_the_preview_names_the_very_address_that_is_posted_to(tmp_path: Path) -> None:
    url = "https://reports.example.org"
    with Client.open(
        tmp_path, [homepage()], consent=True, upload_to=url, clock=FakeClock()
    ) as client:
        assert client.preview().upload_to == "https://reports.example.org/v1/reports"
