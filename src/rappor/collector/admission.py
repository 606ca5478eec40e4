"""Decides whether a batch is counted, and in which cell: the whole batch or nothing of it.

Batches of one cell have the same header. The cell of a header is worked out once and kept for the
day, by the header's bytes. A later batch costs a look-up and a check of its cohorts and padding,
which takes a tenth of the time of a full parse.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rappor.collection import Registry, days_of
from rappor.collection.acceptance import check_shape, collection_of
from rappor.collector.refusal import Refusal
from rappor.store import CellKey
from rappor.store.token_window import CLOCK_DAYS
from rappor.wire import Batch, decode_batch
from rappor.wire.binary import split_batch
from rappor.wire.packing import clear_padding
from rappor.wire.protocol import ACCEPTANCE_DAYS, SKEW_DAYS, BatchRefused

Today = Callable[[], datetime.date]

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MAX_DESTINATIONS = 10_000  # in the cache; their number multiplies with dimensions


def utc_today() -> datetime.date:
    """Today in UTC, by this machine's clock."""
    return datetime.date.fromordinal(_EPOCH + int(time.time()) // 86_400)


class Destination(NamedTuple):
    """Where the reports of a batch are counted, and the parameters that they must have.

    Attributes:
        cell: the key in the store.
        digest: the digest of the parameters in that period.
        k: the number of bits in a report.
        m: the number of cohorts.
        keep: whether the store keeps the reports themselves.
    """

    cell: CellKey
    digest: str
    k: int
    m: int
    keep: bool


class Admitted(NamedTuple):
    """A batch that fits its collection.

    Attributes:
        token: the batch's token.
        destination: where it is counted.
        cohorts: each report's cohort, as in `wire.Batch`.
        reports: each report in ceil(k/8) bytes.
    """

    token: bytes
    destination: Destination
    cohorts: bytes
    reports: bytes

    @property
    def report_count(self) -> int:
        """The number of reports."""
        return len(self.cohorts) // 2


def is_remembered(period: str, retained: datetime.date) -> bool:
    """Whether the tokens of all batches of a period are still in the store.

    Retention deletes tokens of more than 18 days ago, or 24 if a collection has weeks. No batch
    that old is accepted again, unless the clock was ahead when retention ran and has been set back.

    >>> retained = datetime.date(2026, 11, 20)
    >>> [is_remembered(period, retained) for period in ("2026-11-02", "2026-11-03", "2026-W44")]
    [False, True, False]
    """
    first, last = days_of(period)
    forgotten = ACCEPTANCE_DAYS + SKEW_DAYS + CLOCK_DAYS + (last - first).days
    return first - datetime.timedelta(days=SKEW_DAYS) >= retained - datetime.timedelta(forgotten)


class Admission:
    """The collections and what they accept today."""

    def __init__(
        self, registry: Registry, today: Today = utc_today, retained: datetime.date | None = None
    ) -> None:
        """Accept batches of these collections; `retained` is the latest day of retention."""
        self._retained = retained
        self.registry = registry
        self.today = today
        self._destinations: dict[bytes, Destination] = {}
        self._day = datetime.date.min

    @property
    def retained(self) -> datetime.date | None:
        """The latest date, by the clock of its time, for which retention deleted tokens."""
        return self._retained

    def retain(self, day: datetime.date) -> None:
        """Note that retention is about to delete tokens as of a day."""
        if self._retained is None or day > self._retained:
            self._retained = day
            self._day = datetime.date.min  # what is remembered about places is not true any more

    def admit(self, batch: Batch) -> Admitted:
        """The admitted batch, or Refusal if it does not fit its collection in every respect."""
        try:
            destination = self._destination(batch, self.today())
            check_shape(batch.k, _highest(batch.cohorts), k=destination.k, m=destination.m)
        except BatchRefused as refused:
            raise Refusal(refused.code, refused.detail) from None
        return Admitted(batch.token, destination, batch.cohorts, batch.reports)

    def admit_bytes(self, data: bytes) -> Admitted:
        """Admit a batch in the binary format; WireError if the bytes are not a batch."""
        today = self.today()
        if today != self._day or len(self._destinations) >= _MAX_DESTINATIONS:
            self._destinations.clear()
            self._day = today
        parts = split_batch(data)
        if parts is not None:
            destination = self._destinations.get(parts.header)
            if (
                destination is not None
                and clear_padding(parts.reports, destination.k)
                and _highest(parts.cohorts) < destination.m
            ):
                return Admitted(parts.token, destination, parts.cohorts, parts.reports)
        admitted = self.admit(decode_batch(data))  # which raises if anything is wrong
        if parts is not None:
            self._destinations[parts.header] = admitted.destination
        return admitted

    def _destination(self, batch: Batch, today: datetime.date) -> Destination:
        collection = collection_of(batch, self.registry, today)
        if self._retained is not None and not is_remembered(batch.period, self._retained):
            raise BatchRefused(
                "period-closed", "the period was closed while the collector's clock was ahead"
            )
        params = collection.params_for(batch.period)
        return Destination(
            CellKey.of(batch.collection, batch.version, batch.period, batch.dimensions),
            params.digest,
            params.k,
            params.m,
            collection.keep_reports_days > 0,
        )


def _highest(cohorts: bytes) -> int:
    """The highest of the cohorts of a batch.

    >>> _highest(bytes([3, 0, 1, 1, 0, 0]))
    257
    """
    if len(cohorts) == 2:  # one report: ten times as fast as numpy
        return cohorts[0] | cohorts[1] << 8
    return int(np.frombuffer(cohorts, "<u2").max())
