"""Intervals that allow for selection."""

import numpy as np
import pytest
from scipy import stats

from rappor.decoding.intervals import Z_95, intervals, truncated_mean, without_selection

NORMAL = stats.norm


@pytest.mark.parametrize("threshold", [1.6, 3.5, 5.0])
def test_the_lower_limit_solves_its_equation(threshold):
    z = threshold + np.array([0.3, 0.5, 1.0, 3.0])
    for size, mean in zip(z, truncated_mean(z, threshold, 0.025), strict=True):
        tail = NORMAL.logsf(size - mean) - NORMAL.logsf(threshold - mean)
        assert tail == pytest.approx(np.log(0.025), abs=1e-6)


def test_far_from_the_threshold_it_is_the_ordinary_limit():
    assert truncated_mean(np.array([15.0]), 3.5, 0.025)[0] == pytest.approx(15 - Z_95, abs=1e-6)
    assert truncated_mean(np.array([3.5]), -30.0, 0.025)[0] == pytest.approx(3.5 - Z_95, abs=1e-6)


def test_at_the_threshold_there_is_no_lower_limit():
    assert truncated_mean(np.array([3.5, 3.0]), 3.5, 0.025).tolist() == [-np.inf, -np.inf]


def test_a_larger_estimate_never_has_a_smaller_limit():
    assert (np.diff(truncated_mean(np.linspace(3.7, 12, 200), 3.5, 0.025)) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.0, 2.0, 3.5, 4.5, 7.0])
def test_coverage_among_those_that_passed(mean):
    """40,000 draws above 3.5: the bound is 4.9 standard errors (two-sided 1e-6), .0038 at 2.5 %.

    The ordinary limit of a mean of 3.5 or less misses far more often, and would be noticed.
    """
    rng = np.random.default_rng(43)
    n, threshold = 40_000, 3.5
    z = mean + NORMAL.isf(rng.random(n) * NORMAL.sf(threshold - mean))
    low, high = intervals(z * 10, np.full(n, 10.0), np.ones(n, bool), threshold, 1e6)
    # The limits are cut at 0, below which no count is: a mean of 0 is always above.
    raw = truncated_mean(z, threshold, 0.025)
    bound = 4.9 * np.sqrt(0.025 * 0.975 / n)
    assert abs((raw > mean).mean() - 0.025) < bound
    assert (low <= np.maximum(raw * 10, 0) + 1e-9).all()
    covered = ((low <= mean * 10) & (mean * 10 <= high)).mean()
    assert covered > 0.95 - 4.9 * np.sqrt(0.95 * 0.05 / n)
    if mean <= 3.5:
        assert (z - Z_95 > mean).mean() > 0.05


def test_an_interval_holds_its_estimate_and_stays_within_all_reports():
    rng = np.random.default_rng(44)
    estimate = rng.normal(300, 400, 2000).clip(0, 1000)
    error = rng.uniform(1, 100, 2000)
    detected = estimate / error > 3.5
    low, high = intervals(estimate, error, detected, 3.5, 1000.0)
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    assert low.min() >= 0
    assert high.max() <= 1000


def test_negative_estimates_have_limits_from_0_on():
    low, high = intervals(np.array([-50.0, -5.0]), np.array([10.0, 10.0]), np.zeros(2, bool), 3, 99)
    assert low.tolist() == [0, 0]
    assert high == pytest.approx([0, -5 + 10 * Z_95])


def test_only_the_detected_are_treated_as_selected():
    estimate, error = np.array([40.0, 40.0]), np.array([10.0, 10.0])
    low, high = intervals(estimate, error, np.array([True, False]), 3.5, 1e6)
    assert low[0] < low[1] == pytest.approx(40 - 10 * Z_95)
    assert 40 <= high[0] < high[1] == pytest.approx(40 + 10 * Z_95)


def test_an_error_of_0_is_a_point():
    low, high = intervals(np.array([7.0]), np.array([0.0]), np.array([True]), 3.5, 10.0)
    assert (low[0], high[0]) == (7.0, 7.0)


def test_taking_selection_off_undoes_it_on_average():
    """20,000 draws above 3.5 with mean 4.5: the bound is 4.9 standard errors of the mean."""
    rng = np.random.default_rng(45)
    z = 4.5 + NORMAL.isf(rng.random(20_000) * NORMAL.sf(3.5 - 4.5))
    fair = without_selection(np.array([z.mean()]), 3.5)[0]
    assert z.mean() > 4.7
    assert fair == pytest.approx(4.5, abs=0.06)
    assert without_selection(np.array([3.51]), 3.5)[0] == 0
