"""lint: the cautions of the paper (§6.1), and some of common sense, as findings with stable codes.

Each check is one function that yields `LintFinding`s. docs/collections.md lists every code.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlsplit

from rappor.collection.definition import Collection
from rappor.collection.expiry import NOTICE_DAYS, at_expiry
from rappor.collection.periods import days_of, periods_between
from rappor.collection.registry import Registry
from rappor.collection.toml import RENAMED, renamed_fields, stated_fields
from rappor.host import LOOPBACK_HOSTS
from rappor.privacy import (
    MIN_COHORT,
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
LONG_DAYS = 90  # keeping single reports longer than this is a warning
FAR_DAYS = 2 * 366  # so is an end later than this
MAX_SLOTS = 10**6  # cells times cohorts: 100 reports in each make 100 million
LARGE_EPSILON = 10.0  # the largest ε in the literature, by §4.1
MAX_TOTAL_EPSILON = 30.0  # of one client over all collections; five with three values make 30.6
MANY_COLLECTIONS = 20


@dataclass(frozen=True, slots=True)
class LintFinding:
    """What is wrong or unwise, why, and what to do about it.

    Attributes:
        code: its stable name; docs/collections.md lists all codes.
        severity: error (do not collect like this) or warning (know this before you collect).
        source: the section of the paper that it comes from; empty if there is none.
        text: what lint found, in one or two sentences.
        way_out: what to change.
        collection: the name and version of the collection, or the name of the file.
    """

    code: str
    severity: str
    source: str
    text: str
    way_out: str
    collection: str


def lint(
    collection: Collection, others: Iterable[Collection] = (), today: datetime.date | None = None
) -> tuple[LintFinding, ...]:
    """All findings about a collection, errors first.

    Args:
        collection: the collection to check.
        others: the other collections that the same clients report to, for the checks on groups and
            totals. Older versions, and versions of `collection` itself, are ignored.
        today: the day to check expiry against; today in UTC if None.

    >>> from rappor.params import Params
    >>> made = Collection("homepage", 1, Params.preset("windows"), expected_reports=10**6)
    >>> [finding.code for finding in lint(made)]
    ['no-description', 'no-owner', 'no-expiry']
    """
    day = today or datetime.datetime.now(datetime.UTC).date()
    rest = Registry(other for other in others if other.name != collection.name).newest()
    found = [finding for check in CHECKS for finding in check(collection, day)]
    found += [finding for check in JOINT_CHECKS for finding in check(collection, rest)]
    return _errors_first(found)


def lint_all(
    collections: Iterable[Collection], today: datetime.date | None = None
) -> tuple[LintFinding, ...]:
    """Lint the newest version of each collection together with all others, errors first.

    A finding about a group, or about all collections together, is given once.
    """
    newest = Registry(collections).newest()
    found: list[LintFinding] = []
    given: set[str | None] = set()
    for collection in newest:
        once = {"correlated-group": collection.group, "too-much-in-total": ""}
        for finding in lint(collection, newest, today):
            if finding.code in once:
                if once[finding.code] in given:
                    continue
                given.add(once[finding.code])
            found.append(finding)
    return _errors_first(found)


def errors(findings: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    """The findings that forbid collecting."""
    return tuple(finding for finding in findings if finding.severity == "error")


def _errors_first(findings: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    return tuple(sorted(findings, key=lambda finding: finding.severity != "error"))


Say = Callable[[str, str, str, str, str], LintFinding]


def about(collection: Collection) -> Say:
    """A function that makes the findings of a collection."""
    label = f"{collection.name} v{collection.version}"

    def say(code: str, severity: str, source: str, text: str, way_out: str) -> LintFinding:
        return LintFinding(code, severity, source, text, way_out, label)

    return say


def lint_text(collection: Collection, text: str) -> Iterator[LintFinding]:
    """Findings about the text of a definition: old names, and a default that nobody chose."""
    say = about(collection)
    if not (collection.one_time or collection.budget) and stated_fields(text).isdisjoint(
        ("values", "max_values")
    ):
        yield say(
            "values-not-stated",
            "warning",
            "§6.1",
            "Nothing says whether a client's value can change. By default a client may report one "
            f"value in all: after a change it {_after_the_limit(collection)}.",
            'Set values = "fixed" if it never changes; else values = "slow", and max_values to the '
            f"number that a client may report. Each value costs {_cost_of_a_value(collection)}.",
        )
    for old in renamed_fields(text):
        name = RENAMED[old]
        yield say(
            "renamed-field",
            "warning",
            "",
            f"{old} is the old name of {name}. It is still read, and means the same.",
            f"Rename it to {name}. This needs no new version.",
        )


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


def _several_clients(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def _small_cells(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """Each version, period, cell and cohort has enough reports to hide among."""
    say = about(collection)
    if collection.cells * collection.params.m > MAX_SLOTS:
        yield say(
            "small-cells",
            "error",
            "§6.1",
            f"{collection.cells:,} cells and {collection.params.m} cohorts are more than clients "
            f"can fill. Anyone can fill all of them: {_counts_bytes(collection):.0e} bytes in a "
            f"{collection.period}.",
            "Declare fewer dimensions or values, or use fewer cohorts (a new version).",
        )
        return
    if collection.expected_reports is None:
        yield say(
            "no-expected-reports",
            "warning",
            "§6.1",
            "The number of reports in a period is not stated, so lint cannot tell how small the "
            "cells are.",
            "Set expected_reports to the number that all clients together send in a period.",
        )
        return
    cells = collection.cells
    size = reports_in_a_cell(collection.expected_reports, collection.params, cells)
    if size < MIN_COHORT:
        yield say(
            "small-cells",
            "error",
            "§6.1",
            f"{collection.expected_reports:,} reports in a {collection.period}, spread over "
            f"{cells} cells and {collection.params.m} cohorts, leave about {size:.3g} in each: "
            f"fewer than {MIN_COHORT} are too few to hide among.",
            "Declare fewer dimensions or values, use fewer cohorts (a new version), or make the "
            "period a week.",
        )


def _platform(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """A client that loses its secret changes its cohort and draws a new B'."""
    if collection.platform != "web" or collection.account_secret:
        return
    what = "reports again" if collection.one_time else "draws another secret, B' and cohort"
    yield about(collection)(
        "forgetful-platform",
        "warning",
        "§6.1",
        f"A browser that clears its storage {what}: ε holds from one clearing to the next, and n "
        "clearings cost n times as much.",
        "Keep the secret with the person's account (account_secret = true).",
    )


def _tracking(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def _encryption(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def _changing_values(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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
            f"{_after_the_limit(collection)}.",
            "Set max_values to the number of values that a client may report, and max_epsilon with "
            f'it: each costs {_cost_of_a_value(collection)}. Or set values = "fixed" if the value '
            "never changes.",
        )


def _after_the_limit(collection: Collection) -> str:
    return "sends null reports" if collection.null_reports else "falls silent"


def _cost_of_a_value(collection: Collection) -> str:
    ever = collection.epsilon_infinity
    if ever == float("inf"):
        return f"ε = {up(collection.epsilon_one)} for each report"
    return f"ε = {up(ever)}"


def _memory(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def _cap(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def _bits(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
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


def _size(collection: Collection, _: datetime.date) -> Iterator[LintFinding]:
    """A collector can write the counts of a period without making others wait."""
    room = _counts_bytes(collection)
    if room <= LARGE_COUNTS or collection.cells * collection.params.m > MAX_SLOTS:
        return  # too many slots are a finding of small-cells
    too_large = room > MAX_COUNTS
    yield about(collection)(
        "large-counts",
        "error" if too_large else "warning",
        "",
        f"The counts of one {collection.period} take up to {room / MIB:,.0f} MiB "
        f"({collection.cells:,} cells, {collection.params.m} cohorts, {collection.params.k} bits), "
        f"and anyone can make them grow to that. More than {LARGE_COUNTS // MIB} MiB is a lot; "
        f"more than {MAX_COUNTS // MIB} MiB is too much.",
        "Use fewer bits or cohorts (a new version), or declare fewer dimensions or values.",
    )


def _counts_bytes(collection: Collection) -> int:
    """Bytes of one period's counts: 8 for each bit and for the total, in each cohort and cell."""
    return collection.cells * collection.params.m * 8 * (collection.params.k + 1)


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


def _group(collection: Collection, others: Sequence[Collection]) -> Iterator[LintFinding]:
    """Collections about the same thing spend ε on it together."""
    members = [other for other in others if other.group == collection.group is not None]
    if members:
        joint = add_up((member.max_epsilon, 1) for member in (collection, *members))
        names = ", ".join(member.name for member in members)
        yield about(collection)(
            "correlated-group",
            "error" if joint > LARGE_EPSILON else "warning",
            "§6.1",
            f"This collection and {names} belong to group {collection.group}: on what they have in "
            f"common, they may spend ε = {up(joint)} together.",
            f"Lower max_epsilon so that the group spends at most {LARGE_EPSILON:.0f}, or ask only "
            "once.",
        )


def _predicates(collection: Collection, others: Sequence[Collection]) -> Iterator[LintFinding]:
    """Predicates about one value, in one collection or in two that nobody grouped."""
    say, ever = about(collection), collection.epsilon_infinity
    if collection.kind == "bits" and LARGE_EPSILON < ever < float("inf"):
        yield say(
            "joint-predicates",
            "error",
            "§6.1",
            f"{collection.params.k} predicates about one value are reported together: jointly they "
            f"cost ε = {up(ever)}, much more than a single bit costs.",
            "Use disjoint ranges or categories (kind ordinal or category), where ε does not grow "
            "with their number; or use fewer predicates.",
        )
    twins = [other.name for other in others if _same_question(collection, other)]
    if twins:
        yield say(
            "identical-predicates",
            "warning",
            "§6.1",
            f"The same values are listed in {', '.join(twins)}: if both collections ask about one "
            "thing, their ε adds up.",
            "Give both the same group, or ask only once.",
        )


def _same_question(one: Collection, other: Collection) -> bool:
    if one.group is not None and one.group == other.group:
        return False
    same_list = one.categories is not None and set(one.categories) == set(other.categories or ())
    return same_list or (one.ranges is not None and one.ranges == other.ranges)


def _total(collection: Collection, others: Sequence[Collection]) -> Iterator[LintFinding]:
    """One client pays for all collections together."""
    every = (collection, *others)
    total = add_up((member.max_epsilon, 1) for member in every)
    if total <= MAX_TOTAL_EPSILON and len(every) <= MANY_COLLECTIONS:
        return
    yield about(collection)(
        "too-much-in-total",
        "error",
        "§6.1",
        f"A client in {'this collection' if not others else f'all {len(every)} collections'} may "
        f"spend ε = {up(total)} over its life. More than {MAX_TOTAL_EPSILON:.0f}, or more than "
        f"{MANY_COLLECTIONS} collections, is too much for one person.",
        "Lower max_values and max_epsilon, end collections that are no longer read, or sample: "
        "let each client take part in only some of them.",
    )


CHECKS: tuple[Callable[[Collection, datetime.date], Iterator[LintFinding]], ...] = (
    _responsibility,
    _retention,
    _several_clients,
    _small_cells,
    _platform,
    _tracking,
    _encryption,
    _changing_values,
    _memory,
    _cap,
    _bits,
    _size,
    _schedule,
    _budget,
)
JOINT_CHECKS: tuple[Callable[[Collection, Sequence[Collection]], Iterator[LintFinding]], ...] = (
    _group,
    _predicates,
    _total,
)
