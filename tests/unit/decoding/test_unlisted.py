"""The law of unlisted mass, and what it makes of residuals."""

import numpy as np
import pytest

from rappor.decoding.unlisted import UnlistedLaw, learn

SD = 0.01


def residuals(lifts, seed=1, n=4000):
    """Noise of one standard deviation on n bits, the first of them lifted."""
    found = np.random.default_rng(seed).normal(0.02, SD, n)
    found[: len(lifts)] += lifts
    return found, np.full(n, SD**2)


def test_without_unlisted_mass_the_score_is_nearly_the_ordinary_one():
    """A law without a shape that is learnt from noise costs a few percent of the information."""
    e, v = residuals([])
    law = learn(e, v, 0.02, 0.0, rounds=200)
    assert 0.9 < law.information(SD**2) * SD**2 <= 1.0
    ordinary = (e - e.mean()) / v
    score = (e - law.posterior_mean(e, v)) / v
    assert np.corrcoef(score, ordinary)[0, 1] > 0.99


@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_a_lift_however_large_is_taken_off_and_the_noise_stays(size):
    lifted = size * SD
    e, v = residuals(np.full(60, lifted))
    law = learn(e, v, 0.02, 0.0)
    left = e[:60] - law.posterior_mean(e[:60], v[:60])
    assert np.abs(left).max() < 6 * SD
    kept = law.information(SD**2) * SD**2
    assert 0.5 < kept <= 1.01  # the lifted bits cannot be told from their lift, the others can


def test_evidence_is_for_a_lift_and_against_its_absence():
    e, v = residuals([])
    law = learn(e, v, 0.02, 0.0, rounds=200)
    lift = 0.8 * SD
    with_string = law.evidence(e + lift, v, lift).mean()
    assert with_string > 0 > law.evidence(e, v, lift).mean()


def test_an_earlier_law_is_a_better_start():
    e, v = residuals(np.full(100, 8 * SD))
    far = learn(e, v, 0.02, 0.0, rounds=300)
    again = learn(e, v, 0.02, 0.0, before=far, rounds=1)
    assert again.grid is far.grid
    assert np.abs(again.weight - far.weight).max() < 1e-3


def test_impossible_residuals_stay_numbers():
    law = UnlistedLaw(np.array([0.0, 1.0]), np.array([1.0, 1e-12]))
    found = law.posterior_mean(np.array([-50.0, 1e6]), np.array([1e-6, 1e-6]))
    assert np.isfinite(found).all()


def test_many_bits_are_learnt_from_a_part_of_them():
    e, v = residuals(np.full(3000, 9 * SD), n=100_000)
    law = learn(e, v, 0.02, 0.0)
    heavy = law.weight[law.grid > 0.02 + 5 * SD].sum()
    assert heavy == pytest.approx(0.03, abs=0.01)
