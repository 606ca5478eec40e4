"""A trend: the periods that an address asks for, the job behind it, its lines and marks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from rappor.charts.numbers import show_finding
from rappor.charts.trends import MAX_MULTIPLES, Mark, TrendLine, TrendPoint
from rappor.collection import Collection, days_of
from rappor.collection.periods import period_of
from rappor.dashboard.candidates.candidate_upload import digest_of
from rappor.dashboard.context import Context
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import Freshness, PageWork, ResultReader, task_arguments
from rappor.dashboard.trends.period_results import PeriodResult, largest, line_of, unpack
from rappor.decoding.options import DECODER_VERSION

KIND = "trend"
DEFAULT_PERIODS = 13  # periods that are shown by default
MAX_PERIODS = 366
read_periods = ResultReader(unpack)


@dataclass(frozen=True, slots=True)
class TrendQuery:
    """The periods of a trend.

    Attributes:
        query: the query of the address, with the first and last period of the trend.
        collection: the newest definition.
        periods: the stored periods that it shows.
        stored: all stored periods.
        usual: the first period of an address that does not name one.
    """

    query: PageQuery
    collection: Collection
    periods: tuple[StoredPeriod, ...]
    stored: tuple[StoredPeriod, ...] = field(repr=False)
    usual: str = ""

    @property
    def key(self) -> str:
        """The key of its result: the same for all periods, so that the result grows with them."""
        query = self.query
        said = [
            DECODER_VERSION,
            query.collection,
            query.dimensions,
            query.correction,
            query.alpha,
            query.method,
            query.candidates,
        ]
        text = json.dumps(said, ensure_ascii=True, allow_nan=False)
        return blake2b(text.encode(), digest_size=16, person=b"rappor-trend").hexdigest()

    @property
    def reports(self) -> int:
        """Reports in all its periods."""
        return sum(period.reports for period in self.periods)

    @property
    def axis(self) -> list[str]:
        """All periods from the first to the last, also without reports."""
        if not self.periods:
            return []
        return axis_of(self.collection.period, self.periods[0].period, self.periods[-1].period)

    @property
    def silent(self) -> list[str]:
        """The periods among them without reports."""
        heard = {period.period for period in self.periods}
        return [period for period in self.axis if period not in heard]

    @property
    def carried(self) -> str:
        """The query string for other pages: the last period, unless a range was chosen."""
        chosen = self.query.first != self.usual
        return (self.query if chosen else replace(self.query, first=self.query.last)).carried

    def freshness(self, known: Mapping[str, PeriodResult]) -> Freshness:
        """Whether a period is missing from the known results, and how many reports came since."""
        missing, behind = False, 0
        for period in self.periods:
            result = known.get(period.period)
            if result is None or result.version != period.version:
                missing = True
            else:
                behind += period.reports - result.reports
        return Freshness(missing, behind)


def read_trend(context: Context, query: PageQuery, params: Mapping[str, str]) -> TrendQuery:
    """The trend that an address asks for; the last 13 periods if it does not name any.

    Args:
        context: the parts of the dashboard.
        query: the query of the address.
        params: its parameters: whether it names the first and the last period.
    """
    name = query.collection
    snapshot = context.catalogue.snapshot()
    asked = set(query.dimensions)
    counted: dict[int, dict[str, int]] = {}
    for version in context.catalogue.versions(name):
        periods = counted.setdefault(version, {})
        for cell in snapshot.slices.get((name, version), ()):
            if asked <= set(cell.dimensions):
                periods[cell.period] = periods.get(cell.period, 0) + cell.reports
    stored = tuple(stored_periods(counted))
    last = query.last if params.get("to") else (stored[-1].period if stored else "")
    until = [period for period in stored if period.period <= last]
    usual = until[-DEFAULT_PERIODS:][0].period if until else last
    first = query.first if params.get("from") else usual
    shown = tuple(period for period in until if first <= period.period)
    newest = stored[-1].period if stored else ""
    # An address leaves out default values; the default of `from` gives the last 13 periods.
    query = replace(query, first=first, last=last, usual={**query.usual, "to": newest})
    return TrendQuery(query, context.catalogue.get(name, query.version), shown, stored, usual)


def trend_work(context: Context, trend: TrendQuery) -> PageWork:
    """The job behind a trend; it takes over the saved periods that did not change."""
    query = trend.query
    saved = context.state.result(trend.key)

    def arguments() -> dict[str, Any]:
        given = task_arguments(context, query)
        strings = given["strings"]
        return given | {
            "spans": [(period.period, period.version) for period in trend.periods],
            "list_digest": None if strings is None else digest_of(strings),
            "known": None if saved is None else (saved.meta, saved.table or b""),
        }

    times = " – ".join(dict.fromkeys((query.first, query.last)))
    values = (value for _, value in query.dimensions)
    largest_period = max(trend.periods, key=lambda period: period.reports, default=None)
    return PageWork(
        kind=KIND,
        key=trend.key,
        label=f"Decoding {len(trend.periods)} periods",
        collection=trend.collection,
        arguments=arguments,
        reports=trend.reports,
        where=", ".join(part for part in (times, *values) if part),
        freshness=lambda result: trend.freshness(read_periods(result)),
        sample=None if largest_period is None else (largest_period.period, largest_period.reports),
        needs_list=True,
    )


def lines_of(trend: TrendQuery, known: Mapping[str, PeriodResult]) -> list[TrendLine]:
    """The lines to draw: those searched for, or the largest; ranges in their order."""
    chosen = {span.period: known[span.period] for span in trend.periods if span.period in known}
    names = largest(chosen.values(), 10**9 if trend.query.q else MAX_MULTIPLES)
    if trend.query.q:
        wanted = trend.query.q.casefold()
        others = {name for result in chosen.values() for name in result.rows} - set(names)
        names = [*names, *sorted(others)]
        names = [name for name in names if wanted in name.casefold()][:MAX_MULTIPLES]
    if trend.collection.ranges is not None:
        labels = {label: place for place, label in enumerate(trend.collection.ranges.labels)}
        names.sort(key=lambda name: labels.get(name, len(labels)))
    return [line_of(name, chosen, trend.axis) for name in names]


def undetected_mass_of(trend: TrendQuery, known: Mapping[str, PeriodResult]) -> list[TrendPoint]:
    """The undetected mass by period; empty if the kind has none."""
    points = []
    for period in trend.axis:
        result = known.get(period)
        mass = result.undetected_mass if result is not None else None
        points.append(
            TrendPoint(period, None, None, None)
            if mass is None
            else TrendPoint(period, *mass, detected=True, is_mass=True)
        )
    return points if any(point.share is not None for point in points) else []


def reports_of(trend: TrendQuery) -> list[tuple[str, int]]:
    """Stored reports by period; 0 if there are none."""
    counted = {span.period: span.reports for span in trend.periods}
    return [(period, counted.get(period, 0)) for period in trend.axis]


def trend_marks(context: Context, trend: TrendQuery) -> list[Mark]:
    """Marks where the version, p and q, or the list of candidates changed."""
    name = trend.query.collection
    definitions = {v: context.catalogue.get(name, v) for v in context.catalogue.versions(name)}
    lists: Sequence[tuple[int, Any]] = ()
    if trend.collection.kind == "string":
        lists = [
            (version.version, datetime.fromisoformat(version.made).date())
            for version in context.state.candidate_versions(name)
        ]
    return marks_of(trend.periods, definitions, lists)


class StoredPeriod(NamedTuple):
    """A period, the version of most of its reports, and the number of those reports."""

    period: str
    version: int
    reports: int


def stored_periods(counted: Mapping[int, Mapping[str, int]]) -> list[StoredPeriod]:
    """The version with the most reports for each stored period; the newest if they are equal.

    Args:
        counted: reports by version and period.

    >>> found = stored_periods({1: {"2026-W27": 90, "2026-W28": 10}, 2: {"2026-W28": 80}})
    >>> [tuple(period) for period in found]
    [('2026-W27', 1, 90), ('2026-W28', 2, 80)]
    """
    best: dict[str, StoredPeriod] = {}
    for version in sorted(counted):
        for period, reports in counted[version].items():
            if reports and (period not in best or reports >= best[period].reports):
                best[period] = StoredPeriod(period, version, reports)
    return [best[period] for period in sorted(best)]


def axis_of(kind: str, first: str, last: str) -> list[str]:
    """Every period from one to another, also without reports; at most the last 366.

    >>> axis_of("week", "2026-W52", "2027-W01")
    ['2026-W52', '2026-W53', '2027-W01']
    """
    day, end = days_of(first)[0], days_of(last)[0]
    step = timedelta(days=7 if kind == "week" else 1)
    found = []
    while day <= end:
        found.append(period_of(kind, day))
        day += step
    return found[-MAX_PERIODS:]


def marks_of(
    spans: Sequence[StoredPeriod],
    collections: Mapping[int, Collection],
    lists: Iterable[tuple[int, date]],
) -> list[Mark]:
    """Marks where the version, p and q of a schedule, or the list of candidates changed.

    Args:
        spans: the periods.
        collections: definitions by version.
        lists: version and day of each list of candidates.
    """
    if not spans:
        return []
    found: dict[str, list[str]] = {}
    for before, after in itertools.pairwise(spans):
        if before.version != after.version:
            found.setdefault(after.period, []).append(f"version {after.version}")
        elif (definition := collections.get(after.version)) and (
            definition.params_for(before.period) != definition.params_for(after.period)
        ):
            found.setdefault(after.period, []).append("p, q")
    kind = next(iter(collections.values())).period
    periods = {span.period for span in spans}
    for version, day in lists:
        period = period_of(kind, day)
        if version > 1 and period in periods:
            found.setdefault(period, []).append(f"list v{version}")
    return [Mark(period, ", ".join(found[period])) for period in sorted(found)]


def headline(lines: Sequence[TrendLine]) -> str:
    """The largest change from the first to the last period whose intervals do not meet, in words.

    >>> points = [
    ...     TrendPoint("2026-W27", 0.001, 0.0, 0.002),
    ...     TrendPoint("2026-W28", 0.049, 0.044, 0.054, True),
    ... ]
    >>> headline([TrendLine("a.org", points)]).replace("\u00a0", " ")
    'a.org rose from not detected to 4.90 % (4.40 – 5.40) since 2026-W27.'
    """
    changes = []
    for line in lines:
        known = [point for point in line.points if point.share is not None]
        if len(known) > 1 and _apart(known[0], known[-1]):
            size = abs((known[-1].share or 0.0) - (known[0].share or 0.0))
            changes.append((-size, line.name, known[0], known[-1]))
    if not changes:
        if any(len(line.points) > 1 for line in lines):
            return "No share changed by more than its intervals between the first and last period."
        return "One period so far: a trend needs two."
    _, name, first, last = min(changes)
    verb = "rose" if (last.share or 0.0) > (first.share or 0.0) else "fell"
    return f"{name} {verb} from {_words(first)} to {_words(last)} since {first.period}."


def _apart(one: TrendPoint, other: TrendPoint) -> bool:
    ends = (one.low, one.high, other.low, other.high)
    if None in ends or not (one.detected or other.detected):
        return False
    low, high, low_other, high_other = (float(end) for end in ends if end is not None)
    return high < low_other or high_other < low


def _words(point: TrendPoint) -> str:
    if not point.detected or point.share is None or point.low is None or point.high is None:
        return "not detected"
    return str(show_finding(point.share, point.low, point.high, point.detected))
