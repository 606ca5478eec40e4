"""Numbers as people read them."""

import math
import re
from decimal import Decimal

import numpy as np
import pytest

from rappor.charts.numbers import (
    MINUS,
    show_count,
    show_difference,
    show_epsilon,
    show_epsilon_sum,
    show_finding,
    show_p,
    show_part,
    show_percent,
    show_rest,
    show_share,
)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((41_012.3, 35_448, 46_541), "41,000 (35,400 – 46,500)"),
        ((0.4, 0.0, 1.0), "0.40 (0.00 – 1.00)"),
        ((-512.0, 0.0, 99.0), "−512 (0 – 99)"),
        ((-0.001, 0.0, 2.0), "0.0 (0.0 – 2.0)"),
        ((1234.0, 1234.0, 1234.0), "1,230 (1,230 – 1,230)"),
        ((0.0, 0.0, 0.0), "0 (0 – 0)"),
        ((float("nan"),) * 3, "– (– – –)"),
    ],
)
def test_counts_are_rounded_to_their_interval(given, shown):
    assert str(show_count(*given)) == shown


def test_shares_are_percentages_with_a_space_that_does_not_break():
    assert str(show_share(0.0066, 0.0011, 0.0121)) == "0.66\u00a0% (0.11 – 1.21)"
    assert show_percent(-0.05) == "−5\u00a0%"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((0.037, 0.01, 0.055, True), "3.7\u00a0% (1.0 – 5.5)"),
        ((0.037, 0.00001, 0.055, True), "3.7\u00a0% (> 0 – 5.5)"),
        ((0.037, 0.0, 0.055, True), "present, at most 5.5\u00a0%"),
        ((0.025, 0.0, 0.044, False), "at most 4.4\u00a0%"),
        ((0.0, 0.0, 0.0, False), "at most 0\u00a0%"),
        ((0.9, 0.0, 1.0, False), "at most 100\u00a0%"),
        ((3700.0, 1000.0, 5500.0, True, "count"), "3,700 (1,000 – 5,500)"),
        ((3700.0, 0.0, 5501.0, True, "count"), "present, at most 5,600"),
        ((250.0, 0.0, 1234.0, False, "count"), "at most 1,300"),
        ((9.0, 0.0, 186_001.0, False, "count", 186_792), "at most 186,792"),
        ((9.0, 0.0, 186_792.0, True, "count", 186_792), "present, at most 186,792"),
        ((9.0, 0.0, 184_000.0, False, "count", 186_792), "at most 186,792"),
        ((9.0, 0.0, 178_000.0, False, "count", 186_792), "at most 180,000"),
        ((0.9, 0.0, 0.9951, False), "at most 100\u00a0%"),
        ((0.0, 0.0, 0.0, False, "count"), "at most 0"),
        ((float("nan"), 0.0, float("nan"), False), "at most –\u00a0%"),
    ],
)
def test_findings_have_an_interval_or_an_upper_limit(given, shown):
    assert str(show_finding(*given)) == shown


@pytest.mark.parametrize("limit", [0.0441, 0.04401, 0.0449, 0.00123, 0.999, 0.1001])
def test_an_upper_limit_is_never_rounded_down(limit):
    text = str(show_finding(0.0, 0.0, limit, detected=False))
    shown = float(text.removeprefix("at most ").removesuffix("\u00a0%"))
    assert limit <= shown / 100 + 1e-12 < limit * 1.1


def test_the_parts_of_a_finding_are_cells_of_a_table():
    assert show_finding(0.037, 0.0, 0.055, True) == ("present", "at most 5.5\u00a0%")
    assert show_finding(0.037, 0.0, 0.055, False) == ("–", "at most 5.5\u00a0%")
    assert show_finding(0.037, 0.02, 0.055, True) == ("3.7\u00a0%", "2.0 – 5.5")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((0.0165, 0.0088, 0.0243), "+1.65 points (0.88 – 2.43)"),
        ((0.0165, 0.0088, 0.0243, True), "+1.65 points (0.88 – 2.43)"),
        ((-0.02, -0.03, -0.01, True), "−2.0 points (−3.0 – −1.0)"),
        ((-0.05, -0.081, 0.0, True), "lower, by at most 8.1 points"),
        ((0.05, 0.0, 0.0811, True), "higher, by at most 8.2 points"),
        ((0.05, 1e-5, 0.0811, True), "+5.0 points (> 0 – 8.1)"),
        ((-0.05, -0.0811, -1e-5, True), "−5.0 points (−8.1 – < 0)"),
        ((0.05, -1e-5, 0.0811, False), "+5.0 points (0.0 – 8.1)"),
        ((0.9, 0.0, 0.999, True), "higher, by at most 100 points"),
        ((0.01, -0.02, 0.04, False), "+1.0 points (−2.0 – 4.0)"),
        ((0.02, 0.0, 0.04, False), "+2.0 points (0.0 – 4.0)"),
    ],
)
def test_differences_have_an_interval_or_a_side(given, shown):
    assert str(show_difference(*given)) == shown


@pytest.mark.parametrize(
    ("p", "shown"),
    [(1.0, "1"), (0.0421, "0.042"), (0.00102, "0.001"), (0.00052, "5·10⁻⁴"), (0, "< 10⁻³⁰⁰")],
)
def test_p_values_are_never_zero(p, shown):
    assert show_p(p) == shown


def test_a_missing_p_value_is_a_dash():
    assert show_p(float("nan")) == "–"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((0.2585, 0.169, 0.348), "25.9\u00a0% (16.9 – 34.8)"),
        ((0.05, 1e-5, 0.0811), "5.0\u00a0% (> 0 – 8.1)"),
        ((0.0, 0.0, 0.0441), "at most 4.5\u00a0%"),
        ((0.02, 0.0, 0.0441), "at most 4.5\u00a0%"),
        ((1.0, 0.9559, 1.0), "at least 95.5\u00a0%"),
        ((0.4, 0.0, 1.0), "at most 100\u00a0%"),
        ((0.0, 0.0, 0.0), "0\u00a0% (0 – 0)"),
        ((1.0, 1.0, 1.0), "100\u00a0% (100 – 100)"),
        ((float("nan"),) * 3, "–\u00a0% (– – –)"),
        ((20.0, 0.0, 186_001.0, "count", 186_792), "at most 186,792"),
        ((186_792.0, 178_669.0, 186_792.0, "count", 186_792), "at least 178,600"),
        ((25_860.0, 16_900.0, 34_800.0, "count", 186_792), "25,900 (16,900 – 34,800)"),
    ],
)
def test_a_part_that_may_be_none_or_all_has_a_limit(given, shown):
    assert str(show_part(*given)) == shown


def test_parts_as_shown_add_up_to_the_whole_as_shown():
    rng = np.random.default_rng(3)
    limits = 0
    for share, half in zip(rng.uniform(0, 1, 400), rng.uniform(1e-4, 0.2, 400), strict=True):
        ends = (share, max(share - half, 0.0), min(share + half, 1.0))
        shown, rest = show_part(*ends), show_rest(*ends)
        if shown.is_limit:
            limits += 1
            assert {shown.interval[:8], rest.interval[:8]} == {"at most ", "at least"}
            assert number(shown.interval) + number(rest.interval) == 100
            continue
        assert number(shown.value) + number(rest.value) == 100
        low, high = map(number, shown.interval.split(" – "))
        assert tuple(map(number, rest.interval.split(" – "))) == (100 - high, 100 - low)
    assert 20 < limits < 200
    for epsilons in rng.uniform(0, 9, (50, 4)):
        parts = sum(number(show_epsilon(epsilon)) for epsilon in epsilons)
        assert number(show_epsilon_sum(epsilons)) == parts
        assert parts >= Decimal(float(epsilons.sum()))
    assert show_epsilon_sum([1.0, math.inf]) == show_epsilon(math.inf)


def number(text):
    """A shown number, exactly."""
    return Decimal(re.sub(r"[^-.0-9]", "", text.replace(MINUS, "-")))
