"""Fields and views of tuples as vectors write them, and back; secrets of given cohorts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rappor.collection import Collection
from rappor.mechanism import Field, Ranges, View, Views, derive_cohort


def shape_of(views: Views, m: int) -> dict[str, Any]:
    """Fields and views as plain data; a view has its number of cohorts."""
    fields = []
    for field in views.fields:
        row: dict[str, Any] = {"name": field.name, "kind": field.kind}
        if field.categories is not None:
            row["categories"] = list(field.categories)
        if field.ranges is not None:
            row["edges"] = [f"{edge.numerator}/{edge.denominator}" for edge in field.ranges.edges]
        fields.append(row)
    numbers = views.cohorts(m)
    listed = [
        {"fields": list(view.fields), "cohorts": number}
        for view, number in zip(views.views, numbers, strict=True)
    ]
    return {"fields": fields, "views": listed}


def views_from(shape: dict[str, Any], m: int) -> Views:
    """Fields and views from plain data."""
    return Views(
        [
            Field(
                row["name"],
                row["kind"],
                tuple(row["categories"]) if "categories" in row else None,
                Ranges(map(Fraction, row["edges"])) if "edges" in row else None,
            )
            for row in shape["fields"]
        ],
        [View(tuple(row["fields"]), row["cohorts"] / m) for row in shape["views"]],
    )


def secret_of(collection: Collection, cohort: int) -> bytes:
    """A secret that has this cohort."""
    return next(
        secret
        for secret in (number.to_bytes(16, "big") for number in range(1, 10_000))
        if derive_cohort(secret, collection.name, collection.params.m) == cohort
    )
