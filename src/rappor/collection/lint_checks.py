"""The paper's cautions as checks on one collection (§6.1, R63-R64, R67-R71)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlsplit

from rappor.collection.definition import Collection
from rappor.collection.periods import days_of, periods_between
from rappor.host import LOOPBACK_HOSTS
from rappor.privacy import (
    LEAST_COHORT,
    add_up,
    epsilon_one,
    hides_a_shared_value,
    identifying_bits,
    reports_in_a_cell,
)
from rappor.privacy.rounding import up

MIB = 2**20
LARGE_COUNTS = 16 * MIB  # bytes of counts in one period; a collector rewrites what a report touches
MAX_COUNTS = 64 * MIB
LONG_DAYS = 90  # single reports kept longer than this are warned of
FAR_DAYS = 2 * 366  # and collections that end later than this
MOST_SLOTS = 10**6  # cells times cohorts: a hundred reports in each are a hundred million
LARGE_EPSILON = 10.0  # the largest ε in the literature that the paper knows (R44)


@dataclass(frozen=True, slots=True)
class LintFinding:
    """What is wrong or unwise, why, and what to do about it.

    Attributes:
        code: its stable name; docs/collections.md lists them all.
        severity: error (do not collect like this) or warning (know this).
        requirement: the line of the requirements or section of the paper that it comes from.
        text: what was found, in one or two sentences.
        way_out: what to change.
        collection: the name and version it is about, or the file.
    """

    code: str
    severity: str
    requirement: str
    text: str
    way_out: str
    collection: str


def errors(findings: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    """Those that forbid collecting."""
    return tuple(each for each in findings if each.severity == "error")


Say = Callable[[str, str, str, str, str], LintFinding]


def about(collection: Collection) -> Say:
    """A function that makes the findings of a collection."""
    label = f"{collection.name} v{collection.version}"

    def say(code: str, severity: str, requirement: str, text: str, way_out: str) -> LintFinding:
        return LintFinding(code, severity, requirement, text, way_out, label)

    return say


def retention(collection: Collection, today: datetime.date) -> Iterator[LintFinding]:
    """R63: everything collected has an end, and single reports an early one."""
    say, expires = about(collection), collection.expires
    if expires is None:
        yield say(
            "no-expiry",
            "error",
            "R63",
            "There is no day on which the collection ends and what it holds is deleted.",
            "Set expires to a date, such as a year from now; a later review can move it.",
        )
    elif expires <= today:
        yield say(
            "expired",
            "error",
            "R63",
            f"The collection ended on {expires}: nothing is accepted, and all is deleted.",
            "Review it and move expires, or remove the file.",
        )
    elif (expires - today).days > FAR_DAYS:
        yield say(
            "expires-far-away",
            "warning",
            "R63",
            f"The collection ends on {expires}, more than two years from now.",
            "Set expires within two years, and move it when it is reviewed again.",
        )
    if collection.keep_reports_days > LONG_DAYS:
        yield say(
            "reports-kept-long",
            "warning",
            "R63",
            f"Single reports are kept for {collection.keep_reports_days} days; decoding needs "
            "only the counts.",
            f"Set keep_reports_days to 0, or to at most {LONG_DAYS}.",
        )


def several_clients(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """R64 and R59: one person with several clients spends ε with each."""
    say, number = about(collection), collection.clients_per_person
    if number == 1:
        return
    total = up(add_up([(collection.most_epsilon, number)]))
    if not collection.account_secret:
        yield say(
            "several-clients",
            "error",
            "R64",
            f"A person may report from {number} clients, each with a secret of its own: together "
            f"they spend ε = {total}.",
            "Share one secret per account between the clients (account_secret = true), or set "
            "clients_per_person = 1 if that is true.",
        )
    elif collection.one_time and collection.params.f == 0:
        yield say(
            "several-one-time",
            "warning",
            "R59",
            f"One-time reports with f = 0 are drawn anew by each of {number} clients, whether they "
            f"share a secret or not: together they spend ε = {total}.",
            "Use one-time reports with p = 0 and q = 1, which are the same from every client.",
        )


def small_cells(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """R67: enough reports in each version, period, cell and cohort to hide among."""
    say = about(collection)
    if collection.cells * collection.params.m > MOST_SLOTS:
        room = collection.cells * collection.params.m * 8 * (collection.params.k + 1)
        yield say(
            "small-cells",
            "error",
            "R67",
            f"{collection.cells:,} cells and {collection.params.m} cohorts are more than clients "
            f"can fill, and whoever cares to can make all of them: {room:.0e} bytes in a "
            f"{collection.period}.",
            "Declare fewer dimensions or values, or take fewer cohorts (a new version).",
        )
        return
    if collection.expected_reports is None:
        yield say(
            "no-expected-reports",
            "warning",
            "R67",
            "Nobody said how many reports a period will bring, so nobody knows how small its "
            "cells are.",
            "Set expected_reports to the number that all clients together send in a period.",
        )
        return
    cells = collection.cells
    size = reports_in_a_cell(collection.expected_reports, collection.params, cells)
    if size < LEAST_COHORT:
        split = f"{cells} cells and {collection.params.m} cohorts"
        yield say(
            "small-cells",
            "error",
            "R67",
            f"{collection.expected_reports:,} reports in a {collection.period} over {split} leave "
            f"about {size:.3g} in each: fewer than {LEAST_COHORT} are too few to hide among.",
            "Declare fewer dimensions or values, take fewer cohorts (a new version), or a week as "
            "the period.",
        )


def platform(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """R68: a client that forgets its secret changes its cohort and draws B' anew."""
    if collection.platform != "web" or collection.account_secret:
        return
    what = "reports again" if collection.one_time else "draws another secret, B' and cohort"
    yield about(collection)(
        "forgetful-platform",
        "warning",
        "R68",
        f"A browser that clears its storage {what}: ε holds between two clearings, and n of them "
        "cost n times as much.",
        "Keep the secret with the person's account (account_secret = true).",
    )


def tracking(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """R69: too many bits on a value that all clients share, or a report that never changes."""
    say, params = about(collection), collection.params
    if collection.one_time or collection.budget:
        return  # B' is seen once
    if (params.p, params.q) == (0, 1):
        yield say(
            "linkable-reports",
            "error",
            "R69",
            "With p = 0 and q = 1 every report is B' itself, the same each time: whoever sees two "
            "can tell that they come from one client.",
            "Take p > 0 or q < 1, or one_time = true.",
        )
    reports = collection.expected_reports or LEAST_COHORT * params.m
    if collection.shared and not hides_a_shared_value(params, reports):
        yield say(
            "trackable-value",
            "error",
            "R69",
            f"Where clients hold the same value, their {params.k} permanent bits differ by about "
            f"{identifying_bits(params):.0f} bits of chance: a name for each of {reports:,}.",
            "Take fewer bits (rappor plan --shared finds them), one_time, or budget; or set "
            "shared = false if clients differ.",
        )


def encryption(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """R70: reports travel encrypted."""
    if collection.upload is None:
        return
    try:
        address = urlsplit(collection.upload)
        host = address.hostname
    except ValueError:
        host = None
    if host and (
        address.scheme == "https" or (address.scheme, host in LOOPBACK_HOSTS) == ("http", True)
    ):
        return
    yield about(collection)(
        "no-encryption",
        "error",
        "R70",
        "The upload address is not https: on the way, anyone sees who reports, and can link it.",
        "Set upload to an https:// address; plain http is for this machine only.",
    )


def changing_values(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """R71 and R30: values that change have an ε each, and that they changed can be seen."""
    say = about(collection)
    if collection.one_time or collection.budget:
        return
    if collection.values == "fast":
        yield say(
            "fast-values",
            "error",
            "R71",
            "Values that change fast are not kept private by memoization: each has its own ε, and "
            "that it changed can be seen.",
            "Set budget = true with a schedule from rappor.privacy.spend, or one_time = true.",
        )
    elif collection.values == "slow" and collection.most_values == 1:
        yield say(
            "values-run-out",
            "warning",
            "R30",
            "A client's value changes, but only one is ever reported: after a change it falls "
            "silent, or sends null reports.",
            'Raise most_values, and most_epsilon with it; or set values = "fixed".',
        )


def responsibility(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def memory(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def cap(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def bits(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def size(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def budget(collection: Collection, today: datetime.date) -> Iterator[LintFinding]:
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


def schedule(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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
