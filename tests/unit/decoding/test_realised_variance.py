"""Standard errors of realised counts: what is fixed, and what stays random."""

import numpy as np
import pytest

import rappor
from rappor import Params
from rappor.decoding.design import build_design
from rappor.decoding.fit import Fit, least_squares
from rappor.decoding.observe import Observed, observe
from rappor.decoding.realised_variance import realised_variance
from rappor.mechanism.channel import channel

LOW_NOISE = Params(k=64, h=1, m=8, f=0.0, p=0.01, q=0.99)
HELD = {"heavy": 0.1} | {f"rare{number}": 0.9 / 5000 for number in range(5000)}
DRAWS = 300


def fit_heavy(reports: int, seed: int) -> tuple[Observed, Fit, int]:
    """The heavy string fitted alone, and how many reports hold it."""
    drawn = rappor.simulate.simulate(HELD, LOW_NOISE, reports, seed=seed)
    seen = observe([drawn.counts])
    design = build_design(["heavy"], LOW_NOISE, drawn.counts.dialect)
    fit = least_squares(seen, design.columns((0,)), (0,), np.ones(seen.shares.size))
    return seen, fit, drawn.truth["heavy"]


def test_what_is_not_fitted_falls_on_bits_at_random():
    """One bit a cohort: its noise, and the spread u(1-u)/N of reports u that hold other strings."""
    seen, fit, _ = fit_heavy(2000, seed=1)
    p_star, q_star = (float(number) for number in channel(LOW_NOISE))
    share, others = float(fit.share[0]), fit.intercept
    assert others == pytest.approx(0.9 / 64, rel=0.1)
    coins = share * q_star * (1 - q_star) + (1 - share) * p_star * (1 - p_star)
    expected = (coins / (q_star - p_star) ** 2 + others * (1 - others)) / 2000
    assert realised_variance(seen, fit)[0] / fit.scale == pytest.approx(expected, rel=0.1)


def test_who_holds_a_fitted_string_is_no_noise():
    seen, fit, _ = fit_heavy(2000, seed=1)
    assert realised_variance(seen, fit)[0] < 0.4 * fit.covariance[1, 1]


def test_standard_errors_are_true_where_much_is_not_fitted():
    """Mean square of z over 300 draws: 1 ± .08; without what is not fitted it would be near 2.3."""
    square = np.empty(DRAWS)
    for seed in range(DRAWS):
        seen, fit, truth = fit_heavy(2000, seed)
        square[seed] = (fit.share[0] - truth / 2000) ** 2 / realised_variance(seen, fit)[0]
    five_errors = 5 * np.sqrt(2 / DRAWS)
    assert 1 - five_errors < square.mean() < 1 + five_errors
    assert 1 + five_errors < 2.3
