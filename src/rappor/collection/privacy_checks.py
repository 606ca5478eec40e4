"""Checks on the privacy of those who report to a collection: cautions of the paper (§6.1).

Each check is one function that yields `LintFinding`s.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from rappor.collection.definition import Collection
from rappor.collection.findings import LARGE_EPSILON, Check, LintFinding, about
from rappor.host import LOOPBACK_HOSTS
from rappor.privacy import MIN_COHORT, add_up, hides_a_shared_value, identifying_bits
from rappor.privacy.rounding import up

CLEARINGS = 12  # of a browser's storage: the example in the finding


def _several_clients(collection: Collection) -> Iterator[LintFinding]:
    """One person with several clients spends ε with each of them."""
    say, number = about(collection), collection.clients_per_person
    if number == 1:
        return
    total = up(add_up([(collection.max_epsilon, number)]))
    if not collection.account_secret:
        yield say(
            "several-clients",
            "error",
            "§6.1",
            f"A person may report from {number} clients, each with its own secret: together "
            f"they spend ε = {total}.",
            "Share one secret per account between the clients (account_secret = true), or set "
            "clients_per_person = 1 if each person has only one.",
        )
    elif collection.one_time and collection.params.f == 0:
        yield say(
            "several-one-time",
            "warning",
            "§6",
            f"With f = 0, each of {number} clients draws its own one-time report, even if they "
            f"share a secret: together they spend ε = {total}.",
            "Use one-time reports with p = 0 and q = 1, which are the same from every client.",
        )


def _platform(collection: Collection) -> Iterator[LintFinding]:
    """A client that loses its secret changes its cohort and draws a new B'."""
    if collection.platform != "web" or collection.account_secret:
        return
    what = "reports again" if collection.one_time else "draws another secret, B' and cohort"
    cap = collection.max_epsilon
    yield about(collection)(
        "forgetful-platform",
        "warning",
        "§6.1",
        f"A browser that clears its storage {what}, and looks like a new person. Each clearing "
        f"costs up to ε = {up(cap)} again: {CLEARINGS} of them, one a month for a year, "
        f"ε = {up(add_up([(cap, CLEARINGS)]))}. Some browsers clear a site by themselves that "
        "nobody has visited for a week.",
        "Keep the secret with the person's account (account_secret = true). Without accounts, use "
        "more noise so that several clearings stay within the ε you accept, end the collection "
        "early, and say in the privacy notice what clearing costs.",
    )


def _tracking(collection: Collection) -> Iterator[LintFinding]:
    """Too many bits on a value that all clients share, or a report that never changes."""
    say, params = about(collection), collection.params
    if collection.one_time or collection.budget:
        return  # B' is seen once
    if (params.p, params.q) == (0, 1):
        yield say(
            "linkable-reports",
            "error",
            "§6.1",
            "With p = 0 and q = 1 every report is B' itself, the same each time: anyone who sees "
            "two of them can tell that they come from one client.",
            "Use p > 0 or q < 1, or one_time = true.",
        )
    reports = collection.expected_reports or MIN_COHORT * params.m
    if collection.shared and not hides_a_shared_value(params, reports):
        yield say(
            "trackable-value",
            "error",
            "§6.1",
            f"If clients hold the same value, their {params.k} permanent bits still differ by "
            f"about {identifying_bits(params):.0f} bits of chance: enough to name each of "
            f"{reports:,} clients.",
            "Use fewer bits (rappor plan --shared finds them), one_time, or budget; or set "
            "shared = false if clients hold different values.",
        )


def _encryption(collection: Collection) -> Iterator[LintFinding]:
    """Reports travel encrypted."""
    if collection.upload is None:
        return
    try:
        address = urlsplit(collection.upload)
        host = address.hostname
    except ValueError:
        host = None
    if host and (
        address.scheme == "https" or (address.scheme == "http" and host in LOOPBACK_HOSTS)
    ):
        return
    yield about(collection)(
        "no-encryption",
        "error",
        "§6.1",
        "The upload address is not https: anyone on the way sees who reports, and can link the "
        "reports.",
        "Set upload to an https:// address; plain http is for this machine only.",
    )


def _changing_values(collection: Collection) -> Iterator[LintFinding]:
    """Each value that a client reports costs its own ε, and that it changed can be seen."""
    say = about(collection)
    if collection.one_time or collection.budget:
        return
    if collection.values == "fast":
        yield say(
            "fast-values",
            "error",
            "§6.1",
            "Memoization does not protect values that change fast: each value costs its own ε, and "
            "every change can be seen.",
            "Set budget = true with a schedule from rappor.privacy.spend, or one_time = true.",
        )
    elif collection.values == "slow" and collection.max_values == 1:
        yield say(
            "values-run-out",
            "warning",
            "§6.1",
            "A client's value changes, but a client may report only one value: after a change it "
            f"{after_the_limit(collection)}.",
            "Set max_values to the number of values that a client may report, and max_epsilon with "
            f'it: each costs {cost_of_a_value(collection)}. Or set values = "fixed" if the value '
            "never changes.",
        )


def after_the_limit(collection: Collection) -> str:
    """What a client does once it has reported as many values as it may."""
    return "sends null reports" if collection.null_reports else "falls silent"


def cost_of_a_value(collection: Collection) -> str:
    """The ε of one more value, in words."""
    ever = collection.epsilon_infinity
    if ever == float("inf"):
        return f"ε = {up(collection.epsilon_one)} for each report"
    return f"ε = {up(ever)}"


def _memory(collection: Collection) -> Iterator[LintFinding]:
    """Without a permanent response, repeated reports average the noise away."""
    say, ever = about(collection), collection.epsilon_infinity
    if collection.params.f == 0 and not (collection.one_time or collection.budget):
        yield say(
            "no-permanent-noise",
            "error",
            "§1.3",
            "With f = 0, every further report on a value costs another "
            f"ε = {up(collection.epsilon_one)}: repeated reports average the noise away.",
            "Use f > 0, or one_time = true, or budget = true.",
        )
    elif LARGE_EPSILON < ever < float("inf") and collection.kind != "bits":
        yield say(
            "large-epsilon",
            "warning",
            "§4.1",
            f"All reports on one value together cost ε = {up(ever)}; values in the literature go "
            f"from 0.01 to {LARGE_EPSILON:.0f}.",
            "Use a larger f or fewer hashes; rappor plan finds the best parameters for an ε.",
        )


def _cap(collection: Collection) -> Iterator[LintFinding]:
    """The limit on ε allows at least one report."""
    once = collection.epsilon_one
    if collection.max_epsilon < once:
        yield about(collection)(
            "cap-below-one-report",
            "error",
            "",
            f"One report costs ε = {up(once)}, but a client may spend only "
            f"{collection.max_epsilon!r}: no client will ever report.",
            f"Set max_epsilon to at least {up(once)}, or use more noise.",
        )


def _bits(collection: Collection) -> Iterator[LintFinding]:
    """No bit is unused, and a null report differs from every value."""
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
            "§2.1",
            f"{used} {what} use {used} of {collection.params.k} bits: the others are noise that is "
            "sent, stored and linkable.",
            f"Set params.k = {used}.",
        )
    if collection.null_reports and collection.kind in ("boolean", "bits"):
        yield say(
            "null-is-a-value",
            "warning",
            "",
            f"For kind {collection.kind}, the null report has the same bits as an ordinary value: "
            "the two are counted together.",
            "Use kind category with one more category, or null_reports = false.",
        )


PRIVACY_CHECKS: tuple[Check, ...] = (
    _several_clients,
    _platform,
    _tracking,
    _encryption,
    _changing_values,
    _memory,
    _cap,
    _bits,
)
