"""Limits: no more reports and no more ε than was agreed; their number says nothing."""

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from rappor.client import Client
from rappor.client.charging import Caps, ChargeDecision, decide
from rappor.client.ledger_file import load_ledger
from rappor.client.outbox import parse_batch
from rappor.params import Params
from rappor.wire import Batch
from support.client import (
    LIMIT,
    MONDAY,
    FakeClock,
    FakeTransport,
    MemoryDisk,
    homepage,
    recorder_on,
)

DAY = datetime.timedelta(days=1)


def outbox(disk: MemoryDisk) -> list[Batch]:
    found = [parse_batch(disk.files[name]) for name in disk.names("outbox")]
    return [each[0] for each in found if each is not None]


def test_a_group_never_spends_more_than_the_smallest_limit_in_it() -> None:
    small = homepage(name="small", group="g", max_epsilon=5.0)
    large = homepage(name="large", group="g", max_epsilon=50.0, max_values=9)
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
        homepage(name="small", group="g", max_epsilon=5.0),
        homepage(name="large", group="g", max_epsilon=50.0),
        homepage(name="alone", max_epsilon=50.0),
    ]
    with Client.open(tmp_path, given, consent=True, clock=FakeClock()) as client:
        found = {each.name: each.max_epsilon for each in client.status().collections}
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
    for day, answer in ((ends, ChargeDecision.FULL), (ends + DAY, ChargeDecision.YES)):
        assert decide(ledger, homepage(), day, "aa" * 16, Caps())[0] is answer
    ledger = replace(ledger, floors={"homepage": "2026-10-04"})
    for day, answer in ((ends, ChargeDecision.FULL), (ends + DAY, ChargeDecision.YES)):
        assert decide(ledger, weekly, day, "aa" * 16, Caps())[0] is answer


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
        sender.send(until=clock.monotonic() + LIMIT, now=True)
        sent.append(sorted(each.period for each in collector.batches))
    assert sent[0] == sent[1]
