"""Whether a batch may be counted, and in which cell (R8, R17-R19; SECURITY: all or nothing).

What batches of one cell share is worked out once and remembered for the day, by the bytes that say
it. A batch then costs a look-up and a look at its cohorts and padding, a tenth of a full parse.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rappor.collection import Collection, Registry, check_period, days_of
from rappor.collector.refusal import Refusal
from rappor.errors import ParamsError
from rappor.store import CellKey
from rappor.store.sqlite.tokens import CLOCK_DAYS
from rappor.wire import Batch, decode_batch
from rappor.wire.binary import split_batch
from rappor.wire.packing import clear_padding
from rappor.wire.protocol import ACCEPTANCE_DAYS, SKEW_DAYS

Today = Callable[[], datetime.date]

_MOST_PLACES = 10_000  # remembered; dimensions multiply


def utc_today() -> datetime.date:
    """The day by this machine's clock."""
    return datetime.datetime.now(datetime.UTC).date()


class Destination(NamedTuple):
    """Where the reports of a batch are counted, and what they must fit.

    Attributes:
        cell: the key in the store.
        digest: of the parameters in that period.
        k: bits in a report.
        m: cohorts.
        keep: whether the reports themselves are kept.
    """

    cell: CellKey
    digest: str
    k: int
    m: int
    keep: bool


class Admitted(NamedTuple):
    """A batch that fits: where it is counted, and what.

    Attributes:
        token: the batch's, 16 bytes.
        place: where.
        cohorts: each report's cohort, two bytes, the lower one first.
        reports: each report in ceil(k/8) bytes.
    """

    token: bytes
    place: Destination
    cohorts: bytes
    reports: bytes

    @property
    def report_count(self) -> int:
        """The number of reports."""
        return len(self.cohorts) // 2


def is_remembered(period: str, retained: datetime.date) -> bool:
    """Whether no batch of a period can have had a token that retention has forgotten.

    Retention on a day forgets tokens that are 18 days old, 24 where there are weeks. That is too
    old for any replay, unless the clock was ahead then and is not now.

    >>> retained = datetime.date(2026, 11, 20)
    >>> [is_remembered(period, retained) for period in ("2026-11-02", "2026-11-03", "2026-W44")]
    [False, True, False]
    """
    first, last = days_of(period)
    forgotten = ACCEPTANCE_DAYS + SKEW_DAYS + CLOCK_DAYS + (last - first).days
    return first - datetime.timedelta(days=SKEW_DAYS) >= retained - datetime.timedelta(forgotten)


def is_open(period: str, today: datetime.date) -> bool:
    """Whether a period has a day from today - 14 days to today + 1 day.

    >>> monday = datetime.date(2026, 11, 16)
    >>> [is_open(period, monday) for period in ("2026-11-02", "2026-11-01", "2026-W44", "2026-W43")]
    [True, False, False, False]
    >>> is_open("2026-11-17", monday), is_open("2026-11-18", monday), is_open("2026-W45", monday)
    (True, False, True)
    """
    first, last = days_of(period)
    oldest = today - datetime.timedelta(days=ACCEPTANCE_DAYS)
    newest = today + datetime.timedelta(days=SKEW_DAYS)
    return last >= oldest and first <= newest


class Admission:
    """The collections, and what they accept today."""

    def __init__(
        self, registry: Registry, today: Today = utc_today, retained: datetime.date | None = None
    ) -> None:
        """Accept what fits a collection; `retained` is the latest day of retention."""
        self._retained = retained
        self.registry = registry
        self.today = today
        self._places: dict[bytes, Destination] = {}
        self._day = datetime.date.min

    @property
    def retained(self) -> datetime.date | None:
        """The latest day by which tokens were forgotten, on any clock."""
        return self._retained

    def retain(self, day: datetime.date) -> None:
        """Tokens are about to be forgotten as of a day."""
        if self._retained is None or day > self._retained:
            self._retained = day
            self._day = datetime.date.min  # what is remembered about places is not true any more

    def admit(self, batch: Batch) -> Admitted:
        """A batch that fits its collection in every respect, or Refusal."""
        place = self._place(batch, self.today())
        if batch.k != place.k:
            raise Refusal("wrong-params", f"the collection has k = {place.k}")
        if _highest(batch.cohorts) >= place.m:
            raise Refusal("wrong-params", f"the collection has cohorts from 0 to {place.m - 1}")
        return Admitted(batch.token, place, batch.cohorts, batch.reports)

    def admit_bytes(self, data: bytes) -> Admitted:
        """The same for a batch in the binary format; WireError where it is none."""
        today = self.today()
        if today != self._day or len(self._places) >= _MOST_PLACES:
            self._places.clear()
            self._day = today
        parts = split_batch(data)
        if parts is not None:
            place = self._places.get(parts.header)
            if (
                place is not None
                and clear_padding(parts.reports, place.k)
                and _highest(parts.cohorts) < place.m
            ):
                return Admitted(parts.token, place, parts.cohorts, parts.reports)
        admitted = self.admit(decode_batch(data))  # which raises if anything is wrong
        if parts is not None:
            self._places[parts.header] = admitted.place
        return admitted

    def _place(self, batch: Batch, today: datetime.date) -> Destination:
        try:
            collection = self.registry.get(batch.collection, batch.version)
        except ParamsError:
            raise Refusal("unknown-collection") from None
        if collection.expires is not None and today >= collection.expires:
            raise Refusal("expired-collection")
        try:
            check_period(collection.period, batch.period)
        except ParamsError:
            raise Refusal(
                "wrong-period", f"the collection's period is a {collection.period}"
            ) from None
        if not is_open(batch.period, today):
            raise Refusal(
                "period-closed",
                f"periods are taken from {ACCEPTANCE_DAYS} days ago to {SKEW_DAYS} day ahead, "
                "in UTC",
            )
        if self._retained is not None and not is_remembered(batch.period, self._retained):
            raise Refusal("period-closed", "it was closed when the collector's clock was ahead")
        return _place_in(collection, batch)


def _place_in(collection: Collection, batch: Batch) -> Destination:
    cell = collection.cell(dict(batch.dimensions))
    if cell != batch.dimensions:
        names = ", ".join(collection.dimensions) or "none"
        raise Refusal("wrong-dimensions", f"the collection's dimensions are: {names}")
    params = collection.params_for(batch.period)
    return Destination(
        CellKey.of(batch.collection, batch.version, batch.period, cell),
        params.digest,
        params.k,
        params.m,
        collection.keep_reports_days > 0,
    )


def _highest(cohorts: bytes) -> int:
    """The highest of some 16-bit numbers.

    >>> _highest(bytes([3, 0, 1, 1, 0, 0]))
    257
    """
    if len(cohorts) == 2:  # one report: numpy would take ten times as long
        return cohorts[0] | cohorts[1] << 8
    return int(np.frombuffer(cohorts, "<u2").max())
