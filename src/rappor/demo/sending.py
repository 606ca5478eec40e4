"""Batches over HTTP, with the client's own transport: sent again until they are stored."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from rappor.client.clock import SystemClock
from rappor.client.transport import HttpTransport
from rappor.collection import Collection
from rappor.demo.errors import DemoError
from rappor.mechanism.report import Report
from rappor.wire import PROBLEMS, Batch, encode_batch
from rappor.wire.protocol import TOKEN_BYTES

PATIENCE_SECONDS = 60.0  # for a server that starts again, or has too much to do
_TIMEOUT, _PAUSE = 10.0, 0.1
_NO_USE = ("store-full",)  # waiting would help, but nobody is there to make room


class Mail:
    """Sends batches to one address; each is stored once, however often it has to be sent."""

    def __init__(
        self,
        url: str,
        gateway_key: str | None = None,
        patience: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the collector's address, and a key for batches of more than a client's size."""
        self._clock = SystemClock()
        self._transport = HttpTransport(url, clock=self._clock, ingest_key=gateway_key)
        self._patience, self._sleep = patience, sleep

    def send(
        self,
        reports: Sequence[Report],
        collection: Collection,
        period: str,
        dimensions: dict[str, str],
    ) -> None:
        """One batch, durably stored when this returns; DemoError otherwise.

        Reports are sorted: their order would say which ones come from one person.
        """
        batch = Batch.of(
            sorted(reports),
            token=os.urandom(TOKEN_BYTES),
            collection=collection.name,
            version=collection.version,
            period=period,
            dimensions=collection.cell(dimensions),
            k=collection.params.k,
        )
        self.post(encode_batch(batch))

    def post(self, body: bytes) -> None:
        """The same for a batch that is encoded."""
        until = self._clock.monotonic() + self._patience
        while True:
            try:
                answer = self._transport.post(body, _TIMEOUT)
            except OSError as error:
                said, final = f"no answer from the server: {error.strerror or error}", False
                wait = _PAUSE
            else:
                if answer.stored:
                    return
                said = f"the server answered {answer.status}"
                if answer.code is not None:
                    said += f" {answer.code}: {PROBLEMS[answer.code].title}"
                final = answer.permanent or answer.code in _NO_USE
                wait = max(_PAUSE, answer.retry_after or 0.0)
            if final or self._clock.monotonic() + wait > until:
                raise DemoError(said)
            self._sleep(wait)
