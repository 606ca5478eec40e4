"""The law of lifts: learnt from bits, and what it makes of a bit's residual."""

from __future__ import annotations

import numpy as np
import pytest

from rappor.decoding.lift_law import LiftLaw
from rappor.typing import FloatArray

NOISE = np.full(2_000, 0.01**2)


def drawn(lift: float, share: float) -> FloatArray:
    """Residuals of which this share is lifted."""
    rng = np.random.default_rng(1)
    found: FloatArray = rng.normal(0, 0.01, len(NOISE)) + lift * (rng.random(len(NOISE)) < share)
    return found


def test_bits_that_nothing_lifts_keep_their_information() -> None:
    law = LiftLaw.start(NOISE).learnt(drawn(0, 0), NOISE, 200)
    assert law.information(NOISE[:1])[0] * NOISE[0] > 0.9


def test_the_law_finds_how_many_bits_are_lifted_and_how_far() -> None:
    law = LiftLaw.start(NOISE).learnt(drawn(0.1, 0.05), NOISE, 200)
    far = (law.middle > 0.07) & (law.middle < 0.14)
    assert law.weight[far].sum() == pytest.approx(0.05, abs=0.01)
    assert law.variance() == pytest.approx(0.1**2 * 0.05 * 0.95, rel=0.25)


def test_a_lifted_bit_hardly_pulls_and_a_plain_one_pulls_as_before() -> None:
    law = LiftLaw.start(NOISE).learnt(drawn(0.1, 0.05), NOISE, 200)
    plain, lifted, below = law.score(np.array([0.01, 0.1, -0.05]), NOISE[:3]) * 0.01
    assert plain == pytest.approx(1, abs=0.1)
    assert abs(lifted) < 1  # without a law it would be 10
    assert below == pytest.approx(-5, abs=0.1)


def test_information_is_the_mean_slope_of_the_score() -> None:
    """Fisher's identity: a bit cut off at a fixed distance would break it."""
    law = LiftLaw.start(NOISE).learnt(drawn(0.03, 0.2), NOISE, 200)
    residual, step = drawn(0.03, 0.2), 1e-5
    slope = (law.score(residual + step, NOISE) - law.score(residual - step, NOISE)) / (2 * step)
    wanted = law.information(NOISE[:1])[0]
    assert slope.mean() == pytest.approx(wanted, rel=0.05)
    assert (law.score(residual, NOISE) ** 2).mean() == pytest.approx(wanted, rel=0.05)
    assert wanted < 0.9 / NOISE[0]
