"""What the reports that were stored really held. Only the demo knows; a server never does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Held(NamedTuple):
    """What one report held, and where it was counted."""

    collection: str
    period: str
    country: str
    value: str


class Truth:
    """How many stored reports held what.

    >>> truth = Truth()
    >>> truth.add(Held("theme", "2026-11-16", "NZ", "dark"), 3)
    >>> truth.of("theme"), truth.of("theme", country="AU"), truth.reports
    ({'dark': 3}, {}, 3)
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self._held: Counter[Held] = Counter()

    def add(self, held: Held, times: int = 1) -> None:
        """Count reports."""
        self._held[held] += times

    @property
    def reports(self) -> int:
        """All reports."""
        return self._held.total()

    def of(
        self, collection: str, *, period: str | None = None, country: str | None = None
    ) -> dict[str, int]:
        """The reports of a collection by what they held."""
        found: Counter[str] = Counter()
        for held, times in self._held.items():
            if (
                held.collection == collection
                and period in (None, held.period)
                and country in (None, held.country)
            ):
                found[held.value] += times
        return dict(found)

    def to_lists(self) -> list[list[Any]]:
        """As plain data, for another process."""
        return [[*held, times] for held, times in self._held.items()]

    def add_lists(self, lists: Iterable[list[Any]]) -> None:
        """Add what another process counted."""
        for *held, times in lists:
            self.add(Held(*held), times)
