"""The collector in memory: it decides as the real one does, and fails when it is told to."""

from __future__ import annotations

import datetime
import gzip
import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rappor.client import Client
from rappor.collection import Collection
from rappor.collector.admission import Admission
from rappor.collector.refusal import Refusal
from rappor.errors import ParamsError
from rappor.params import Params
from rappor.testing import ManualClock, MemoryCollector
from rappor.wire import (
    BINARY,
    JSON,
    MAX_BODY,
    PROBLEMS,
    REPORTS_PATH,
    Batch,
    encode_batch,
    encode_batch_json,
)
from support.client import LIMIT, MONDAY

THEME = Collection(
    "theme",
    1,
    Params(8, 1, 4, 0.5, 0.5, 0.75),
    dimensions={"country": ("NZ",)},
    expires=datetime.date(2027, 1, 1),
)
GOOD = Batch(bytes(16), "theme", 1, "2026-11-16", (("country", "NZ"),), 8, b"\3\0", b"\5")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MONDAY)


@pytest.fixture
def collector(clock: ManualClock) -> Iterator[MemoryCollector]:
    with MemoryCollector([THEME], today=clock.today) as started:
        yield started


def send(
    collector: MemoryCollector,
    body: bytes,
    *,
    method: str = "POST",
    path: str = REPORTS_PATH,
    **headers: str,
) -> tuple[int, str | None, str | None]:
    """The status, the code and the Retry-After of the answer."""
    connection = http.client.HTTPConnection(urlsplit(collector.url).netloc, timeout=LIMIT)
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    connection.request(method, path, body, {"Content-Type": BINARY} | named)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    return (
        answer.status,
        json.loads(said)["code"] if said else None,
        answer.headers["Retry-After"],
    )


def test_a_batch_is_stored_and_can_be_read_back(collector: MemoryCollector) -> None:
    assert send(collector, encode_batch(GOOD)) == (204, None, None)
    assert collector.batches == (GOOD,)
    assert collector.count("theme") == 1
    assert collector.reports("theme") == [(3, 5)]
    counts = collector.counts("theme")
    assert counts.totals == [0, 0, 0, 1]
    assert counts.ones[3] == [1, 0, 1, 0, 0, 0, 0, 0]
    assert sum(map(sum, counts.ones)) == 2
    assert collector.refused == ()


def test_a_repeated_upload_is_counted_once(collector: MemoryCollector) -> None:
    for _ in range(3):
        assert send(collector, encode_batch(GOOD))[0] == 204
    assert collector.count("theme") == 1


def test_json_and_gzip_are_taken_too(collector: MemoryCollector) -> None:
    assert send(collector, encode_batch_json(GOOD), content_type=JSON)[0] == 204
    other = replace(GOOD, token=bytes([1]) * 16)
    assert send(collector, gzip.compress(encode_batch(other)), content_encoding="gzip")[0] == 204
    assert collector.batches == (GOOD, other)


WRONG = [
    replace(GOOD, collection="other"),
    replace(GOOD, version=2),
    replace(GOOD, period="2026-W47"),
    replace(GOOD, period="2026-11-01"),
    replace(GOOD, period="2026-11-18"),
    replace(GOOD, dimensions=()),
    replace(GOOD, dimensions=(("country", "FJ"),)),
    replace(GOOD, k=7),
    replace(GOOD, cohorts=b"\4\0"),
]


@pytest.mark.parametrize("batch", WRONG, ids=range(len(WRONG)))
def test_it_refuses_what_the_real_collector_refuses(
    collector: MemoryCollector, clock: ManualClock, batch: Batch
) -> None:
    admission = Admission(collector._registry, clock.today)
    with pytest.raises(Refusal) as refused:
        admission.admit(batch)
    code = refused.value.code
    assert send(collector, encode_batch(batch))[:2] == (PROBLEMS[code].status, code)
    assert (collector.batches, collector.refused) == ((), (code,))


def test_it_refuses_what_is_not_a_batch(collector: MemoryCollector) -> None:
    assert send(collector, b"nonsense")[1] == "malformed-batch"
    assert send(collector, encode_batch(GOOD), content_type="text/plain")[:2] == (
        415,
        "unsupported-media-type",
    )
    assert send(collector, encode_batch(GOOD), path="/v2/reports")[1] == "not-found"
    assert send(collector, b"", method="GET")[1] == "method-not-allowed"
    many = replace(GOOD, cohorts=b"\0\0" * 17, reports=bytes(17))
    assert send(collector, encode_batch(many))[1] == "too-many-reports"
    assert send(collector, b"", content_length=str(MAX_BODY + 1))[1] == "body-too-large"
    assert collector.batches == ()


def test_an_expired_collection_is_over(collector: MemoryCollector, clock: ManualClock) -> None:
    clock.forward(days=100)
    assert send(collector, encode_batch(GOOD))[1] == "expired-collection"


def test_a_key_is_asked_for(clock: ManualClock) -> None:
    with MemoryCollector([THEME], ingest_key="rpk_test", today=clock.today) as collector:
        assert send(collector, encode_batch(GOOD))[:2] == (401, "unauthorized")
        assert send(collector, encode_batch(GOOD), authorization="Bearer rpk_test")[0] == 204


@pytest.mark.parametrize(
    ("why", "code", "wait"),
    [
        (401, "unauthorized", "3600"),
        (403, "forbidden", "3600"),
        (404, "unknown-collection", "3600"),
        (429, "rate-limited", "10"),
        (503, "overloaded", "2"),
        ("store-full", "store-full", "60"),
        ("expired-collection", "expired-collection", None),
    ],
)
def test_it_refuses_until_it_is_told_to_accept(
    collector: MemoryCollector, why: int | str, code: str, wait: str | None
) -> None:
    collector.refuse(why)
    assert send(collector, encode_batch(GOOD)) == (PROBLEMS[code].status, code, wait)
    collector.accept()
    assert send(collector, encode_batch(GOOD))[0] == 204
    assert (collector.count("theme"), collector.refused) == (1, (code,))


def test_one_collection_can_be_refused_alone(clock: ManualClock) -> None:
    font = replace(THEME, name="font")
    with MemoryCollector([THEME, font], today=clock.today) as collector:
        collector.refuse(403, collection="font", retry_after=7)
        refused = send(collector, encode_batch(replace(GOOD, collection="font")))
        assert refused == (403, "forbidden", "7")
        assert send(collector, encode_batch(GOOD))[0] == 204


def test_an_unknown_refusal_is_a_mistake(collector: MemoryCollector) -> None:
    with pytest.raises(ParamsError, match="401, 403, 404, 429"):
        collector.refuse(418)
    with pytest.raises(ParamsError, match="got 'tired'"):
        collector.refuse("tired")


def test_collections_come_from_files_and_folders_as_for_a_client(tmp_path: Path) -> None:
    (tmp_path / "theme.toml").write_text(THEME.to_toml(), encoding="utf-8")
    for given in (tmp_path, tmp_path / "theme.toml", [str(tmp_path)]):
        with MemoryCollector(given) as collector:  # type: ignore[arg-type]
            assert collector.counts("theme").totals == [0] * 4


def test_it_can_be_closed_twice_and_read_afterwards(collector: MemoryCollector) -> None:
    send(collector, encode_batch(GOOD))
    collector.close()
    collector.close()
    assert collector.count("theme") == 1
    collector.clear()
    assert (collector.batches, collector.refused) == ((), ())


def test_a_real_client_reports_to_it_day_after_day(
    tmp_path: Path, collector: MemoryCollector, clock: ManualClock
) -> None:
    with Client.open(
        tmp_path / "c", [THEME], consent=True, upload_to=collector.url, clock=clock
    ) as client:
        for day in range(1, 3):
            client.report("theme", "dark")
            assert client.flush(LIMIT)
            assert collector.count("theme") == day
            clock.forward(days=1)
    assert [batch.period for batch in collector.batches] == ["2026-11-16", "2026-11-17"]


def test_a_real_client_tries_again_when_the_collector_is_back(
    tmp_path: Path, collector: MemoryCollector, clock: ManualClock
) -> None:
    with Client.open(
        tmp_path / "c", [THEME], consent=True, upload_to=collector.url, clock=clock
    ) as client:
        collector.refuse(503)
        client.report("theme", "dark")
        assert not client.flush(LIMIT)
        collector.accept()
        clock.forward(seconds=120)
        assert client.flush(LIMIT)
    assert (collector.count("theme"), collector.refused) == (1, ("overloaded",))
