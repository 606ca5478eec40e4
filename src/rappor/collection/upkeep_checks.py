"""Checks on how a collection is run: who answers for it, and how long it lasts.

Each check is one function that yields `LintFinding`s.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from itertools import pairwise

from rappor.collection.definition import Collection
from rappor.collection.expiry import NOTICE_DAYS, at_expiry
from rappor.collection.findings import LintFinding, about
from rappor.collection.periods import days_of, periods_between
from rappor.privacy import add_up, epsilon_one
from rappor.privacy.rounding import up

LONG_DAYS = 90  # keeping single reports longer than this is a warning
FAR_DAYS = 2 * 366  # so is an end later than this


def _responsibility(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """A description for the person who reports, an owner, and a review."""
    say = about(collection)
    if not collection.description.strip():
        yield say(
            "no-description",
            "error",
            "§1.1",
            "Nothing tells people what is collected, and why.",
            "Write a description for the person whose data it is.",
        )
    if not collection.owner.strip():
        yield say(
            "no-owner",
            "error",
            "",
            "Nobody is responsible for the collection.",
            "Set owner to a team or an address that will still exist when the collection ends.",
        )
    if collection.sensitivity == "high" and not collection.reviews:
        yield say(
            "no-review",
            "error",
            "",
            "The sensitivity is high, but no review is named.",
            "Have the collection reviewed, and link to the review in reviews.",
        )


def _retention(collection: Collection, today: datetime.date) -> Iterator[LintFinding]:
    """Every collection ends, and single reports are deleted early."""
    say, expires = about(collection), collection.expires
    if expires is None:
        yield say(
            "no-expiry",
            "error",
            "§6.1",
            "The collection never ends, and its data is never deleted.",
            "Set expires to a date, such as a year from now; a later review can move it.",
        )
    elif expires <= today:
        yield say(
            "expired",
            "error",
            "§6.1",
            f"The collection ended on {expires}: no report is accepted, and "
            f"{at_expiry(collection)}.",
            "Review it and move expires, or remove the file.",
        )
    elif (expires - today).days <= NOTICE_DAYS:
        yield say(
            "expires-soon",
            "warning",
            "§6.1",
            f"The collection ends on {expires}: from then on no report is accepted, and "
            f"{at_expiry(collection)}.",
            "Export what you need, or review it and move expires.",
        )
    elif (expires - today).days > FAR_DAYS:
        yield say(
            "expires-far-away",
            "warning",
            "§6.1",
            f"The collection ends on {expires}, more than two years from now.",
            "Set expires to a day within two years, and move it at the next review.",
        )
    if collection.on_expiry == "keep-counts":
        yield say(
            "counts-kept",
            "warning",
            "",
            "Counts stay after the collection has ended, until somebody deletes them.",
            'Set on_expiry to "delete", or name the day in the description and run rappor '
            "collection retire on it.",
        )
    if collection.keep_reports_days > LONG_DAYS:
        yield say(
            "reports-kept-long",
            "warning",
            "§6.1",
            f"Single reports are kept for {collection.keep_reports_days} days; decoding needs "
            "only the counts.",
            f"Set keep_reports_days to 0, or to at most {LONG_DAYS}.",
        )


def _schedule(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """Noise that shrinks over time is rarely intended."""
    steps = [collection.params, *(collection.params_for(phase[0]) for phase in collection.schedule)]
    costs = [epsilon_one(params, collection.kind) for params in steps]
    if any(later > earlier for earlier, later in pairwise(costs)):
        yield about(collection)(
            "schedule-grows",
            "warning",
            "§6.1",
            "A later phase of the schedule has less noise than an earlier one: reports cost more "
            "over time.",
            "Bring q closer to p from phase to phase.",
        )


def _budget(collection: Collection, today: datetime.date) -> Iterator[LintFinding]:
    """The budget lasts until the collection ends; otherwise clients stop before that."""
    if not collection.budget or collection.expires is None:
        return
    needed = epsilon_until_the_end(collection, today)
    if needed > collection.max_epsilon:
        yield about(collection)(
            "budget-runs-out",
            "warning",
            "§6.1",
            f"One report a {collection.period} until {collection.expires} costs "
            f"ε = {up(needed)}, but a client stops at {up(collection.max_epsilon)}.",
            "Bring q closer to p (rappor.privacy.spend solves for it), raise max_epsilon, or end "
            "the collection earlier.",
        )


def epsilon_until_the_end(collection: Collection, today: datetime.date) -> float:
    """The ε of one report in every period from today to the end, in budget mode."""
    if collection.expires is None:
        return float("inf")
    last = collection.expires - datetime.timedelta(days=1)
    starts = [(today, collection.params)]
    for phase in collection.schedule:
        first, _ = days_of(phase.first_period)
        params = collection.params_for(phase.first_period)
        starts = [(today, params)] if first <= today else [*starts, (first, params)]
    ends = [*(first - datetime.timedelta(days=1) for first, _ in starts[1:]), last]
    return add_up(
        (
            epsilon_one(params, collection.kind),
            periods_between(collection.period, first, min(end, last)),
        )
        for (first, params), end in zip(starts, ends, strict=True)
    )


UPKEEP_CHECKS: tuple[Callable[[Collection, datetime.date], Iterator[LintFinding]], ...] = (
    _responsibility,
    _retention,
    _schedule,
    _budget,
)
