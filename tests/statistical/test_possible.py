"""What is possible: state evolution against closed forms and against the measured oracle."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from calibration.possible import factor, information_left, mmse, possible
from calibration.scenarios import SCENARIOS

NO_LIFTS = np.zeros(0)


def test_two_equal_halves_have_the_known_error():
    """μ = 0 or 1 with equal chances: .25 (1 - E tanh(γ + √γ Z)), γ = 1/(4 variance)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    half = np.repeat([0.0, 1.0], 500)
    for variance in (0.2, 1.0, 4.0):
        gamma = 1 / (4 * variance)
        known = 0.25 * (1 - float(weights @ np.tanh(gamma + np.sqrt(gamma) * nodes)))
        assert mmse(half, variance) / 1000 == pytest.approx(known, rel=1e-3)


def test_where_nothing_is_held_or_all_is_known_nothing_is_lost():
    assert factor(np.zeros(1000), NO_LIFTS, 0.01, 512) == pytest.approx(1.0, abs=1e-6)
    assert factor(np.full(100, 5.0), NO_LIFTS, 0.01, 512) == pytest.approx(1.0, abs=1e-6)


def test_a_spread_that_shrinking_does_not_help_costs_its_degrees_of_freedom():
    """Shares that are spread far wider than the noise: mmse = T, so T = 1/(1 - M/n)."""
    spread = np.linspace(0, 2000, 200)
    assert factor(spread, NO_LIFTS, 0.01, 1000) == pytest.approx(1.0, abs=0.01)  # 10 apart: known
    dense = np.repeat(np.arange(0.0, 200.0), 1)
    assert factor(dense, NO_LIFTS, 0.01, 1000) == pytest.approx(1 / (1 - 0.2), rel=0.03)


def test_far_lifts_cost_nothing_and_near_ones_do():
    assert information_left(np.array([20.0]), 0.1) == pytest.approx(1.0, abs=1e-3)
    assert information_left(np.array([2.0]), 0.1) < 0.85
    assert information_left(np.array([1e-3]), 0.1) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("name", "best"), [("S3", (0.93, 0.92)), ("S6d", (0.90, 0.91))])
def test_the_oracle_is_the_one_that_was_measured_and_the_limits_are_those_of_the_docs(name, best):
    scenario = SCENARIOS[name]
    found = possible(scenario)
    assert scenario.oracle is not None
    for label, stored, share in zip(("family", "fdr"), scenario.oracle, best, strict=True):
        assert found.oracle[label] == pytest.approx(stored, rel=0.06)
        assert found.best[label] / found.oracle[label] == pytest.approx(share, abs=0.015)
