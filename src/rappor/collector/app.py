"""The ASGI application: one route that takes batches, and a few pages.

It is written in plain ASGI: a framework would take as much time as everything else. Reports whose
requests arrive whole come without ASGI, through `App.take`. A batch is checked, queued, committed
to disk and only then acknowledged with 204.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rappor.collection import expiry_state
from rappor.collector import log, openapi
from rappor.collector.admission import Admission, Admitted
from rappor.collector.cors import Cors
from rappor.collector.keys import Key, digest_of
from rappor.collector.metrics import CONTENT_TYPE, Metrics
from rappor.collector.openapi import Answer
from rappor.collector.quota import KeyRateLimit, RateLimit
from rappor.collector.refusal import Headers, Refusal
from rappor.collector.request import (
    Disconnected,
    Fields,
    Receive,
    fields_of,
    parse,
    read_body,
    sized,
)
from rappor.collector.settings import CollectorSettings
from rappor.collector.writer import Outcome, Writer
from rappor.errors import WireError
from rappor.host import LOOPBACK_ADDRESSES
from rappor.wire import BINARY, MAX_REPORTS, REPORTS_PATH

Send = Callable[[Any], Awaitable[None]]

_BINARY = BINARY.encode()
_TOO_MANY_REPORTS = f"at most {MAX_REPORTS} reports in a batch without a gateway key"
_MAX_KEY_FIELDS = 1000  # in memory; a key can be written in several ways
_STORED = {"type": "http.response.start", "status": 204, "headers": []}
_NOTHING = {"type": "http.response.body", "body": b""}


class App:
    """The application; uvicorn calls it for each request."""

    def __init__(
        self,
        settings: CollectorSettings,
        admission: Admission,
        writer: Writer,
        metrics: Metrics,
        keys: dict[str, Key] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Serve with these parts.

        Args:
            settings: the collector's settings.
            admission: decides which batches are accepted.
            writer: stores them.
            metrics: counts them.
            keys: the known keys by digest; None if keys are not used.
            clock: seconds, for the rate limits.

        Attributes:
            last_retention: the day of the latest retention that is known; None if there is none.
        """
        self.settings, self.admission, self.writer = settings, admission, writer
        self.last_retention = admission.retained
        self.metrics, self._keys = metrics, keys
        self._keys_by_field: dict[bytes, Key] = {}  # by the header field of earlier requests
        self._limit = RateLimit(settings.rate) if settings.rate else None
        self._key_limits: dict[Key, KeyRateLimit] = {}
        self.cors = Cors(settings.allow_origins) if settings.allow_origins else None
        self._saw_proxy = False
        self._clock = clock
        self._pages: dict[str, Callable[[], Answer]] = {
            "/healthz": self._health,
            "/readyz": self._ready,
            "/metrics": self._metrics_page,
            "/openapi.json": openapi.openapi,
            "/docs": openapi.docs,
        }

    @property
    def keys(self) -> dict[str, Key] | None:
        """The known keys by digest; None if keys are not used."""
        return self._keys

    @keys.setter
    def keys(self, keys: dict[str, Key] | None) -> None:
        self._keys, self._keys_by_field = keys, {}

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path == REPORTS_PATH and self.cors is not None:
            send = _adding(self.cors.answer(scope["method"], scope["headers"]), send)
        try:
            if path == REPORTS_PATH and scope["method"] == "POST":
                await self._take(scope, receive)
            else:
                self._check_visitor(scope)
                self._check_port(path, scope.get("server"))
                await _send(send, self._page(path, scope["method"], scope["headers"]))
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
        key, address = self._charge(scope["client"], fields)
        body = await read_body(fields, receive)
        outcome = await self.writer.submit(self._admit(fields, key, address, body))
        if outcome is not None:
            raise Refusal(outcome)

    def take(
        self,
        client: tuple[str, int] | None,
        headers: Headers,
        body: bytes,
        done: Callable[[Outcome], None],
    ) -> None:
        """Take the batch of a POST to the reports' path that has arrived whole, or Refusal.

        `done` is called in the event loop when the batch is on disk or has failed. A request costs
        half as much this way: it needs no task, no coroutines and no future.
        """
        fields = fields_of(headers)
        key, address = self._charge(client, fields)
        self.writer.enqueue(self._admit(fields, key, address, sized(body)), done)

    def _charge(self, client: tuple[str, int] | None, fields: Fields) -> tuple[Key | None, str]:
        """Charge a request as one report before its body is read.

        Returns:
            Its key, or None; and the address that it is charged to, empty if it has no limit.
        """
        key = None if self._keys is None else self._key(fields)
        address = ""
        if self._limit is not None and (key is None or key.role != "gateway"):
            address = self._address(client, fields)
            if address:
                _refuse_if_limited(self._limit.charge(address, self._clock()))
        if key is None and self._wants_key(fields):
            raise Refusal("unauthorized")
        return key, address

    def _admit(self, fields: Fields, key: Key | None, address: str, body: bytes) -> Admitted:
        """The batch in a body; its other reports are charged, now that their number is known."""
        batch = self._parse(fields, body)
        reports = batch.report_count
        if reports > MAX_REPORTS and (key is None or key.role != "gateway"):
            raise Refusal("too-many-reports", _TOO_MANY_REPORTS)
        if key is not None and not key.opens(batch.destination.cell.collection):
            raise Refusal("forbidden")
        if reports > 1 and address and self._limit is not None:
            _refuse_if_limited(self._limit.charge(address, self._clock(), reports - 1, paid=1))
        if key is not None and key.rate:
            _refuse_if_limited(self._limit_of(key).charge(reports, self._clock()))
        return batch

    def _parse(self, fields: Fields, body: bytes) -> Admitted:
        """The batch in a body, or Refusal if it does not fit its collection."""
        try:
            if fields.content_type == _BINARY and not fields.encoding:
                return self.admission.admit_bytes(body)
            return self.admission.admit(parse(fields, body))
        except WireError as error:
            raise Refusal("malformed-batch", str(error)) from None

    def _address(self, client: tuple[str, int] | None, fields: Fields) -> str:
        """The address that a request is charged to; empty if it comes from this machine."""
        address = client[0] if client else "unknown"
        if self.settings.forwarded:
            last = fields.forwarded.rpartition(b",")[2].strip()
            return last.decode("latin-1") or address
        if address not in LOOPBACK_ADDRESSES:
            return address
        if fields.forwarded and not self._saw_proxy:
            self._saw_proxy = True
            log.event("proxy-without-forwarded", logging.WARNING)
        return ""

    def _key(self, fields: Fields) -> Key | None:
        """The key of a request; None if it has no known key."""
        field = fields.authorization
        key = self._keys_by_field.get(field)
        if key is None and self._keys is not None:
            scheme, _, given = field.partition(b" ")
            if scheme.lower() != b"bearer":
                return None
            key = self._keys.get(digest_of(given.strip()))
            if key is not None and len(self._keys_by_field) < _MAX_KEY_FIELDS:
                self._keys_by_field[field] = key
        return key

    def _wants_key(self, fields: Fields) -> bool:
        """Whether a request without a known key is refused."""
        if self._keys is None:
            return False
        return bool(fields.authorization) or not self.settings.keys_optional

    def _limit_of(self, key: Key) -> KeyRateLimit:
        limit = self._key_limits.get(key)
        if limit is None:  # a key with a changed rate is another key
            limit = self._key_limits[key] = KeyRateLimit(key.rate)
        return limit

    # The pages.

    def _check_visitor(self, scope: Any) -> None:
        """Charge a page as one report; health checks from this machine are free."""
        if self._limit is None:
            return
        fields = fields_of(scope["headers"])
        client = scope["client"]
        if client is not None and client[0] in LOOPBACK_ADDRESSES and not fields.forwarded:
            return
        if address := self._address(client, fields):
            _refuse_if_limited(self._limit.charge(address, self._clock()))

    def _check_port(self, path: str, server: tuple[str, int] | None) -> None:
        """Refuse metrics on a port that others may share: each answer could be of another one."""
        wanted = self.settings.metrics_port
        if path == "/metrics" and wanted is not None and (server is None or server[1] != wanted):
            raise Refusal("not-found")

    def _page(self, path: str, method: str, request: Headers) -> Answer:
        if path == REPORTS_PATH and self.cors and self.cors.is_preflight(method, request):
            return 204, [], b""
        page = self._pages.get(path)
        if page is not None and method in ("GET", "HEAD"):
            return page()
        allowed = b"GET, HEAD"
        if page is None:
            allowed = b"POST"
            if path != REPORTS_PATH:
                raise Refusal("not-found")
        refusal = Refusal("method-not-allowed")
        self.metrics.refuse(refusal.code)
        status, headers, body = refusal.answer()
        return status, [*headers, (b"allow", allowed)], body

    def _health(self) -> Answer:
        writer = self.writer
        state = "failed" if not writer.alive else "disk full" if writer.full else "ok"
        if state == "ok" and writer.unreachable:
            # Alive, and it reconnects by itself: a restart would not help. Not ready, though.
            return _json(200, {"status": "database unreachable"})
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
            data=None if self.settings.data is None else Path(self.settings.data).expanduser(),
            collections=self._expiry_states(),
            retained=self.last_retention,
        )
        return 200, openapi.headers(CONTENT_TYPE, body), body

    def _expiry_states(self) -> Counter[str]:
        today = self.admission.today()
        return Counter(expiry_state(item, today) for item in self.admission.registry)


def _refuse_if_limited(seconds: int) -> None:
    """Raise Refusal if the sender has to wait."""
    if seconds:
        raise Refusal("rate-limited", retry_after=seconds)


def _json(status: int, document: dict[str, str]) -> Answer:
    body = json.dumps(document).encode()
    return status, openapi.headers("application/json", body), body


def _adding(headers: Headers, send: Send) -> Send:
    """The same function, which adds header fields to the answer."""

    async def add(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return add


async def _send(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
