"""Attempts to have a request wait for ever, or be counted twice, through failures and clocks."""

import asyncio
import datetime
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rappor.collection import Collection, Registry
from rappor.collector import process
from rappor.collector.admit import Admission, Admitted, Place
from rappor.collector.fold import folds
from rappor.collector.metrics import Metrics
from rappor.collector.settings import Settings
from rappor.collector.writer import Writer
from rappor.errors import StoreBroken, StoreError
from rappor.params import Params
from rappor.store import CellKey, Retained, open_store
from rappor.store.sqlite.connection import translated
from rappor.wire import Batch, encode_batch

PLACE = Place(CellKey("c", 1, "2026-11-16"), "digest", 8, 4, False)
DAY = datetime.date(2026, 11, 16)


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

    def add(self, tokens: Sequence[bytes], fold: Any, day: Any) -> list[bool]:
        self.open.wait()
        self.calls.append(len(tokens))
        self.failing(tokens)
        return [True] * len(tokens)

    def settle(self) -> None:
        self.settling()


def outcomes(store: Sick, story: Callable[[Writer], Any]) -> tuple[list[Any], int]:
    """What a story's batches are told within two seconds, and how often the end was asked for."""
    ends = []

    async def told() -> list[Any]:
        writer = Writer(
            store,  # type: ignore[arg-type]
            Settings(data="data", collections="collections"),
            Metrics(),
            lambda: DAY,
            lambda: ends.append(1),
        )
        writer.start(asyncio.get_running_loop())
        try:
            waiting = await story(writer)
            return [await asyncio.wait_for(each, 2) for each in waiting]
        finally:
            store.open.set()
            await asyncio.get_running_loop().run_in_executor(None, writer.stop, 2.0)

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
        await asyncio.sleep(0.1)  # the first is on its way: the others make a group
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
        await asyncio.sleep(0.1)
        waiting += [writer.submit(batch(number)) for number in range(1, 5)]
        store.open.set()
        return waiting

    told, ends = outcomes(store, story)
    assert told == [None, *["overloaded"] * 4]
    assert store.calls == [1, 4]
    assert ends == 0


@pytest.mark.parametrize("settled", [True, False])
def test_retention_that_a_reader_kept_from_finishing_is_tried_again(
    tmp_path: Path, settled: bool
) -> None:
    """The bytes are in the log until it is emptied: promised is that they are gone."""

    class Read:
        def retain(self, today: datetime.date, registry: Registry) -> Retained:
            return Retained(today, reports=1, settled=settled)

    (tmp_path / "collections").mkdir()
    settings = Settings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, Read(), Registry(), lambda: DAY)  # type: ignore[arg-type]
    collector._retain(Read())  # type: ignore[arg-type]
    if settled:
        assert collector._retry_at == math.inf
    else:
        assert collector._retry_at - time.monotonic() <= 600


class Clocked:
    """Admission and store of one collection, under a clock that can be set."""

    def __init__(self, folder: Path) -> None:
        collection = Collection("homepage", 1, Params(8, 1, 4, 0.5, 0.5, 0.75))
        self.registry = Registry([collection])
        self.today = DAY
        self.admission = Admission(self.registry, lambda: self.today)
        self.store = open_store(folder)
        self.store.save_definition(collection.to_toml(), actor="test")

    def retain(self) -> None:
        self.store.retain(self.today, self.registry)

    def commit(self, admitted: Admitted) -> list[bool]:
        return self.store.add([admitted.token], lambda _: list(folds([admitted])), self.today)


# Sent by a client whose clock is a day ahead, as is allowed.
AHEAD = encode_batch(Batch(bytes(16), "homepage", 1, "2026-11-17", (), 8, b"\1\0", b"\1"))


def test_a_batch_admitted_before_midnight_is_the_only_one_of_its_token(tmp_path: Path) -> None:
    """Sent again in the last moment in which it is accepted: the daily retention comes between its
    admission and its commit."""
    place = Clocked(tmp_path)
    assert place.commit(place.admission.admit_bytes(AHEAD)) == [True]
    place.today = datetime.date(2026, 12, 1)  # fourteen days after its period
    again = place.admission.admit_bytes(AHEAD)
    place.today = datetime.date(2026, 12, 2)  # midnight
    place.retain()
    assert place.commit(again) == [False]
    place.store.close()


def test_a_clock_two_days_ahead_for_a_while_counts_nothing_twice(tmp_path: Path) -> None:
    """B7: retention runs under a wrong clock; then it is set right, and a batch comes again."""
    place = Clocked(tmp_path)
    assert place.commit(place.admission.admit_bytes(AHEAD)) == [True]
    for later in range(16):
        right = DAY + datetime.timedelta(days=later)
        place.today = right + datetime.timedelta(days=2)
        place.retain()
        place.today = right
        assert place.commit(place.admission.admit_bytes(AHEAD)) == [False], f"{later} days later"
    place.store.close()
