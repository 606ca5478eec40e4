"""The writer: groups, refusals, and that nobody is left waiting whatever happens to the store."""

import asyncio
import contextlib
import datetime
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from rappor.collector import writer as module
from rappor.collector.admission import Admitted, Destination
from rappor.collector.metrics import Metrics
from rappor.collector.refusal import Refusal
from rappor.collector.settings import CollectorSettings
from rappor.collector.writer import Outcome, Writer
from rappor.errors import StoreBroken, StoreFull
from rappor.store import CellKey, Fold

PLACE = Destination(CellKey("c", 1, "2026-11-16"), "digest", 8, 4, False)
DAY = datetime.date(2026, 11, 16)
SECONDS = 60.0  # until a test that hangs is ended


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition without holding the loop up."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.002)


def batch(number: int, size: int = 1) -> Admitted:
    cohorts = bytes([number % 4, 0]) * size
    return Admitted(number.to_bytes(16, "big"), PLACE, cohorts, b"\1" * size)


class Memory:
    """A store in memory that does as it is told."""

    def __init__(self, failing: Callable[[Sequence[bytes]], None] | None = None) -> None:
        self.groups: list[list[bytes]] = []
        self.total = 0
        self.calls = 0
        self.open = threading.Event()
        self.open.set()
        self.failing = failing
        self.settled = 0

    def add(
        self, tokens: Sequence[bytes], fold: Callable[[Sequence[int]], Iterable[Fold]], day: Any
    ) -> list[bool]:
        self.calls += 1
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


class Bell(queue.SimpleQueue[None]):
    """Notes how long the writer's thread would wait: None is for as long as it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def get(self, block: bool = True, timeout: float | None = None) -> None:
        self.waits.append(timeout)
        return super().get(block, timeout)


class Bench:
    """A writer with its store, inside a running loop; it expects commits of `commit_seconds`.

    Its clock stands still unless a test brings one: on a busy machine half a second may pass
    between two batches of a test, after which a writer refuses more.
    """

    def __init__(
        self,
        store: Memory,
        bell: Bell | None = None,
        clock: Callable[[], float] = float,
        commit_seconds: float = 0.0,
        **settings: int,
    ) -> None:
        self.failed = asyncio.Event()
        self.metrics = Metrics()
        made = CollectorSettings(data="d", collections="c", **settings)
        self.writer = Writer(store, made, self.metrics, lambda: DAY, self.failed.set, clock)  # type: ignore[arg-type]
        self.writer._commit_seconds = commit_seconds
        if bell is not None:
            self.writer._bell = bell
        self.writer.start(asyncio.get_running_loop())

    async def send(self, numbers: Iterable[int]) -> list[Outcome]:
        waiting = [self.writer.submit(batch(number)) for number in numbers]
        return list(await asyncio.wait_for(asyncio.gather(*waiting), SECONDS))


def test_what_comes_during_a_commit_is_one_group_in_the_order_of_tokens() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store)
        first = asyncio.create_task(bench.send([8]))
        await until(lambda: store.calls == 1)  # its commit is on its way
        sent = asyncio.create_task(bench.send([9, 3, 7, 1, 5]))
        await until(lambda: bench.writer.batches == 6)
        store.open.set()
        assert await first == [None]
        assert await sent == [None] * 5
        assert bench.writer.stop(SECONDS)
        assert [len(group) for group in store.groups] == [1, 5]
        assert all(group == sorted(group) for group in store.groups)
        assert store.total == bench.metrics.total("rappor_reports_total") == 6
        assert (bench.writer.batches, bench.writer.bytes) == (0, 0)

    asyncio.run(run())


def test_a_full_queue_refuses_and_goes_on() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store, queue_batches=4)
        sent = asyncio.create_task(bench.send(range(4)))
        await until(lambda: bench.writer.batches == 4)
        assert bench.writer.busy
        with pytest.raises(Refusal, match="overloaded"):
            bench.writer.submit(batch(9))
        store.open.set()
        assert await sent == [None] * 4
        assert await bench.send([9]) == [None]
        assert bench.writer.stop(SECONDS)
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
        assert bench.writer.stop(SECONDS)

    asyncio.run(run())


def test_a_stalled_disk_sends_newcomers_away() -> None:
    async def run() -> None:
        now = 0.0
        store = Memory()
        store.open.clear()
        bench = Bench(store, clock=lambda: now)
        sent = asyncio.create_task(bench.send([1]))
        await until(lambda: store.calls == 1)
        now = module._MAX_WAIT_SECONDS
        assert not bench.writer.busy
        now += 0.01
        assert bench.writer.busy
        with pytest.raises(Refusal, match="overloaded"):
            bench.writer.submit(batch(2))
        store.open.set()
        assert await sent == [None]
        assert not bench.writer.busy
        assert bench.writer.stop(SECONDS)

    asyncio.run(run())


def admitted(bench: Bench, numbers: Iterable[int]) -> list[asyncio.Future[Outcome]]:
    """The answers to come of the batches that are not refused at once."""
    waiting = []
    for number in numbers:
        with contextlib.suppress(Refusal):
            waiting.append(bench.writer.submit(batch(number)))
    return waiting


def test_before_it_knows_the_disk_it_lets_in_no_more_than_a_slow_one_can_take() -> None:
    """The first burst arrives before a commit is measured, and each of these takes .1 s."""
    now = [0.0]

    def take(_: Sequence[bytes]) -> None:
        now[0] += 0.1

    async def run() -> None:
        store = Memory(take)
        store.open.clear()
        bench = Bench(
            store,
            clock=lambda: now[0],
            commit_seconds=module._FIRST_COMMIT_SECONDS,
            group_batches=4,
        )
        waiting = admitted(bench, range(96))
        assert 4 <= len(waiting) < 48
        store.open.set()
        assert await asyncio.wait_for(asyncio.gather(*waiting), SECONDS) == [None] * len(waiting)
        assert now[0] <= 0.75  # the last answer
        assert bench.writer.stop(SECONDS)

    asyncio.run(run())


def test_a_new_collector_takes_a_burst_that_fits_into_few_commits() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store, commit_seconds=module._FIRST_COMMIT_SECONDS)
        waiting = admitted(bench, range(4096))
        assert len(waiting) == 4096
        store.open.set()
        assert await asyncio.wait_for(asyncio.gather(*waiting), SECONDS) == [None] * 4096
        assert bench.writer.stop(SECONDS)

    asyncio.run(run())


def test_stopping_commits_what_waits_first() -> None:
    async def run() -> None:
        store = Memory()
        store.open.clear()
        bench = Bench(store)
        sent = asyncio.create_task(bench.send(range(50)))
        await until(lambda: bench.writer.batches == 50)
        stopped = asyncio.get_running_loop().run_in_executor(None, bench.writer.stop, SECONDS)
        await until(lambda: bench.writer.stopping)
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
        assert bench.writer.stop(SECONDS)

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
        await until(lambda: bench.writer.batches == 30)
        gate.set()
        assert await sent == ["store-failed"] * 30
        await asyncio.wait_for(bench.failed.wait(), SECONDS)
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
        assert bench.writer.stop(SECONDS)
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
        await until(lambda: len(done) == 2)
        assert done == ["bad", "good"]
        assert bench.writer.healthy
        assert bench.writer.stop(SECONDS)

    asyncio.run(run())


def test_the_store_settles_once_in_the_first_moment_of_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.01)

    async def run() -> None:
        store = Memory()
        bell = Bell()
        bench = Bench(store, bell)
        assert await bench.send([1]) == [None]
        # It settles, then sleeps until something comes: no other moment of quiet is waited for.
        await until(lambda: store.settled and bell.waits[-1] is None)
        assert store.settled == 1
        assert bench.writer.stop(SECONDS)
        assert store.settled == 1

    asyncio.run(run())


def test_those_that_were_just_answered_are_waited_for_and_stored_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long they take to come back: the machine may be busy."""
    monkeypatch.setattr(module, "_LINGER_SECONDS", 300.0)
    monkeypatch.setattr(module, "_TURN_SECONDS", 300.0)

    async def run() -> None:
        store = Memory()
        bench = Bench(store)
        numbers = iter(range(10**6))

        async def sender(rounds: int) -> None:
            for _ in range(rounds):
                assert await bench.writer.submit(batch(next(numbers))) is None
                await asyncio.sleep(0)  # it takes some turns to come back
            bench.writer.ask("look", lambda _store: None)  # do not wait for this one any more

        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*(sender(50) for _ in range(20)))
        assert store.total == 1000
        assert len(store.groups) < 200  # of 20 at best, and never one by one
        assert bench.writer.stop(SECONDS)

    asyncio.run(run())


def test_when_the_others_stay_away_one_batch_waits_a_few_milliseconds_at_most() -> None:
    async def run() -> None:
        store = Memory()
        bell = Bell()
        bench = Bench(store, bell)
        for _ in range(5):
            await bench.send(range(int(1e6), int(1e6) + 30))
            assert await bench.send([len(store.groups)]) == [None]
        assert bench.writer.stop(SECONDS)
        lingers = [wait for wait in bell.waits if wait not in (None, module._QUIET_SECONDS)]
        assert lingers
        assert max(lingers) <= 0.005

    asyncio.run(run())


@pytest.mark.parametrize(
    ("commit", "least", "most"), [(0.0, 0.0, 0.005), (0.005, 0.004, 0.009), (1.0, 0.025, 0.025)]
)
def test_the_longer_commits_take_the_longer_others_are_waited_for(
    commit: float, least: float, most: float
) -> None:
    """A fifth of the first commit's time is the first average; four times that is waited."""
    now = [0.0]

    def take(_: Sequence[bytes]) -> None:
        now[0] += commit

    async def run() -> None:
        bell = Bell()
        bench = Bench(Memory(take), bell, clock=lambda: now[0])
        assert await bench.send(range(30)) == [None] * 30
        await until(lambda: any(wait not in (None, module._QUIET_SECONDS) for wait in bell.waits))
        assert bench.writer.stop(SECONDS)
        linger = next(wait for wait in bell.waits if wait not in (None, module._QUIET_SECONDS))
        assert least <= linger <= most

    asyncio.run(run())


def test_a_group_that_can_hold_no_more_is_not_kept_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = batch(0)
    monkeypatch.setattr(module, "_GROUP_BYTES", 3 * (len(one.reports) + len(one.cohorts)))

    async def run() -> None:
        store, bell = Memory(), Bell()
        bench = Bench(store, bell)
        assert await bench.send(range(30)) == [None] * 30
        assert bench.writer.stop(SECONDS)
        assert [len(group) for group in store.groups] == [3] * 10
        lingers = [wait for wait in bell.waits if wait not in (None, module._QUIET_SECONDS)]
        assert len(lingers) < 5  # after the last ones; never for all ten

    asyncio.run(run())
