"""The periods of a trend: which there are, with which version, and where something changed."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rappor.charts.numbers import show_share
from rappor.charts.trends import Mark, TrendLine, TrendPoint
from rappor.collection import Collection, days_of
from rappor.collection.periods import period_of

USUAL = 13  # periods that are shown where none are chosen
MOST = 366


class Span(NamedTuple):
    """One period, the version that most of its reports are of, and how many reports that has."""

    period: str
    version: int
    reports: int


def spans_of(counted: Mapping[int, Mapping[str, int]]) -> list[Span]:
    """For each stored period the version with the most reports, the newest of equals.

    Args:
        counted: reports by version and period.

    >>> spans_of({1: {"2026-W27": 90, "2026-W28": 10}, 2: {"2026-W28": 80}})
    [Span(period='2026-W27', version=1, reports=90), Span(period='2026-W28', version=2, reports=80)]
    """
    best: dict[str, Span] = {}
    for version in sorted(counted):
        for period, reports in counted[version].items():
            if reports and (period not in best or reports >= best[period].reports):
                best[period] = Span(period, version, reports)
    return [best[period] for period in sorted(best)]


def axis_of(kind: str, first: str, last: str) -> list[str]:
    """Every period from one to another, so that one without reports is a gap; the last 366.

    >>> axis_of("week", "2026-W52", "2027-W01")
    ['2026-W52', '2026-W53', '2027-W01']
    """
    day, end = days_of(first)[0], days_of(last)[0]
    step = datetime.timedelta(days=7 if kind == "week" else 1)
    found = []
    while day <= end:
        found.append(period_of(kind, day))
        day += step
    return found[-MOST:]


def marks_of(
    spans: Sequence[Span],
    collections: Mapping[int, Collection],
    lists: Iterable[tuple[int, datetime.date]],
) -> list[Mark]:
    """Where the version, p and q of a schedule, or the list of candidates changed.

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
    """The largest change between the first and the last period, where intervals do not meet.

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
    return str(show_share(point.share, point.low, point.high))
