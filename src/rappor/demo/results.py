"""Decode the demo's store as `rappor decode` does, and compare the results with the truth.

The counts come from the server's store, as `rappor.open` reads it; the truth from the demo itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rappor.aggregate.stored_counts import BY_PERIOD
from rappor.decoding.association import Association
from rappor.decoding.candidates import Candidates
from rappor.decoding.histogram import Histogram
from rappor.decoding.quality import too_few_reports
from rappor.decoding.result import Decoded, Row
from rappor.demo.definitions import HOMEPAGE, INSTALL, START, THEME
from rappor.demo.population import HIJACKER, candidates, known_sites, pair_named
from rappor.demo.truth import Truth
from rappor.simulate.judge import Judgement, judge
from rappor.stored_view import ALL, StoredView
from rappor.view_results import associate_view, decode_view
from rappor.workspace import Workspace


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


class ChannelShare(NamedTuple):
    """How many of the hijacker's browsers came with a channel.

    Attributes:
        channel: the channel.
        share: its estimated share of the hijacker's reports; nan if they are too few to divide by.
        low_95: the lower end of its interval.
        high_95: the upper end.
        truth: its true share.
    """

    channel: str
    share: float
    low_95: float
    high_95: float
    truth: float


@dataclass(frozen=True, slots=True)
class DemoResults:
    """All results of the demo: by default those of the latest day with enough reports.

    Attributes:
        view: the homepage reports that a page shows first.
        others: the reports of the other collections.
        homepages: their homepages.
        judged: how they compare with the truth.
        rows: every candidate that was detected or held, the largest first.
        whole: the homepages of all days together.
        whole_judged: how they compare with the truth.
        by_day: the hijacker on each day.
        by_country: the hijacker in each country, on the day of `view`.
        themes: every category.
        starts: the histogram of start times.
        start_ranges: the ranges of the histogram.
        too_few_themes: says that there are too few reports for the themes; None if they suffice.
        too_few_starts: the same for start times.
        association: the joint table of homepage and channel, from one report of each browser.
        channels: how the hijacker's reports divide into channels.
    """

    view: StoredView
    others: tuple[StoredView, ...]
    homepages: Decoded
    judged: Judgement
    rows: tuple[EstimateAndTruth, ...]
    whole: Decoded
    whole_judged: Judgement
    by_day: tuple[EstimateAndTruth, ...]
    by_country: tuple[EstimateAndTruth, ...]
    themes: tuple[EstimateAndTruth, ...]
    starts: Histogram
    start_ranges: tuple[EstimateAndTruth, ...]
    too_few_themes: str | None
    too_few_starts: str | None
    association: Association
    channels: tuple[ChannelShare, ...]

    @property
    def reports(self) -> dict[str, int]:
        """The reports of the first page of each collection that has enough of them."""
        views = (self.view, *self.others)
        return {view.collection.name: view.reports for view in views if view.enough}

    @property
    def period(self) -> str:
        """The day of the first table."""
        return self.view.periods[-1]

    @property
    def hijacker(self) -> EstimateAndTruth:
        """The hijacker on the day of the first table."""
        return next(row for row in self.rows if row.label == HIJACKER)


def decode_and_compare(data: Path, truth: Truth, seed: int) -> DemoResults:
    """Decode what pages show of the store, and compare the results with the truth."""
    workspace = Workspace(data)
    listed = Candidates.of(candidates())
    view = workspace.view(HOMEPAGE, candidates=len(listed))
    every = workspace.view(HOMEPAGE, period=ALL)
    found, whole = decode_view(view, listed), decode_view(every, listed)
    held = truth.of(HOMEPAGE, period=view.periods[-1])
    judged = judge(found, held)
    theme, start = (workspace.view(name) for name in (THEME, START))
    starts = decode_view(start, None).histogram
    themes = decode_view(theme, None)
    sites = known_sites(seed)
    install = workspace.view(INSTALL, candidates=len(sites))
    association = associate_view(install, {"homepage": sites})
    if starts is None:
        raise TypeError("a result of another kind than its collection")
    return DemoResults(
        view=view,
        others=(theme, start, install),
        homepages=found,
        judged=judged,
        rows=_rows(found, held, judged),
        whole=whole,
        whole_judged=judge(whole, truth.of(HOMEPAGE)),
        by_day=tuple(
            _hijacker(day, decode_view(part, listed), truth.of(HOMEPAGE, period=day))
            for day, part in every.by(BY_PERIOD).items()
        ),
        by_country=tuple(
            _hijacker(
                country,
                decode_view(part, listed),
                truth.of(HOMEPAGE, period=view.periods[-1], country=country),
            )
            for country, part in view.by("country").items()
        ),
        themes=_every(
            themes, truth.of(THEME, period=theme.periods[-1]), theme.collection.categories or ()
        ),
        starts=starts,
        start_ranges=_every(
            starts.decoded, truth.of(START, period=start.periods[-1]), starts.labels
        ),
        too_few_themes=too_few_reports(themes),
        too_few_starts=too_few_reports(starts.decoded),
        association=association,
        channels=_channels(association, truth.of(INSTALL, period=install.periods[-1])),
    )


def _channels(association: Association, held: Mapping[str, int]) -> tuple[ChannelShare, ...]:
    """How the hijacker's reports divide into channels, next to the truth."""
    channels = association.labels[1]
    true = [held.get(pair_named(HIJACKER, channel), 0) for channel in channels]
    return tuple(
        ChannelShare(
            channel,
            cell.share_given_first,
            cell.given_first_low_95,
            cell.given_first_high_95,
            times / max(sum(true), 1),
        )
        for channel, times in zip(channels, true, strict=True)
        for cell in [association.cell(HIJACKER, channel)]
    )


def _rows(
    decoded: Decoded, held: Mapping[str, int], judged: Judgement
) -> tuple[EstimateAndTruth, ...]:
    named = {row.string for row in judged.rows} | {HIJACKER}
    rows = (row for row in decoded.rows if row.string in named)
    return tuple(_compare(row.string, row, held) for row in rows)


def _every(
    decoded: Decoded, held: Mapping[str, int], labels: Sequence[str]
) -> tuple[EstimateAndTruth, ...]:
    """Every bit of a basic collection, in the order of its definition."""
    by_name = {row.string: row for row in decoded.rows}
    return tuple(_compare(label, by_name[label], held) for label in labels)


def _hijacker(label: str, decoded: Decoded, held: Mapping[str, int]) -> EstimateAndTruth:
    compared = _compare(HIJACKER, decoded.row(HIJACKER), held)
    return compared._replace(label=label)


def _compare(label: str, row: Row, held: Mapping[str, int]) -> EstimateAndTruth:
    times = held.get(label, 0)
    verdict = (
        ("found" if row.detected else "missed")
        if times
        else ("false" if row.detected else "absent")
    )
    return EstimateAndTruth(label, row, times / max(sum(held.values()), 1), verdict)
