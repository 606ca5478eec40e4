"""Everything that the page Ingest shows, gathered: the collector, the disk, jobs, who did what."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rappor.dashboard.context import Desk
from rappor.dashboard.ingest.watch import Figures
from rappor.store import AuditEntry
from rappor.wire import PROBLEMS

_GRAIN = 16_000_000  # bytes: the log grows with each commit, by some 20 kB
FEW_BYTES = 1e9  # free space below which a disk is nearly full


@dataclass(frozen=True, slots=True)
class Refused:
    """A reason for refusals: its code, how often today, what it means, what a client does."""

    code: str
    batches: int
    meaning: str
    client: str


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Space where the data folder is, in steps of 16 MB: exact sizes would tell of each commit."""

    free: int
    store: int
    own: int

    @property
    def low(self) -> bool:
        """Whether it is nearly full."""
        return self.free < FEW_BYTES


def refused_of(figures: Figures) -> list[Refused]:
    """Refusals by reason, most frequent first."""
    found = []
    for code, number in sorted(figures.refused.items(), key=lambda each: (-each[1], each[0])):
        problem = PROBLEMS.get(code)
        meaning = problem.title if problem else "A reason that this version does not know."
        later = problem is not None and problem.retry
        found.append(Refused(code, number, meaning, "tries again" if later else "drops the batch"))
    return found


def disk_of(desk: Desk) -> DiskSpace:
    """Free space, and what store and dashboard take."""
    data = desk.settings.data
    return DiskSpace(
        shutil.disk_usage(data).free // _GRAIN * _GRAIN,
        _size_of(data.glob("store.sqlite*")),
        _size_of([*data.glob("dashboard.sqlite*"), *data.glob("released.sqlite*")]),
    )


def _size_of(files: Iterable[Path]) -> int:
    """Bytes of files, rounded up; some may vanish meanwhile: a log that was folded in."""
    size = 0
    for file in files:
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return -(-size // _GRAIN) * _GRAIN


def audit_of(desk: Desk) -> list[AuditEntry]:
    """Who did what, in the store and here, newest first."""
    every = [*desk.catalogue.audit_log(), *desk.state.audit_log()]
    return sorted(every, key=lambda entry: entry.when)[::-1]


def last_retention(desk: Desk) -> AuditEntry | None:
    """The last time that old data were removed."""
    runs = [entry for entry in desk.catalogue.audit_log() if entry.action == "retain"]
    return runs[-1] if runs else None


def jobs_of(desk: Desk) -> list[dict[str, Any]]:
    """Jobs of this process, then those that are remembered from before, newest first."""
    now = [job.document() | {"actor": job.actor} for job in desk.jobs.all()]
    known = {each["id"] for each in now}
    return now + [{"actor": ""} | job.document for job in desk.state.jobs() if job.id not in known]


def kept_by(desk: Desk) -> list[dict[str, Any]]:
    """How long each collection's reports and counts are kept."""
    return [
        {
            "collection": entry.name,
            "keep_reports_days": entry.collection.keep_reports_days,
            "expires": entry.collection.expires,
        }
        for entry in desk.catalogue.collections()
    ]
