"""The background threads: what a host may count on, and the calendar in spite of it."""

import inspect
import threading
import time

import pytest

from rappor.client import Client, workers
from rappor.client.processes import AT_EXIT
from rappor.client.recorder import Recorder
from rappor.client.sender import TIMEOUT
from rappor.client.workers import BackgroundWorkers
from support.client import LIMIT, FakeClock, MemoryDisk, homepage, recorder_on

# As they are shipped; the fixture `patience` changes them for each test.
CLOSE = inspect.signature(Client.close).parameters["timeout"].default


def test_a_host_waits_two_seconds_for_the_end_and_a_request_takes_ten() -> None:
    """As docs/client.md promises; `benchmarks/client.py` measures that it is so."""
    assert (AT_EXIT, CLOSE, TIMEOUT) == (2.0, 2.0, 10.0)


def test_a_host_that_never_stops_calling_does_not_keep_the_calendar_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "TICK", 0.01)
    ticks = threading.Semaphore(0)

    class Counting(Recorder):
        def tick(self) -> None:
            ticks.release()

    clock = FakeClock()
    recorder = recorder_on(MemoryDisk(), clock, homepage(), kind=Counting)
    made = BackgroundWorkers(recorder, None, None)
    stop = time.monotonic() + LIMIT
    made.start()
    found = 0
    while found < 5 and time.monotonic() < stop:
        while made.calls.qsize() < 50:
            made.calls.put(("unknown", "a.org", clock.now))
        found += ticks.acquire(blocking=False)
        time.sleep(0.001)
    made.drain()
    made.flush(LIMIT, stop=True)
    assert found == 5
