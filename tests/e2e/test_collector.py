"""The collector over real sockets: what it takes, what it refuses, and how it says so."""

import gzip
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser

from rappor import Report
from rappor.collection import Collection, period_of
from rappor.collector.keys import new_key
from rappor.collector.openapi import document
from rappor.store import open_store
from rappor.wire import MAX_REPORTS, PROBLEMS, Batch, encode_batch, encode_batch_json
from support.collecting import (
    PARAMS,
    PATIENCE,
    Answer,
    Client,
    Process,
    batch,
    client_of,
    collector,
    day,
    gateway,
    stored,
    today,
    write_collections,
)
from support.command import rappor

COLLECTIONS = (
    Collection("homepage", 1, PARAMS, dimensions={"country": ("NZ", "AU")}),
    Collection("weekly", 2, PARAMS, period="week"),
    Collection("kept", 1, PARAMS, keep_reports_days=7),
    Collection("ended", 1, PARAMS, expires=today()),
)
NZ = (("country", "NZ"),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("collector")
    write_collections(place, *COLLECTIONS)
    return place


@pytest.fixture(scope="module")
def process(folder: Path, key: str) -> Iterator[Process]:
    del key  # it is in the file by now
    with collector(folder, "--keys", str(folder / "keys.json"), "--keys-optional") as running:
        yield running


@pytest.fixture(scope="module")
def key(folder: Path) -> str:
    """A gateway's."""
    return gateway(folder)[0]


@pytest.fixture
def client(process: Process) -> Iterator[Client]:
    with client_of(process) as each:
        yield each


def good(*reports: Report, **changed: object) -> Batch:
    return batch(reports or (Report(1, 5),), **({"dimensions": NZ} | changed))


# What is taken.


def test_a_batch_is_stored_before_it_is_acknowledged_and_counted_once(
    folder: Path, client: Client
) -> None:
    sent = good(Report(0, 1), Report(3, 6), period=day(-1))
    assert [client.send(sent).status for _ in range(3)] == [204, 204, 204]
    store = open_store(folder / "data", read_only=True)
    (counts,) = store.counts("homepage", periods=[day(-1)])
    store.close()
    assert counts.totals.tolist() == [1, 0, 0, 1]
    assert counts.ones[0].nonzero()[0].tolist() == [0]
    assert counts.ones[3].nonzero()[0].tolist() == [1, 2]
    assert counts.params_digest == PARAMS.digest


def test_json_and_gzip_are_understood(folder: Path, client: Client) -> None:
    period = day(-2)
    text = encode_batch_json(good(period=period))
    assert client.send(text, content_type="application/json; charset=utf-8").status == 204
    packed = gzip.compress(encode_batch(good(Report(1, 1), Report(1, 2), period=period)))
    assert client.send(packed, content_encoding="gzip").status == 204
    assert stored(folder)[period, "country=NZ"] == 3


def test_a_gateways_large_batch_in_chunks_is_taken(folder: Path, client: Client, key: str) -> None:
    sent = encode_batch(good(*[Report(i % 4, i % 2**16) for i in range(10_000)], period=day(-3)))
    client.connection.request(
        "POST",
        "/v1/reports",
        iter([sent[:7], sent[7:60_000], sent[60_000:]]),
        {"content-type": "application/vnd.rappor.batch", "authorization": f"Bearer {key}"},
        encode_chunked=True,
    )
    assert client.connection.getresponse().status == 204
    assert stored(folder)[day(-3), "country=NZ"] == 10_000


def test_a_week_and_kept_reports_are_stored(folder: Path, client: Client, key: str) -> None:
    week = period_of("week", today())
    assert client.send(batch(collection="weekly", version=2, period=week)).status == 204
    assert stored(folder, "weekly") == {(week, ""): 1}
    reports = [Report(2, bits) for bits in range(1, 101)]
    sent = batch(reports, collection="kept")
    assert client.send(sent, authorization=f"Bearer {key}").status == 204
    store = open_store(folder / "data", read_only=True)
    ((_, cohort, kept),) = store.reports("kept")
    store.close()
    found = [int.from_bytes(kept[i : i + 2], "little") for i in range(0, len(kept), 2)]
    assert (cohort, sorted(found)) == (2, list(range(1, 101)))
    assert found != list(range(1, 101))  # in another order than they came: chance 1 in 100!


# What is refused, and that nothing of it is stored.

BAD: dict[str, tuple[object, dict[str, str]]] = {
    "unknown-collection": (lambda: good(collection="nothing"), {}),
    "expired-collection": (lambda: batch(collection="ended"), {}),
    "wrong-dimensions": (lambda: batch(), {}),
    "wrong-period": (lambda: good(period="2026-W47"), {}),
    "period-closed": (lambda: good(period=day(-15)), {}),
    "wrong-params": (lambda: good(k=8), {}),
    "malformed-batch": (lambda: b"RPR1 and then nothing", {}),
    "bad-encoding": (lambda: encode_batch(good()), {"content_encoding": "gzip"}),
    "unsupported-encoding": (lambda: encode_batch(good()), {"content_encoding": "br"}),
    "unsupported-media-type": (lambda: encode_batch(good()), {"content_type": "text/plain"}),
    "body-too-large": (lambda: bytes(256 * 1024 + 1), {}),
    "too-many-reports": (lambda: good(*[Report(1, 5)] * (MAX_REPORTS + 1)), {}),
}


@pytest.mark.parametrize("code", BAD)
def test_what_is_wrong_is_refused_with_its_code(folder: Path, client: Client, code: str) -> None:
    make, headers = BAD[code]
    before = stored(folder)
    answer = client.send(make(), **headers)
    assert (answer.status, answer.code) == (PROBLEMS[code].status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json) <= {"type", "title", "status", "code", "retry", "detail"}
    assert stored(folder) == before
    assert undocumented(answer, client.get("/openapi.json").json) == ""


def undocumented(answer: Answer, openapi: dict[str, Any]) -> str:
    """What of an answer to a batch is not in the OpenAPI document; empty: nothing."""
    responses = openapi["paths"]["/v1/reports"]["post"]["responses"]
    if str(answer.status) not in responses:
        return "status"
    name = responses[str(answer.status)]["$ref"].rpartition("/")[2]
    content = openapi["components"]["responses"][name]["content"]
    return "" if answer.headers["content-type"] in content else "content type"


def test_an_undocumented_answer_would_be_found(client: Client) -> None:
    answer = client.send(good(collection="nothing"))
    assert undocumented(answer, document()) == ""
    planted = document()
    planted["components"]["responses"]["Status404"]["content"] = {}
    assert undocumented(answer, planted) == "content type"
    del planted["paths"]["/v1/reports"]["post"]["responses"]["404"]
    assert undocumented(answer, planted) == "status"


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 2},
        {"dimensions": (("country", "FR"),)},
        {"dimensions": (("country", "NZ"), ("os", "mac"))},
        {"period": day(3)},
        {"period": "2026-02-31"},
    ],
    ids=str,
)
def test_other_contradictions_are_refused_too(client: Client, changed: dict[str, object]) -> None:
    assert client.send(good(**changed)).status in (404, 422)


def test_the_date_of_the_command_is_todays(client: Client) -> None:
    """A day from the edges, in case that midnight passes (the edges: test_collector_clock.py)."""
    answers = [client.send(good(period=day(offset))).status for offset in (-15, -13, 0, 3)]
    assert answers == [422, 204, 204, 422]


def test_one_bad_report_refuses_the_whole_batch(folder: Path, client: Client) -> None:
    before = stored(folder)
    answer = client.send(good(Report(0, 1), Report(4, 1)))
    assert (answer.status, answer.code) == (422, "wrong-params")
    assert stored(folder) == before


def test_a_gzip_bomb_is_refused_and_a_second_member_too(process: Process, client: Client) -> None:
    bomb = gzip.compress(bytes(64 * 2**20), 9)
    assert len(bomb) < 256 * 1024
    before = process.peak_memory()
    answer = client.send(bomb, content_encoding="gzip")
    assert (answer.status, answer.code) == (413, "body-too-large")
    assert process.peak_memory() - before < 16 * 2**20
    two = gzip.compress(encode_batch(good())) + gzip.compress(b"more")
    assert client.send(two, content_encoding="gzip").code == "bad-encoding"


def test_unknown_addresses_and_methods_are_refused(client: Client) -> None:
    assert client.get("/v2/reports").code == "not-found"
    assert client.send(b"", path="/v1/noop").code == "not-found"
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "PATCH"):
        answer = client.send(None, "/v1/reports", method)
        assert (answer.code, answer.headers["allow"]) == ("method-not-allowed", "POST")
    answer = client.send(b"x", "/healthz")
    assert (answer.code, answer.headers["allow"]) == ("method-not-allowed", "GET, HEAD")


def test_what_is_no_http_gets_a_problem_as_well(process: Process) -> None:
    for sent, code in [
        (b"HELLO\r\n\r\n", b"bad-request"),
        (b"GET / HTTP/1.1\r\nBad Header\r\n\r\n", b"bad-request"),
        (b"GET /" + b"a" * 20_000, b"uri-too-long"),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 20_000, b"headers-too-large"),
    ]:
        with socket.create_connection(("127.0.0.1", process.port), PATIENCE) as raw:
            raw.sendall(sent)
            answer = b""
            while part := raw.recv(65536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 4")
        assert b'"code":"' + code + b'"' in answer
        assert b"connection: close" in answer


# The pages.


def test_health_readiness_and_metrics_say_what_happens(client: Client) -> None:
    assert client.get("/healthz").json == {"status": "ok"}
    assert client.get("/readyz").json == {"status": "ready"}
    token = bytes(range(16))
    before = metrics(client)
    client.send(good(token=token, period=day(-4)))
    client.send(good(token=token, period=day(-4)))
    client.send(good(collection="nothing"))
    after = metrics(client)
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown['rappor_batches_total{result="accepted"}'] == 1
    assert grown['rappor_batches_total{result="duplicate"}'] == 1
    assert grown["rappor_reports_total"] == 1
    assert grown['rappor_refused_total{code="unknown-collection"}'] == 1
    assert grown["rappor_commit_seconds_count"] == 2
    assert after["rappor_healthy"] == 1
    assert after["rappor_disk_free_bytes"] > 0
    assert after["rappor_store_bytes"] > 0


def metrics(client: Client) -> dict[str, float]:
    lines = client.get("/metrics").body.decode().splitlines()
    values = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in values}


def test_prometheus_own_parser_reads_the_metrics(client: Client) -> None:
    families = {
        family.name: family.type
        for family in parser.text_string_to_metric_families(client.get("/metrics").body.decode())
    }
    assert families["rappor_commit_seconds"] == "histogram"
    assert families["rappor_batches"] == "counter"
    assert families["rappor_queue_batches"] == "gauge"


def test_the_pages_need_no_other_host_and_no_script(client: Client) -> None:
    page = client.get("/docs")
    text = page.body.decode()
    assert "POST /v1/reports" in text
    assert all(code in text for code in BAD)
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    for path in ("/docs", "/openapi.json", "/healthz", "/metrics", "/nothing"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers
        assert "set-cookie" not in headers


def test_the_openapi_document_names_every_code(client: Client) -> None:
    document = client.get("/openapi.json").json
    codes = document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
    assert codes == list(PROBLEMS)
    example = document["components"]["schemas"]["Batch"]["example"]
    sent = json.dumps(example).encode()
    assert client.send(sent, content_type="application/json").code != "malformed-batch"


# Keys and rates.


def test_an_ingest_key_is_asked_for_where_there_are_some(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    one = new_key(keys, "app", ("homepage",))
    slow = new_key(keys, "slow-app", rate=0.001)
    assert one not in keys.read_text()
    write_collections(tmp_path, *(Collection(name, 1, PARAMS) for name in ("homepage", "other")))
    with collector(tmp_path, "--keys", str(keys)) as process, client_of(process) as client:
        assert client.send(batch()).code == "unauthorized"
        assert client.send(batch(), authorization="Bearer wrong").code == "unauthorized"
        assert client.send(batch(), authorization=f"Bearer {one}").status == 204
        other = batch(collection="other")
        assert client.send(other, authorization=f"Bearer {one}").code == "forbidden"
        assert client.send(batch(), authorization=f"bearer {slow}").status == 204
        answer = client.send(batch(), authorization=f"Bearer {slow}")
        assert answer.code == "rate-limited"
        assert 1 <= int(answer.headers["retry-after"]) <= 1000
        new = new_key(keys, "new-app")
        process.process.send_signal(signal.SIGHUP)
        process.wait_for_event("reloaded")
        assert client.send(batch(), authorization=f"Bearer {new}").status == 204
        said = "".join(process.text)
    assert not [key for key in (one, slow, new) if key in said]


def test_a_gateway_key_is_made_by_the_command_and_opens_large_batches(tmp_path: Path) -> None:
    keys = str(tmp_path / "keys.json")
    made = rappor("collect", "--keys", keys, "--new-key", "importer", "--gateway")
    key = made.stdout.strip()
    assert key.startswith("rpg_")
    assert "secret" in made.stderr
    assert key not in (tmp_path / "keys.json").read_text()
    large = [Report(i % 4, i) for i in range(MAX_REPORTS + 1)]
    with collector(tmp_path, "--keys", keys) as process, client_of(process) as client:
        assert client.send(batch(large)).code == "unauthorized"
        assert client.send(batch(large), authorization=f"Bearer {key}").status == 204
    options = ("--keys", keys, "--keys-optional")
    with collector(tmp_path, *options) as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        assert client.send(batch(large)).code == "too-many-reports"
        assert client.send(batch(), authorization="Bearer rpg_wrong").code == "unauthorized"
    assert stored(tmp_path) == {(day(), ""): MAX_REPORTS + 2}


def test_one_address_has_a_burst_counted_and_no_more_however_it_packs_reports(
    tmp_path: Path,
) -> None:
    """At a rate of nearly nothing: a burst is one report, or one batch of a client's size."""
    write_collections(tmp_path, *(Collection(name, 1, PARAMS) for name in ("homepage", "other")))
    full = batch([Report(i % 4, i) for i in range(MAX_REPORTS)])
    again = batch([Report(i % 4, i) for i in range(MAX_REPORTS)], collection="other")
    with collector(tmp_path, "--rate", "1e-9") as process:
        with client_of(process, source="127.0.7.1") as client:
            assert client.send(full).status == 204
        for number, sent in enumerate((again, batch(), batch(collection="other"))):
            packed = gzip.compress(encode_batch(sent))
            with client_of(process, source=f"127.0.7.{number}") as client:
                assert client.send(sent).code == "rate-limited"
                assert client.send(packed, content_encoding="gzip").code == "rate-limited"
                text = encode_batch_json(sent)
                answer = client.send(text, content_type="application/json")
                assert answer.code == "rate-limited"
                assert client.get("/docs").code == "rate-limited"
        with client_of(process, source="127.0.8.1") as client:
            assert client.send(batch()).status == 204  # a neighbourhood of its own
        with client_of(process) as client:
            assert client.get("/healthz").status == 200
            assert client.get("/metrics").status == 200
    assert stored(tmp_path) == {(day(), ""): MAX_REPORTS + 1}
    assert stored(tmp_path, "other") == {}


def test_one_prefix_is_slowed_down_and_others_are_not(tmp_path: Path) -> None:
    with collector(tmp_path, "--rate", "1", "--forwarded") as process, client_of(process) as client:
        answers = []
        while not answers or answers[-1].status == 204:
            last = len(answers) % 256
            answers.append(client.send(batch(), x_forwarded_for=f"198.51.100.7, 192.0.2.{last}"))
        assert len(answers) > 10
        assert answers[-1].code == "rate-limited"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert client.send(batch(), x_forwarded_for="192.0.3.1").status == 204
        assert client.send(batch(), x_forwarded_for="2001:db8::1").status == 204
