"""From a value to a report in the outbox: one memo for ever, one report a period, null reports."""

import contextlib
import datetime
import logging

import pytest

from rappor.client.identity import load_secret
from rappor.client.ledger_file import load_ledger
from rappor.client.outbox import parse_batch
from rappor.params import Params
from rappor.wire import Batch
from support.client import (
    ECHO,
    MONDAY,
    Crash,
    FakeClock,
    MemoryDisk,
    homepage,
    recorder_on,
)

DAY = datetime.timedelta(days=1)


def outbox(disk: MemoryDisk) -> list[Batch]:
    found = [parse_batch(disk.files[name]) for name in disk.names("outbox")]
    return [each[0] for each in found if each is not None]


@pytest.mark.slow
def test_restarts_upgrades_and_ten_thousand_repeats_give_one_b_prime() -> None:  # A4
    """p = 0, q = 1: the report is B' itself, so that every report shows it."""
    clock, disk = FakeClock(), MemoryDisk()
    seen = set()
    for day in range(100):
        clock.set(MONDAY + day * DAY)
        version = 1 + day // 50  # an upgrade
        recorder = recorder_on(disk, clock, homepage(params=ECHO, version=version))
        for _ in range(100):
            recorder.record("homepage", "example.com", clock.now)
        for batch in outbox(disk):
            seen.add((batch.cohorts, batch.reports))
    assert len(seen) == 1
    assert recorder.problem is None
    assert len(outbox(disk)) == 100
    assert {batch.version for batch in outbox(disk)} == {1, 2}


def test_another_value_or_another_secret_gives_another_b_prime() -> None:
    seen = set()
    for value in ("a.org", "b.org"):
        disk = MemoryDisk()
        recorder_on(disk, FakeClock(), homepage(params=ECHO)).record("homepage", value, 1.8e9)
        seen |= {batch.reports for batch in outbox(disk)}
    assert len(seen) == 2


def test_two_devices_of_an_account_have_one_cohort_and_one_b_prime() -> None:  # R59
    seen = set()
    for _ in range(3):
        disk = MemoryDisk()
        recorder = recorder_on(
            disk, FakeClock(), homepage(params=ECHO), account_secret=b"sixteen bytes at least"
        )
        recorder.record("homepage", "a.org", 1.8e9)
        assert "secret" not in disk.files
        seen |= {(batch.cohorts, batch.reports) for batch in outbox(disk)}
    assert len(seen) == 1


def test_the_instantaneous_response_is_fresh_and_so_is_the_token() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage(reports_per_period=20))
    for _ in range(25):
        recorder.record("homepage", "a.org", clock.now)
    made = outbox(disk)
    assert len(made) == len({each.reports for each in made}) == 20
    assert len({each.token for each in made}) == 20
    assert all(each.count == 1 for each in made)  # two in one batch would be known as one client's


def test_the_period_is_that_of_the_call_and_dimensions_are_the_declared_ones() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    collection = homepage(dimensions={"country": ("NZ", "FR"), "os": ("mac",)})
    recorder = recorder_on(disk, clock, collection, dimensions={"country": "NZ", "os": "plan9"})
    called = clock.now
    clock.forward(3)  # the background thread came late
    recorder.record("homepage", "a.org", called)
    (batch,) = outbox(disk)
    assert batch.period == "2026-11-16"
    assert batch.dimensions == (("country", "NZ"), ("os", "other"))


def test_every_period_without_a_value_says_so_after_its_end() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage(null_reports=True))
    recorder.tick()
    assert outbox(disk) == []
    clock.set(MONDAY + DAY)
    recorder.record("homepage", "a.org", clock.now)
    clock.set(MONDAY + 3 * DAY)
    for _ in range(3):
        recorder.tick()
    assert sorted(each.period for each in outbox(disk)) == [
        "2026-11-16",
        "2026-11-17",
        "2026-11-18",
    ]
    assert all(name.endswith(".held") for name in disk.names("outbox"))
    clock.set(MONDAY + 300 * DAY)
    recorder.tick()
    assert len(outbox(disk)) == 3 + 14  # those that a collector still takes


def test_a_null_report_is_the_all_zero_filter_with_a_memo_of_its_own() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    collection = homepage(params=ECHO, null_reports=True)
    recorder = recorder_on(disk, clock, collection)
    recorder.tick()
    clock.set(MONDAY + 2 * DAY)
    recorder.tick()
    first, second = outbox(disk)
    encoder = collection.encoder(load_secret(disk, None))
    assert first.reports == second.reports
    assert int.from_bytes(first.reports, "little") == encoder.encode_null().bits


def test_time_without_consent_is_not_reported_on() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage(null_reports=True))
    recorder.tick()
    disk.files["paused"] = b""
    clock.set(MONDAY + 5 * DAY)
    recorder.tick()
    clock.set(MONDAY + 6 * DAY)
    recorder.tick()
    assert [each.period for each in outbox(disk)] == ["2026-11-21"]


def test_at_the_limit_of_values_the_period_gets_a_null_report() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage(null_reports=True, max_values=1))
    recorder.tick()
    recorder.record("homepage", "a.org", clock.now)
    clock.set(MONDAY + DAY)
    recorder.record("homepage", "b.org", clock.now)
    clock.set(MONDAY + 2 * DAY)
    recorder.tick()
    assert recorder.counts["the limit on values or ε is reached"] == 1
    assert [each.period for each in outbox(disk)] == ["2026-11-16", "2026-11-17"]


def test_a_one_time_report_survives_a_crash_and_is_sent_with_one_token() -> None:
    once = homepage(params=Params(16, 2, 4, 0.0, 0.25, 0.75), one_time=True, max_epsilon=9)
    tokens = set()
    for write in range(1, 9):
        clock, disk = FakeClock(), MemoryDisk()
        recorder = recorder_on(disk, clock, once)
        disk.crash_in, disk.crash_how = write, "after"
        with contextlib.suppress(Crash):
            recorder.record("homepage", "a.org", clock.now)
        disk.crash_in = None
        again = recorder_on(disk, clock, once)
        again.tick()
        again.record("homepage", "b.org", clock.now)
        again.tick()
        made = outbox(disk)
        assert len(made) <= 1
        tokens |= {each.token for each in made}
        slots = [name for name in disk.names("once") if not name.endswith(".queued")]
        assert len(slots) == len(made)
    assert len(tokens) >= 5  # most crashes lose nothing


def test_a_damaged_slot_is_never_drawn_again() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    once = homepage(params=Params(16, 2, 4, 0.0, 0.25, 0.75), one_time=True, max_epsilon=9)
    recorder = recorder_on(disk, clock, once)
    recorder.record("homepage", "a.org", clock.now)
    (slot,) = (name for name in disk.names("once") if not name.endswith(".queued"))
    disk.files = {name: data for name, data in disk.files.items() if not name.endswith(".queued")}
    disk.files[slot] = disk.files[slot][:-1]
    recorder.tick()
    assert recorder.problem == "slot-damaged"


@pytest.mark.parametrize("value", [7, b"\xff", object(), "\ud800", ["a"], float("nan")])
def test_a_value_that_cannot_be_encoded_costs_nothing_and_is_not_logged(
    value: object, caplog: pytest.LogCaptureFixture
) -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage())
    with caplog.at_level(logging.DEBUG):
        assert recorder.record("homepage", value, clock.now) is (value == b"\xff")
    if value != b"\xff":
        assert recorder.counts == {"value refused": 1}
        assert load_ledger(disk, load_secret(disk, None)).epsilon() == 0
        assert not any(repr(value) in message for message in caplog.messages)


def test_an_error_that_carries_the_value_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Evil(str):
        def encode(self, *_: object) -> bytes:
            raise RuntimeError("my secret homepage")

    clock = FakeClock()
    recorder = recorder_on(MemoryDisk(), clock, homepage())
    recorder.record("homepage", Evil("my secret homepage"), clock.now)
    assert "my secret homepage" not in caplog.text


def test_swapped_arguments_are_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    recorder = recorder_on(MemoryDisk(), clock, homepage())
    recorder.record("www.private.example", "homepage", clock.now)
    assert recorder.counts == {"unknown collection": 1}
    assert "private" not in caplog.text


def test_opting_out_in_another_process_stops_this_one() -> None:
    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage(null_reports=True))
    recorder.tick()
    disk.files["opted-out"] = b""
    clock.set(MONDAY + DAY)
    recorder.record("homepage", "a.org", clock.now)
    recorder.tick()
    assert outbox(disk) == []
    assert recorder.counts == {"opted out": 1}


@pytest.mark.parametrize(
    ("number", "problem"),
    [(28, "disk-full"), (30, "directory-unusable"), (13, "directory-unusable")],
)
def test_a_disk_that_refuses_is_a_problem_and_recovery_is_by_itself(
    number: int, problem: str
) -> None:
    class Full(MemoryDisk):
        full = True

        def replace(self, name: str, data: bytes) -> None:
            if self.full:
                raise OSError(number, "no")
            super().replace(name, data)

    clock, disk = FakeClock(), Full()
    recorder = recorder_on(disk, clock, homepage())
    assert not recorder.record("homepage", "a.org", clock.now)
    assert recorder.problem == problem
    disk.full = False
    assert recorder.record("homepage", "a.org", clock.now)
    assert recorder.problem is None


def test_without_entropy_nothing_is_reported() -> None:
    def broken(_: int, /) -> bytes:
        raise OSError("no entropy")

    clock, disk = FakeClock(), MemoryDisk()
    recorder = recorder_on(disk, clock, homepage())
    recorder._entropy = broken
    recorder.record("homepage", "a.org", clock.now)
    assert recorder.problem == "no-entropy"
    assert outbox(disk) == []
