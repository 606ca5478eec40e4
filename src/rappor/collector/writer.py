"""The one writer: a bounded queue, one thread, group commits; nothing is acknowledged before.

While a commit is on its way to the disk, the batches of the next one gather: under load a group is
large, and alone a batch does not wait. A group is bounded by what it writes, not by what was sent:
one report of a few bytes rewrites a row of counts, 8 (k + 1) bytes. What waits is weighed the same
way, so that nobody is let in whose answer would come too late. A writer that dies takes the process
with it; SECURITY, 8.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rappor.collector import log
from rappor.collector.admission import Admitted, Destination, Today
from rappor.collector.fold import folds, rows_bytes
from rappor.collector.metrics import Metrics
from rappor.collector.refusal import Refusal
from rappor.collector.settings import MIB, CollectorSettings
from rappor.errors import StoreBroken, StoreBusy, StoreFull
from rappor.store import Fold, Store

_GROUP_BYTES = 16 * MIB  # of reports in one commit
_GROUP_ROWS = 8 * MIB  # of the rows that one commit writes, unless a single batch has more
_QUIET_SECONDS = 1.0
_PATIENCE_SECONDS = 0.3  # whoever would wait longer for an answer, by the estimate, is sent away
_LINGER_SECONDS = 0.005  # a commit is put off by at most this
_TURN_SECONDS = 0.00005  # that a sender takes to be answered and to come back, after the others
_NEVER = 2**62
_PACE_WEIGHT = 0.2  # of the latest commit in the moving averages
_SMALL_WORK = MIB  # bytes: a commit of less costs what any commit costs
_BYTE_SECONDS = 30e-9  # of folding and writing, until it is measured: 33 MB a second
_SLOWEST_COMMIT = 1.0  # one that took longer says no more: a machine may sleep
_SLOWEST_BYTE = 10 * _BYTE_SECONDS

Outcome = str | None  # the code of a problem, or None: it is on disk


class QueuedBatch(NamedTuple):
    """A batch that waits for its commit, and whoever waits for it.

    Attributes:
        batch: what is stored.
        size: its bytes.
        work: those, and the bytes of the rows that are written because of it.
        opens: whether it is the first batch of its group.
        done: the answer.
    """

    batch: Admitted
    size: int
    work: int
    opens: bool
    done: asyncio.Future[Outcome]


class StoreTask(NamedTuple):
    """Something else that the store's thread has to do between two commits."""

    name: str
    call: Callable[[Store], None]


class Writer:
    """Owns the store: every call to it is made by one thread.

    `submit`, `waiting` and the answers belong to the event loop's thread.
    """

    def __init__(
        self,
        store: Store,
        settings: CollectorSettings,
        metrics: Metrics,
        today: Today,
        on_failure: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a writer; `start` starts it. `on_failure` is called in the event loop."""
        self._clock = clock
        self._store, self._settings, self._metrics = store, settings, metrics
        self._today, self._on_failure = today, on_failure
        self._waiting: deque[QueuedBatch] = deque()
        self._jobs: deque[StoreTask] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._wanted = _NEVER  # the bell is rung when so many wait
        self._unsettled = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrivals: deque[float] = deque()  # of those that wait, oldest first
        self.bytes = 0  # of theirs
        self._work = 0  # and of the rows that they write
        self._groups = 0  # commits that they take
        self._last = _Group()  # the one that a newcomer joins
        self._commit_seconds = 0.0  # of a small commit, of late
        self._byte_seconds = _BYTE_SECONDS  # of each byte in a large one
        self._crowd = 0  # batches that were on their way together, at the last commit
        self.full = self.failed = self.stopping = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread; answers go to `loop`."""
        self._loop = loop
        self._thread.start()

    @property
    def batches(self) -> int:
        """Batches that wait."""
        return len(self._arrivals)

    @property
    def busy(self) -> bool:
        """Whether a newcomer would be sent away: the queue is full, or moves too slowly."""
        return bool(self._arrivals) and self._is_slow(self._clock())

    @property
    def wait_seconds(self) -> float:
        """Until all that waits would be stored, by what commits and bytes have cost of late."""
        return self._groups * self._commit_seconds + self._work * self._byte_seconds

    def _is_slow(self, now: float) -> bool:
        arrivals = self._arrivals
        return (
            len(arrivals) >= self._settings.queue_batches
            or self.wait_seconds > _PATIENCE_SECONDS
            or now - arrivals[0] > _PATIENCE_SECONDS
        )

    @property
    def healthy(self) -> bool:
        """Whether a batch would be stored."""
        return not self.failed and not self.full and self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return not self.failed and self._thread.is_alive()

    def submit(self, batch: Admitted) -> asyncio.Future[Outcome]:
        """Queue a batch, or Refusal; the future tells when it is on disk."""
        size = len(batch.reports) + len(batch.cohorts)
        if self.failed or self._loop is None:
            raise Refusal("store-failed")
        if self.stopping:
            raise Refusal("shutting-down")
        now = self._clock()
        if self.bytes + size > self._settings.queue_bytes or (
            self._arrivals and self._is_slow(now)
        ):
            raise Refusal("overloaded")
        done: asyncio.Future[Outcome] = self._loop.create_future()
        self._arrivals.append(now)
        self.bytes += size
        rows = None
        if self._waiting:  # else the thread has taken all there was
            rows = self._last.add(batch, size, self._settings.group_batches)
        opens = rows is None
        if opens:
            self._last = _Group()
            rows = self._last.add(batch, size, self._settings.group_batches)
        work = size + (rows or 0)
        self._work += work
        self._groups += opens
        self._waiting.append(QueuedBatch(batch, size, work, opens, done))
        if len(self._waiting) >= self._wanted:  # a thread at work looks for more by itself
            self._wanted = _NEVER
            self._loop.call_soon(self._bell.put, None)  # after all that came at the same time
        return done

    def ask(self, name: str, call: Callable[[Store], None]) -> None:
        """Have the thread do something else with the store, in turn."""
        self._jobs.append(StoreTask(name, call))
        self._bell.put(None)

    def stop(self, seconds: float) -> bool:
        """Commit what waits and end the thread; whether it ended in time."""
        self.stopping = True
        self._bell.put(None)
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    # The thread.

    def _run(self) -> None:
        group: list[QueuedBatch] = []
        try:
            while self._waiting or self._jobs or not self.stopping:
                self._wanted = 1  # before looking: what comes after this rings
                if not self._waiting and not self._jobs:
                    self._sleep()
                self._wanted = _NEVER
                if self._jobs:
                    self._do(self._jobs.popleft())
                if group := self._next_group():
                    self._commit(group)
                    group = []  # they have their answer
                    self._gather()
        except BaseException as error:  # whatever it is, nobody may go on waiting
            log.failure("writer-died", error)
            self._call(self.give_up, group)

    def _sleep(self) -> None:
        """Wait for something to do; in a moment of quiet, let the store settle."""
        try:
            self._bell.get(timeout=_QUIET_SECONDS if self._unsettled else None)
        except queue.Empty:
            self._unsettled = False
            self._do(StoreTask("settle", lambda store: store.settle()))

    def _gather(self) -> None:
        """Under load, give those that were just answered a moment to come back: fewer commits."""
        crowd = min(self._crowd, self._settings.group_batches)
        if crowd < 2 or self._jobs or self.stopping:
            return
        self._wanted = crowd  # before looking again
        if len(self._waiting) < crowd:
            with contextlib.suppress(queue.Empty):
                self._bell.get(timeout=self._linger(crowd))
        self._wanted = _NEVER

    def _linger(self, crowd: int) -> float:
        return min(_LINGER_SECONDS, self._commit_seconds + _TURN_SECONDS * crowd)

    def _next_group(self) -> list[QueuedBatch]:
        """Those that have waited longest: as many as one commit takes."""
        group: list[QueuedBatch] = []
        while self._waiting and not (group and self._waiting[0].opens):
            group.append(self._waiting.popleft())
        return group

    def _do(self, job: StoreTask) -> None:
        """A job's failure is logged; only a broken disk ends the thread."""
        try:
            job.call(self._store)
        except StoreBroken:
            raise
        except StoreFull:
            self._is_full()
        except Exception as error:
            log.failure(f"{job.name}-failed", error)

    def _commit(self, group: list[QueuedBatch]) -> None:
        """Store a group in one transaction and let its senders know."""
        group.sort(key=_token)  # an order that says nothing about who came first
        started = self._clock()
        try:
            new = self._add(group)
        except StoreFull:
            self._is_full()
            self._call(self._answer, group, "store-full")
        except StoreBusy:  # one by one would be as long again for each of them
            self._call(self._answer, group, "overloaded")
        except StoreBroken:
            raise
        except Exception as error:
            # Nothing was stored. One batch that fails must not keep the others out.
            if len(group) > 1:
                for waiting in group:
                    self._commit([waiting])
                return
            log.failure("commit-failed", error)
            self._call(self._answer, group, "internal-error")
        else:
            self._acknowledge(group, new, self._clock() - started)

    def _add(self, group: Sequence[QueuedBatch]) -> list[bool]:
        def fold(new: Sequence[int]) -> Iterator[Fold]:
            return folds(group[index].batch for index in new)  # folded as they are written

        return self._store.add([each.batch.token for each in group], fold, self._today())

    def _acknowledge(self, group: list[QueuedBatch], new: list[bool], seconds: float) -> None:
        self.full = False
        self._unsettled = True
        self._crowd = len(group) + len(self._waiting)
        self._learn(sum(waiting.work for waiting in group), seconds)
        accepted = sum(new)
        reports = sum(
            each.batch.report_count for each, is_new in zip(group, new, strict=True) if is_new
        )
        self._metrics.commit(seconds, accepted, len(group) - accepted, reports)
        self._call(self._answer, group, None)

    def _learn(self, work: int, seconds: float) -> None:
        """Remember what a commit of so many bytes took."""
        if work < _SMALL_WORK:
            sample = min(seconds, _SLOWEST_COMMIT)
            self._commit_seconds += _PACE_WEIGHT * (sample - self._commit_seconds)
        else:
            sample = min(max(seconds - self._commit_seconds, 0.0) / work, _SLOWEST_BYTE)
            self._byte_seconds += _PACE_WEIGHT * (sample - self._byte_seconds)

    def _is_full(self) -> None:
        if not self.full:
            log.event("disk-full", 40)
        self.full = True

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(function, *arguments)

    # Back in the event loop.

    def _answer(self, group: list[QueuedBatch], outcome: Outcome) -> None:
        for waiting in group:
            self._arrivals.popleft()  # groups are answered in the order in which they came
            self.bytes -= waiting.size
            self._work -= waiting.work
            self._groups -= waiting.opens
            if not waiting.done.done():
                waiting.done.set_result(outcome)

    def give_up(self, group: list[QueuedBatch]) -> None:
        """The thread is dead: nobody goes on waiting, and the process ends."""
        self.failed = True
        left = [*group, *self._waiting]
        self._waiting.clear()
        self._arrivals.clear()
        self.bytes = self._work = self._groups = 0
        for waiting in left:
            if not waiting.done.done():  # some of a group that was tried one by one have an answer
                waiting.done.set_result("store-failed")
        self._on_failure()


class _Group:
    """The batches that one commit takes: how many, and what they make it write."""

    __slots__ = ("batches", "bytes", "reports", "rows")

    def __init__(self) -> None:
        self.batches = self.bytes = self.rows = 0
        self.reports: dict[Destination, int] = {}

    def add(self, batch: Admitted, size: int, most: int) -> int | None:
        """Take a batch: the bytes of rows that it adds; None: it is for the next group."""
        place, count = batch.place, batch.report_count
        before = self.reports.get(place, 0)
        rows = rows_bytes(place, before + count) - rows_bytes(place, before)
        if self.batches and (
            self.batches >= most
            or self.bytes + size > _GROUP_BYTES
            or self.rows + rows > _GROUP_ROWS
        ):
            return None
        self.reports[place] = before + count
        self.batches += 1
        self.bytes += size
        self.rows += rows
        return rows


def _token(waiting: QueuedBatch) -> bytes:
    return waiting.batch.token
