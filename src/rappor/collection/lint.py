"""lint: the cautions of the paper (§6.1), and some of common sense, as findings with stable codes.

docs/collections.md lists every code.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from rappor.collection.cell_checks import CELL_CHECKS
from rappor.collection.definition import Collection
from rappor.collection.findings import LintFinding, about, errors_first
from rappor.collection.joint_checks import JOINT_CHECKS
from rappor.collection.privacy_checks import PRIVACY_CHECKS, after_the_limit, cost_of_a_value
from rappor.collection.registry import Registry
from rappor.collection.toml import RENAMED, renamed_fields, stated_fields
from rappor.collection.tuple_checks import TUPLE_CHECKS
from rappor.collection.upkeep_checks import UPKEEP_CHECKS


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
    found = [finding for check in UPKEEP_CHECKS for finding in check(collection, day)]
    checks = (*CELL_CHECKS, *TUPLE_CHECKS, *PRIVACY_CHECKS)
    found += [finding for check in checks for finding in check(collection)]
    found += [finding for check in JOINT_CHECKS for finding in check(collection, rest)]
    return errors_first(found)


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
    return errors_first(found)


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
            f"value in all: after a change it {after_the_limit(collection)}.",
            'Set values = "fixed" if it never changes; else values = "slow", and max_values to the '
            f"number that a client may report. Each value costs {cost_of_a_value(collection)}.",
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
