"""Forgetting: everything goes but what it cost; nothing forgotten is reported again or sent."""

import datetime
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.client.folder import Folder
from rappor.params import Params
from support.client import LIMIT, MONDAY, FakeClock, FakeTransport, homepage, used
from support.waiting import wait_for

DAY = datetime.timedelta(days=1)
ONCE = homepage(
    name="once", params=Params(16, 2, 4, 0.0, 0.25, 0.75), one_time=True, max_epsilon=99.0
)


def test_forgetting_leaves_no_unfinished_copy_of_the_secret(directory: Path) -> None:
    used(directory, FakeClock())
    (directory / ".new-0123").write_bytes((directory / "secret").read_bytes())
    (directory / "outbox/.new-0123").write_bytes(b"half a report")
    with Client.open(directory, [homepage()], consent=True) as client:
        client.forget()
    left = {path.name for path in directory.rglob("*") if path.is_file()}
    assert left <= {"forgotten", "lock", "sending.lock", "upload.lock"}


@pytest.mark.parametrize("lost", [False, True], ids=["ledger known", "ledger lost"])
def test_forgetting_does_not_give_a_period_a_second_report(directory: Path, lost: bool) -> None:
    clock = FakeClock()
    generous = homepage(max_epsilon=99.0)
    collector = used(directory, clock, generous)
    if lost:
        (directory / "ledger").unlink()
    for _ in range(3):
        given: dict[str, Any] = {"consent": True, "clock": clock}
        with Client.open(directory, [generous], **given) as client:
            client.forget()
        with Client.open(directory, [generous], transport=collector, **given) as client:
            client.report("homepage", "a.org")
            client.flush(LIMIT)
    assert len(collector.bodies) == 1
    if not lost:
        clock.forward(1)
        used(directory, clock, generous)
        assert (directory / "secret").exists()


def test_forgetting_does_not_give_a_second_one_time_report(directory: Path) -> None:
    clock = FakeClock()
    collector = used(directory, clock, ONCE)
    with Client.open(directory, [ONCE], consent=True, clock=clock) as client:
        client.forget()
    clock.forward(3)
    with Client.open(directory, [ONCE], consent=True, clock=clock, transport=collector) as client:
        client.report("once", "b.org")
        client.flush(LIMIT)
        assert client.status().calls == {"the reports of this period are made": 1}
    assert len(collector.bodies) == 1


def test_forgetting_a_lost_ledger_keeps_what_was_forgotten_before(directory: Path) -> None:
    clock = FakeClock()
    other = homepage(name="other")
    used(directory, clock, other)
    with Client.open(directory, [other], consent=True, clock=clock) as client:
        first = client.forget().epsilon
    clock.forward(1)
    used(directory, clock)
    (directory / "ledger").unlink()
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        assert client.forget().epsilon == pytest.approx(first + homepage().max_epsilon)


@pytest.mark.slow
def test_a_call_that_waits_for_the_lock_while_all_is_forgotten_draws_no_new_secret(
    directory: Path,
) -> None:
    for attempt in range(12):
        clock = FakeClock(MONDAY + attempt * DAY)
        client = Client.open(directory, [homepage(max_epsilon=999.0)], consent=True, clock=clock)
        client.flush(LIMIT)
        held = client._folder._held  # the lock files that its threads hold or wait for
        with Folder(directory).lock("lock", LIMIT):
            client.report("homepage", "a.org")
            wait_for(lambda held=held: len(held) == 1)  # the background thread waits for the lock
            waits = threading.Thread(target=client.forget)
            waits.start()
            wait_for(lambda held=held: len(held) == 3)  # forget() waits too, with sending stopped
        waits.join()
        client._workers.flush(LIMIT)  # the call has come to its end, too
        client.close()
        assert not (directory / "secret").exists()


ACTIONS: list[Callable[[Client], Any]] = [Client.opt_out, lambda client: client.forget()]


@pytest.mark.parametrize("action", ACTIONS, ids=["opting out", "forgetting"])
def test_files_left_by_other_collections_are_not_sent_later(
    directory: Path, action: Callable[[Client], Any]
) -> None:
    """A One-time report that a crash kept from the outbox, and a host that names it no more."""
    clock = FakeClock()
    used(directory, clock, ONCE)
    for marker in directory.glob("once/*.queued"):
        marker.unlink()  # as after a crash between the two writes
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        action(client)
    collector = FakeTransport()
    with Client.open(directory, [ONCE], consent=True, clock=clock, transport=collector) as client:
        client.opt_in()
        client.flush(LIMIT)
    assert collector.bodies == []
