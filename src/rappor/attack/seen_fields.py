"""Which clients of a tuple show a field at all: views are public (docs/theory/views.md).

A client reports the fields of its cohort's view as one string, so attacks on a tuple are those on
a string, for values that the view tells apart. Two values that differ outside the view have the
same B': a guess between them is right with probability 1/2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rappor.mechanism.views import Views
from rappor.params import Params
from rappor.typing import BoolArray

PUBLIC = "the cohort is public, and so is the view: which fields a report is about"


def seeing_cohorts(views: Views, params: Params) -> dict[str, BoolArray]:
    """For each field, whether the view of each cohort has it; shape (m,)."""
    table = views.table(params.m)
    return {
        field.name: np.array([field.name in views.views[view].fields for view in table])
        for field in views.fields
    }


def over_cohorts(seen: float, accuracy: float) -> float:
    """The mean over cohorts of a guess that is right with 1/2 where the field is not seen.

    >>> over_cohorts(0.75, 0.9)
    0.8
    """
    return seen * accuracy + (1 - seen) / 2


def if_one_differs(
    views: Views | None, params: Params, label: str, accuracy: Callable[[float], float]
) -> dict[str, float]:
    """Rows of a table: how well an attack does if one field alone differs, for each field.

    Args:
        views: of the tuple; None for other kinds, which have no rows.
        params: the parameters; m cohorts.
        label: what the number is.
        accuracy: from the share of cohorts that see the field to the number.
    """
    if views is None:
        return {}
    return {
        f"{label} if only {name} differs ({int(seen.sum())} of {params.m} cohorts see it)": (
            accuracy(float(seen.mean()))
        )
        for name, seen in seeing_cohorts(views, params).items()
    }
