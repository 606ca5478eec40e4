"""A store fails while batches wait: each gets an answer, none waits without end."""

import asyncio
import datetime
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rappor.collector.admission import Admitted, Destination
from rappor.collector.metrics import Metrics
from rappor.collector.settings import CollectorSettings
from rappor.collector.writer import Writer
from rappor.errors import StoreBroken, StoreError
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


def outcomes(store: Sick, story: Callable[[Writer], Any]) -> tuple[list[Any], int]:
    """What a story's batches are told, and how often the end was asked for."""
    ends = []

    async def told() -> list[Any]:
        writer = Writer(
            store,  # type: ignore[arg-type]
            CollectorSettings(data="data", collections="collections"),
            Metrics(),
            lambda: DAY,
            lambda: ends.append(1),
            clock=float,  # stands still: a busy machine makes no batch too late
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
