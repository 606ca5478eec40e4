"""One address has at most rate x time + burst reports counted, however they are packed.

The application is the real one, over a real store; requests come in as uvicorn hands them over, and
the clock is the test's.
"""

import asyncio
import datetime
import gzip
import os
import random
from pathlib import Path
from typing import Any

import pytest

from rappor import Params, Report
from rappor.collection import Collection, Registry
from rappor.collector.admission import Admission
from rappor.collector.app import App
from rappor.collector.keys import Key, digest_of
from rappor.collector.metrics import Metrics
from rappor.collector.process import save_definitions
from rappor.collector.quota import BURST_SECONDS, ROTATE_SECONDS
from rappor.collector.settings import CollectorSettings
from rappor.collector.writer import Writer
from rappor.store import open_store
from rappor.wire import BINARY, JSON, MAX_REPORTS, Batch, encode_batch, encode_batch_json

DAY = datetime.date(2026, 11, 16)
PARAMS = Params(k=16, h=2, m=4, f=0.5, p=0.5, q=0.75)
NAMES = ("one", "two", "three")
RATE = CollectorSettings(data="", collections="").rate
SECONDS = 300.0  # until a test that hangs is ended


class Bench:
    """A collector without sockets."""

    def __init__(self, folder: Path, keys: dict[str, Key] | None = None, **settings: Any) -> None:
        registry = Registry(Collection(name, 1, PARAMS) for name in NAMES)
        self.store = open_store(folder / "data")
        save_definitions(self.store, registry)
        made = CollectorSettings(data=folder / "data", collections=folder, **settings)
        self.now = 0.0
        self.writer = Writer(self.store, made, Metrics(), lambda: DAY, lambda: None, clock=float)
        self.writer.start(asyncio.get_running_loop())
        admission = Admission(registry, lambda: DAY)
        self.app = App(made, admission, self.writer, self.writer._metrics, keys, lambda: self.now)

    async def send(
        self, body: bytes, address: str, headers: dict[str, str], path: str = "/v1/reports"
    ) -> tuple[int, dict[bytes, bytes]]:
        """One request from an address; the answer's status and headers."""
        said: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "path": path,
            "method": "POST" if body else "GET",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": (address, 40_000),
        }
        await self.app(scope, receive, send)
        return said[0]["status"], dict(said[0]["headers"])

    def counted(self) -> int:
        """Reports in the store; it is closed."""
        assert self.writer.stop(SECONDS)
        total = sum(cell.reports for name in NAMES for cell in self.store.counts(name))
        assert total == self.writer._metrics.total("rappor_reports_total")
        self.store.close()
        return total


def message(reports: int, name: str, form: str) -> tuple[bytes, dict[str, str]]:
    """A batch of this many reports in one of the forms that a collector takes."""
    batch = Batch.of(
        [Report(i % PARAMS.m, i % 2**16) for i in range(reports)],
        token=os.urandom(16),
        collection=name,
        version=1,
        period=DAY.isoformat(),
        k=PARAMS.k,
    )
    body, kind = encode_batch(batch), BINARY
    if form.startswith("json"):
        body, kind = encode_batch_json(batch), JSON
    headers = {"content-type": kind, "content-length": str(len(body))}
    if form.endswith("gzip"):
        body = gzip.compress(body)
        headers |= {"content-encoding": "gzip", "content-length": str(len(body))}
    return body, headers


IPV4 = [f"198.51.100.{host}" for host in range(1, 255)]
IPV6 = [f"2001:db8:7:100:{host:x}::{host:x}" for host in range(1, 255)]  # neighbours in one /64


@pytest.mark.slow
@pytest.mark.parametrize("addresses", [IPV4, IPV6], ids=["ipv4", "ipv6"])
def test_one_prefix_has_rate_times_time_and_a_burst_counted_at_most(
    tmp_path: Path, addresses: list[str]
) -> None:
    """From greedy bursts and drips, over two changes of the salt; at least half gets through."""
    dice = random.Random(5)
    moments = sorted(
        {0.0, 0.5, 3.0, ROTATE_SECONDS - 0.1, ROTATE_SECONDS, ROTATE_SECONDS + 0.1}
        | {2 * ROTATE_SECONDS, 2 * ROTATE_SECONDS + 1.0}
    )
    tried = 0

    async def run() -> int:
        nonlocal tried
        bench = Bench(tmp_path)
        for bench.now in moments:
            refused = 0
            while refused < 12:  # as fast as it can, until it is told to wait again and again
                size = dice.choice((1, 1, MAX_REPORTS, dice.randint(2, MAX_REPORTS), 200))
                form = dice.choice(("binary", "binary gzip", "json", "json gzip"))
                body, headers = message(size, dice.choice(NAMES), form)
                status, said = await bench.send(body, dice.choice(addresses), headers)
                tried += size
                if status == 429:
                    refused += 1
                    assert int(said[b"retry-after"]) >= 1
                else:
                    assert status == (204 if size <= MAX_REPORTS else 413)
        return bench.counted()

    counted = asyncio.run(run())
    # Three bursts: at the start, and after each of the two long pauses; the rest is the rate.
    filled = 3 * RATE * BURST_SECONDS + RATE * (3.0 + 0.2 + 1.0)
    assert filled / 2 < counted <= filled
    assert counted <= RATE * moments[-1] + RATE * BURST_SECONDS
    assert tried > 2 * counted


def test_a_gateway_sends_what_no_client_may_and_its_own_rate_counts_reports(
    tmp_path: Path,
) -> None:
    keys = {
        digest_of(b"free"): Key("free", digest_of(b"free"), role="gateway"),
        digest_of(b"slow"): Key("slow", digest_of(b"slow"), rate=100.0, role="gateway"),
        digest_of(b"app"): Key("app", digest_of(b"app"), rate=2.0),
    }

    async def run() -> int:
        bench = Bench(tmp_path, keys)

        async def send(key: str, reports: int) -> int:
            body, headers = message(reports, "one", "binary")
            headers |= {"authorization": f"Bearer {key}"}
            return (await bench.send(body, "198.51.100.1", headers))[0]

        assert [await send("free", 5000) for _ in range(3)] == [204] * 3
        assert [await send("slow", 900), await send("slow", 200)] == [204, 429]
        bench.now += 1.0
        assert [await send("slow", 200), await send("slow", 1)] == [204, 429]
        assert [await send("app", reports) for reports in (16, 5, 4)] == [204, 429, 204]
        assert [await send("app", MAX_REPORTS + 1), await send("none", 1)] == [413, 401]
        return bench.counted()

    assert asyncio.run(run()) == 15_000 + 900 + 200 + 16 + 4


def test_requests_that_are_refused_and_pages_are_charged_too(tmp_path: Path) -> None:
    async def run() -> None:
        bench = Bench(tmp_path, rate=0.5)  # a burst is five
        junk = {"content-type": BINARY, "content-length": "4"}
        assert [(await bench.send(b"junk", "192.0.2.1", junk))[0] for _ in range(3)] == [400] * 3
        pages = [await bench.send(b"", "192.0.2.1", {}, path) for path in ("/docs", "/nothing")]
        assert [status for status, _ in pages] == [200, 404]
        assert (await bench.send(b"", "192.0.2.9", {}, "/docs"))[0] == 429
        assert (await bench.send(b"junk", "192.0.2.9", junk))[0] == 429
        local = [await bench.send(b"", "127.0.0.1", {}, "/healthz") for _ in range(20)]
        assert {status for status, _ in local} == {200}
        assert bench.counted() == 0

    asyncio.run(run())


@pytest.mark.parametrize("forwarded", [False, True])
def test_health_checks_from_this_machine_are_never_refused(tmp_path: Path, forwarded: bool) -> None:
    async def run() -> None:
        bench = Bench(tmp_path, rate=0.1, forwarded=forwarded)
        for address in ("127.0.0.1", "::1"):
            statuses = {(await bench.send(b"", address, {}, "/healthz"))[0] for _ in range(20)}
            assert statuses == {200}
        visits = [await bench.send(b"", "192.0.2.1", {}, "/healthz") for _ in range(2)]
        assert [status for status, _ in visits] == [200, 429]
        bench.counted()

    asyncio.run(run())


def test_a_proxy_that_hides_its_clients_is_named_in_the_log_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        bench = Bench(tmp_path)
        for address, forwarded in (("127.0.0.1", {}), ("::1", {"x-forwarded-for": "192.0.2.1"})):
            for _ in range(2):
                body, headers = message(1, "one", "binary")
                assert (await bench.send(body, address, headers | forwarded))[0] == 204
            said = [each.message for each in caplog.records]
            assert said == ["proxy-without-forwarded"] * bool(forwarded)
        assert bench.counted() == 4

    with caplog.at_level("WARNING", "rappor.collector"):
        asyncio.run(run())
