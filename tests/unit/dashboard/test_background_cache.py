"""What takes long to make is made in the background, and shown as it was meanwhile."""

import threading
from types import SimpleNamespace

import pytest

from rappor.dashboard import background_cache as module
from rappor.dashboard.background_cache import PATIENCE_SECONDS, REST, BackgroundCache
from support.waiting import wait_for

LONG = 2 * PATIENCE_SECONDS  # longer than anybody is patient


class Source:
    """Something that changes, and a look at it that waits for a sign."""

    def __init__(self) -> None:
        self.number, self.looks, self.stamps = 1, 0, 0
        self.seconds, self.takes = 0.0, 0.0  # on the clock, and what a look takes of them
        self.wrong: Exception | None = None
        self.go = threading.Event()
        self.go.set()

    def stamp(self):
        self.stamps += 1
        return ((self.number, 0, 0),)

    def look(self) -> int:
        self.looks += 1
        seen = self.number
        assert self.go.wait(300)
        self.seconds += self.takes
        if self.wrong is not None:
            raise self.wrong
        return seen


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    """A source, and a clock that goes by what is done with it only."""
    made = Source()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.seconds))
    return made


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for something quick waits until it is there, on a busy machine too."""
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 300.0)


@pytest.mark.usefixtures("patient")
def test_nothing_is_made_again_before_its_source_changes(source: Source) -> None:
    fresh = BackgroundCache(source.stamp, source.look)
    assert [fresh.get() for _ in range(3)] == [1, 1, 1]
    assert source.looks == 1
    source.number = 2
    assert fresh.get() == 2  # what is quick to make is waited for


def test_nobody_waits_for_what_took_long_and_nobody_looks_meanwhile(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "wait", lambda *_: pytest.fail("it was waited for"))
    fresh = BackgroundCache(source.stamp, source.look)
    source.takes = LONG
    assert fresh.get() == 1
    source.seconds += 2 * REST * LONG
    source.go.clear()
    source.number = 2
    assert fresh.get() == 1  # and begins to make the next
    wait_for(lambda: source.looks == 2)
    before = source.stamps
    assert [fresh.get() for _ in range(5)] == [1] * 5
    assert (source.looks, source.stamps) == (2, before)
    source.takes = 0.0
    source.go.set()
    wait_for(lambda: fresh.get() == 2)


def test_between_two_long_makings_is_a_rest(source: Source) -> None:
    fresh = BackgroundCache(source.stamp, source.look)
    source.takes = LONG
    assert fresh.get() == 1
    source.number, source.takes = 2, 0.0
    for _ in range(3):
        assert fresh.get() == 1
        source.seconds += 0.3 * REST * LONG
    assert (source.looks, source.stamps) == (1, 1)
    source.seconds += 0.2 * REST * LONG
    wait_for(lambda: fresh.get() == 2)
    assert source.looks == 2


@pytest.mark.usefixtures("patient")
def test_what_goes_wrong_is_told_to_all_and_ends_with_its_cause(source: Source) -> None:
    fresh = BackgroundCache(source.stamp, source.look)
    assert fresh.get() == 1
    source.number, source.wrong = 2, ValueError("damaged")
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            fresh.get()
    source.wrong = None
    assert fresh.get() == 2


def test_the_first_one_can_be_begun_before_anybody_asks(source: Source) -> None:
    fresh = BackgroundCache(source.stamp, source.look)
    fresh.begin()
    fresh.begin()
    assert fresh.get() == 1
    assert source.looks == 1
