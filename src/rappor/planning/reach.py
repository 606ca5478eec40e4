"""Reach: the smallest share that a number of reports can show, and whether that is of use.

Also which period is shown by default: `default_period`, for commands, Python, pages and the demo.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from rappor.collection import Collection
from rappor.decoding.options import USEFUL
from rappor.mechanism.kinds import HASHED
from rappor.params import Params
from rappor.planning.power import detector
from rappor.privacy import critical_value

WANTED = 0.01  # the share that messages name as a goal
MAX_USEFUL = 0.125  # the most that `useful` can be: for few declared values, or a chosen part
NOUNS = {"string": "strings", "category": "categories", "ordinal": "ranges", "tuple": "pairs"}
ALPHA = 0.05  # the error rate at which the default period is chosen
_MAX_ALPHA = 0.49  # a single candidate has no critical value above it


class ReportReach(NamedTuple):
    """What N reports can show.

    Attributes:
        reports: N.
        smallest: the share that is detected in half of all cases.
        needed: at most about how many reports it takes for 1 %; inf if none would do.
        useful: the share that they should show for results to be worth a look.
    """

    reports: int
    smallest: float
    needed: float
    useful: float = USEFUL

    @property
    def too_few(self) -> bool:
        """Whether a useful share is missed in more than half of all cases."""
        return self.smallest > self.useful

    @property
    def too_few_for_a_part(self) -> bool:
        """The same for one country, which somebody chose: even a share of an eighth is missed."""
        return self.smallest > MAX_USEFUL


def reach_of(
    collection: Collection, period: str, reports: int, candidates: int, alpha: float
) -> ReportReach:
    """What reports can show, before a decode: the planner's formula for family-wise error.

    A decoded table has a threshold of its own, which a false discovery rate and detected strings
    lower. Its check `reports` uses that threshold, so the number here is an upper bound.

    >>> from rappor import Params
    >>> paper = Collection("homepage", 1, Params(128, 2, 64, 0.5, 0.5, 0.75))
    >>> found = reach_of(paper, "2026-11-16", 10**6, 200, 0.05)
    >>> f"{found.smallest:.2%} {found.needed:,.0f}"
    '0.99% 977,514'

    If a few values are declared, half of an even share is enough, if that is more than 5 %:

    >>> import dataclasses
    >>> four = dataclasses.replace(
    ...     paper,
    ...     params=Params(4, 1, 1, 0.5, 0.5, 0.75),
    ...     kind="category",
    ...     categories=("a", "b", "c", "d"),
    ... )
    >>> reach_of(four, "2026-11-16", 10**6, 4, 0.05).useful
    0.125
    """
    critical = critical_value(max(candidates, 1), min(alpha, _MAX_ALPHA))
    params = collection.params_for(period)
    smallest = detector(params, reports, critical, collection.kind).detectable(0.5).frequency
    if not math.isfinite(smallest):
        return ReportReach(reports, math.inf, math.inf)
    useful = USEFUL
    if collection.kind not in HASHED:
        useful = max(USEFUL, min(MAX_USEFUL, 0.5 / max(candidates, 1)))
    # The smallest share falls with the square root of the number of reports.
    return ReportReach(reports, smallest, reports * (smallest / WANTED) ** 2, useful)


class DefaultPeriod(NamedTuple):
    """The period that is shown if none is asked for.

    Attributes:
        period: the latest with enough reports; the latest of all if none has enough.
        enough: whether it has enough reports.
    """

    period: str
    enough: bool


def default_period(
    collection: Collection, counted: Iterable[tuple[str, int]], candidates: int
) -> DefaultPeriod | None:
    """The latest period with enough reports; the latest of all if none has; None without reports.

    Enough is what `ReportReach.too_few` says, over all dimensions and at an error rate of 5 %, so
    that the choice of a country or of another error rate does not move to another period.

    Args:
        collection: the collection, in the version that is shown.
        counted: its stored periods, each with the number of its reports, in any order.
        candidates: how many strings, categories or ranges are tested.

    >>> from rappor import Params
    >>> paper = Collection("homepage", 1, Params(128, 2, 64, 0.5, 0.5, 0.75))
    >>> days = [("2026-11-15", 10**6), ("2026-11-16", 10**6), ("2026-11-17", 2_000)]
    >>> default_period(paper, days, 200)
    DefaultPeriod(period='2026-11-16', enough=True)
    >>> default_period(paper, days[2:], 200)
    DefaultPeriod(period='2026-11-17', enough=False)
    """
    newest_first = sorted(((period, n) for period, n in counted if n > 0), reverse=True)
    too_few: dict[Params, int] = {}  # fewer reports than these are too few as well
    for period, reports in newest_first:
        params = collection.params_for(period)
        if reports > too_few.get(params, 0):
            if not reach_of(collection, period, reports, candidates, ALPHA).too_few:
                return DefaultPeriod(period, True)
            too_few[params] = reports
    return DefaultPeriod(newest_first[0][0], False) if newest_first else None


def values_tested(collection: Collection, candidates: int) -> int:
    """How many values a decode tests: the given number for hashed kinds, else the declared ones."""
    if collection.kind in HASHED:
        return candidates
    if collection.categories is not None:
        return len(collection.categories)
    if collection.ranges is not None:
        return len(collection.ranges.labels)
    return collection.params.k


def about(number: float) -> str:
    """A number of reports to two digits.

    >>> about(937_563), about(math.inf)
    ('940,000', 'more than any number')
    """
    if not math.isfinite(number):
        return "more than any number"
    place = max(0, math.floor(math.log10(max(number, 1))) - 1)
    return f"{round(number, -place):,.0f}"
