"""Retention: what is too old, by the definitions of collections."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Literal

from rappor.collection import Collection, Registry, days_of
from rappor.errors import ParamsError
from rappor.store.cell_key import CellKey
from rappor.store.contract import Definition, RetentionResult
from rappor.store.definition_rules import parse

MAX_DAYS_AHEAD = 2  # of a clock: far more than time zones and leap seconds explain

Verdict = Literal["keep", "reports", "counts", "unknown"]


def is_ahead(today: date, true: date | None) -> bool:
    """Whether a day is too far ahead of the true one for a deletion that cannot be undone.

    >>> is_ahead(date(2026, 11, 18), date(2026, 11, 16)), is_ahead(date(2027, 1, 1), None)
    (False, False)
    >>> is_ahead(date(2026, 11, 19), date(2026, 11, 16))
    True
    """
    return true is not None and (today - true).days > MAX_DAYS_AHEAD


class RetentionRules:
    """The definitions that decide what retention removes.

    Args:
        saved: the definitions of the store.
        registry: definitions that are used instead of saved ones of the same name and version.
        today: the day of retention.

    Attributes:
        weekly: whether a collection has weeks, so that tokens are kept for longer.
    """

    def __init__(self, saved: list[Definition], registry: Registry | None, today: date) -> None:
        self._saved = {(item.collection, item.version): parse(item.toml) for item in saved}
        self._registry, self._today = registry, today
        collections = [*self._saved.values(), *(() if registry is None else registry)]
        self.weekly = any(collection.period == "week" for collection in collections)

    def verdict(self, key: CellKey, kept: int) -> Verdict:
        """What to remove of a cell with `kept` kept reports: its reports, all of it, or nothing.

        Nothing is removed of a collection without a definition ("unknown").
        """
        definition = self._definition(key)
        if definition is None:
            return "unknown"
        expired = definition.expires is not None and definition.expires <= self._today
        if expired and definition.on_expiry == "delete":
            return "counts"
        if kept and (expired or _last_day(key, definition) < self._today):
            return "reports"
        return "keep"

    def _definition(self, key: CellKey) -> Collection | None:
        if self._registry is not None:
            try:
                return self._registry.get(key.collection, key.version)
            except ParamsError:
                pass
        return self._saved.get((key.collection, key.version))


def _last_day(key: CellKey, definition: Collection) -> date:
    """The last day on which reports are kept: `keep_reports_days` after the period's end."""
    return days_of(key.period)[1] + timedelta(days=definition.keep_reports_days)


def retention_detail(done: RetentionResult) -> str:
    """What the audit log says about a retention."""
    return (
        f"{done.reports} kept reports, {len(done.count_cells)} cells of expired collections with "
        f"{done.counted} counted reports, {done.tokens} tokens"
    )
