"""The JavaScript client in Node.js keeps its promises in hostile circumstances."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rappor import Params
from rappor.client import Client
from rappor.client.folder import Folder
from rappor.mechanism import Field, View
from rappor.wire import problem_json
from support.client import MONDAY, Collector, FakeClock, recorder_on
from support.javascript import PACKAGE, node
from support.javascript_host import Host, homepage, hosting, planted
from support.markers import MARK, traces, written
from support.waiting import wait_for

ONE_BIT = Params(k=1, h=1, m=1, f=0.5, p=0.25, q=0.75)
ECHO = Params(k=64, h=2, m=4, f=0.5, p=0.0, q=1.0)  # a report is B' itself


@pytest.fixture
def host() -> Iterator[Host]:
    with hosting() as made:
        yield made


def test_names_of_javascript_itself_are_names_like_others(tmp_path: Path) -> None:
    """Every object inherits `constructor`: limits of that name must hold, over restarts too."""
    once = homepage(name="constructor", one_time=True, reports_per_period=1, params=ECHO)
    for number in range(2):
        with hosting() as host:
            host.open(tmp_path, once)
            assert len(host.reported(f"value {number}", "constructor")) == 1 - number
            assert host.call("status")["collections"][0]["reports"] == 1
            host.call("close")


def test_a_group_with_a_name_of_javascript_itself_has_a_limit(host: Host, tmp_path: Path) -> None:
    narrow = homepage(name="narrow", group="constructor", max_epsilon=6.0)
    wide = homepage(name="wide", group="constructor", max_epsilon=50.0)
    host.open(tmp_path, narrow, wide)
    for number in range(3):
        host.reported(f"value {number}", "wide")
    status = host.call("status")
    assert status["calls"] == {"made": 1, "the limit on values or ε is reached": 2}
    assert [each["maxEpsilon"] for each in status["collections"]] == [6.0, 6.0]
    assert 0 < status["collections"][1]["epsilonGroup"] <= 6
    assert host.call("forget")["epsilon"] == status["epsilon"]


def test_who_says_no_by_the_environment_cannot_be_opted_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosting() as host:
        host.open(tmp_path)
        assert len(host.reported()) == 1
        assert host.call("optOut") is True
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    for consent in (True, False):
        with hosting(keep_environment=True) as host:
            host.open(tmp_path, consent=consent)
            assert host.call("optIn") is False
            assert host.reported() == []
        with Client.open(tmp_path, [homepage()], consent=consent) as client:
            assert client.opt_in() is False


def test_what_an_application_changes_after_opening_changes_nothing(tmp_path: Path) -> None:
    """The host wipes its account secret and empties the lists of the definition."""
    secret, clock = bytes(range(32)), FakeClock(MONDAY)
    collection = homepage(
        params=ECHO, dimensions={"country": ("NZ", "DE")}, schedule=(("2020-01-01", 0.0, 1.0),)
    )
    with hosting() as host:
        host.open(
            tmp_path / "javascript",
            collection,
            collections=[json.loads(collection.to_client_json())],
            accountSecret={"hex": secret.hex()},
            dimensions={"country": "NZ"},
        )
        (batch,) = host.reported()
    assert batch.dimensions == (("country", "NZ"),)
    folder = Folder(tmp_path / "python")
    recorder = recorder_on(folder, clock, collection, account_secret=secret)
    recorder.record("homepage", "example.com", clock.time())
    with Client.open(
        folder.path, [collection], consent=True, account_secret=secret, clock=clock
    ) as client:
        (waiting,) = client.preview().waiting
    assert int(waiting.bits, 2).to_bytes(8, "little") == batch.reports


def test_a_transport_that_rejects_with_nothing_is_not_asked_again_at_once(
    host: Host, tmp_path: Path
) -> None:
    host.call("answer", *[{"rejects": True}] * 5)
    host.open(tmp_path)
    assert len(host.reported()) == 1
    status = host.call("status")
    assert status["problem"] is None
    assert status["nextAttempt"] > 0
    assert host.reported("another") == []


def test_calls_in_a_row_do_not_put_off_an_upload(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    host.call("reportEvery", 5, "no such collection")
    host.call("report", "homepage", "example.com")
    assert wait_for(lambda: host.call("sent"), "an upload", pause=0.5)


@contextlib.contextmanager
def answering() -> Iterator[Collector]:
    collector = Collector()
    try:
        yield collector
    finally:
        collector.close()


DATE = "Fri, 01 Jan 2100 00:00:00 GMT"
PROBLEM = "urn:rappor:problem:"
ODD_CODES: list[Any] = ["x" * 10**6, {"a": 1}, ["B"], 7, None, "__proto__", "<b>", ""]


def test_a_collector_cannot_write_into_the_status(host: Host, tmp_path: Path) -> None:
    """Only codes of the protocol are kept of an answer; everything else is its HTTP status."""
    codes = list(ODD_CODES)

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"type": f"{PROBLEM}x", "code": codes.pop(0), "retry": False})
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(422)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    collection = homepage(reports_per_period=20, max_values=20)
    try:
        host.open(tmp_path, collection, uploadTo=f"http://127.0.0.1:{server.server_port}")
        for number in range(len(ODD_CODES)):
            host.call("report", "homepage", f"v{number}")
        host.call("flush", 60_000)
        status = host.call("status")
    finally:
        server.shutdown()
        server.server_close()
    assert status["batches"] == {"dropped: refused (422)": len(ODD_CODES)}
    assert status["upload"] == "422"


LONG = problem_json("unknown-collection")[:-1] + b"," + b" " * 2**16 + b'"x":1}'


@pytest.mark.parametrize(
    ("status", "headers", "body", "upload", "waits", "waiting"),
    [
        (503, {"Retry-After": "5000"}, problem_json("overloaded"), "overloaded", (4990, 5510), 1),
        (503, {"Retry-After": "0"}, problem_json("overloaded"), "overloaded", (10, 46), 1),
        (503, {"Retry-After": "soon"}, b"", "503", (10, 46), 1),
        (
            429,
            {"Retry-After": DATE},
            problem_json("rate-limited"),
            "rate-limited",
            (86_000, 86_400),
            1,
        ),
        (307, {"Location": "/elsewhere"}, b"", "no answer (TypeError)", (10, 46), 1),
        (404, {}, b"<html>", "404", (10, 46), 1),
        (403, {}, b"{", "403", (10, 46), 1),
        (404, {}, problem_json("unknown-collection"), "unknown-collection", (0, 0), 1),
        (404, {}, LONG, "404", (10, 46), 1),
        (400, {}, b"<html>", "400", (0, 0), 0),
        (410, {}, b"", "410", (0, 0), 0),
        (413, {}, b"[]", "413", (0, 0), 0),
        (422, {}, problem_json("period-closed"), "period-closed", (0, 0), 0),
    ],
)
def test_every_answer_decides_whether_and_when_a_report_is_tried_again(
    host: Host,
    tmp_path: Path,
    status: int,
    headers: dict[str, str],
    body: bytes,
    upload: str,
    waits: tuple[float, float],
    waiting: int,
) -> None:
    with answering() as collector:
        collector.status, collector.answer_headers, collector.body = status, headers, body
        host.open(tmp_path, uploadTo=collector.url)
        host.call("report", "homepage", "example.com")
        assert host.call("flush", 60_000) is (waiting == 0)
        found = host.call("status")
        assert (found["upload"], found["waiting"]) == (upload, waiting)
        assert waits[0] <= found["nextAttempt"] <= waits[1]
        assert len(collector.headers) == 1
        assert host.call("flush", 60_000) is (waiting == 0)
        assert len(collector.headers) == 1  # it is not time yet


def test_a_collector_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    sources = planted(tmp_path, "sender.js", "const TIMEOUT = 10000;", "const TIMEOUT = 500;")
    with hosting(sources) as host, answering() as collector:
        collector.release.clear()
        host.open(tmp_path / "client", uploadTo=collector.url)
        host.call("report", "homepage", "example.com")
        assert host.call("flush", 60_000) is False
        status = host.call("status")
    assert (status["waiting"], status["upload"]) == (1, "no answer (AbortError)")
    assert status["nextAttempt"] > 0


def test_no_value_is_in_a_file_a_message_or_the_status(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "client"
    with hosting(log=log) as host:
        host.open(
            folder,
            homepage(max_values=9),
            homepage(
                name="theme",
                kind="category",
                categories=("a",),
                params=Params(1, 1, 1, 0.5, 0.25, 0.75),
            ),
            homepage(name="age", kind="boolean", params=Params(1, 1, 1, 0.5, 0.25, 0.75)),
        )
        said = []
        for name in ("homepage", "theme", "age", "nothing"):
            for value in (MARK, {"value": MARK}, [MARK], f"{MARK}\ud800", MARK * 10_000):
                host.call("report", name, value)
        host.call("report", MARK, MARK)
        host.call("flush", 60_000)
        said += [host.call("status"), host.call("preview")]
        shutil.rmtree(folder)
        folder.write_text("in the way")
        host.call("report", "homepage", f"{MARK} again")
        host.call("flush", 60_000)
        said.append(host.call("status"))
        assert said[-1]["problem"] == "directory-unusable"
        folder.unlink()
        host.call("report", "homepage", f"{MARK} once more")
        host.call("flush", 60_000)
        said.append(host.call("status"))
    everything = {"said": json.dumps(said).encode(), **dict(written(tmp_path))}
    assert b"directory-unusable" in everything["log"]
    assert [(name, found) for name, data in everything.items() if (found := traces(data))] == []


def test_forgetting_deletes_what_a_crash_left_of_the_secret(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    host.reported()
    secret = (tmp_path / "secret").read_bytes()
    (tmp_path / ".new-1-0").write_bytes(secret)
    (tmp_path / "sent" / ".new-1-1").write_bytes(secret)
    host.call("forget")
    assert not any(secret in data for _, data in written(tmp_path))


HUGE = "x" * 2**14


def test_a_value_that_would_hold_up_the_page_is_refused(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    assert len(host.reported(HUGE)) == 1
    assert host.reported(f"{HUGE}x") == []
    assert host.call("status")["calls"] == {"made": 1, "value refused": 1}


def test_bytes_that_the_application_uses_again_are_reported_as_they_were(
    host: Host, tmp_path: Path
) -> None:
    """Node.js reads into one Buffer again and again, and `slice` of a Buffer is not a copy."""
    host.open(tmp_path, homepage(params=ECHO))
    first = host.reported("example.com")
    host.call("reportAndReuse", "homepage", "example.com", "EXAMPLE.ORG")
    host.call("flush", 60_000)
    (again,) = host.sent()
    assert again.reports == first[0].reports
    assert host.call("status")["collections"][0]["values"] == 1


def test_an_object_that_the_application_uses_again_is_reported_as_it_was(
    host: Host, tmp_path: Path
) -> None:
    """Also one of a class of its own; else a value could be charged and another one reported."""
    fields = (Field("page", "string"), Field("beta", "boolean"))
    views = (View(("page", "beta"), 1.0),)
    host.open(tmp_path, homepage(kind="tuple", fields=fields, views=views, params=ECHO))
    first = host.reported({"page": "a", "beta": True})
    host.call("reportAndReuse", "homepage", {"page": "a", "beta": True}, {"page": "b"})
    host.call("flush", 60_000)
    (again,) = host.sent()
    assert again.reports == first[0].reports
    assert host.call("status")["collections"][0]["values"] == 1


def test_a_hash_function_that_fails_is_no_fault_of_the_storage(tmp_path: Path) -> None:
    """Both fail with a DOMException in a browser; only the storage knows which are its own."""
    sources = planted(
        tmp_path / "planted",
        "entropy.js",
        'await crypto.subtle.sign("HMAC", key, copy)',
        'await Promise.reject(new DOMException("", "OperationError"))',
    )
    with hosting(sources) as host:
        host.open(tmp_path / "client")
        assert host.reported() == []
        assert host.call("status")["problem"] == "internal"


UNCHECKED_PARTS = """
import { createEncoder, makeEncoder, newSecret } from "./src/encoder.js";
const params = { k: 16, h: 1, m: 4, f: 0.5, p: 0.25, q: 0.75 };
const parts = { params, collection: "c", root: new Uint8Array(64), digest: new Uint8Array(32) };
const codeOf = async (action) => {
  try { await action(); return null; } catch (error) { return error.code ?? error.name; }
};
const create = (shape) => createEncoder({ params, secret: newSecret(), collection: "c", ...shape });
const short = (count) => new Uint8Array(count - 1).fill(255);
const codes = [
  await codeOf(() => makeEncoder({ ...parts, cohort: 99 })),
  await codeOf(() => makeEncoder({ ...parts, cohort: 1, entropy: short }).encode("x")),
  await codeOf(() => create({ kind: "string", fields: [null, null] })),
  await codeOf(() => create({ kind: "tuple", fields: [null, null], views: [] })),
  await codeOf(() => create({ views: [null] })),
];
crypto.getRandomValues = (data) => { data.fill(7); };  // as some replacements do
console.log(JSON.stringify([...codes, newSecret().length]));
"""


def test_parts_that_would_leave_bits_without_noise_are_refused() -> None:
    command = [node(), "--input-type=module", "--eval", UNCHECKED_PARTS]
    done = subprocess.run(command, cwd=PACKAGE, check=True, stdout=subprocess.PIPE, text=True)
    assert json.loads(done.stdout) == ["params", "entropy", "params", "params", "params", 32]


def test_outcomes_are_codes_which_a_bundle_keeps() -> None:
    """tools/build.js leaves sentences out: what is counted or compared must not be one."""
    for file in (PACKAGE / "src").glob("*.js"):
        assert "count(sentence" not in file.read_text("utf-8"), file.name


def test_no_name_that_an_application_knows_is_shortened_in_a_bundle() -> None:
    """tools/build.js shortens names of properties: those of options and results must stay."""
    listed = re.findall(r'^ +"([a-zA-Z|]+)", //', (PACKAGE / "tools/build.js").read_text(), re.M)
    shortened = "|".join(listed).split("|")
    types = "".join(file.read_text("utf-8") for file in (PACKAGE / "types").glob("*.ts"))
    known = set(re.findall(r"(\w+)\??[:(]", types))
    assert len(shortened) > 20
    assert "reports_per_period" in known
    assert known.isdisjoint(shortened)
