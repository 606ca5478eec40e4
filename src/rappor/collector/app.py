"""The ASGI application: one hot route that takes batches, and a few pages about it.

Bare ASGI, because the framework would cost as much as the rest (PERFORMANCE: ingest). A batch is
validated whole, queued, committed and only then acknowledged with 204.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rappor.collector import log, pages
from rappor.collector.admit import Admission
from rappor.collector.body import Disconnected, Fields, fields_of, parse, read_body
from rappor.collector.keys import Key, digest_of
from rappor.collector.limit import RateLimit
from rappor.collector.metrics import CONTENT_TYPE, Metrics
from rappor.collector.refusal import Headers, Refusal
from rappor.collector.settings import Settings
from rappor.collector.writer import Writer
from rappor.errors import WireError
from rappor.wire import BINARY

Send = Callable[[Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]
Answer = tuple[int, Headers, bytes]

_BINARY = BINARY.encode()
REPORTS, NOOP = "/v1/reports", "/v1/noop"
_LOOPBACK = frozenset(("127.0.0.1", "::1", "::ffff:127.0.0.1"))
_STORED = {"type": "http.response.start", "status": 204, "headers": []}
_NOTHING = {"type": "http.response.body", "body": b""}


class App:
    """What uvicorn calls for each request."""

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        writer: Writer,
        metrics: Metrics,
        keys: dict[str, Key] | None = None,
    ) -> None:
        """Serve with these parts; `keys` is None where no ingest key is asked for."""
        self.settings, self.admission, self.writer = settings, admission, writer
        self.metrics, self.keys = metrics, keys
        self._limit = RateLimit(settings.rate) if settings.rate else None
        self._key_limits: dict[Key, RateLimit] = {}
        self._pages: dict[str, Callable[[], Answer]] = {
            "/healthz": self._health,
            "/readyz": self._ready,
            "/metrics": self._metrics_page,
            "/openapi.json": pages.openapi,
            "/docs": pages.docs,
        }

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        try:
            if path == REPORTS and scope["method"] == "POST":
                await self._take(scope, receive)
            elif path == NOOP and scope["method"] == "POST" and self.settings.bench:
                await read_body(fields_of(scope["headers"]), receive)
            else:
                await _send(send, self._page(path, scope["method"]))
                return
        except Refusal as refusal:
            self.metrics.refuse(refusal.code)
            await _send(send, refusal.answer())
        except Disconnected:
            return
        except Exception as error:
            log.failure("request-failed", error)
            self.metrics.refuse("internal-error")
            await _send(send, Refusal("internal-error").answer())
        else:
            await send(_STORED)
            await send(_NOTHING)

    async def _take(self, scope: Any, receive: Receive) -> None:
        """Take a batch; return when it is on disk."""
        fields = fields_of(scope["headers"])
        if self._limit is not None:
            self._check_rate(self._limit, scope["client"], fields)
        key = None if self.keys is None else self._check_key(fields)
        body = await read_body(fields, receive)
        try:
            if fields.content_type == _BINARY and not fields.encoding:
                batch = self.admission.admit_bytes(body)
            else:
                batch = self.admission.admit(parse(fields, body))
        except WireError as error:
            raise Refusal("malformed-batch", str(error)) from None
        if key is not None and not key.opens(batch.place.cell.collection):
            raise Refusal("forbidden")
        outcome = await self.writer.submit(batch)
        if outcome is not None:
            raise Refusal(outcome)

    def _check_rate(self, limit: RateLimit, client: tuple[str, int] | None, fields: Fields) -> None:
        address = client[0] if client else ""
        if self.settings.forwarded:
            last = fields.forwarded.rpartition(b",")[2].strip()
            address = last.decode("latin-1") or address
        elif address in _LOOPBACK:  # a reverse proxy, or someone at this machine
            return
        if wait := limit.wait(address, time.monotonic()):
            raise Refusal("rate-limited", retry_after=wait)

    def _check_key(self, fields: Fields) -> Key:
        """The ingest key of a request, or Refusal."""
        scheme, _, given = fields.authorization.partition(b" ")
        key = None
        if scheme.lower() == b"bearer" and self.keys is not None:
            key = self.keys.get(digest_of(given.strip()))
        if key is None:
            raise Refusal("unauthorized")
        if key.rate:
            limit = self._key_limits.get(key)
            if limit is None:  # a key whose rate was changed is another
                limit = self._key_limits[key] = RateLimit(key.rate)
            if wait := limit.wait("", time.monotonic()):
                raise Refusal("rate-limited", retry_after=wait)
        return key

    # Everything that is not the hot route.

    def _page(self, path: str, method: str) -> Answer:
        page = self._pages.get(path)
        if page is not None and method in ("GET", "HEAD"):
            return page()
        allowed = b"GET, HEAD"
        if page is None:
            allowed = b"POST"
            if path != REPORTS and not (path == NOOP and self.settings.bench):
                raise Refusal("not-found")
        refusal = Refusal("method-not-allowed")
        self.metrics.refuse(refusal.code)
        status, headers, body = refusal.answer()
        return status, [*headers, (b"allow", allowed)], body

    def _health(self) -> Answer:
        writer = self.writer
        state = "failed" if not writer.alive else "disk full" if writer.full else "ok"
        return _json(200 if state == "ok" else 503, {"status": state})

    def _ready(self) -> Answer:
        writer = self.writer
        state = "ready"
        if not writer.healthy:
            state = "unhealthy"
        elif writer.stopping:
            state = "stopping"
        elif writer.busy:
            state = "busy"
        return _json(200 if state == "ready" else 503, {"status": state})

    def _metrics_page(self) -> Answer:
        body = self.metrics.text(
            healthy=self.writer.healthy,
            queue_batches=self.writer.batches,
            queue_bytes=self.writer.bytes,
            data=Path(self.settings.data).expanduser(),
        )
        return 200, pages.headers(CONTENT_TYPE, body), body


def _json(status: int, document: dict[str, str]) -> Answer:
    body = json.dumps(document).encode()
    return status, pages.headers("application/json", body), body


async def _send(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
