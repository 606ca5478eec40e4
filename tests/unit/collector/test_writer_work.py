"""What a commit writes is bounded and weighed: hostile batches are shed, not queued.

Costs are injected: the store's clock moves by what it is told that commits and rows cost.
"""

import asyncio
import datetime
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from rappor.collector import writer as module
from rappor.collector.admission import Admitted, Destination
from rappor.collector.metrics import Metrics
from rappor.collector.refusal import Refusal
from rappor.collector.settings import MIB, CollectorSettings
from rappor.collector.writer import Writer
from rappor.store import CellKey, Fold

DAY = datetime.date(2026, 11, 16)
LARGE = [
    Destination(CellKey(f"c{i}", 1, DAY.isoformat()), "d", 4096, 1024, False) for i in range(20)
]
SMALL = Destination(CellKey("honest", 1, DAY.isoformat()), "d", 128, 8, False)
SECONDS = 300.0  # until a test that hangs is ended


class CostlyStore:
    """Folds everything, and lets its clock run: so much a commit, so much a byte of rows."""

    def __init__(self, commit_seconds: float, byte_seconds: float) -> None:
        self.now = 0.0
        self.commit_seconds, self.byte_seconds = commit_seconds, byte_seconds
        self.rows: list[int] = []  # bytes, of each commit
        self.held: list[int] = []  # the most folds that were alive at once

    def clock(self) -> float:
        return self.now

    def add(
        self, tokens: Sequence[bytes], fold: Callable[[Sequence[int]], Iterable[Fold]], _: Any
    ) -> list[bool]:
        folds = fold(range(len(tokens)))
        assert iter(folds) is folds  # nothing is folded before it is asked for
        rows = sum(each.ones.nbytes + 8 for each in folds)
        self.rows.append(rows)
        self.now += self.commit_seconds + rows * self.byte_seconds
        return [True] * len(tokens)

    def settle(self) -> None: ...


def hostile(number: int, place: Destination, reports: int = 1024) -> Admitted:
    """Valid, and every report in another cohort."""
    cohorts = b"".join((i % place.m).to_bytes(2, "little") for i in range(reports))
    return Admitted(number.to_bytes(16, "big"), place, cohorts, bytes(reports * place.k // 8))


def honest(number: int) -> Admitted:
    return Admitted((10**9 + number).to_bytes(16, "big"), SMALL, b"\1\0", bytes(16))


def started(store: CostlyStore, **settings: int) -> Writer:
    made = CollectorSettings(data="d", collections="c", **settings)
    return Writer(store, made, Metrics(), lambda: DAY, lambda: None, store.clock)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_commit_writes_a_bounded_number_of_bytes_whatever_was_sent() -> None:
    """A client's batch of 16 reports writes 512 KiB; 1,024 such batches are many commits."""

    async def run() -> None:
        store = CostlyStore(0.0, 0.0)
        writer = started(store)
        writer._byte_seconds = writer._commit_seconds = 0.0  # nobody is sent away here
        writer._loop = asyncio.get_running_loop()
        numbers = iter(range(10**6))
        batches = [
            Admitted(
                next(numbers).to_bytes(16, "big"),
                LARGE[i % 20],
                b"".join((16 * i // 20 + j & 1023).to_bytes(2, "little") for j in range(16)),
                bytes(16 * 512),
            )
            for i in range(200)
        ]
        waiting = [writer.submit(batch) for batch in batches]
        writer.start(asyncio.get_running_loop())
        outcomes = await asyncio.wait_for(asyncio.gather(*waiting), SECONDS)
        assert outcomes == [None] * 200
        assert writer.stop(SECONDS)
        assert len(store.rows) >= 200 * 16 * 8 * 4097 // module._GROUP_ROWS
        assert max(store.rows) <= module._GROUP_ROWS
        assert (writer._work, writer._groups, writer.bytes) == (0, 0, 0)

    asyncio.run(run())


def test_reports_of_one_cell_share_rows_and_a_commit() -> None:
    async def run() -> None:
        store = CostlyStore(0.0, 0.0)
        writer = started(store)
        writer._loop = asyncio.get_running_loop()
        waiting = [writer.submit(honest(number)) for number in range(1000)]
        assert writer._work < 1000 * 18 + 8 * 8 * 129 + 1
        writer.start(asyncio.get_running_loop())
        await asyncio.wait_for(asyncio.gather(*waiting), SECONDS)
        assert writer.stop(SECONDS)
        assert len(store.rows) == 1

    asyncio.run(run())


def tried(writer: Writer, batch: Admitted) -> asyncio.Future[str | None] | None:
    """The answer to come, or None where the batch is sent away with a hint when to come back."""
    try:
        return writer.submit(batch)
    except Refusal as refusal:
        status, headers, _ = refusal.answer()
        if (status, refusal.code) != (503, "overloaded") or int(dict(headers)[b"retry-after"]) < 1:
            raise
        return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("byte_seconds", "is_answered"),
    [(12e-9, True), (120e-9, False), (400e-9, False)],
    ids=["quick", "usual", "slow"],
)
def test_nobody_is_let_in_whose_answer_would_take_more_than_a_second(
    byte_seconds: float, is_answered: bool
) -> None:
    """Hostile gateway batches, each with 8 MB of rows, which take .1 s, 1 s or 3.4 s: an honest
    client is answered within a second of the injected time, or sent away with 503 at once."""

    async def run() -> None:
        store = CostlyStore(0.002, byte_seconds)
        writer = started(store)
        writer.start(asyncio.get_running_loop())
        numbers = iter(range(10**6))
        for _ in range(5):  # it learns what a commit costs
            await asyncio.wait_for(writer.submit(honest(next(numbers))), SECONDS)
        answers = []
        for turn in range(12):
            sent = [tried(writer, hostile(next(numbers), place, 256)) for place in LARGE[:2]]
            taken = [each for each in sent if each is not None]
            assert taken
            before, estimate = store.now, writer.wait_seconds
            answer = tried(writer, honest(next(numbers)))
            answers.append(answer is not None)
            if answer is not None:
                assert estimate <= 1.0
                await asyncio.wait_for(answer, SECONDS)
                assert turn < 8 or store.now - before <= 1.0  # by then a byte's cost is known
            await asyncio.wait_for(asyncio.gather(*taken), SECONDS)
        assert writer.stop(SECONDS)
        assert answers[8:] == [is_answered] * 4

    asyncio.run(run())


def test_a_machine_that_slept_during_a_commit_is_not_thought_slow_for_long() -> None:
    async def run() -> None:
        store = CostlyStore(0.001, 1e-9)
        writer = started(store)
        writer.start(asyncio.get_running_loop())
        store.commit_seconds = 3600.0
        await asyncio.wait_for(writer.submit(honest(1)), SECONDS)
        store.commit_seconds = 0.001
        taken = [writer.submit(honest(number)) for number in (2, 3, 4)]
        await asyncio.wait_for(asyncio.gather(*taken), SECONDS)
        assert writer.wait_seconds == 0
        assert writer.stop(SECONDS)

    asyncio.run(run())


def test_a_collector_that_gets_only_large_batches_learns_what_a_commit_costs() -> None:
    async def run() -> None:
        store = CostlyStore(0.001, 1e-9)
        writer = started(store)
        writer.start(asyncio.get_running_loop())
        assert writer._commit_seconds == module._FIRST_COMMIT_SECONDS
        for number in range(3):
            await asyncio.wait_for(writer.submit(hostile(number, LARGE[0])), SECONDS)
        assert writer.stop(SECONDS)
        assert writer._commit_seconds < 0.05  # 33 MB take .034 s

    asyncio.run(run())


def test_the_rows_of_one_commit_are_less_than_what_the_guide_says() -> None:
    assert module._GROUP_ROWS == 8 * MIB
    assert module._MAX_WAIT_SECONDS == 0.5
