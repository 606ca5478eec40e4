"""The paper's cautions as checks on one collection (§6.1, R63-R64, R67-R71)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from rappor.collection.definition import Collection
from rappor.collection.finding import Finding
from rappor.privacy import (
    LEAST_COHORT,
    add_up,
    hides_a_shared_value,
    identifying_bits,
    reports_in_a_cell,
)
from rappor.privacy.rounding import up

LONG_DAYS = 90  # single reports kept longer than this are warned of
FAR_DAYS = 2 * 366  # and collections that end later than this
MOST_SLOTS = 10**6  # cells times cohorts: a hundred reports in each are a hundred million
LARGE_EPSILON = 10.0  # the largest ε in the literature that the paper knows (R44)

Say = Callable[[str, str, str, str, str], Finding]
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def about(collection: Collection) -> Say:
    """A function that makes the findings of a collection."""
    label = f"{collection.name} v{collection.version}"

    def say(code: str, severity: str, requirement: str, text: str, way_out: str) -> Finding:
        return Finding(code, severity, requirement, text, way_out, label)

    return say


def retention(collection: Collection, today: datetime.date) -> Iterator[Finding]:
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


def several_clients(collection: Collection, _: datetime.date) -> Iterator[Finding]:
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


def small_cells(collection: Collection, _: datetime.date) -> Iterator[Finding]:
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


def platform(collection: Collection, _: datetime.date) -> Iterator[Finding]:
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


def tracking(collection: Collection, _: datetime.date) -> Iterator[Finding]:
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


def encryption(collection: Collection, _: datetime.date) -> Iterator[Finding]:
    """R70: reports travel encrypted."""
    if collection.upload is None:
        return
    try:
        address = urlsplit(collection.upload)
        host = address.hostname
    except ValueError:
        host = None
    if host and (
        address.scheme == "https" or (address.scheme, host in _LOOPBACK) == ("http", True)
    ):
        return
    yield about(collection)(
        "no-encryption",
        "error",
        "R70",
        "The upload address is not https: on the way, anyone sees who reports, and can link it.",
        "Set upload to an https:// address; plain http is for this machine only.",
    )


def changing_values(collection: Collection, _: datetime.date) -> Iterator[Finding]:
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
