"""What the process counts about itself, for Prometheus.

Only totals: nothing by collection, period or address. The page tells how busy a collector is, how
many collections are about to end, and nothing about the reports.
"""

from __future__ import annotations

import datetime
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from rappor._version import __version__
from rappor.collection import ExpiryState
from rappor.collection.expiry import NOTICE_DAYS
from rappor.store.sqlite.schema import MIGRATIONS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # no time of the start on the page


def schema_of(store: str | None) -> int:
    """The schema that this version writes: of a database, or of a data folder if None."""
    if store is None:
        return len(MIGRATIONS)
    from rappor.store.postgres import schema  # needs psycopg

    return len(schema.MIGRATIONS)


class Metrics:
    """The counters of one collector process, in a registry of their own."""

    def __init__(self, store: str | None = None) -> None:
        """All at zero; `store` is the URL of the database, or None for a data folder."""
        self._schema = schema_of(store)
        self.registry = CollectorRegistry()
        self._commits = Histogram(
            "rappor_commit_seconds",
            "Time of a durable commit.",
            buckets=COMMIT_SECONDS,
            registry=self.registry,
        )
        batches = Counter(
            "rappor_batches", "Batches acknowledged.", ["result"], registry=self.registry
        )
        self._accepted, self._duplicate = batches.labels("accepted"), batches.labels("duplicate")
        self._reports = Counter("rappor_reports", "Reports counted.", registry=self.registry)
        self._refused = Counter(
            "rappor_refused",
            "Requests refused, by the code of the problem.",
            ["code"],
            registry=self.registry,
        )

    def refuse(self, code: str) -> None:
        """Count a refusal by the code of its problem."""
        self._refused.labels(code).inc()

    def commit(self, seconds: float, accepted: int, duplicate: int, reports: int) -> None:
        """Count a commit and what was new in it."""
        self._commits.observe(seconds)
        self._accepted.inc(accepted)
        self._duplicate.inc(duplicate)
        self._reports.inc(reports)

    def total(self, name: str, **labels: str) -> int:
        """The value of one counter.

        >>> metrics = Metrics()
        >>> metrics.refuse("overloaded")
        >>> metrics.total("rappor_refused_total", code="overloaded")
        1
        """
        return int(self.registry.get_sample_value(name, labels) or 0)

    def text(
        self,
        *,
        healthy: bool,
        queue_batches: int,
        queue_bytes: int,
        data: Path | None,
        collections: Mapping[str, int] | None = None,
        retained: datetime.date | None = None,
    ) -> bytes:
        """The counters and the present state, in Prometheus' text format.

        Args:
            healthy: whether batches can be stored.
            queue_batches: the number of batches that wait for a commit.
            queue_bytes: their bytes.
            data: the data folder.
            collections: the number of collections in each `ExpiryState`.
            retained: the day of the latest retention, as far as the collector knows.
        """
        gauges: dict[str, tuple[str, float]] = {
            "rappor_healthy": ("1 while batches can be stored.", int(healthy)),
            "rappor_queue_batches": ("Batches that wait for a commit.", queue_batches),
            "rappor_queue_bytes": ("Bytes of those batches.", queue_bytes),
            "rappor_last_retention_timestamp_seconds": (
                "The day of the latest retention, as the time of its start in UTC; 0: none yet.",
                0 if retained is None else _start_of(retained),
            ),
        }
        present = CollectorRegistry()
        for name, (about, value) in (gauges | _disk(data)).items():
            Gauge(name, about, registry=present).set(value)
        states = Gauge(
            "rappor_collections",
            f"Collections by state; expiring: they end within {NOTICE_DAYS} days.",
            ["state"],
            registry=present,
        )
        for state in ExpiryState:
            states.labels(state).set((collections or {}).get(state, 0))
        build = Gauge(
            "rappor_build_info",
            "1; the labels name the versions of rappor, Python and the store's schema.",
            ["version", "python", "schema"],
            registry=present,
        )
        build.labels(__version__, platform.python_version(), str(self._schema)).set(1)
        return generate_latest(self.registry) + generate_latest(present)


def _start_of(day: datetime.date) -> float:
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp()


def _disk(data: Path | None) -> dict[str, tuple[str, float]]:
    """Free space and the store's size, if the store is a folder."""
    if data is None:
        return {}
    try:
        free = shutil.disk_usage(data).free
        size = sum(file.stat().st_size for file in data.glob("store.sqlite*"))
    except OSError:
        return {}
    return {
        "rappor_disk_free_bytes": ("Free space where the store is.", free),
        "rappor_store_bytes": ("Size of the store and its log.", size),
    }
