"""Decode the demo's store as `rappor decode` does, and compare the results with the truth.

The counts come from the server's store, opened for reading only; the truth from the demo itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rappor.aggregate.stored_counts import BY_PERIOD, split, sum_cells
from rappor.collection import Collection
from rappor.decoding.decode import decode
from rappor.decoding.histogram import Histogram
from rappor.decoding.quality import too_few_reports
from rappor.decoding.result import Decoded, Row
from rappor.demo.definitions import HOMEPAGE, START, THEME
from rappor.demo.population import HIJACKER, candidates
from rappor.demo.truth import Truth
from rappor.simulate.judge import Judgement, judge
from rappor.store import StoredCounts, open_store


class EstimateAndTruth(NamedTuple):
    """An estimate and the true share.

    Attributes:
        label: a string, category, range, day or country.
        row: the decoded row.
        truth: the true share of the reports.
        verdict: found, missed, false (nobody holds it), or absent (rightly not found).
    """

    label: str
    row: Row
    truth: float
    verdict: str


@dataclass(frozen=True, slots=True)
class DemoResults:
    """All results of the demo.

    Attributes:
        homepages: the homepages of all days and countries together.
        judged: how they compare with the truth.
        rows: every candidate that was detected or held, the largest first.
        unlisted: the true share of reports whose homepage is on no list.
        by_day: the hijacker on each day.
        by_country: the hijacker in each country, all days together.
        themes: every category.
        starts: the histogram of start times.
        start_ranges: the ranges of the histogram.
        too_few_themes: says that there are too few reports for the themes; None if they suffice.
        too_few_starts: the same for start times.
    """

    homepages: Decoded
    judged: Judgement
    rows: tuple[EstimateAndTruth, ...]
    unlisted: float
    by_day: tuple[EstimateAndTruth, ...]
    by_country: tuple[EstimateAndTruth, ...]
    themes: tuple[EstimateAndTruth, ...]
    starts: Histogram
    start_ranges: tuple[EstimateAndTruth, ...]
    too_few_themes: str | None
    too_few_starts: str | None

    @property
    def hijacker(self) -> EstimateAndTruth:
        """The hijacker over all days and countries."""
        return next(row for row in self.rows if row.label == HIJACKER)


def decode_and_compare(data: Path, collections: Sequence[Collection], truth: Truth) -> DemoResults:
    """Decode the counts in the store and compare the results with the truth."""
    homepage, theme, start = (_named(collections, name) for name in (HOMEPAGE, THEME, START))
    with closing(open_store(data, read_only=True)) as store:
        cells = {
            collection.name: store.counts(collection.name, collection.version)
            for collection in collections
        }
    whole = _strings(homepage, cells[HOMEPAGE])
    held = truth.of(HOMEPAGE)
    judged = judge(whole, held)
    unlisted = 1 - sum(held.get(name, 0) for name in whole.rows.strings) / max(whole.reports, 1)
    starts = decode(sum_cells(cells[START], start), start.ranges).histogram
    themes = decode(sum_cells(cells[THEME], theme), theme.categories)
    if starts is None:
        raise TypeError("a result of another kind than its collection")
    return DemoResults(
        homepages=whole,
        judged=judged,
        rows=_rows(whole, held, judged),
        unlisted=unlisted,
        by_day=tuple(
            _hijacker(day, _strings(homepage, part), truth.of(HOMEPAGE, period=day))
            for day, part in split(cells[HOMEPAGE], BY_PERIOD).items()
        ),
        by_country=tuple(
            _hijacker(country, _strings(homepage, part), truth.of(HOMEPAGE, country=country))
            for country, part in split(cells[HOMEPAGE], "country").items()
        ),
        themes=_every(themes, truth.of(THEME), theme.categories or ()),
        starts=starts,
        start_ranges=_every(starts.decoded, truth.of(START), starts.labels),
        too_few_themes=too_few_reports(themes),
        too_few_starts=too_few_reports(starts.decoded),
    )


def _named(collections: Sequence[Collection], name: str) -> Collection:
    return next(collection for collection in collections if collection.name == name)


def _strings(collection: Collection, cells: Sequence[StoredCounts]) -> Decoded:
    return decode(sum_cells(cells, collection), candidates())


def _rows(
    whole: Decoded, held: Mapping[str, int], judged: Judgement
) -> tuple[EstimateAndTruth, ...]:
    named = {row.string for row in judged.rows} | {HIJACKER}
    rows = (row for row in whole.rows if row.string in named)
    return tuple(_compare(row.string, row, held, whole.reports) for row in rows)


def _every(
    decoded: Decoded, held: Mapping[str, int], labels: Sequence[str]
) -> tuple[EstimateAndTruth, ...]:
    """Every bit of a basic collection, in the order of its definition."""
    by_name = {row.string: row for row in decoded.rows}
    return tuple(_compare(label, by_name[label], held, decoded.reports) for label in labels)


def _hijacker(label: str, decoded: Decoded, held: Mapping[str, int]) -> EstimateAndTruth:
    compared = _compare(HIJACKER, decoded.row(HIJACKER), held, decoded.reports)
    return compared._replace(label=label)


def _compare(label: str, row: Row, held: Mapping[str, int], reports: int) -> EstimateAndTruth:
    times = held.get(label, 0)
    verdict = (
        ("found" if row.detected else "missed")
        if times
        else ("false" if row.detected else "absent")
    )
    return EstimateAndTruth(label, row, times / max(reports, 1), verdict)
