"""The page of metrics."""

from pathlib import Path

from rappor.collector.metrics import Metrics


def test_a_histogram_is_cumulative(tmp_path: Path) -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.003, 100.0):
        metrics.commit(seconds, 1, 0, 5)
    metrics.refuse("overloaded")
    text = metrics.text(healthy=False, queue_batches=3, queue_bytes=4, data=tmp_path).decode()
    lines = text.splitlines()
    assert 'rappor_commit_seconds_bucket{le="0.001"} 2' in lines
    assert 'rappor_commit_seconds_bucket{le="0.005"} 3' in lines
    assert 'rappor_commit_seconds_bucket{le="+Inf"} 4' in lines
    assert "rappor_commit_seconds_count 4" in lines
    assert 'rappor_batches_total{result="accepted"} 4' in lines
    assert "rappor_reports_total 20" in lines
    assert 'rappor_refused_total{code="overloaded"} 1' in lines
    assert "rappor_healthy 0" in lines
    assert "rappor_queue_batches 3" in lines


def test_metrics_do_without_a_folder(tmp_path: Path) -> None:
    text = Metrics().text(healthy=True, queue_batches=0, queue_bytes=0, data=tmp_path / "none")
    assert b"rappor_disk_free_bytes" not in text
