"""D1: whatever arrives, the collector answers with a status of its list and does not fall over."""

import asyncio
import contextlib
import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rappor.collection import Collection, Registry
from rappor.collector.admission import Admission
from rappor.collector.app import App
from rappor.collector.keys import read_keys
from rappor.collector.metrics import Metrics
from rappor.collector.quota import RateLimit, prefix
from rappor.collector.refusal import Refusal
from rappor.collector.request import Fields, fields_of, parse
from rappor.collector.settings import CollectorSettings
from rappor.errors import ParamsError, WireError
from rappor.wire import BINARY, JSON, PROBLEMS, Batch, encode_batch, encode_batch_json
from support.collecting import PARAMS, PATIENCE, Process, batch, collector, today

TYPES = st.sampled_from([BINARY.encode(), JSON.encode(), b"Application/JSON ; x=y", b"text/x", b""])
ENCODINGS = st.sampled_from([b"", b"gzip", b"GZIP", b"identity", b"br"]) | st.binary(max_size=8)
STATUSES = {204, *(problem.status for problem in PROBLEMS.values())}


def fuzzed(data: bytes) -> st.SearchStrategy[bytes]:
    """A message with one piece of it replaced."""
    place = st.integers(0, len(data))
    return st.builds(
        lambda start, end, new: data[: min(start, end)] + new + data[max(start, end) :],
        place,
        place,
        st.binary(max_size=12),
    )


GOOD = batch(token=bytes(16))
MESSAGES = st.one_of(
    st.binary(max_size=200),
    fuzzed(encode_batch(GOOD)),
    fuzzed(encode_batch_json(GOOD)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    ).map(lambda each: json.dumps(each).encode()),
)


@pytest.mark.slow
@given(content_type=TYPES, encoding=ENCODINGS, message=MESSAGES)
@example(JSON.encode(), b"", b"[" * 100_000)
@example(JSON.encode(), b"gzip", gzip.compress(b"9" * 10**6))
def test_a_body_is_a_batch_or_refused(content_type: bytes, encoding: bytes, message: bytes) -> None:
    try:
        found = parse(Fields(content_type, encoding, -1, b"", b""), message)
    except (Refusal, WireError):
        return
    assert isinstance(found, Batch)


@pytest.mark.slow
@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=40)), max_size=8))
def test_other_header_fields_mean_nothing(headers: list[tuple[bytes, bytes]]) -> None:
    known = {b"content-type", b"content-encoding", b"authorization", b"x-forwarded-for"}
    strange = [each for each in headers if each[0] not in {*known, b"content-length"}]
    assert fields_of(strange) == Fields(b"", b"", -1, b"", b"")


@given(st.text(max_size=60))
@example("1.2.3.4%eth0")
@example("::ffff:1.2.3.4")
def test_any_address_can_be_counted(address: str) -> None:
    assert RateLimit(1.0).charge(address, 0.0) == 0
    assert prefix(address) is None or len(prefix(address) or b"") in (3, 7)


@pytest.mark.slow
@given(st.binary(max_size=200) | st.just(b'{"keys": [{"name": "a", "sha256": 3}]}'))
def test_a_file_of_keys_is_read_or_refused(tmp_path_factory: Any, data: bytes) -> None:
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    file.write_bytes(data)
    with contextlib.suppress(ParamsError):
        assert isinstance(read_keys(file), dict)


class Stored:
    """A writer that stores at once, in nothing."""

    alive = healthy = True
    full = stopping = busy = unreachable = False
    batches = bytes = 0

    def submit(self, *_: object) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


def ask(app: App, method: str, path: str, headers: list[Any], parts: list[bytes]) -> int:
    """One request to the application; the status of its answer."""
    sent: list[Any] = []
    waiting = [
        {"type": "http.request", "body": part, "more_body": at + 1 < len(parts)}
        for at, part in enumerate(parts)
    ]

    async def receive() -> Any:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    asyncio.run(app(scope | {"client": ("127.0.0.1", 1)}, receive, send))
    return sent[0]["status"] if sent else 0


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    settings = CollectorSettings(data=tmp_path_factory.mktemp("data"), collections=".")
    registry = Registry([Collection("homepage", 1, PARAMS)])
    return App(settings, Admission(registry, today), Stored(), Metrics())  # type: ignore[arg-type]


@pytest.mark.slow
@given(
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT", "BREW"]),
    path=st.sampled_from(["/v1/reports", "/healthz", "/docs", "/", "/v1/noop"]) | st.text(),
    content_type=TYPES,
    encoding=ENCODINGS,
    message=MESSAGES,
    cut=st.integers(0, 50),
)
def test_every_request_gets_an_answer_of_the_list(
    app: App,
    method: str,
    path: str,
    content_type: bytes,
    encoding: bytes,
    message: bytes,
    cut: int,
) -> None:
    headers = [(b"content-type", content_type), (b"content-encoding", encoding)]
    status = ask(app, method, path, headers, [message[:cut], message[cut:]])
    assert status in STATUSES | {200}
    assert status != 500


def test_a_good_batch_passes_the_same_way(app: App) -> None:
    headers = [(b"content-type", BINARY.encode())]
    assert ask(app, "POST", "/v1/reports", headers, [encode_batch(batch())]) == 204


# Over real sockets.


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with collector(tmp_path_factory.mktemp("fuzzed")) as running:
        yield running


LINES = st.sampled_from(
    [
        b"GET /healthz HTTP/1.1\r\n",
        b"POST /v1/reports HTTP/1.1\r\n",
        b"Host: a\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: -1\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Upgrade: websocket\r\nConnection: Upgrade\r\n",
        b"\r\n",
        b"5\r\nabcde\r\n",
        b"0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]
)


@pytest.mark.slow
@given(st.lists(LINES | st.binary(max_size=30), max_size=12).map(b"".join))
def test_whatever_comes_over_a_socket_it_goes_on(process: Process, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", process.port), PATIENCE) as raw:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        try:
            said = raw.recv(65536)
        except ConnectionResetError:
            said = b""
    assert b"HTTP/1.1 500" not in said
    with socket.create_connection(("127.0.0.1", process.port), PATIENCE) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert raw.recv(65536).startswith(b"HTTP/1.1 200")
    assert process.process.poll() is None
    assert "request-failed" not in process.events()
