"""Smoothing and the simplex: exactly the minimisers they claim to be, and only by name."""

import numpy as np
import pytest

from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.ordinal import decode_ordinal
from rappor.decoding.smoothing import NO_INTERVAL, STRENGTHS, project_simplex, smooth
from rappor.errors import DecodeError
from rappor.mechanism import channel


def bell(seed=1, reports=100_000, k=60):
    """A histogram of Normal(k/2, k/10), and its true shares."""
    params = Params(k, 1, 1, 0.0, 0.5, 0.75)
    rng = np.random.default_rng(seed)
    weights = np.exp(-0.5 * ((np.arange(k) - k / 2) / (k / 10)) ** 2)
    truth = rng.multinomial(reports, weights / weights.sum())
    p_star, q_star = map(float, channel(params))
    ones = rng.binomial(truth, q_star) + rng.binomial(reports - truth, p_star)
    counts = Counts(params, [reports], [ones], kind="ordinal")
    return decode_ordinal(counts, range(k)), truth / reports


def dense(histogram, lam):
    """The minimiser under Σ x = 1, from the full system with its multiplier."""
    k = len(histogram.share)
    w = np.diag(histogram.variance.mean() / histogram.variance)
    d = np.diff(np.eye(k), 2, axis=0)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = w + lam * d.T @ d
    system[k, :k] = system[:k, k] = 1
    return np.linalg.solve(system, np.append(w @ histogram.share, 1))[:k]


@pytest.mark.parametrize("strength", ["light", "medium", "strong", 17.0])
def test_smooth_shares_are_the_penalised_minimum(strength):
    histogram, _ = bell()
    found = smooth(histogram, strength)
    lam = STRENGTHS.get(strength, strength)
    assert found.strength == lam
    np.testing.assert_allclose(found.share, dense(histogram, lam), atol=1e-10)
    assert found.share.sum() == pytest.approx(1)


def test_freedom_is_the_trace_of_the_smoother():
    histogram, _ = bell()
    k = len(histogram.share)
    w = np.diag(histogram.variance.mean() / histogram.variance)
    d = np.diff(np.eye(k), 2, axis=0)
    for lam in STRENGTHS.values():
        trace = np.trace(np.linalg.solve(w + lam * d.T @ d, w))
        assert smooth(histogram, lam).freedom == pytest.approx(trace)


def test_limits_of_smoothing_are_the_data_and_a_line():
    histogram, _ = bell()
    np.testing.assert_allclose(smooth(histogram, 1e-9).share, histogram.share, atol=1e-8)
    line = smooth(histogram, 1e12)
    assert np.abs(np.diff(line.share, 2)).max() < 1e-9
    assert line.freedom == pytest.approx(2, abs=1e-2)
    freedoms = [smooth(histogram, name).freedom for name in STRENGTHS]
    assert freedoms == sorted(freedoms, reverse=True)


def test_cross_validation_finds_a_strength_that_lowers_the_error():
    ratios = []
    for seed in range(10):
        histogram, truth = bell(seed)
        found = smooth(histogram)
        raw, smoothed = (np.sqrt(np.mean((x - truth) ** 2)) for x in (histogram.share, found.share))
        ratios.append(smoothed / raw)
    assert np.median(ratios) < 0.6


def test_results_say_that_they_have_no_interval():
    found = smooth(bell()[0])
    assert found.note == NO_INTERVAL
    assert not hasattr(found, "low_95")


@pytest.mark.parametrize("strength", ["hard", 0, -1, float("inf"), None, True])
def test_unknown_strengths_are_refused(strength):
    with pytest.raises(DecodeError, match="strength"):
        smooth(bell()[0], strength)


def test_too_little_to_smooth_is_refused():
    params = Params(2, 1, 1, 0.0, 0.5, 0.75)
    two = Counts(params, [100], [[60, 60]], kind="ordinal")
    with pytest.raises(DecodeError, match="at least 3"):
        smooth(decode_ordinal(two))
    with pytest.raises(DecodeError, match="no reports"):
        smooth(decode_ordinal(Counts.zero(Params(5, 1, 1, 0.0, 0.5, 0.75), kind="ordinal")))


@pytest.mark.parametrize("seed", range(20))
def test_the_projection_meets_the_conditions_of_the_minimum(seed):
    rng = np.random.default_rng(seed)
    s = rng.normal(0.1, 0.3, rng.integers(1, 40))
    w = rng.uniform(0.1, 10, len(s)) if seed % 2 else None
    x = project_simplex(s, w)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1)
    slope = (np.ones_like(s) if w is None else w) * (x - s)
    inside = x > 0
    assert np.ptp(slope[inside]) < 1e-9  # one multiplier for all that are in
    assert (slope[~inside] >= slope[inside].max() - 1e-9).all()


def test_shares_on_the_simplex_stay_where_they_are():
    np.testing.assert_allclose(project_simplex([0.2, 0.3, 0.5]), [0.2, 0.3, 0.5])
    assert project_simplex([-5.0]).tolist() == [1.0]


def test_the_projection_lowers_the_error_of_a_complete_histogram():
    histogram, truth = bell(3, 10_000)
    raw, projected = (
        np.sqrt(np.mean((x - truth) ** 2))
        for x in (histogram.share, project_simplex(histogram.share))
    )
    assert projected < 0.8 * raw


@pytest.mark.parametrize(
    ("shares", "weights"),
    [([], None), ([np.nan], None), ([[0.5]], None), ([0.5], [0.0]), ([0.5], [1.0, 1.0])],
)
def test_numbers_that_cannot_be_projected_are_refused(shares, weights):
    with pytest.raises(DecodeError):
        project_simplex(shares, weights)
