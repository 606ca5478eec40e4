"""Checks on several collections together: what one client spends on all of them.

Each check is one function that yields `LintFinding`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from rappor.collection.definition import Collection
from rappor.collection.findings import LARGE_EPSILON, LintFinding, about
from rappor.mechanism.views import FIELD_KINDS, MAX_FIELDS, Field
from rappor.privacy import add_up
from rappor.privacy.rounding import up

MAX_TOTAL_EPSILON = 30.0  # of one client over all collections; five with three values make 30.6
MANY_COLLECTIONS = 20


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
            f"once.{_as_tuple([collection, *members])}",
        )


def _as_tuple(members: Sequence[Collection]) -> str:
    """Recommend one tuple, if the members are different questions that can be its fields.

    Separate collections cannot tell which values go together: their reports and their cohorts do
    not link. At equal ε a tuple tells far more than even linked reports would (docs/associate.md).
    """
    can_be_fields = len(members) <= MAX_FIELDS and all(
        member.kind in FIELD_KINDS for member in members
    )
    if not can_be_fields or any(
        _same_values(one, other) for one, other in combinations(members, 2)
    ):
        return ""
    names = ", ".join(member.name for member in members)
    return (
        f' Best as one tuple (kind = "tuple") with the fields {names}: one report costs one ε, not '
        "the sum, and tells which values go together, which separate reports do not."
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
    return _same_values(one, other) or (one.fields is not None and one.fields == other.fields)


def _same_values(one: Collection | Field, other: Collection | Field) -> bool:
    same_list = one.categories is not None and set(one.categories) == set(other.categories or ())
    return same_list or (one.ranges is not None and one.ranges == other.ranges)


def _asked_twice(collection: Collection, others: Sequence[Collection]) -> Iterator[LintFinding]:
    """A field of a tuple that another collection asks for as well."""
    for field in collection.fields or ():
        twins = [
            other.name
            for other in others
            if other.fields is None
            and (other.group is None or other.group != collection.group)
            and (other.name.replace("-", "_") == field.name or _same_values(field, other))
        ]
        if twins:
            yield about(collection)(
                "field-asked-twice",
                "warning",
                "§6.1",
                f"The field {field.name} of this tuple is also asked for by {', '.join(twins)}: if "
                "the same clients report to both, their ε adds up.",
                f"End {' and '.join(twins)}: a view of {field.name} alone tells how frequent its "
                "values are. Or give both the same group, and a max_epsilon that is enough for "
                "both: a client holds a group to the smallest.",
            )


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


JOINT_CHECKS: tuple[Callable[[Collection, Sequence[Collection]], Iterator[LintFinding]], ...] = (
    _group,
    _predicates,
    _asked_twice,
    _total,
)
