"""What the process counts about itself, in Prometheus' text format.

Totals only: nothing by collection, period or address, so that the page can tell a neighbour how
busy a collector is, and no more.
"""

from __future__ import annotations

import bisect
import shutil
import threading
from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Histogram:
    """Counts below fixed bounds, with sum and count.

    >>> waits = Histogram("w", "Waiting.", (0.1, 1.0))
    >>> waits.add(0.5)
    >>> waits.lines()[2:4]
    ['w_bucket{le="0.1"} 0', 'w_bucket{le="1"} 1']
    """

    def __init__(self, name: str, about: str, bounds: tuple[float, ...]) -> None:
        """A histogram with an upper bound for each bucket but the last."""
        self.name, self.about, self.bounds = name, about, bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self) -> list[str]:
        """The text format of it."""
        lines = [f"# HELP {self.name} {self.about}", f"# TYPE {self.name} histogram"]
        below = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            below += count
            lines.append(f'{self.name}_bucket{{le="{bound:g}"}} {below}')
        total = sum(self.counts)
        lines.append(f'{self.name}_bucket{{le="+Inf"}} {total}')
        return [*lines, f"{self.name}_sum {self.sum:.6f}", f"{self.name}_count {total}"]


class Metrics:
    """The counters of one collector process."""

    def __init__(self) -> None:
        """All at zero."""
        self.batches = {"accepted": 0, "duplicate": 0}
        self.reports = 0
        self.refused: dict[str, int] = {}
        self.commits = Histogram(
            "rappor_commit_seconds", "Time of a durable commit.", COMMIT_SECONDS
        )
        self._lock = threading.Lock()  # the writer's thread and the event loop both count

    def refuse(self, code: str) -> None:
        """Count a refusal by the code of its problem."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def commit(self, seconds: float, accepted: int, duplicate: int, reports: int) -> None:
        """Count a commit and what was new in it."""
        with self._lock:
            self.commits.add(seconds)
            self.batches["accepted"] += accepted
            self.batches["duplicate"] += duplicate
            self.reports += reports

    def text(self, *, healthy: bool, queue_batches: int, queue_bytes: int, data: Path) -> bytes:
        """Everything, as Prometheus reads it."""
        with self._lock:
            lines = self.commits.lines()
            batches, reports = dict(self.batches), self.reports
        lines += _counter(
            "rappor_batches_total",
            "Batches acknowledged.",
            {f'result="{name}"': value for name, value in batches.items()},
        )
        lines += _counter("rappor_reports_total", "Reports counted.", {"": reports})
        lines += _counter(
            "rappor_refused_total",
            "Requests refused, by the code of the problem.",
            {f'code="{name}"': value for name, value in sorted(self.refused.items())},
        )
        gauges: dict[str, tuple[str, float]] = {
            "rappor_healthy": ("1 while batches can be stored.", int(healthy)),
            "rappor_queue_batches": ("Batches that wait for a commit.", queue_batches),
            "rappor_queue_bytes": ("Bytes of those batches.", queue_bytes),
        }
        gauges |= _disk(data)
        for name, (about, value) in gauges.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return ("\n".join(lines) + "\n").encode()


def _counter(name: str, about: str, values: dict[str, int]) -> list[str]:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} counter"]
    return lines + [
        f"{name}{{{label}}} {value}" if label else f"{name} {value}"
        for label, value in values.items()
    ]


def _disk(data: Path) -> dict[str, tuple[str, float]]:
    """Free space and the store's size, where the store is a folder."""
    try:
        free = shutil.disk_usage(data).free
        size = sum(file.stat().st_size for file in data.glob("store.sqlite*"))
    except OSError:
        return {}
    return {
        "rappor_disk_free_bytes": ("Free space where the store is.", free),
        "rappor_store_bytes": ("Size of the store and its log.", size),
    }
