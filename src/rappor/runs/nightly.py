"""A run: take the lock, cut jobs into units, do what is not done yet, and report.

One failure does not stop the others. A run that was killed is started again with the same command,
and gives the same results as an undisturbed one.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rappor import files
from rappor._version import __version__
from rappor.runs.candidate_sources import SnapshotFolder
from rappor.runs.jobs_file import JobsFile, JobSpec
from rappor.runs.journal import FOLDER, Journal
from rappor.runs.units import DecodeUnit, OutputOptions, UnitProblem, stages, units_of
from rappor.runs.worker_pool import work_all
from rappor.workspace import Workspace

REPORT = "run.json"
DONE, UNCHANGED, FAILED = "done", "unchanged", "failed"


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is.

    Attributes:
        done: units that are finished, whatever came out.
        total: units that are known so far.
        failed: how many of `done` failed.
        unchanged: how many of `done` had been done before.
        seconds: how long the run has worked.
        text: what ended last.
    """

    done: int
    total: int
    failed: int
    unchanged: int
    seconds: float
    text: str

    @property
    def left(self) -> float | None:
        """About how many seconds are left; None before the first decode ends.

        >>> RunProgress(done=30, total=110, failed=0, unchanged=20, seconds=5, text="").left
        40.0
        """
        decoded = self.done - self.unchanged
        return None if decoded < 1 else self.seconds / decoded * (self.total - self.done)

    @property
    def words(self) -> str:
        """The progress in one line.

        >>> RunProgress(done=55, total=110, failed=1, unchanged=0, seconds=60, text="").words
        '55 of 110 (50 %), 1 failed, 1 min so far, about 1 min left'
        """
        share = self.done / self.total if self.total else 1.0
        parts = [f"{self.done:,} of {self.total:,} ({share:.0%})".replace("%)", " %)")]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{duration(self.seconds)} so far"]
        if self.done < self.total:
            left = self.left
            parts += ["time left not known yet" if left is None else f"about {duration(left)} left"]
        return ", ".join(parts)


@dataclass(slots=True)
class RunReport:
    """What a run did.

    Attributes:
        state: running, finished or interrupted.
        started: when, in UTC.
        ended: when, in UTC; None while it runs.
        seconds: how long it took.
        units: what each unit came to, ready for JSON.
    """

    state: str
    started: str
    ended: str | None = None
    seconds: float = 0.0
    units: list[dict[str, Any]] = field(default_factory=list)

    def number(self, status: str) -> int:
        """How many units have this status: done, unchanged or failed."""
        return sum(unit["status"] == status for unit in self.units)

    @property
    def ok(self) -> bool:
        """Whether everything was done."""
        return self.state == "finished" and not self.number(FAILED)

    def document(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return {
            "rappor": __version__,
            "state": self.state,
            "started": self.started,
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
            **{status: self.number(status) for status in (DONE, UNCHANGED, FAILED)},
            "units": sorted(self.units, key=lambda unit: str(unit["name"])),
        }


Tell = Callable[[RunProgress], None]


def run_jobs(
    file: JobsFile, *, tell: Tell = lambda _: None, again: bool = False, only: Iterable[str] = ()
) -> RunReport:
    """Run the jobs of a file.

    Args:
        file: the jobs.
        tell: called with the progress after each unit.
        again: decode units too that have not changed since an earlier run.
        only: the names of some jobs; empty: all.

    Raises:
        StoreBusy: another run writes to the same folder.
        RapporError: the data folder cannot be read.
    """
    Workspace(file.data)  # StoreError before any folder is made
    chosen = set(only)
    order = [[job for job in jobs if not chosen or job.name in chosen] for jobs in stages(file)]
    with closing(Journal(file.output)) as journal:
        run = _Run(file, journal, tell, again)
        try:
            for jobs in order:
                run.do(jobs)
            run.report.state = "finished"
        except BaseException:
            run.report.state = "interrupted"
            raise
        finally:
            run.save()
        return run.report


class _Run:
    """A run at work."""

    def __init__(self, file: JobsFile, journal: Journal, tell: Tell, again: bool) -> None:
        self._file, self._journal, self._tell, self._again = file, journal, tell, again
        self._options = OutputOptions(
            file.data, file.output, file.formats, file.all_rows, file.dashboard
        )
        self._snapshots = SnapshotFolder(file.output / FOLDER / "candidates")
        self._ended: Counter[str] = Counter()
        self._began, self._total = time.monotonic(), 0
        self.report = RunReport("running", _now())
        self._write()

    def do(self, jobs: Iterable[JobSpec]) -> None:
        """Do some jobs that do not wait for each other."""
        found = [item for job in jobs for item in units_of(job, self._options, self._snapshots)]
        self._total += len(found)
        waiting: list[DecodeUnit] = []
        for item in found:
            if isinstance(item, UnitProblem):
                name = f"{item.job}/{item.collection}"
                facts = {"job": item.job, "collection": item.collection}
                self._end(name, FAILED, facts | {"error": item.error})
                continue
            known = None if self._again else self._journal.finished(item.name, item.key)
            if known is not None:
                self._end(known.name, UNCHANGED, known.document())
            else:
                waiting.append(item)
        processes = min(self._file.processes or os.cpu_count() or 1, max(len(waiting), 1))
        for end in work_all(waiting, self._options, processes):
            if end.result is not None:
                self._end(end.result.name, DONE, end.result.document())
            else:
                self._fail(end.unit, end.error, end.trace)

    def save(self) -> None:
        """Write the report of a run that has ended."""
        self.report.ended, self.report.seconds = _now(), time.monotonic() - self._began
        self._write()

    def _fail(self, unit: DecodeUnit, error: str, trace: str = "") -> None:
        facts: dict[str, Any] = {
            "job": unit.job.name,
            "collection": unit.collection,
            "version": unit.version,
            "periods": list(unit.periods),
            "dimensions": dict(unit.dimensions),
            "error": error,
        }
        self._end(unit.name, FAILED, facts | ({"traceback": trace} if trace else {}))

    def _end(self, name: str, status: str, facts: dict[str, Any]) -> None:
        self.report.units.append({**facts, "name": name, "status": status})
        self._ended[status] += 1
        self._tell(
            RunProgress(
                done=len(self.report.units),
                total=self._total,
                failed=self._ended[FAILED],
                unchanged=self._ended[UNCHANGED],
                seconds=time.monotonic() - self._began,
                text=name,
            )
        )

    def _write(self) -> None:
        text = json.dumps(self.report.document(), indent=2, allow_nan=False)
        files.write_text(self._file.output / REPORT, text + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(3.2), duration(75), duration(7300)
    ('3 s', '1 min', '2 h 1 min')
    """
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds) // 60
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
