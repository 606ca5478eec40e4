"""Attempts to have a definition pass that lets anyone fill the disk."""

import datetime

from rappor.collection import Collection, lint
from rappor.params import Params

TODAY = datetime.date(2026, 11, 16)


def codes(dimensions: int, values: int) -> list[str]:
    made = Collection(
        "homepage",
        1,
        Params.preset("windows"),
        description="the page that opens first",
        owner="team@example.org",
        expires=datetime.date(2027, 6, 1),
        dimensions={
            f"d{number}": tuple(f"v{each}" for each in range(values))
            for number in range(dimensions)
        },
    )
    return [each.code for each in lint(made, today=TODAY) if each.severity == "error"]


def test_dimensions_that_multiply_are_an_error_although_nobody_expects_a_number() -> None:
    assert codes(2, 30) == []
    assert codes(6, 30) == ["small-cells"]
    assert codes(8, 100) == ["small-cells"]
