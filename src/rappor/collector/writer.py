"""The writer: a queue of limited length and one thread that commits batches in groups.

A batch is acknowledged after its commit. While a commit is being written, the batches of the next
one gather: under load a group is large. A single batch waits only after a commit of several. The
size of a group is limited by what it writes, not by what was sent, because a report of a few bytes
rewrites a row of counts of 8 (k + 1) bytes. The waiting time is estimated from the same number, and
a batch that would wait too long is refused. If the writer fails, the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from rappor.collector import log
from rappor.collector.admission import Admitted, Destination, Today
from rappor.collector.fold import folds, rows_bytes
from rappor.collector.metrics import Metrics
from rappor.collector.refusal import Refusal
from rappor.collector.settings import MIB, CollectorSettings
from rappor.errors import StoreBroken, StoreBusy, StoreFull, StoreRefused, StoreUnavailable
from rappor.store import Fold, Store

_GROUP_BYTES = 16 * MIB  # of reports in one commit
_GROUP_ROWS = 8 * MIB  # of rows that one commit writes; a single batch may have more
_QUIET_SECONDS = 1.0
_MAX_WAIT_SECONDS = 0.5  # a batch with a longer estimated wait is refused
_MAX_ANSWER_SECONDS = 30.0  # after that, a batch is refused although it may still be stored
_LINGER_SECONDS = 0.025  # the longest time that a commit waits for more batches
_LINGER_COMMITS = 4  # it waits for as long as that many commits take: most of their cost is fixed
_TURN_SECONDS = 0.00005  # a sender's time to read its answer and send again
_NEVER = 2**62
_PACE_WEIGHT = 0.2  # of the latest commit in moving averages
_FIRST_COMMIT_SECONDS = 0.1  # of a commit, until some are measured: a slow disk is not yet known
_SMALL_WORK = MIB  # bytes; the time of a smaller commit does not depend on its size
_BYTE_SECONDS = 30e-9  # to fold and write a byte, until it is measured: 33 MB a second
_MAX_COMMIT_SECONDS = 1.0  # longer times are cut: the machine may have slept
_MAX_BYTE_SECONDS = 10 * _BYTE_SECONDS

Outcome = str | None  # the code of a problem, or None if the batch is on disk


class QueuedBatch(NamedTuple):
    """A batch that waits for its commit.

    Attributes:
        batch: the batch.
        size: its number of bytes.
        work: its bytes and those of the rows that are written because of it.
        opens: whether it is the first batch of its group.
        group: those that are committed together.
        done: is called in the event loop with the outcome; a second call must do nothing.
    """

    batch: Admitted
    size: int
    work: int
    opens: bool
    group: _Group
    done: Callable[[Outcome], None]


class StoreTask(NamedTuple):
    """Another task for the store's thread, done between two commits."""

    name: str
    call: Callable[[Store], None]


class Writer:
    """Owns the store: one thread makes every call to it.

    The event loop's thread calls the public methods and gets the outcomes.
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
        self._tasks: deque[StoreTask] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._wanted = _NEVER  # when this many batches wait, the thread is woken
        self._unsettled = False
        self._committing: list[QueuedBatch] = []
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrivals: deque[float] = deque()  # of the waiting batches, oldest first
        self.bytes = 0  # of the waiting batches
        self._work = 0  # the sum of their `work`
        self._groups = 0  # the number of their commits
        self._last = _Group()  # the group that the next batch joins
        self._commit_seconds = _FIRST_COMMIT_SECONDS  # average time of a recent small commit
        self._byte_seconds = _BYTE_SECONDS  # average time of a byte in recent large commits
        self._crowd = 0  # batches that were waiting or being written at the last commit
        self.full = self.failed = self.stopping = self.unreachable = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread; outcomes go to `loop`."""
        self._loop = loop
        self._thread.start()

    @property
    def batches(self) -> int:
        """The number of waiting batches."""
        return len(self._arrivals)

    @property
    def busy(self) -> bool:
        """Whether a new batch would be refused: the queue is full or too slow."""
        return bool(self._arrivals) and self._is_slow(self._clock())

    @property
    def wait_seconds(self) -> float:
        """Estimated seconds until all waiting batches are stored, from the recent averages."""
        return self._groups * self._commit_seconds + self._work * self._byte_seconds

    def _is_slow(self, now: float) -> bool:
        arrivals = self._arrivals
        return (
            len(arrivals) >= self._settings.queue_batches
            or self.wait_seconds > _MAX_WAIT_SECONDS
            or now - arrivals[0] > _MAX_WAIT_SECONDS
        )

    @property
    def healthy(self) -> bool:
        """Whether batches can be stored."""
        blocked = self.failed or self.full or self.unreachable
        return not blocked and self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return not self.failed and self._thread.is_alive()

    def submit(self, batch: Admitted) -> asyncio.Future[Outcome]:
        """Queue a batch, or Refusal. The future is done when the batch is on disk or has failed."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.enqueue(batch, partial(_set_result, future))
        return future

    def enqueue(self, batch: Admitted, done: Callable[[Outcome], None]) -> None:
        """Queue a batch, or Refusal. `done` is called when the batch is on disk or has failed."""
        size = len(batch.reports) + len(batch.cohorts)
        if self.failed or self._loop is None:
            raise Refusal("store-failed")
        if self.stopping:
            raise Refusal("shutting-down")
        if self.unreachable:  # at once, so that no request waits for a database that is down
            raise Refusal("store-unavailable")
        now = self._clock()
        if self.bytes + size > self._settings.queue_bytes or (
            self._arrivals and self._is_slow(now)
        ):
            raise Refusal("overloaded")
        self._arrivals.append(now)
        self.bytes += size
        rows = None
        if self._waiting:  # else the thread has taken all batches
            rows = self._last.add(batch, size, self._settings.group_batches)
        opens = rows is None
        if opens:
            self._last = _Group()
            rows = self._last.add(batch, size, self._settings.group_batches)
        work = size + (rows or 0)
        self._work += work
        self._groups += opens
        completes = opens and bool(self._waiting)  # the group before
        self._waiting.append(QueuedBatch(batch, size, work, opens, self._last, done))
        enough = completes or len(self._waiting) >= self._wanted
        if enough and self._wanted != _NEVER:  # a thread that is at work looks for more itself
            self._wanted = _NEVER
            self._loop.call_soon(self._bell.put, None)  # after other requests that arrived together

    def ask(self, name: str, call: Callable[[Store], None]) -> None:
        """Have the thread do another task with the store, in order."""
        self._tasks.append(StoreTask(name, call))
        self._bell.put(None)

    def stop(self, seconds: float) -> bool:
        """Commit what waits and end the thread; return whether it ended in time."""
        self.stopping = True
        self._bell.put(None)
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def expire(self) -> None:
        """Refuse the batches that wait if the first of them has waited for too long.

        The database hangs, or retention takes its time. A batch may still be stored: then it is
        recognised by its token when it is sent again.
        """
        if not self._arrivals or self._clock() - self._arrivals[0] <= _MAX_ANSWER_SECONDS:
            return
        self._is_unreachable()
        late = [*self._committing, *self._waiting.copy()]
        self._last = _Group()  # for batches that come from now on
        fresh = [queued for queued in late if not queued.group.expired]
        for queued in fresh:
            queued.group.expired = True
        for queued in fresh:
            queued.done("store-unavailable")

    # The thread.

    def _run(self) -> None:
        try:
            while self._waiting or self._tasks or not self.stopping:
                self._wanted = 1  # set before looking: a batch that comes later wakes the thread
                if not self._waiting and not self._tasks:
                    self._sleep()
                self._wanted = _NEVER
                if self._tasks:
                    self._do(self._tasks.popleft())
                if group := self._next_group():
                    self._committing = group
                    self._commit(group)
                    self._committing = []  # their outcome is set
                    self._gather()
        except BaseException as error:  # no request may go on waiting
            log.failure("writer-died", error)
            self._call(self.give_up, self._committing)

    def _sleep(self) -> None:
        """Wait for something to do; after a quiet second, let the store settle."""
        try:
            self._bell.get(timeout=_QUIET_SECONDS if self._unsettled else None)
        except queue.Empty:
            self._unsettled = False
            self._do(StoreTask("settle", lambda store: store.settle()))

    def _gather(self) -> None:
        """Under load, wait a moment for senders that were just answered: fewer commits.

        A small commit costs nearly as much as a large one, here and in the database. Where other
        collectors share the machine, senders are slower to come back, and so are commits: the
        commits of the last moment tell how long waiting is worthwhile.
        """
        crowd = min(self._crowd, self._settings.group_batches)
        if crowd < 2 or self._tasks or self.stopping:
            return
        self._wanted = crowd  # set before looking again
        if len(self._waiting) < crowd and not self._is_complete():
            with contextlib.suppress(queue.Empty):
                self._bell.get(timeout=self._linger(crowd))
        self._wanted = _NEVER

    def _is_complete(self) -> bool:
        """Whether the next commit has all that it may hold: a batch behind it opened another."""
        try:
            return self._waiting[0].group is not self._last
        except IndexError:
            return False

    def _linger(self, crowd: int) -> float:
        turns = _TURN_SECONDS * crowd
        return min(_LINGER_SECONDS, _LINGER_COMMITS * self._commit_seconds + turns)

    def _next_group(self) -> list[QueuedBatch]:
        """The batches of the next commit, those that have waited longest."""
        group: list[QueuedBatch] = []
        while self._waiting and not (group and self._waiting[0].opens):
            group.append(self._waiting.popleft())
        return group

    def _do(self, task: StoreTask) -> None:
        """Do a task. A failure is logged; only a broken disk ends the thread."""
        try:
            task.call(self._store)
        except StoreBroken:
            raise
        except StoreFull:
            self._is_full()
        except StoreUnavailable:
            self._is_unreachable()
        except Exception as error:
            log.failure(f"{task.name}-failed", error)

    def _commit(self, group: list[QueuedBatch]) -> None:
        """Store a group in one transaction and set its outcome."""
        group.sort(key=_token)  # an order that does not depend on arrival
        started = self._clock()
        try:
            new = self._add(group)
        except StoreFull:
            self._is_full()
            self._call(self._answer, group, "store-full")
        except StoreBusy:  # trying them one by one would take as long for each
            self._call(self._answer, group, "overloaded")
        except (StoreUnavailable, StoreRefused):
            # Also if the connection was lost during the commit, or a right was taken away.
            self._is_unreachable()
            self._call(self._answer, group, "store-unavailable")
        except StoreBroken:
            raise
        except Exception as error:
            # Nothing was stored. One bad batch must not keep the others from being stored.
            if len(group) > 1:
                for queued in group:
                    self._commit([queued])
                return
            log.failure("commit-failed", error)
            self._call(self._answer, group, "internal-error")
        else:
            self._acknowledge(group, new, self._clock() - started)

    def _add(self, group: Sequence[QueuedBatch]) -> list[bool]:
        def fold(new: Sequence[int]) -> Iterator[Fold]:
            return folds(group[index].batch for index in new)  # lazily, while the store writes

        return self._store.add([queued.batch.token for queued in group], fold, self._today())

    def _acknowledge(self, group: list[QueuedBatch], new: list[bool], seconds: float) -> None:
        self.full = self.unreachable = False
        self._unsettled = True
        self._crowd = len(group) + len(self._waiting)
        self._learn(sum(queued.work for queued in group), seconds)
        accepted = sum(new)
        reports = sum(
            queued.batch.report_count for queued, is_new in zip(group, new, strict=True) if is_new
        )
        self._metrics.commit(seconds, accepted, len(group) - accepted, reports)
        self._call(self._answer, group, None)

    def _learn(self, work: int, seconds: float) -> None:
        """Update the averages with the time of a commit."""
        if work < _SMALL_WORK:
            sample = min(seconds, _MAX_COMMIT_SECONDS)
            self._commit_seconds += _PACE_WEIGHT * (sample - self._commit_seconds)
        else:
            self._commit_seconds = min(self._commit_seconds, seconds)  # a small one takes no longer
            sample = min(max(seconds - self._commit_seconds, 0.0) / work, _MAX_BYTE_SECONDS)
            self._byte_seconds += _PACE_WEIGHT * (sample - self._byte_seconds)

    def _is_full(self) -> None:
        if not self.full:
            log.event("disk-full", logging.ERROR)
        self.full = True

    def _is_unreachable(self) -> None:
        if not self.unreachable:
            log.event("store-unreachable", logging.ERROR)
        self.unreachable = True

    def recovered(self) -> None:
        """The store can be written to again: go on accepting."""
        if self.full:
            log.event("disk-has-room")
        if self.unreachable:
            log.event("store-reachable")
        self.full = self.unreachable = False

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed and nobody waits
                self._loop.call_soon_threadsafe(function, *arguments)

    # Back in the event loop.

    def _answer(self, group: list[QueuedBatch], outcome: Outcome) -> None:
        for queued in group:
            self._arrivals.popleft()  # groups are answered in their order of arrival
            self.bytes -= queued.size
            self._work -= queued.work
            self._groups -= queued.opens
            if not queued.group.expired:
                queued.done(outcome)

    def give_up(self, group: list[QueuedBatch]) -> None:
        """Fail all waiting batches and end the process: the thread is dead."""
        self.failed = True
        left = [*group, *self._waiting]
        self._waiting.clear()
        self._arrivals.clear()
        self.bytes = self._work = self._groups = 0
        for queued in left:
            if not queued.group.expired:
                queued.done("store-failed")  # in a group that was tried one by one, some are done
        self._on_failure()


class _Group:
    """The size of the group of batches that one commit writes."""

    __slots__ = (
        "batches",
        "bytes",
        "destination",
        "expired",
        "reports",
        "reports_before",
        "rows",
    )

    def __init__(self) -> None:
        self.batches = self.bytes = self.rows = 0
        self.destination: Destination | None = None  # of the latest batch
        self.expired = False  # whether its batches were refused because they waited for too long
        self.reports_before = 0  # its reports
        self.reports: dict[Destination, int] = {}  # of the destinations before it

    def add(self, batch: Admitted, size: int, max_batches: int) -> int | None:
        """Add a batch; return the bytes of rows that it adds, or None if the group is full."""
        destination, count = batch.destination, batch.report_count
        same = destination is self.destination  # nearly always: no hash of its many fields
        before = self.reports_before if same else self.reports.get(destination, 0)
        rows = 0
        if before < destination.m:
            rows = rows_bytes(destination, before + count) - rows_bytes(destination, before)
        if self.batches and (
            self.batches >= max_batches
            or self.bytes + size > _GROUP_BYTES
            or self.rows + rows > _GROUP_ROWS
        ):
            return None
        if not same and self.destination is not None:
            self.reports[self.destination] = self.reports_before
        self.destination, self.reports_before = destination, before + count
        self.batches += 1
        self.bytes += size
        self.rows += rows
        return rows


def _set_result(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def _token(queued: QueuedBatch) -> bytes:
    return queued.batch.token
