"""A collector in memory: a real HTTP server on this machine, for the tests of an application.

It decides as `rappor collect` does (`collection.acceptance`, docs/protocol.md) and keeps what it
accepted until it is closed. It has no store, no rate limit and no TLS: it is not for real reports.
"""

from __future__ import annotations

import contextlib
import datetime
import http.server
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from rappor.collection import Collection, Registry
from rappor.collection.acceptance import check_shape, collection_of
from rappor.errors import ParamsError, WireError
from rappor.mechanism.report import Report
from rappor.wire import (
    MAX_BODY,
    MAX_REPORTS,
    PROBLEM_JSON,
    PROBLEMS,
    REPORTS_PATH,
    Batch,
    problem_json,
    unpack,
)
from rappor.wire.body import decode_body
from rappor.wire.protocol import RETRY_SECONDS, BatchRefused

_BY_STATUS = {  # what a collector usually means by a status
    401: "unauthorized",
    403: "forbidden",
    404: "unknown-collection",
    429: "rate-limited",
    500: "internal-error",
    503: "overloaded",
    507: "store-full",
}
_POLL_SECONDS = 0.05  # how often the server looks whether it shall stop


class BitCounts(NamedTuple):
    """Reports of one collection, counted: `rappor.Counts(params=..., totals=..., ones=...)`.

    Attributes:
        totals: the reports of each cohort, m numbers.
        ones: for each cohort the number of reports with each bit set, m rows of k numbers.
    """

    totals: list[int]
    ones: list[list[int]]


@dataclass(frozen=True, slots=True)
class _Outage:
    """What `refuse` asked for."""

    code: str
    collection: str | None
    retry_after: int


class MemoryCollector:
    """Takes batches over HTTP and keeps them in memory. Use it with `with`, or `close()` it.

    >>> from rappor.params import Params
    >>> theme = Collection("theme", 1, Params.preset("windows"))
    >>> with MemoryCollector([theme]) as collector:
    ...     collector.url.startswith("http://127.0.0.1:"), collector.count("theme")
    (True, 0)
    """

    def __init__(
        self,
        collections: Iterable[Collection | str | PathLike[str]],
        *,
        ingest_key: str | None = None,
        today: Callable[[], datetime.date] | None = None,
    ) -> None:
        """Start a server on a free port of this machine.

        Args:
            collections: Collections, definition files, or folders of such files.
            ingest_key: refuse requests without this key (401); None asks for no key.
            today: gives the day in UTC, such as `ManualClock.today`; None: the real one.

        Raises:
            ParamsError: a definition is wrong.
        """
        self._registry = Registry(_gather(collections))
        self._authorization = None if ingest_key is None else f"Bearer {ingest_key}"
        self._today = today or _utc_today
        self._lock = threading.Lock()
        self._batches: list[Batch] = []
        self._refused: list[str] = []
        self._tokens: set[bytes] = set()
        self._outage: _Outage | None = None
        self._server = _Server(self._answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True
        )
        self._thread.start()

    def refuse(
        self,
        why: int | str,
        *,
        collection: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Refuse every batch from now on, until `accept()`.

        Args:
            why: an HTTP status (401, 403, 404, 429, 500, 503, 507), or a code of
                `rappor.wire.PROBLEMS` such as "expired-collection".
            collection: refuse the batches of this collection only.
            retry_after: the seconds that clients are asked to wait; None: as `rappor collect` does.
        """
        code = _BY_STATUS.get(why) if isinstance(why, int) else why
        if code not in PROBLEMS:
            statuses = ", ".join(map(str, _BY_STATUS))
            raise ParamsError(
                f"refuse one of {statuses}, or a code of rappor.wire.PROBLEMS, got {why!r}"
            )
        wait = RETRY_SECONDS.get(code, 0) if retry_after is None else retry_after
        self._outage = _Outage(code, collection, wait)

    def accept(self) -> None:
        """Accept batches again."""
        self._outage = None

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The batches that were accepted, in the order of their arrival; each once."""
        with self._lock:
            return tuple(self._batches)

    @property
    def refused(self) -> tuple[str, ...]:
        """The codes of all refusals, in their order."""
        with self._lock:
            return tuple(self._refused)

    def count(self, collection: str) -> int:
        """The number of accepted reports of a collection."""
        return sum(batch.count for batch in self.batches if batch.collection == collection)

    def reports(self, collection: str) -> list[Report]:
        """The accepted reports of a collection: a cohort and noisy bits each."""
        return [
            report
            for batch in self.batches
            if batch.collection == collection
            for report in _reports_of(batch)
        ]

    def counts(self, collection: str, version: int | None = None) -> BitCounts:
        """The accepted reports of one version of a collection, counted; the newest if None."""
        asked = self._registry.get(collection, version)
        k, m = asked.params.k, asked.params.m
        found = BitCounts([0] * m, [[0] * k for _ in range(m)])
        for batch in self.batches:
            if (batch.collection, batch.version) == (asked.name, asked.version):
                for cohort, bits in _reports_of(batch):
                    found.totals[cohort] += 1
                    row = found.ones[cohort]
                    for bit in range(k):
                        row[bit] += bits >> bit & 1
        return found

    def clear(self) -> None:
        """Drop what was accepted and refused so far."""
        with self._lock:
            self._batches.clear()
            self._refused.clear()
            self._tokens.clear()

    def close(self) -> None:
        """Stop the server; what it accepted can still be read. May be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> MemoryCollector:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self, request: _Request) -> tuple[str, int] | None:
        """None if a batch is stored; else a code and how long to wait."""
        try:
            self._take(request)
        except BatchRefused as refused:
            code, wait = refused.code, RETRY_SECONDS.get(refused.code, 0)
            outage = self._outage
            if outage is not None and outage.code == code:
                wait = outage.retry_after
            with self._lock:
                self._refused.append(code)
            return code, wait
        return None

    def _take(self, request: _Request) -> None:
        outage = self._outage
        if outage is not None and outage.collection is None:
            raise BatchRefused(outage.code)
        if request.path != REPORTS_PATH:
            raise BatchRefused("not-found")
        if request.method != "POST":
            raise BatchRefused("method-not-allowed")
        if self._authorization not in (None, request.authorization):
            raise BatchRefused("unauthorized")
        if request.body is None:
            raise BatchRefused("body-too-large")
        try:
            batch = decode_body(request.content_type, request.encoding, request.body)
        except WireError as error:
            raise BatchRefused("malformed-batch", str(error)) from None
        collection = collection_of(batch, self._registry, self._today())
        params = collection.params_for(batch.period)
        highest = max(report.cohort for report in _reports_of(batch))
        check_shape(batch.k, highest, k=params.k, m=params.m)
        if batch.count > MAX_REPORTS:
            raise BatchRefused("too-many-reports")
        if outage is not None and outage.collection == batch.collection:
            raise BatchRefused(outage.code)
        with self._lock:
            if batch.token not in self._tokens:  # a repeated upload is counted once
                self._tokens.add(batch.token)
                self._batches.append(batch)


def _utc_today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _gather(collections: Iterable[Collection | str | PathLike[str]]) -> Iterable[Collection]:
    if isinstance(collections, (str, PathLike)):
        collections = [collections]
    for given in collections:
        if isinstance(given, Collection):
            yield given
        elif Path(given).expanduser().is_dir():
            yield from Registry.open(given)
        else:
            yield Collection.read(given)


def _reports_of(batch: Batch) -> Iterable[Report]:
    size = (batch.k + 7) // 8
    for number in range(batch.count):
        cohort = int.from_bytes(batch.cohorts[2 * number : 2 * number + 2], "little")
        packed = batch.reports[number * size : (number + 1) * size]
        yield Report(cohort, unpack(packed, batch.k))


class _Request(NamedTuple):
    method: str
    path: str
    content_type: bytes
    encoding: bytes
    authorization: str
    body: bytes | None  # None: too large, or of unknown length


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Callable[[_Request], tuple[str, int] | None]) -> None:
        self.answer = answer
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a client may cut its connection at any moment."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = 60.0

    def do_POST(self) -> None:
        """Answer a request."""
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isascii() and length.isdigit() else MAX_BODY + 1
        refused = self.server.answer(
            _Request(
                self.command,
                self.path.partition("?")[0],
                self.headers.get("Content-Type", "").encode("latin-1"),
                self.headers.get("Content-Encoding", "").encode("latin-1"),
                self.headers.get("Authorization", ""),
                self.rfile.read(size) if size <= MAX_BODY else None,
            )
        )
        with contextlib.suppress(OSError):  # the client has cut the connection
            if refused is None:
                self.send_response(204)
                self.end_headers()
                return
            code, wait = refused
            body = problem_json(code)
            self.send_response(PROBLEMS[code].status)
            self.send_header("Content-Type", PROBLEM_JSON)
            self.send_header("Content-Length", str(len(body)))
            if wait:
                self.send_header("Retry-After", str(wait))
            self.end_headers()
            self.wfile.write(body)

    def do_GET(self) -> None:
        """Answer a request that is not a batch."""
        self.do_POST()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
