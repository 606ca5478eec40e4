"""Checks on the views of a tuple: whether they tell what a tuple is collected for.

Each check is one function that yields `LintFinding`s.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from rappor.collection.definition import Collection
from rappor.collection.findings import Check, LintFinding, about


def _pairs(collection: Collection) -> Iterator[LintFinding]:
    """Fields that are reported together have a view that tells their joint table.

    A pair that no view has is a choice, unless no pair at all can be associated
    (docs/associate.md).
    """
    views = collection.tuple_views
    if views is None:
        return
    pairs = list(combinations([field.name for field in views.fields], 2))
    missing = [pair for pair in pairs if views.joint_view(*pair) is None]
    if len(missing) < len(pairs):
        missing = [
            pair for pair in missing if any(set(pair) <= set(view.fields) for view in views.views)
        ]
    if not missing:
        return
    listed = ", ".join(f"{first} × {second}" for first, second in missing)
    first, second = missing[0]
    yield about(collection)(
        "pair-without-view",
        "warning",
        "",
        f"No view serves {listed}: it would have both fields, and no further field of strings, "
        "because not all pairs with a string can be listed. These cannot be associated.",
        f"Add a view of each pair that you want to associate, such as {first} and {second}; or ask "
        "for fewer strings.",
    )


TUPLE_CHECKS: tuple[Check, ...] = (_pairs,)
