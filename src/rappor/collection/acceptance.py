"""Acceptance: whether a batch fits a collection today, in every respect.

The collector and the collector in memory of `rappor.testing` decide by these rules.
"""

from __future__ import annotations

import datetime

from rappor.collection.definition import Collection
from rappor.collection.periods import check_period, days_of
from rappor.collection.registry import Registry
from rappor.errors import ParamsError
from rappor.wire import Batch
from rappor.wire.protocol import ACCEPTANCE_DAYS, SKEW_DAYS, BatchRefused


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


def collection_of(batch: Batch, registry: Registry, today: datetime.date) -> Collection:
    """The collection that takes a batch of this name, version, period and cell; BatchRefused."""
    try:
        collection = registry.get(batch.collection, batch.version)
    except ParamsError:
        raise BatchRefused("unknown-collection") from None
    if collection.expires is not None and today >= collection.expires:
        raise BatchRefused("expired-collection")
    try:
        check_period(collection.period, batch.period)
    except ParamsError:
        raise BatchRefused(
            "wrong-period", f"the collection's period is a {collection.period}"
        ) from None
    if not is_open(batch.period, today):
        raise BatchRefused(
            "period-closed",
            f"periods are taken from {ACCEPTANCE_DAYS} days ago to {SKEW_DAYS} day ahead, in UTC",
        )
    if collection.cell(dict(batch.dimensions)) != batch.dimensions:
        names = ", ".join(collection.dimensions) or "none"
        raise BatchRefused("wrong-dimensions", f"the collection's dimensions are: {names}")
    return collection


def check_shape(report_bits: int, highest_cohort: int, *, k: int, m: int) -> None:
    """BatchRefused unless reports of k bits and of cohorts below m were sent."""
    if report_bits != k:
        raise BatchRefused("wrong-params", f"the collection has k = {k}")
    if highest_cohort >= m:
        raise BatchRefused("wrong-params", f"the collection has cohorts from 0 to {m - 1}")
