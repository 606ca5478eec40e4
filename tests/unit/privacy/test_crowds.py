"""Crowds to hide in: bits that tell clients apart, and reports in a cell."""

import math

import pytest

from rappor.errors import ParamsError
from rappor.params import Params
from rappor.privacy import (
    MIN_COHORT,
    SMALL_COHORT,
    hides_a_shared_value,
    identifying_bits,
    reports_in_a_cell,
)

WINDOWS = Params.preset("windows")


def test_the_bits_of_chance_are_k_times_the_entropy_of_a_flip() -> None:
    assert identifying_bits(WINDOWS) == pytest.approx(128 * 0.8112781)  # H(1/4)
    assert identifying_bits(Params(64, 1, 1, 0.0, 0.25, 0.75)) == 0  # B' is B for everyone
    assert identifying_bits(Params(1, 1, 1, 0.999999, 0.25, 0.75)) == pytest.approx(1)


def test_a_shared_value_hides_while_clients_have_the_same_permanent_bits() -> None:
    """Half of log2(N): where k H(f/2) is above it, most clients have a B' of their own."""
    short = Params(12, 1, 1, 0.5, 0.5, 0.75)
    edge = 2 ** (2 * identifying_bits(short))
    assert hides_a_shared_value(short, edge * 1.01)
    assert not hides_a_shared_value(short, edge * 0.99)
    assert not hides_a_shared_value(WINDOWS, 1e12)


def test_reports_divide_over_cohorts_and_cells() -> None:
    assert reports_in_a_cell(10**6, WINDOWS, 1) == 125_000
    assert reports_in_a_cell(9600, WINDOWS, 12) == MIN_COHORT
    assert math.isclose(reports_in_a_cell(96_000, WINDOWS, 12), SMALL_COHORT)
    for reports, cells in ((0, 1), (1.5, 1), (10, 0)):
        with pytest.raises(ParamsError):
            reports_in_a_cell(reports, WINDOWS, cells)  # type: ignore[arg-type]
