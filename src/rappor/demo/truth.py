"""The true values behind the stored reports. Only the demo knows them; a server never does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class HeldValue(NamedTuple):
    """The value behind one report, and where the report was counted."""

    collection: str
    period: str
    country: str
    value: str


class Truth:
    """The number of stored reports for each value.

    >>> truth = Truth()
    >>> truth.add(HeldValue("theme", "2026-11-16", "NZ", "dark"), 3)
    >>> truth.of("theme"), truth.of("theme", country="AU"), truth.reports
    ({'dark': 3}, {}, 3)
    """

    def __init__(self) -> None:
        """Start without reports."""
        self._held: Counter[HeldValue] = Counter()

    def add(self, held: HeldValue, times: int = 1) -> None:
        """Count reports that held a value."""
        self._held[held] += times

    @property
    def reports(self) -> int:
        """The number of all reports."""
        return self._held.total()

    def of(
        self, collection: str, *, period: str | None = None, country: str | None = None
    ) -> dict[str, int]:
        """The number of reports of a collection for each value."""
        counts: Counter[str] = Counter()
        for held, times in self._held.items():
            if (
                held.collection == collection
                and period in (None, held.period)
                and country in (None, held.country)
            ):
                counts[held.value] += times
        return dict(counts)

    def to_lists(self) -> list[list[Any]]:
        """The counts as plain data, for another process."""
        return [[*held, times] for held, times in self._held.items()]

    def add_lists(self, lists: Iterable[list[Any]]) -> None:
        """Add the counts of another process."""
        for *held, times in lists:
            self.add(HeldValue(*held), times)
