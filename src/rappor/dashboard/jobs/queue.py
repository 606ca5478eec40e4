"""Jobs: a queue, one worker process, and the state of each job.

Jobs run one at a time: a decode uses much memory, and two at once are slower than one after the
other. Cancelling kills the worker at once; the next job gets a new one, also after a crash.
Prefetched jobs give way to jobs that a visitor waits for.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from rappor.dashboard.jobs import worker_process
from rappor.dashboard.jobs.worker_process import WorkerProcess
from rappor.dashboard.state.saved import MAX_JOBS

_LOG = logging.getLogger("rappor.dashboard.jobs")
_MAX_WAITING = 50
MAX_PER_VISITOR = 10  # waiting jobs of one visitor: the queue is for all
_GRACE_SECONDS = 2.0  # an unasked job that runs longer gives way to a visitor's
Arguments = dict[str, Any] | Callable[[], dict[str, Any]]
WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
ENDED = frozenset({DONE, FAILED, CANCELLED})


class JobStore(Protocol):
    """The part of the dashboard's state that jobs need."""

    def save_result(self, key: str, kind: str, meta: dict[str, Any], table: bytes | None) -> None:
        """Save a result."""

    def save_job(
        self, number: str, kind: str, key: str, status: str, document: dict[str, Any]
    ) -> None:
        """Save the state of a job."""


class TooManyJobs(Exception):
    """Too many jobs are waiting."""


class Jobs:
    """The jobs of one dashboard.

    `start` returns at once; `wait` waits for the end of a job. Thread-safe.
    """

    def __init__(self, state: JobStore) -> None:
        self._state = state
        self._jobs: dict[str, Job] = {}
        self._arguments: dict[str, Arguments] = {}
        self._waiting: deque[str] = deque()
        self._unasked: set[str] = set()
        self._changed = threading.Condition()
        self._worker: WorkerProcess | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)
        self._thread.start()

    def start(
        self,
        kind: str,
        arguments: Arguments,
        key: str,
        *,
        label: str = "",
        actor: str = "",
        collection: str = "",
        unasked: bool = False,
    ) -> Job:
        """Queue a job, or return the one of the same kind and key that waits or runs.

        Args:
            kind: a key of TASKS.
            arguments: for the task, as plain data; or a function that makes them when its turn
                comes, because a queue of lists of a million strings would fill the memory.
            key: the key of its result.
            label: what it is, in words.
            actor: who asks.
            collection: the collection it decodes.
            unasked: nobody waits for it, so it gives way to all jobs of visitors.

        Raises:
            TooManyJobs: the queue is full, or this actor has too many jobs in it.
        """
        with self._changed:
            for job in self._jobs.values():
                if (job.kind, job.key) == (kind, key) and not job.over:
                    if not unasked:
                        self._unasked.discard(job.id)
                    return job
            if len(self._waiting) >= _MAX_WAITING:
                raise TooManyJobs(f"{_MAX_WAITING} jobs are waiting: try again later")
            own = sum(self._jobs[number].actor == actor for number in self._waiting)
            if actor and own >= MAX_PER_VISITOR:
                raise TooManyJobs(f"{own} jobs of yours are waiting: try again later")
            job = Job(secrets.token_hex(8), kind, key, label or kind, actor, collection)
            self._jobs[job.id] = job
            self._arguments[job.id] = arguments
            self._waiting.append(job.id)
            if unasked:
                self._unasked.add(job.id)
            self._make_way()
            self._forget()
            self._changed.notify_all()
            return job

    def get(self, number: str) -> Job | None:
        """The job of this id, or None."""
        with self._changed:
            return self._jobs.get(number)

    def latest(self, kind: str, key: str) -> Job | None:
        """The last job of this kind and key, or None."""
        with self._changed:
            found = [job for job in self._jobs.values() if (job.kind, job.key) == (kind, key)]
        return found[-1] if found else None

    def all(self) -> list[Job]:
        """Every job that is remembered, newest first."""
        with self._changed:
            return list(self._jobs.values())[::-1]

    def wait(self, number: str, seconds: float) -> Job | None:
        """Wait for the end of a job, but no longer than this; returns the job."""
        until = time.monotonic() + seconds
        with self._changed:
            while True:
                job = self._jobs.get(number)
                left = until - time.monotonic()
                if job is None or job.over or left <= 0:
                    return job
                self._changed.wait(left)

    def cancel(self, number: str) -> Job | None:
        """Cancel a job, at once if it runs; returns the job, or None."""
        with self._changed:
            job = self._jobs.get(number)
            if job is None or job.over:
                return job
            ran = job.state == RUNNING
            job = self._end(job, CANCELLED)
            with suppress(ValueError):
                self._waiting.remove(number)
            if ran:
                self._drop_worker()
            return job

    def close(self) -> None:
        """Stop everything."""
        with self._changed:
            self._closed = True
            for job in list(self._jobs.values()):
                if not job.over:
                    self._end(job, CANCELLED)
            self._waiting.clear()
            self._drop_worker()
            self._changed.notify_all()
        self._thread.join(5)

    @property
    def worker_id(self) -> int | None:
        """The process id of the worker, or None."""
        with self._changed:
            return None if self._worker is None else self._worker.process.pid

    def _drop_worker(self) -> None:
        if self._worker is not None:
            self._worker.kill()
        self._worker = None

    def _forget(self) -> None:
        over = [number for number, job in self._jobs.items() if job.over]
        for number in over[: max(0, len(self._jobs) - MAX_JOBS)]:
            del self._jobs[number]

    def _make_way(self) -> None:
        """Put a long unasked job back into the queue if a visitor waits."""
        if self._unasked.issuperset(self._waiting):
            return
        for job in list(self._jobs.values()):
            late = job.state == RUNNING and job.seconds > _GRACE_SECONDS
            if late and job.id in self._unasked:
                self._drop_worker()
                self._waiting.append(job.id)
                self._put(replace(job, state=WAITING, text="", share=None, began=None))

    def _next(self) -> str:
        """The next job: the first one of a visitor, or else the first."""
        asked = [number for number in self._waiting if number not in self._unasked]
        number = (asked or self._waiting)[0]
        self._waiting.remove(number)
        return number

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                number = self._next()
                arguments = self._arguments[number]
                asked = self._jobs[number]
                begun = replace(asked, state=RUNNING, text="starting", began=time.time())
                job = self._put(begun)
            try:
                given = arguments() if callable(arguments) else arguments
                at_work = self._at_work(job)
                if at_work is not None:
                    self._follow(job, given, at_work)
                del given  # it may be large
            except Exception as error:  # such as a full disk: the queue goes on
                _LOG.exception("job %s", job.id)
                with self._changed:
                    self._end(job, FAILED, f"It could not be done or kept: {_said(error)}")

    def _at_work(self, job: Job) -> WorkerProcess | None:
        """The worker, started if there is none; None if the job was cancelled meanwhile."""
        with self._changed:
            if self._jobs.get(job.id, job).state != RUNNING:
                return None
            if self._worker is None or not self._worker.alive:
                self._worker = WorkerProcess()
            return self._worker

    def _follow(self, job: Job, arguments: dict[str, Any], at_work: WorkerProcess) -> None:
        """Send a job to the worker, and follow its messages to the end."""
        for what, first, second in at_work.run(job.kind, arguments):
            if what == "progress":
                self._tell(job.id, first, second)
                continue
            with self._changed:
                if self._jobs[job.id].state != RUNNING:  # cancelled, or back in the queue
                    return
            if what == "failed":
                if second:
                    _LOG.error("job %s failed: %s", job.id, second)
                with self._changed:
                    self._end(job, FAILED, first)
                return
            self._state.save_result(job.key, job.kind, first, second)
            with self._changed:
                self._end(job, DONE)
            return
        at_work.kill()
        why = at_work.reason
        with self._changed:
            if self._worker is at_work:
                self._worker = None
            if self._jobs[job.id].state == RUNNING:
                self._end(job, FAILED, f"The process that did it ended: {why}.")

    def _tell(self, number: str, text: str, share: float | None) -> None:
        with self._changed:
            job = self._jobs[number]
            if job.state == RUNNING:
                self._put(replace(job, text=text, share=share))
                self._make_way()

    def _put(self, job: Job) -> Job:
        self._jobs[job.id] = job
        self._changed.notify_all()
        return job

    def _end(self, job: Job, state: str, error: str = "") -> Job:
        """End a job, once: a cancellation and a result may come at the same time."""
        current = self._jobs.get(job.id, job)
        if current.over:
            return current
        share = 1.0 if state == DONE else current.share
        ended = replace(current, state=state, error=error, share=share, ended=time.time())
        self._arguments.pop(job.id, None)
        self._unasked.discard(job.id)
        with suppress(Exception):  # pages read its state from memory
            about = ended.document() | {"actor": ended.actor}
            self._state.save_job(ended.id, ended.kind, ended.key, ended.state, about)
        return self._put(ended)


def _said(error: Exception) -> str:
    """The text of an error without folders, because every role can read it."""
    return worker_process.without_folders(str(error))


class Progress(Protocol):
    """A task calls it with what it does and the share that is done."""

    def __call__(self, text: str, share: float | None = None) -> None:
        """Report progress; None if the share is not known."""


class JobResult(NamedTuple):
    """What a task returns.

    Attributes:
        meta: facts, ready for JSON.
        table: Arrow IPC bytes (or those of another file), or None.
    """

    meta: dict[str, Any]
    table: bytes | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One job at one moment; `Jobs.get` returns its present state.

    Attributes:
        id: random.
        kind: which task, a key of TASKS.
        key: the key of its result; two jobs of one key do not run at once.
        label: what it is, in words: "Decoding 100,000 candidates".
        actor: who started it.
        collection: the collection it decodes, or "".
        state: waiting, running, done, failed or cancelled.
        share: the share that is done, 0 to 1; None if it is not known.
        text: what it is doing.
        error: why it failed; "" if it did not.
        made: when it was started, in seconds since 1970.
        began: when it began; None before that.
        ended: when it ended; None before that.
    """

    id: str
    kind: str
    key: str
    label: str
    actor: str = ""
    collection: str = ""
    state: str = WAITING
    share: float | None = None
    text: str = "waiting for its turn"
    error: str = ""
    made: float = field(default_factory=time.time)
    began: float | None = None
    ended: float | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in ENDED

    @property
    def seconds(self) -> float:
        """How long it has run."""
        if self.began is None:
            return 0.0
        return max((self.ended or time.time()) - self.began, 0.0)

    @property
    def percent(self) -> str:
        r"""The share in words; "" where it is not known.

        >>> Job("1", "decode", "k", "Decoding", share=0.624).percent
        '62\xa0%'
        """
        return "" if self.share is None else f"{self.share:.0%}".replace("%", "\u00a0%")

    @property
    def doing(self) -> str:
        r"""What it is doing, in one line.

        >>> Job("1", "decode", "k", "Decoding", share=0.5, text="fitting").doing
        '50\xa0%, fitting, 0\xa0s'
        """
        parts = [self.percent, self.text, f"{self.seconds:.0f}\u00a0s"]
        return ", ".join(part for part in parts if part)

    def document(self) -> dict[str, Any]:
        """The job, ready for JSON."""
        return {
            "id": self.id,
            "kind": self.kind,
            "label": self.label,
            "collection": self.collection,
            "state": self.state,
            "share": self.share,
            "text": self.text,
            "doing": self.doing,
            "error": self.error,
            "seconds": round(self.seconds, 3),
        }
