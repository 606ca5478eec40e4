"""What the Trends page shows: periods, lines, marks, and which work that needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from rappor.charts.trends import MOST, Mark, TrendLine, TrendPoint
from rappor.collection import Collection
from rappor.dashboard.candidates.candidate_upload import digest_of
from rappor.dashboard.context import Desk
from rappor.dashboard.page_query import View
from rappor.dashboard.stage import Needed
from rappor.dashboard.state.records import SavedResult
from rappor.dashboard.trends.period_results import PeriodResult, largest, line_of
from rappor.dashboard.trends.spans import USUAL, Span, axis_of, marks_of, spans_of

KIND = "trend"


@dataclass(frozen=True, slots=True)
class TrendView:
    """The periods of a trend.

    Attributes:
        view: the address, its `first` and `last` being those of the trend.
        collection: the newest definition.
        spans: the stored periods among them.
        stored: all stored periods.
        usual: the first period where an address does not say which.
    """

    view: View
    collection: Collection
    spans: tuple[Span, ...]
    stored: tuple[Span, ...] = field(repr=False)
    usual: str = ""

    @property
    def key(self) -> str:
        """What its result is kept under: the same for all periods, so that it grows with them."""
        view = self.view
        said = [
            view.collection,
            view.dimensions,
            view.correction,
            view.alpha,
            view.method,
            view.candidates,
        ]
        text = json.dumps(said, ensure_ascii=True, allow_nan=False)
        return blake2b(text.encode(), digest_size=16, person=b"rappor-trend").hexdigest()

    @property
    def reports(self) -> int:
        """Reports in all its periods."""
        return sum(span.reports for span in self.spans)

    @property
    def axis(self) -> list[str]:
        """All periods from the first to the last, also those without reports."""
        if not self.spans:
            return []
        return axis_of(self.collection.period, self.spans[0].period, self.spans[-1].period)

    @property
    def silent(self) -> list[str]:
        """The periods among them without reports."""
        heard = {span.period for span in self.spans}
        return [period for period in self.axis if period not in heard]

    @property
    def carried(self) -> str:
        """What other pages are told of its address: the last period, unless a range was chosen."""
        chosen = self.view.first != self.usual
        return (self.view if chosen else replace(self.view, first=self.view.last)).carried

    def needs(self, known: Mapping[str, PeriodResult]) -> tuple[bool, int]:
        """Whether a period is missing from what is known, and how many reports came since."""
        missing, behind = False, 0
        for span in self.spans:
            result = known.get(span.period)
            if result is None or result.version != span.version:
                missing = True
            else:
                behind += span.reports - result.reports
        return missing, behind


def read_trend(desk: Desk, query: Mapping[str, str], name: str) -> TrendView:
    """The trend that an address asks for; the last 13 periods where it does not say which."""
    view = View.of({**query, "version": ""}, desk.catalogue, desk.state, name)
    picture = desk.catalogue.picture()
    asked = set(view.dimensions)
    counted: dict[int, dict[str, int]] = {}
    for version in desk.catalogue.versions(name):
        periods = counted.setdefault(version, {})
        for cell in picture.slices.get((name, version), ()):
            if asked <= set(cell.pairs):
                periods[cell.period] = periods.get(cell.period, 0) + cell.reports
    stored = tuple(spans_of(counted))
    last = view.last if query.get("to") else (stored[-1].period if stored else "")
    until = [span for span in stored if span.period <= last]
    usual = until[-USUAL:][0].period if until else last
    first = view.first if query.get("from") else usual
    spans = tuple(span for span in until if first <= span.period)
    newest = stored[-1].period if stored else ""
    # An address leaves out what is usual; `from` is usual where it is that of the last 13.
    shown = replace(view, first=first, last=last, usual={**view.usual, "to": newest})
    return TrendView(shown, desk.catalogue.get(name, view.version), spans, stored, usual)


def needed(desk: Desk, trend: TrendView, saved: SavedResult | None) -> Needed:
    """The work behind a trend, which takes over what was kept."""
    view = trend.view

    def arguments() -> dict[str, Any]:
        listed = None
        if view.candidates is not None:
            listed = desk.state.candidates(view.collection, view.candidates)
        strings = None if listed is None else list(listed.strings)
        return {
            "data": str(desk.settings.data),
            "today": desk.catalogue.today().isoformat(),
            "collection": view.collection,
            "spans": [[span.period, span.version] for span in trend.spans],
            "dimensions": [list(pair) for pair in view.dimensions],
            "list": view.candidates,
            "list_digest": None if strings is None else digest_of(strings),
            "strings": strings,
            "correction": view.correction,
            "alpha": view.alpha,
            "method": view.method,
            "known": None if saved is None else (saved.meta, saved.table or b""),
        }

    label = f"Decoding {len(trend.spans)} periods"
    return Needed(KIND, trend.key, label, view.collection, arguments)


def lines_of(trend: TrendView, known: Mapping[str, PeriodResult]) -> list[TrendLine]:
    """The lines to draw: those searched for, or the largest; ranges in their order."""
    chosen = {span.period: known[span.period] for span in trend.spans if span.period in known}
    names = largest(chosen.values(), 10**9 if trend.view.q else MOST)
    if trend.view.q:
        wanted = trend.view.q.casefold()
        others = {name for result in chosen.values() for name in result.rows} - set(names)
        names = [*names, *sorted(others)]
        names = [name for name in names if wanted in name.casefold()][:MOST]
    if trend.collection.ranges is not None:
        labels = {label: place for place, label in enumerate(trend.collection.ranges.labels)}
        names.sort(key=lambda name: labels.get(name, len(labels)))
    return [line_of(name, chosen, trend.axis) for name in names]


def unlisted_of(trend: TrendView, known: Mapping[str, PeriodResult]) -> list[TrendPoint]:
    """The unlisted mass by period; empty where the kind has none."""
    points = []
    for period in trend.axis:
        result = known.get(period)
        mass = result.unlisted if result is not None else None
        points.append(
            TrendPoint(period, None, None, None)
            if mass is None
            else TrendPoint(period, *mass, True)
        )
    return points if any(point.share is not None for point in points) else []


def reports_of(trend: TrendView) -> list[tuple[str, int]]:
    """Stored reports by period, 0 where there are none."""
    counted = {span.period: span.reports for span in trend.spans}
    return [(period, counted.get(period, 0)) for period in trend.axis]


def trend_marks(desk: Desk, trend: TrendView) -> list[Mark]:
    """Where version, p and q, or the list of candidates changed."""
    name = trend.view.collection
    definitions = {v: desk.catalogue.get(name, v) for v in desk.catalogue.versions(name)}
    lists: Sequence[tuple[int, Any]] = ()
    if trend.collection.kind == "string":
        lists = [
            (each.version, datetime.fromisoformat(each.made).date())
            for each in desk.state.candidate_versions(name)
        ]
    return marks_of(trend.spans, definitions, lists)
