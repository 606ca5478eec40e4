"""Requests that arrive whole are taken without ASGI, and answered exactly as ASGI answers them."""

import asyncio
import datetime
import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from rappor import Params, Report
from rappor.collection import Collection, Registry
from rappor.collector.admission import Admission
from rappor.collector.app import App
from rappor.collector.http_protocol import GuardedProtocol, guarded
from rappor.collector.keys import Key, digest_of
from rappor.collector.metrics import Metrics
from rappor.collector.settings import CollectorSettings
from rappor.collector.writer import Outcome, Writer
from rappor.store import Fold
from rappor.wire import BINARY, JSON, Batch, encode_batch, encode_batch_json

DAY = datetime.date(2026, 11, 16)
PARAMS = Params(k=16, h=2, m=4, f=0.5, p=0.5, q=0.75)
PAGE = "https://app.example.org"  # an origin that may send
SECONDS = 60.0  # until a test that hangs is ended
STORED = b"HTTP/1.1 204 No Content\r\ndate: Mon, 16 Nov 2026 08:42:00 GMT\r\n\r\n"


def batch(number: int = 1, reports: int = 1, **changed: Any) -> Batch:
    fields: dict[str, Any] = {"collection": "c", "version": 1, "period": "2026-11-16", "k": 16}
    token = number.to_bytes(16, "big")
    return Batch.of([Report(1, 5)] * reports, token=token, **(fields | changed))


def post(body: bytes, *headers: str, path: str = "/v1/reports", version: str = "1.1") -> bytes:
    named = [f"content-type: {BINARY}"] if not any("content-type" in h for h in headers) else []
    lines = [f"POST {path} HTTP/{version}", "host: a", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *named, *headers, "", ""]).encode() + body


class Memory:
    """A store in memory that a test may stop."""

    def __init__(self) -> None:
        self.tokens: set[bytes] = set()
        self.error: Exception | None = None

    def add(
        self, tokens: list[bytes], fold: Callable[[list[int]], list[Fold]], day: datetime.date
    ) -> list[bool]:
        if self.error is not None:
            raise self.error
        new = [token not in self.tokens for token in tokens]
        list(fold([index for index, is_new in enumerate(new) if is_new]))
        self.tokens.update(tokens)
        return new


class HeldWriter(Writer):
    """Answers when the test says so."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, clock=float)
        self.held: list[Callable[[], None]] = []
        self.holding = False

    def _answer(self, group: Any, outcome: Outcome) -> None:
        if self.holding:
            self.held.append(lambda: super(HeldWriter, self)._answer(group, outcome))
        else:
            super()._answer(group, outcome)


class Peer(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 4000) if name == "peername" else default

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Bench:
    """One connection to an application with its writer, without sockets."""

    def __init__(self, **settings: Any) -> None:
        made = CollectorSettings("data", "collections", **settings)
        self.metrics, self.state, self.peer = Metrics(), ServerState(), Peer()
        self.store = Memory()
        self.writer = HeldWriter(self.store, made, self.metrics, lambda: DAY, lambda: None)
        self.writer.start(asyncio.get_running_loop())
        registry = Registry([Collection("c", 1, PARAMS)])
        keys = (
            {digest_of(b"known"): Key("app", digest_of(b"known"), ("other",))}
            if made.keys
            else None
        )
        self.app = App(
            made, Admission(registry, lambda: DAY), self.writer, self.metrics, keys, clock=float
        )
        config = uvicorn.Config(
            self.app,
            interface="asgi3",
            log_config=None,
            ws="none",
            server_header=False,
        )
        made_class = guarded(self.metrics, made, self.app.take, self.app.cors)
        self.protocol: GuardedProtocol = made_class(config, self.state, {})
        self.protocol.connection_made(self.peer)
        self.state.default_headers = [(b"date", b"Mon, 16 Nov 2026 08:42:00 GMT")]
        self.tasks = 0

    def receive(self, *parts: bytes) -> None:
        for part in parts:
            self.protocol.data_received(part)
            self.tasks = max(self.tasks, len(self.state.tasks))

    async def answers(self, *parts: bytes, count: int = 1) -> bytes:
        """What is written when these parts have arrived and `count` requests are answered."""
        self.receive(*parts)
        await until(lambda: self.state.total_requests >= count or self.peer.closed)
        return self.peer.written

    def end(self) -> None:
        self.protocol.connection_lost(None)
        assert self.writer.stop(SECONDS)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


def run(test: Callable[[Bench], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        bench = Bench(**settings)
        try:
            await test(bench)
        finally:
            bench.end()

    asyncio.run(main())


def chunked(body: bytes, *headers: str) -> bytes:
    """A request whose body comes in chunks of one byte."""
    head = post(b"", "transfer-encoding: chunked", *headers).replace(b"content-length: 0\r\n", b"")
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    return head + chunks + b"0\r\n\r\n"


GOOD = encode_batch(batch())
REQUESTS = {
    "stored": post(GOOD),
    "stored, last": post(GOOD, "connection: close"),
    "stored, of a page": post(GOOD, f"origin: {PAGE}"),
    "refused, of a page": post(b"nonsense", f"origin: {PAGE}", "connection: close"),
    "stored, HTTP/1.0": post(GOOD, version="1.0"),
    "JSON": post(encode_batch_json(batch()), f"content-type: {JSON}"),
    "gzip": post(gzip.compress(GOOD), "content-encoding: gzip"),
    "chunked": chunked(GOOD),
    "not gzip": post(GOOD, "content-encoding: gzip"),
    "no batch": post(b"nonsense"),
    "cut": post(GOOD[:-1]),
    "other type": post(GOOD, "content-type: text/plain"),
    "unknown": post(encode_batch(batch(collection="d"))),
    "closed": post(encode_batch(batch(period="2026-10-01"))),
    "many": post(encode_batch(batch(reports=17))),
    "empty": post(b"").replace(b"content-length: 0\r\n", b""),
    "query": post(GOOD, path="/v1/reports?x=1"),
    "refused, last": post(b"nonsense", "connection: close"),
    "other page": post(GOOD, path="/v1/other"),
}


@pytest.mark.parametrize("origins", [(), (PAGE,)], ids=["no pages", "pages"])
@pytest.mark.parametrize("request_bytes", REQUESTS.values(), ids=REQUESTS)
def test_whole_or_in_parts_a_request_gets_the_same_answer(
    request_bytes: bytes, origins: tuple[str, ...]
) -> None:
    head = request_bytes.index(b"\r\n\r\n") + 4
    cuts = [[request_bytes], [request_bytes[: head - 1], request_bytes[head - 1 :]]]
    if len(request_bytes) > head:
        cuts.append([request_bytes[: head + 3], request_bytes[head + 3 :]])
    found = []

    for parts in cuts:

        async def one(bench: Bench, parts: list[bytes] = parts) -> None:
            written = await bench.answers(*parts)
            found.append((written, bench.peer.closed, sorted(bench.store.tokens)))

        run(one, allow_origins=origins)
    assert found[0][0]
    assert found == [found[0]] * len(cuts)


def test_a_page_may_read_the_answer_to_a_whole_report() -> None:
    async def one(bench: Bench) -> None:
        allowed = await bench.answers(post(GOOD, f"origin: {PAGE}"))
        assert b"\r\naccess-control-allow-origin: " + PAGE.encode() in allowed
        assert bench.tasks == 0
        other = await bench.answers(post(GOOD, "origin: https://other.example"), count=2)
        assert b"access-control" not in other.removeprefix(allowed)

    run(one, allow_origins=(PAGE,))


def test_the_date_of_an_acknowledgement_is_that_of_the_server() -> None:
    async def one(bench: Bench) -> None:
        await bench.answers(post(GOOD))
        bench.state.default_headers = [(b"date", b"Tue")]
        await bench.answers(post(GOOD), count=2)
        assert bench.peer.written == STORED + b"HTTP/1.1 204 No Content\r\ndate: Tue\r\n\r\n"

    run(one)


def test_a_whole_report_needs_no_task_and_one_in_parts_does() -> None:
    async def whole(bench: Bench) -> None:
        assert await bench.answers(post(GOOD)) == STORED
        assert bench.tasks == 0

    async def parts(bench: Bench) -> None:
        request = post(GOOD)
        assert await bench.answers(request[:-1], request[-1:]) == STORED
        assert bench.tasks == 1

    run(whole)
    run(parts)


def test_a_connection_may_be_idle_for_fifteen_seconds_after_a_report() -> None:
    async def one(bench: Bench) -> None:
        bench.writer.holding = True
        bench.receive(post(GOOD))
        await until(lambda: bench.writer.held)
        bench.protocol.check_time(bench.protocol.since + 100.0)
        assert not bench.peer.closed  # its report is not on disk yet
        bench.writer.held.pop()()
        answered = bench.protocol.since
        bench.receive(b"\r\n")  # begins no request
        bench.protocol.check_time(answered + 14.9)
        assert not bench.peer.closed
        bench.protocol.check_time(answered + 15.1)
        assert bench.peer.closed
        assert bench.peer.written == STORED

    run(one)


def test_a_request_that_begins_before_the_answer_has_the_time_of_its_headers() -> None:
    async def one(bench: Bench) -> None:
        bench.writer.holding = True
        bench.receive(post(GOOD))
        await until(lambda: bench.writer.held)
        bench.receive(b"POST /v1")
        begun = bench.protocol.since
        bench.writer.held.pop()()
        bench.protocol.check_time(begun + 4.9)
        assert not bench.peer.closed
        bench.protocol.check_time(begun + 5.1)
        assert bench.peer.closed
        assert bench.peer.written.startswith(STORED + b"HTTP/1.1 408 ")

    run(one)


def test_nothing_is_said_before_the_batch_is_on_disk() -> None:
    async def one(bench: Bench) -> None:
        bench.writer.holding = True
        bench.receive(post(GOOD))
        await until(lambda: bench.writer.held)
        assert bench.store.tokens
        assert bench.peer.written == b""
        bench.writer.held.pop()()
        assert bench.peer.written == STORED
        assert not bench.peer.closed

    run(one)


def test_a_store_that_fails_is_said_and_counted() -> None:
    async def one(bench: Bench) -> None:
        bench.store.error = ValueError("bug")
        written = await bench.answers(post(GOOD))
        assert written.startswith(b"HTTP/1.1 500 ")
        assert bench.metrics.total("rappor_refused_total", code="internal-error") == 1

    run(one)


def test_a_bug_while_a_batch_is_taken_is_answered_and_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def one(bench: Bench) -> None:
        def broken(_: bytes) -> None:
            raise RuntimeError("bug")

        monkeypatch.setattr(bench.app.admission, "admit_bytes", broken)
        assert (await bench.answers(post(GOOD))).startswith(b"HTTP/1.1 500 ")

    run(one)


def test_a_sender_that_left_gets_no_answer_and_its_batch_counts() -> None:
    async def one(bench: Bench) -> None:
        bench.writer.holding = True
        bench.receive(post(GOOD))
        await until(lambda: bench.writer.held)
        bench.peer.closed = True
        bench.writer.held.pop()()  # Peer.write would object
        assert bench.peer.written == b""
        assert bench.metrics.total("rappor_batches_total", result="accepted") == 1

    run(one)


def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    async def one(bench: Bench) -> None:
        bodies = [encode_batch(batch(1)), b"nonsense", encode_batch(batch(2))]
        written = await bench.answers(b"".join(map(post, bodies)), count=3)
        assert [part[:3] for part in written.split(b"HTTP/1.1 ")[1:]] == [b"204", b"400", b"204"]
        assert len(bench.store.tokens) == 2

    run(one)


def test_who_expects_to_be_asked_for_the_body_is_left_to_asgi() -> None:
    async def one(bench: Bench) -> None:
        request = post(GOOD, "expect: 100-continue")
        written = await bench.answers(request)
        assert written.endswith(STORED)
        assert bench.tasks == 1

    run(one)


def test_a_connection_that_is_to_end_ends_after_its_answer() -> None:
    async def one(bench: Bench) -> None:
        bench.writer.holding = True
        bench.receive(post(GOOD))
        await until(lambda: bench.writer.held)
        bench.protocol.shutdown()  # the server stops
        assert not bench.peer.closed
        bench.writer.held.pop()()
        assert bench.peer.written == STORED[:-2] + b"connection: close\r\n\r\n"
        assert bench.peer.closed

    run(one)


def test_rate_limits_and_keys_hold(tmp_path: Path) -> None:
    async def limited(bench: Bench) -> None:
        bodies = [encode_batch(batch(number)) for number in range(1, 4)]
        for count, body in enumerate(bodies, 1):
            await bench.answers(post(body), count=count)
        statuses = [part[:3] for part in bench.peer.written.split(b"HTTP/1.1 ")[1:]]
        assert statuses == [b"204", b"204", b"429"]

    async def unknown(bench: Bench) -> None:
        assert (await bench.answers(post(GOOD))).startswith(b"HTTP/1.1 401 ")
        other = post(GOOD, "authorization: Bearer known")
        assert b"HTTP/1.1 403 " in await bench.answers(other, count=2)
        assert not bench.store.tokens

    run(limited, rate=0.2)
    run(unknown, keys=tmp_path / "keys.json")


def test_a_key_that_was_used_and_then_revoked_is_unknown(tmp_path: Path) -> None:
    async def one(bench: Bench) -> None:
        request = post(GOOD, "authorization: Bearer known")
        for count in (1, 2):
            await bench.answers(request, count=count)
        assert bench.peer.written.count(b"HTTP/1.1 403 ") == 2
        bench.app.keys = {}  # as a reload does
        assert b"HTTP/1.1 401 " in await bench.answers(request, count=3)

    run(one, keys=tmp_path / "keys.json")
