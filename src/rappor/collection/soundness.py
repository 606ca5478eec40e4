"""Checks of one collection beyond the paper's cautions: who answers for it, and its numbers."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import pairwise

from rappor.collection.cautions import LARGE_EPSILON, MOST_SLOTS, about
from rappor.collection.definition import Collection
from rappor.collection.finding import Finding
from rappor.collection.periods import days_of, periods_between
from rappor.privacy import add_up, epsilon_one
from rappor.privacy.rounding import up

MIB = 2**20
LARGE_COUNTS = 16 * MIB  # bytes of counts in one period; a collector rewrites what a report touches
MAX_COUNTS = 64 * MIB


def responsibility(collection: Collection, _: datetime.date) -> Iterator[Finding]:
    """R22 and R63: a description for the person who reports, an owner, and a review."""
    say = about(collection)
    if not collection.description.strip():
        yield say(
            "no-description",
            "error",
            "R22",
            "Nothing tells a person what is collected and what for.",
            "Write a description in the words of the person whose data it is.",
        )
    if not collection.owner.strip():
        yield say(
            "no-owner",
            "error",
            "R63",
            "Nobody answers for the collection.",
            "Set owner to a team or an address that will still be there when it ends.",
        )
    if collection.sensitivity == "high" and not collection.reviews:
        yield say(
            "no-review",
            "error",
            "R63",
            "The sensitivity is high and no review is named.",
            "Have it reviewed, and name where the review can be read in reviews.",
        )


def memory(collection: Collection, _: datetime.date) -> Iterator[Finding]:
    """R2 and R44: without a permanent response repeated reports average the noise away."""
    say, ever = about(collection), collection.epsilon_infinity
    if collection.params.f == 0 and not (collection.one_time or collection.budget):
        yield say(
            "no-permanent-noise",
            "error",
            "R2",
            "With f = 0 every further report on a value costs another "
            f"ε = {up(collection.epsilon_one)}: repeated reports average the noise away.",
            "Take f > 0, or one_time = true, or budget = true.",
        )
    elif LARGE_EPSILON < ever < float("inf") and collection.kind != "bits":
        yield say(
            "large-epsilon",
            "warning",
            "R44",
            f"All reports on one value together cost ε = {up(ever)}; the literature knows 0.01 "
            f"to {LARGE_EPSILON:.0f}.",
            "Take a larger f or fewer hashes; rappor plan finds the best ones for an ε.",
        )


def cap(collection: Collection, _: datetime.date) -> Iterator[Finding]:
    """The cap on ε allows at least one report."""
    once = collection.epsilon_one
    if collection.most_epsilon < once:
        yield about(collection)(
            "cap-below-one-report",
            "error",
            "R66",
            f"One report costs ε = {up(once)} and a client may spend no more than "
            f"{collection.most_epsilon!r}: no client will ever report.",
            f"Set most_epsilon to at least {up(once)}, or take more noise.",
        )


def bits(collection: Collection, _: datetime.date) -> Iterator[Finding]:
    """As many bits as there are categories or ranges, and a null report that can be told apart."""
    say = about(collection)
    used = None
    if collection.categories is not None:
        used, what = len(collection.categories), "categories"
    elif collection.ranges is not None:
        used, what = collection.ranges.count, "ranges"
    if used is not None and collection.params.k > used:
        yield say(
            "unused-bits",
            "warning",
            "R12",
            f"{used} {what} use {used} of {collection.params.k} bits: the others are noise that is "
            "sent, stored and linkable.",
            f"Set params.k = {used}.",
        )
    if collection.null_reports and collection.kind in ("boolean", "bits"):
        yield say(
            "null-is-a-value",
            "warning",
            "R3",
            f"For kind {collection.kind} the null report has the bits of an ordinary value: the "
            "two are counted together.",
            "Use kind category with one category more, or null_reports = false.",
        )


def size(collection: Collection, _: datetime.date) -> Iterator[Finding]:
    """The counts of a period are of a size that a collector can write while others wait."""
    room = collection.cells * collection.params.m * 8 * (collection.params.k + 1)
    if room <= LARGE_COUNTS or collection.cells * collection.params.m > MOST_SLOTS:
        return  # the latter is small-cells
    too_large = room > MAX_COUNTS
    yield about(collection)(
        "large-counts",
        "error" if too_large else "warning",
        "R67",
        f"The counts of one {collection.period} take up to {room / MIB:,.0f} MiB "
        f"({collection.cells:,} cells, {collection.params.m} cohorts, {collection.params.k} bits), "
        f"which strangers can have written; {MAX_COUNTS // MIB} MiB are the most that is sensible, "
        f"{LARGE_COUNTS // MIB} MiB plenty.",
        "Take fewer bits or cohorts (a new version), or declare fewer dimensions or values.",
    )


def budget(collection: Collection, today: datetime.date) -> Iterator[Finding]:
    """R32c: the budget lasts until the collection ends, or clients stop before it does."""
    if not collection.budget or collection.expires is None:
        return
    needed = epsilon_until_the_end(collection, today)
    if needed > collection.most_epsilon:
        yield about(collection)(
            "budget-runs-out",
            "warning",
            "R32",
            f"One report a {collection.period} until {collection.expires} costs "
            f"ε = {up(needed)}, and a client stops at {up(collection.most_epsilon)}.",
            "Lower q towards p (rappor.privacy.spend solves for it), raise most_epsilon, or end "
            "earlier.",
        )


def epsilon_until_the_end(collection: Collection, today: datetime.date) -> float:
    """What one report in every period costs from today to the end, in budget mode."""
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


def schedule(collection: Collection, _: datetime.date) -> Iterator[Finding]:
    """R32: noise that shrinks over time is rarely what was meant."""
    steps = [collection.params, *(collection.params_for(each[0]) for each in collection.schedule)]
    costs = [epsilon_one(params, collection.kind) for params in steps]
    if any(later > earlier for earlier, later in pairwise(costs)):
        yield about(collection)(
            "schedule-grows",
            "warning",
            "R32",
            "A later phase of the schedule has less noise than an earlier one: reports cost more "
            "as time goes on.",
            "Let q approach p from phase to phase.",
        )
