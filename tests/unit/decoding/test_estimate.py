"""The closed form for one bit: unbiased, with the variance of the realised count."""

from fractions import Fraction
from math import comb, sqrt

import pytest

from rappor import Params
from rappor.decoding.estimate import estimate_bit
from rappor.mechanism import channel

PARAMS = [Params(1, 1, 1, 0.5, 0.5, 0.75), Params(1, 1, 1, 0.0, 0.25, 0.75)]


def law_of_ones(params: Params, holders: int, reports: int) -> dict[int, Fraction]:
    """P(ones received), exactly: two binomials convolved."""
    p_star, q_star = channel(params)

    def binomial(n, one):
        return [comb(n, c) * one**c * (1 - one) ** (n - c) for c in range(n + 1)]

    law: dict[int, Fraction] = {}
    for i, a in enumerate(binomial(holders, q_star)):
        for j, b in enumerate(binomial(reports - holders, p_star)):
            law[i + j] = law.get(i + j, 0) + a * b
    return law


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("holders", [0, 3, 12])
def test_the_estimate_is_unbiased_with_the_stated_variance(params, holders):
    reports = 12
    law = law_of_ones(params, holders, reports)
    mean = sum(float(chance) * estimate_bit(c, reports, params).count for c, chance in law.items())
    assert mean == pytest.approx(holders, abs=1e-9)
    variance = sum(
        float(chance) * (estimate_bit(c, reports, params).count - holders) ** 2
        for c, chance in law.items()
    )
    p_star, q_star = map(float, channel(params))
    # The count of ones at which the estimate is exactly the truth gives the exact variance.
    at_truth = p_star * reports + holders * (q_star - p_star)
    assert estimate_bit(at_truth, reports, params).std_error == pytest.approx(sqrt(variance))


def test_negative_estimates_are_shown_as_they_are():
    found = estimate_bit(0, 100, PARAMS[0])
    assert found.count < 0
    assert found.std_error > 0


def test_no_reports_say_nothing():
    assert estimate_bit(0, 0, PARAMS[0]).std_error == 0
