"""The writer: groups, refusals, and that nobody is left waiting whatever happens to the store."""

import asyncio
import datetime
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from rappor.collector.admit import Admitted, Place
from rappor.collector.metrics import Metrics
from rappor.collector.refusal import Refusal
from rappor.collector.settings import Settings
from rappor.collector.writer import Outcome, Writer
from rappor.errors import StoreBroken, StoreFull
from rappor.store import CellKey, Fold

PLACE = Place(CellKey("c", 1, "2026-11-16"), "digest", 8, 4, False)
DAY = datetime.date(2026, 11, 16)


def batch(number: int, size: int = 1) -> Admitted:
    cohorts = bytes([number % 4, 0]) * size
    return Admitted(number.to_bytes(16, "big"), PLACE, cohorts, b"\1" * size)


class Memory:
    """A store in memory that does as it is told."""

    def __init__(self, failing: Callable[[Sequence[bytes]], None] | None = None) -> None:
        self.groups: list[list[bytes]] = []
        self.total = 0
        self.open = threading.Event()
        self.open.set()
        self.failing = failing
        self.settled = 0

    def add(
        self, tokens: Sequence[bytes], fold: Callable[[Sequence[int]], Iterable[Fold]], day: Any
    ) -> list[bool]:
        self.open.wait()
        if self.failing is not None:
            self.failing(tokens)
        known = {token for group in self.groups for token in group}
        new = [token not in known for token in tokens]
        self.total += sum(
            each.total for each in fold([i for i, is_new in enumerate(new) if is_new])
        )
        self.groups.append(list(tokens))
        return new

    def settle(self) -> None:
        self.settled += 1


class Bench:
    """A writer with its store, inside a running loop."""

    def __init__(self, store: Memory, **settings: int) -> None:
        self.failed = asyncio.Event()
        self.metrics = Metrics()
        made = Settings(data="d", collections="c", **settings)
        self.writer = Writer(store, made, self.metrics, lambda: DAY, self.failed.set)  # type: ignore[arg-type]
        self.writer.start(asyncio.get_running_loop())

    async def send(self, numbers: Iterable[int]) -> list[Outcome]:
        waiting = [self.writer.submit(batch(number)) for number in numbers]
        return list(await asyncio.wait_for(asyncio.gather(*waiting), 5))


def test_what_comes_during_a_commit_is_one_group_in_the_order_of_tokens() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store)
        sent = asyncio.create_task(bench.send([9, 3, 7, 1, 5]))
        await asyncio.sleep(0.05)
        store.open.set()
        assert await sent == [None] * 5
        assert bench.writer.stop(5)
        assert [len(group) for group in store.groups] in ([1, 4], [5])
        assert all(group == sorted(group) for group in store.groups)
        assert store.total == bench.metrics.reports == 5
        assert (bench.writer.batches, bench.writer.bytes) == (0, 0)

    asyncio.run(run())


def test_a_full_queue_refuses_and_goes_on() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store, queue_batches=4)
        sent = asyncio.create_task(bench.send(range(4)))
        await asyncio.sleep(0.01)
        assert bench.writer.busy
        with pytest.raises(Refusal, match="overloaded"):
            bench.writer.submit(batch(9))
        store.open.set()
        assert await sent == [None] * 4
        assert await bench.send([9]) == [None]
        assert bench.writer.stop(5)
        assert store.total == 5

    asyncio.run(run())


def test_bytes_are_counted_as_well() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store, queue_bytes=2**20)
        bench.writer.submit(batch(1, 2**20 // 3))
        with pytest.raises(Refusal, match="overloaded"):
            bench.writer.submit(batch(2))
        store.open.set()
        assert bench.writer.stop(5)

    asyncio.run(run())


def test_a_stalled_disk_sends_newcomers_away() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store)
        sent = asyncio.create_task(bench.send([1]))
        await asyncio.sleep(0.6)
        with pytest.raises(Refusal, match="overloaded"):
            bench.writer.submit(batch(2))
        store.open.set()
        assert await sent == [None]
        assert not bench.writer.busy
        assert bench.writer.stop(5)

    asyncio.run(run())


def test_stopping_commits_what_waits_first() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store)
        sent = asyncio.create_task(bench.send(range(50)))
        await asyncio.sleep(0.05)
        stopped = asyncio.get_running_loop().run_in_executor(None, bench.writer.stop, 5)
        await asyncio.sleep(0.05)
        with pytest.raises(Refusal, match="shutting-down"):
            bench.writer.submit(batch(99))
        store.open.set()
        assert await stopped
        assert await sent == [None] * 50
        assert store.total == 50

    asyncio.run(run())


def test_a_full_disk_is_said_and_the_next_batch_may_pass() -> None:
    async def run() -> None:
        full = True

        def failing(_: Sequence[bytes]) -> None:
            if full:
                raise StoreFull("no room")

        bench = Bench(Memory(failing))
        assert await bench.send([1, 2]) == ["store-full"] * 2
        assert not bench.writer.healthy
        assert bench.writer.alive
        full = False
        assert await bench.send([1, 2]) == [None] * 2
        assert bench.writer.healthy
        assert bench.writer.stop(5)

    asyncio.run(run())


@pytest.mark.parametrize("error", [StoreBroken("io"), SystemExit(), KeyboardInterrupt()])
def test_a_broken_store_lets_nobody_wait_and_is_told(error: BaseException) -> None:
    async def run() -> None:
        gate = threading.Event()

        def failing(_: Sequence[bytes]) -> None:
            gate.wait()
            raise error

        bench = Bench(Memory(failing))
        sent = asyncio.create_task(bench.send(range(30)))
        await asyncio.sleep(0.02)
        gate.set()
        assert await sent == ["store-failed"] * 30
        await asyncio.wait_for(bench.failed.wait(), 5)
        assert not bench.writer.healthy
        with pytest.raises(Refusal, match="store-failed"):
            bench.writer.submit(batch(99))

    asyncio.run(run())


def test_one_batch_that_fails_does_not_take_its_group_with_it() -> None:
    async def run() -> None:
        poison = batch(13).token

        def failing(tokens: Sequence[bytes]) -> None:
            if poison in tokens:
                raise ValueError("thirteen")

        store = Memory(failing)
        bench = Bench(store)
        outcomes = await bench.send(range(20))
        assert outcomes == ["internal-error" if i == 13 else None for i in range(20)]
        assert bench.writer.healthy
        assert bench.writer.batches == 0
        assert bench.writer.stop(5)
        assert store.total == 19

    asyncio.run(run())


def test_jobs_take_their_turn_and_their_failures_end_nothing() -> None:
    async def run() -> None:
        store = Memory()
        bench = Bench(store)
        done: list[str] = []

        def bad(_: Any) -> None:
            done.append("bad")
            raise RuntimeError

        bench.writer.ask("bad", bad)
        bench.writer.ask("good", lambda _: done.append("good"))
        assert await bench.send([1]) == [None]
        await asyncio.sleep(1.3)
        assert done == ["bad", "good"]
        assert store.settled == 1  # once, in the first moment of quiet
        assert bench.writer.stop(5)

    asyncio.run(run())


def test_those_that_were_just_answered_are_waited_for_and_stored_together() -> None:
    async def run() -> None:
        store = Memory()
        bench = Bench(store)
        numbers = iter(range(10**6))

        async def sender(rounds: int) -> None:
            for _ in range(rounds):
                assert await bench.writer.submit(batch(next(numbers))) is None
                await asyncio.sleep(0)  # it takes some turns to come back

        await asyncio.wait_for(asyncio.gather(*(sender(50) for _ in range(20))), 20)
        assert store.total == 1000
        assert len(store.groups) < 200  # of 20 at best, and never one by one
        assert bench.writer.stop(5)

    asyncio.run(run())


def test_when_the_others_stay_away_one_batch_waits_a_few_milliseconds_at_most() -> None:
    async def run() -> None:
        store = Memory()
        bench = Bench(store)
        loop = asyncio.get_running_loop()
        waits = []
        for _ in range(5):
            await bench.send(range(int(1e6), int(1e6) + 30))
            started = loop.time()
            assert await bench.send([len(store.groups)]) == [None]
            waits.append(loop.time() - started)
        assert min(waits) < 0.01  # the machine may be busy; a wait of ours would be in each
        assert bench.writer.stop(5)

    asyncio.run(run())
