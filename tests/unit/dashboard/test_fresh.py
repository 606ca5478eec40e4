"""What takes long to make is made in the background, and shown as it was meanwhile."""

import threading
import time

import pytest

from rappor.dashboard.fresh import Fresh

LONG = 0.2  # longer than anybody is patient


class Source:
    """Something that changes, and a slow look at it that waits for a sign."""

    def __init__(self) -> None:
        self.number, self.looks, self.stamps = 1, 0, 0
        self.wrong: Exception | None = None
        self.go = threading.Event()
        self.go.set()

    def stamp(self):
        self.stamps += 1
        return ((self.number, 0, 0),)

    def look(self) -> int:
        self.looks += 1
        seen = self.number
        assert self.go.wait(10)
        if self.wrong is not None:
            raise self.wrong
        return seen


def slow(source: Source, fresh: Fresh[int]) -> None:
    """Have the first look take long, and the rest after it be over."""
    source.go.clear()
    threading.Timer(LONG, source.go.set).start()
    assert fresh.get() == source.number
    time.sleep(3 * LONG)


def until(fresh: Fresh[int], wanted: int) -> None:
    deadline = time.monotonic() + 10
    while fresh.get() != wanted:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_nothing_is_made_again_before_its_source_changes() -> None:
    source = Source()
    fresh = Fresh(source.stamp, source.look)
    assert [fresh.get() for _ in range(3)] == [1, 1, 1]
    assert source.looks == 1
    source.number = 2
    assert fresh.get() == 2  # what is quick to make is waited for


def test_nobody_waits_for_what_took_long_and_nobody_looks_meanwhile() -> None:
    source = Source()
    fresh = Fresh(source.stamp, source.look)
    slow(source, fresh)
    source.go.clear()
    source.number = 2
    assert fresh.get() == 1  # and begins to make the next
    while source.looks < 2:
        time.sleep(0.001)
    before = source.stamps
    assert [fresh.get() for _ in range(5)] == [1] * 5
    assert (source.looks, source.stamps) == (2, before)
    source.go.set()
    until(fresh, 2)


def test_between_two_long_makings_is_a_rest() -> None:
    source = Source()
    fresh = Fresh(source.stamp, source.look)
    source.go.clear()
    threading.Timer(LONG, source.go.set).start()
    assert fresh.get() == 1
    source.number = 2
    assert fresh.get() == 1
    assert source.looks == 1
    until(fresh, 2)


def test_what_goes_wrong_is_told_to_all_and_ends_with_its_cause() -> None:
    source = Source()
    fresh = Fresh(source.stamp, source.look)
    assert fresh.get() == 1
    source.number, source.wrong = 2, ValueError("damaged")
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            fresh.get()
    source.wrong = None
    assert fresh.get() == 2


def test_the_first_one_can_be_begun_before_anybody_asks() -> None:
    source = Source()
    fresh = Fresh(source.stamp, source.look)
    fresh.begin()
    fresh.begin()
    assert fresh.get() == 1
    assert source.looks == 1
