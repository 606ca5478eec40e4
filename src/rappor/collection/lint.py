"""lint: the cautions of the paper, and some of plain sense, as findings with stable codes.

Each check is a small function in `cautions` (R63-R64, R67-R71), `soundness` or, for what several
collections do together (R65-R66), here. docs/collections.md lists every code.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence

from rappor.collection import lint_checks
from rappor.collection.definition import Collection
from rappor.collection.lint_checks import LARGE_EPSILON, LintFinding, about
from rappor.collection.registry import Registry
from rappor.privacy import add_up
from rappor.privacy.rounding import up

MAX_TOTAL_EPSILON = (
    30.0  # ε of one client over all collections; five of three values make 30.6 (R66)
)
MANY_COLLECTIONS = 20

CHECKS: tuple[Callable[[Collection, datetime.date], Iterator[LintFinding]], ...] = (
    lint_checks.responsibility,
    lint_checks.retention,
    lint_checks.several_clients,
    lint_checks.small_cells,
    lint_checks.platform,
    lint_checks.tracking,
    lint_checks.encryption,
    lint_checks.changing_values,
    lint_checks.memory,
    lint_checks.cap,
    lint_checks.bits,
    lint_checks.size,
    lint_checks.schedule,
    lint_checks.budget,
)


def lint(
    collection: Collection, others: Iterable[Collection] = (), today: datetime.date | None = None
) -> tuple[LintFinding, ...]:
    """What there is to say about a collection, errors first.

    Args:
        collection: the one to judge.
        others: the collections that the same clients report to, for R65 and R66; older versions
            and the collection itself among them are left out.
        today: the day to judge expiry by; now, in UTC, if None.

    >>> from rappor.params import Params
    >>> made = Collection("homepage", 1, Params.preset("windows"), expected_reports=10**6)
    >>> [each.code for each in lint(made)]
    ['no-description', 'no-owner', 'no-expiry']
    """
    day = today or datetime.datetime.now(datetime.UTC).date()
    beside = Registry(each for each in others if each.name != collection.name).newest()
    found = [finding for check in CHECKS for finding in check(collection, day)]
    found += [*_group(collection, beside), *_predicates(collection, beside)]
    found += _total(collection, beside)
    return tuple(sorted(found, key=lambda each: each.severity != "error"))


def lint_all(
    collections: Iterable[Collection], today: datetime.date | None = None
) -> tuple[LintFinding, ...]:
    """Lint the newest version of each collection beside all others, errors first.

    What is said about a group or about all together is said once.
    """
    newest = Registry(collections).newest()
    found: list[LintFinding] = []
    said: set[str | None] = set()
    for each in newest:
        for finding in lint(each, newest, today):
            once = {"correlated-group": each.group, "too-much-in-total": ""}
            if finding.code in once:
                if once[finding.code] in said:
                    continue
                said.add(once[finding.code])
            found.append(finding)
    return tuple(sorted(found, key=lambda each: each.severity != "error"))


def _group(collection: Collection, others: Sequence[Collection]) -> Iterator[LintFinding]:
    """R65: collections about the same thing, and identical predicates that nobody grouped."""
    say = about(collection)
    members = [each for each in others if each.group == collection.group is not None]
    if members:
        joint = add_up((each.max_epsilon, 1) for each in (collection, *members))
        names = ", ".join(each.name for each in members)
        yield say(
            "correlated-group",
            "error" if joint > LARGE_EPSILON else "warning",
            "R65",
            f"What group {collection.group} has in common is reported here and in {names}: "
            f"together they may spend ε = {up(joint)} on it.",
            f"Lower max_epsilon so that the group spends at most {LARGE_EPSILON:.0f}, or ask for "
            "it once.",
        )


def _predicates(collection: Collection, others: Sequence[Collection]) -> Iterator[LintFinding]:
    say, ever = about(collection), collection.epsilon_infinity
    if collection.kind == "bits" and LARGE_EPSILON < ever < float("inf"):
        yield say(
            "joint-predicates",
            "error",
            "R65",
            f"{collection.params.k} predicates about one value are reported together: jointly they "
            f"cost ε = {up(ever)}, not what a single bit costs.",
            "Use disjoint ranges or categories (kind ordinal or category), where ε does not grow "
            "with their number; or fewer predicates.",
        )
    twins = [each.name for each in others if _same_question(collection, each)]
    if twins:
        yield say(
            "identical-predicates",
            "warning",
            "R65",
            f"{', '.join(twins)} lists the same values: if both ask about one thing, ε adds up.",
            "Give both the same group, or ask once.",
        )


def _same_question(one: Collection, other: Collection) -> bool:
    if one.group is not None and one.group == other.group:
        return False
    same_list = one.categories is not None and set(one.categories) == set(other.categories or ())
    return same_list or (one.ranges is not None and one.ranges == other.ranges)


def _total(collection: Collection, others: Sequence[Collection]) -> Iterator[LintFinding]:
    """R66: one client, one ledger, all collections."""
    every = (collection, *others)
    total = add_up((each.max_epsilon, 1) for each in every)
    if total <= MAX_TOTAL_EPSILON and len(every) <= MANY_COLLECTIONS:
        return
    yield about(collection)(
        "too-much-in-total",
        "error",
        "R66",
        f"A client in {'this collection' if not others else f'all {len(every)} collections'} may "
        f"spend ε = {up(total)} over its life: more than {MAX_TOTAL_EPSILON:.0f}, or in more than "
        f"{MANY_COLLECTIONS} collections, is too much for one person.",
        "Lower max_values and max_epsilon, end collections that are no longer read, or sample: "
        "let each client take part in some of them only.",
    )
