"""Numbers as people read them."""

import pytest

from rappor.charts.numbers import show_count, show_p, show_percent, show_share


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
    ("p", "shown"),
    [(1.0, "1"), (0.0421, "0.042"), (0.00102, "0.001"), (0.00052, "5·10⁻⁴"), (0, "< 10⁻³⁰⁰")],
)
def test_p_values_are_never_zero(p, shown):
    assert show_p(p) == shown


def test_a_missing_p_value_is_a_dash():
    assert show_p(float("nan")) == "–"
