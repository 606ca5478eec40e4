"""A store fails while batches wait: each gets an answer, none waits without end."""

import asyncio
import datetime
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rappor.collector.admission import Admitted, Destination
from rappor.collector.metrics import Metrics
from rappor.collector.refusal import Refusal
from rappor.collector.settings import CollectorSettings
from rappor.collector.writer import Writer
from rappor.errors import StoreBroken, StoreError, StoreRefused
from rappor.store import CellKey
from rappor.store.sqlite.connection import translated

PLACE = Destination(CellKey("c", 1, "2026-11-16"), "digest", 8, 4, False)
DAY = datetime.date(2026, 11, 16)
SECONDS = 60.0  # until a test that hangs is ended


def batch(number: int) -> Admitted:
    return Admitted(number.to_bytes(16, "big"), PLACE, b"\1\0", b"\1")


class Sick:
    """A store that fails where it is told to; `open` holds its thread up."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.failing: Callable[[Sequence[bytes]], None] = lambda _: None
        self.settling: Callable[[], None] = lambda: None
        self.open = threading.Event()
        self.open.set()
        self.begun = threading.Event()

    async def first_on_its_way(self) -> None:
        """Wait until the thread is in the first commit."""
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, self.begun.wait, SECONDS)

    def add(self, tokens: Sequence[bytes], fold: Any, day: Any) -> list[bool]:
        self.begun.set()
        self.open.wait()
        self.calls.append(len(tokens))
        self.failing(tokens)
        return [True] * len(tokens)

    def settle(self) -> None:
        self.settling()


def outcomes(
    store: Sick, story: Callable[[Writer], Any], clock: Callable[[], float] = float
) -> tuple[list[Any], int]:
    """What a story's batches are told, and how often the end was asked for.

    The clock stands still: a busy machine makes no batch too late.
    """
    ends = []

    async def told() -> list[Any]:
        writer = Writer(
            store,  # type: ignore[arg-type]
            CollectorSettings(data="data", collections="collections"),
            Metrics(),
            lambda: DAY,
            lambda: ends.append(1),
            clock=clock,
        )
        writer.start(asyncio.get_running_loop())
        try:
            waiting = await story(writer)
            return [await asyncio.wait_for(each, SECONDS) for each in waiting]
        finally:
            store.open.set()
            await asyncio.get_running_loop().run_in_executor(None, writer.stop, SECONDS)

    return asyncio.run(told()), len(ends)


def broken(*_: object) -> None:
    raise StoreBroken("planted")


def test_a_batch_that_waits_while_another_job_finds_the_disk_broken_is_told() -> None:
    store = Sick()

    async def story(writer: Writer) -> list[Any]:
        first = [writer.submit(batch(number)) for number in range(3)]
        for each in first:
            assert await each is None
        begun, go_on = threading.Event(), threading.Event()

        def fail(_: object) -> None:
            begun.set()
            go_on.wait()
            broken()

        writer.ask("retention", fail)
        await asyncio.get_running_loop().run_in_executor(None, begun.wait)
        late = [writer.submit(batch(9)), writer.submit(batch(10))]
        go_on.set()
        return late

    assert outcomes(store, story) == (["store-failed", "store-failed"], 1)


def test_a_disk_that_breaks_while_a_group_is_tried_one_by_one_leaves_nobody_waiting() -> None:
    store = Sick()

    def failing(tokens: Sequence[bytes]) -> None:
        if len(tokens) > 1:
            raise StoreError("one of them")
        if tokens[0] == batch(2).token:
            broken()

    store.failing = failing

    async def story(writer: Writer) -> list[Any]:
        store.open.clear()
        waiting = [writer.submit(batch(0))]
        await store.first_on_its_way()  # the others make a group
        waiting += [writer.submit(batch(number)) for number in range(1, 5)]
        store.open.set()
        return waiting

    told, ends = outcomes(store, story)
    assert told == [None, None, "store-failed", "store-failed", "store-failed"]
    assert ends == 1


def test_a_store_that_another_process_writes_to_is_busy_and_tried_once() -> None:
    """Each try takes ten seconds: a group of a thousand, one by one, would take hours."""
    store = Sick()
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY

    def failing(tokens: Sequence[bytes]) -> None:
        if tokens != [batch(0).token]:
            raise translated(error, Path("store"))

    store.failing = failing

    async def story(writer: Writer) -> list[Any]:
        store.open.clear()
        waiting = [writer.submit(batch(0))]
        await store.first_on_its_way()
        waiting += [writer.submit(batch(number)) for number in range(1, 5)]
        store.open.set()
        return waiting

    told, ends = outcomes(store, story)
    assert told == [None, *["overloaded"] * 4]
    assert store.calls == [1, 4]
    assert ends == 0


def test_a_store_that_refuses_is_unavailable_and_tried_once() -> None:
    """A right was taken away, or a password changed: each try would connect again."""
    store = Sick()
    seen = []

    def failing(tokens: Sequence[bytes]) -> None:
        if tokens != [batch(0).token]:
            raise StoreRefused("permission denied")

    store.failing = failing

    async def story(writer: Writer) -> list[Any]:
        store.open.clear()
        waiting = [writer.submit(batch(0))]
        await store.first_on_its_way()
        waiting += [writer.submit(batch(number)) for number in range(1, 5)]
        store.open.set()
        told = [await each for each in waiting]
        seen.append((told, writer.healthy))
        return []

    assert outcomes(store, story) == ([], 0)
    assert seen == [([None, *["store-unavailable"] * 4], False)]
    assert store.calls == [1, 4]


def test_batches_of_a_store_that_hangs_are_told_and_counted_once() -> None:
    store = Sick()
    now = [0.0]

    async def story(writer: Writer) -> list[Any]:
        store.open.clear()
        told: list[tuple[int, Any]] = []
        for number in range(3):
            writer.enqueue(batch(number), lambda outcome, at=number: told.append((at, outcome)))
            await store.first_on_its_way()
        now[0] = 20.0
        writer.expire()
        assert (told, writer.healthy) == ([], True)
        now[0] = 31.0
        for _ in range(2):
            writer.expire()
        assert told == [(number, "store-unavailable") for number in range(3)]
        assert not writer.healthy
        with pytest.raises(Refusal) as caught:
            writer.submit(batch(4))
        assert caught.value.code == "store-unavailable"
        store.open.set()  # it goes on
        last = asyncio.get_running_loop().create_future()
        writer.ask("look", lambda _: writer._call(last.set_result, None))
        await last
        while writer.batches:
            await asyncio.sleep(0)
        assert (len(told), writer.batches, writer.bytes, writer.wait_seconds) == (3, 0, 0, 0.0)
        assert writer.healthy
        return [writer.submit(batch(5))]

    assert outcomes(store, story, clock=lambda: now[0]) == ([None], 0)
    assert sum(store.calls) == 4
