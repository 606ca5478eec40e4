"""Hypothesis strategies for tuples: fields, views and values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from rappor.mechanism import Field, Ranges, View, Views
from rappor.mechanism.views import FIELD_KINDS

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
NUMBERS = st.integers(-99, 99) | st.floats(-99, 99)


@st.composite
def _fields(draw: st.DrawFn) -> Field:
    name = draw(st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True))
    kind = draw(st.sampled_from(FIELD_KINDS))
    categories, ranges = None, None
    if kind == "category":
        categories = tuple(draw(st.lists(TEXT, min_size=1, max_size=5, unique=True)))
    elif kind == "ordinal":
        edges = draw(st.lists(st.fractions(-99, 99), min_size=1, max_size=5))
        ranges = Ranges(sorted({Fraction(edge) for edge in edges}))
    return Field(name, kind, categories, ranges)


@st.composite
def tuple_views(draw: st.DrawFn, m: int) -> Views:
    """Fields with views of any shares, at most m of them."""
    fields = draw(st.lists(_fields(), min_size=2, max_size=4, unique_by=lambda field: field.name))
    names = [field.name for field in fields]
    listed = [tuple(draw(st.permutations(names)))]
    listed += draw(st.lists(st.sampled_from(names).map(lambda name: (name,)), unique=True,
                            max_size=min(len(names), m - 1)))  # fmt: skip
    weights = [draw(st.integers(1, 1000)) for _ in listed]
    total = sum(weights)
    return Views(
        fields,
        [View(chosen, weight / total) for chosen, weight in zip(listed, weights, strict=True)],
    )


@st.composite
def tuples(draw: st.DrawFn, views: Views) -> dict[str, Any]:
    """A value of these fields."""
    return {field.name: draw(_values(field)) for field in views.fields}


def _values(field: Field) -> st.SearchStrategy[Any]:
    match field.kind:
        case "string":
            return TEXT
        case "boolean":
            return st.booleans()
        case "ordinal":
            return NUMBERS
        case _:
            return st.sampled_from(field.categories or ())
