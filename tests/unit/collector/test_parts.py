"""Keys, rate limit, metrics, log, settings and refusals."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.collector import log
from rappor.collector.keys import digest_of, new_key, read_keys
from rappor.collector.limit import MOST_BUCKETS, ROTATE_SECONDS, RateLimit
from rappor.collector.metrics import Metrics
from rappor.collector.refusal import Refusal
from rappor.collector.settings import Settings
from rappor.errors import ParamsError
from rappor.wire import PROBLEMS

# Keys.


def test_keys_are_found_by_their_digest_and_nothing_else_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    keys = {name: new_key(file, name) for name in ("one", "two")}
    found = read_keys(file)
    assert {found[digest_of(key.encode())].name for key in keys.values()} == {"one", "two"}
    text = file.read_text()
    assert not [key for key in keys.values() if key in text or key[4:] in text]
    assert list(tmp_path.iterdir()) == [file]  # no draft is left


def test_a_key_has_144_bits_of_the_systems_randomness(tmp_path: Path) -> None:
    made = {new_key(tmp_path / "keys.json", f"k{i}") for i in range(20)}
    assert len(made) == 20
    assert {len(key) for key in made} == {len("rpk_") + 24}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": {}}',
        '{"keys": [3]}',
        '{"keys": [{"name": "a"}]}',
        '{"keys": [{"name": "A b", "sha256": "' + 64 * "0" + '"}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "rate": -1}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "rate": NaN}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "more": 1}]}',
        '{"keys": [{"name": "a", "sha256": "' + 64 * "0" + '", "collections": "b"}]}',
    ],
)
def test_a_bad_file_of_keys_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(ParamsError, match=r"keys\.json"):
        read_keys(file)


def test_a_missing_file_of_keys_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="--new-key"):
        read_keys(tmp_path / "none.json")


# The rate limit.


def test_a_prefix_may_send_its_rate_and_a_burst() -> None:
    limit = RateLimit(2.0)
    assert [limit.wait("192.0.2.1", 0.0) for _ in range(20)] == [0] * 20
    assert limit.wait("192.0.2.200", 0.0) == 1  # the same /24
    assert limit.wait("192.0.3.1", 0.0) == 0  # another one
    taken = sum(limit.wait("192.0.2.1", second / 4) == 0 for second in range(4, 404))
    assert taken == pytest.approx(200, abs=3)  # two a second for a hundred seconds


def test_a_slash_56_is_one_neighbourhood() -> None:
    limit = RateLimit(0.1)
    assert limit.wait("2001:db8:0:100::1", 0.0) == 0
    assert limit.wait("2001:db8:0:1ff::9", 0.0) == 10
    assert limit.wait("2001:db8:0:200::1", 0.0) == 0


def test_no_address_is_kept_and_the_salt_is_replaced() -> None:
    limit = RateLimit(1.0)
    limit.wait("192.0.2.1", 0.0)
    (before,) = limit._buckets
    assert b"\xc0\x00\x02" not in before
    salt = limit._salt
    limit.wait("192.0.2.1", ROTATE_SECONDS + 1)
    (after,) = limit._buckets
    assert limit._salt != salt
    assert after != before


def test_memory_is_bounded_whoever_comes() -> None:
    limit = RateLimit(1.0)
    limit._buckets = dict.fromkeys((i.to_bytes(8, "big") for i in range(MOST_BUCKETS)), (0.0, 0.0))
    limit.wait("192.0.2.1", 0.0)
    assert len(limit._buckets) == 1


# Metrics.


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


# The log.


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.raiseExceptions)
    stream = io.StringIO()
    log.set_up("info", stream)
    yield stream
    root.handlers[:], level, logging.raiseExceptions = before
    root.setLevel(level)
    logging.captureWarnings(False)


def test_an_event_is_a_line_of_json(lines: io.StringIO) -> None:
    log.event("listening", port=80)
    said = json.loads(lines.getvalue())
    assert said.pop("time")[-4:].endswith("Z")
    assert said == {"level": "info", "event": "listening", "port": 80}


def test_a_librarys_message_is_reduced_to_where_it_came_from(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").error("GET /%s", "secret")
    logging.getLogger("asyncio").warning("secret")
    logging.getLogger("uvicorn.access").error("secret")
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(each["event"], each["logger"]) for each in said] == [
        ("library", "uvicorn.error"),
        ("library", "asyncio"),
    ]
    assert "secret" not in lines.getvalue()


# Settings and refusals.


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 65536},
        {"port": "80"},
        {"rate": -1.0},
        {"rate": float("nan")},
        {"queue_batches": 0},
        {"queue_bytes": 10},
        {"tls_cert": "a"},
        {"log_level": "loud"},
    ],
    ids=str,
)
def test_a_wrong_setting_is_named(wrong: dict[str, object]) -> None:
    (name,) = wrong
    with pytest.raises(ParamsError, match=name):
        Settings(data="d", collections="c", **wrong)


@pytest.mark.parametrize("code", PROBLEMS)
def test_a_refusal_says_when_to_try_again_and_only_then(code: str) -> None:
    status, headers, body = Refusal(code, "why").answer()
    named = dict(headers)
    problem = PROBLEMS[code]
    assert status == problem.status
    assert json.loads(body)["detail"] == "why"
    assert (b"retry-after" in named) == problem.retry
    assert named[b"content-length"] == b"%d" % len(body)
    assert Refusal(code).raw().startswith(b"HTTP/1.1 %d " % problem.status)
