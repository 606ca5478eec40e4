"""The page of metrics."""

import datetime
from pathlib import Path
from platform import python_version

from prometheus_client import REGISTRY, parser

from rappor._version import __version__
from rappor.collector.metrics import Metrics
from rappor.store.postgres import schema as postgres
from rappor.store.sqlite import schema as sqlite


def values(text: bytes) -> dict[tuple[str, ...], float]:
    """The page's samples by name and label values, as Prometheus reads them."""
    families = parser.text_string_to_metric_families(text.decode())
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def test_a_histogram_is_cumulative(tmp_path: Path) -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.003, 100.0):
        metrics.commit(seconds, 1, 0, 5)
    metrics.refuse("overloaded")
    page = values(metrics.text(healthy=False, queue_batches=3, queue_bytes=4, data=tmp_path))
    assert page["rappor_commit_seconds_bucket", "0.001"] == 2
    assert page["rappor_commit_seconds_bucket", "0.005"] == 3
    assert page["rappor_commit_seconds_bucket", "+Inf"] == 4
    assert page["rappor_commit_seconds_count",] == 4
    assert page["rappor_batches_total", "accepted"] == 4
    assert page["rappor_batches_total", "duplicate"] == 0
    assert page["rappor_reports_total",] == 20
    assert page["rappor_refused_total", "overloaded"] == 1
    assert page["rappor_healthy",] == 0
    assert page["rappor_queue_batches",] == 3


def test_the_page_has_the_collectors_own_metrics_only(tmp_path: Path) -> None:
    """No time of the start, nothing of the process, nothing of another collector."""
    Metrics().commit(1.0, 1, 0, 1)
    page = values(Metrics().text(healthy=True, queue_batches=0, queue_bytes=0, data=tmp_path))
    assert page["rappor_batches_total", "accepted"] == 0
    assert {name for name, *_ in page} == {
        "rappor_batches_total",
        "rappor_build_info",
        "rappor_collections",
        "rappor_commit_seconds_bucket",
        "rappor_commit_seconds_count",
        "rappor_commit_seconds_sum",
        "rappor_disk_free_bytes",
        "rappor_healthy",
        "rappor_last_retention_timestamp_seconds",
        "rappor_queue_batches",
        "rappor_queue_bytes",
        "rappor_reports_total",
        "rappor_store_bytes",
    }
    assert not [family for family in REGISTRY.collect() if family.name.startswith("rappor")]


def test_the_page_names_the_build_and_counts_collections_that_are_about_to_end(
    tmp_path: Path,
) -> None:
    text = Metrics().text(
        healthy=True, queue_batches=0, queue_bytes=0, data=tmp_path, collections={"expiring": 2}
    )
    page = values(text)
    assert page["rappor_collections", "expiring"] == 2
    assert page["rappor_collections", "expired"] == 0
    assert page["rappor_build_info", *build(len(sqlite.MIGRATIONS))] == 1


def build(schema: int) -> tuple[str, str, str]:
    return python_version(), str(schema), __version__


def test_the_page_names_the_schema_of_the_store_that_is_written() -> None:
    assert len(postgres.MIGRATIONS) != len(sqlite.MIGRATIONS)  # else this could not tell
    metrics = Metrics("postgresql://db.example.org/rappor")
    page = values(metrics.text(healthy=True, queue_batches=0, queue_bytes=0, data=None))
    assert page["rappor_build_info", *build(len(postgres.MIGRATIONS))] == 1


def test_the_page_says_when_retention_ran_last(tmp_path: Path) -> None:
    day = datetime.date(2026, 11, 16)
    for retained, told in ((None, 0), (day, 1794787200)):
        text = Metrics().text(
            healthy=True, queue_batches=0, queue_bytes=0, data=tmp_path, retained=retained
        )
        assert values(text)["rappor_last_retention_timestamp_seconds",] == told


def test_metrics_do_without_a_folder(tmp_path: Path) -> None:
    text = Metrics().text(healthy=True, queue_batches=0, queue_bytes=0, data=tmp_path / "none")
    assert b"rappor_disk_free_bytes" not in text
