"""Figures 7 and 8 of the paper, recomputed (R61-R62)."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from rappor import Params, ParamsError
from rappor.attack import fdr, posterior
from rappor.attack.fdr import false_discovery_rate, picked_share
from rappor.attack.posterior import crossing
from rappor.attack.targeting import guess_accuracy
from rappor.mechanism import channel
from rappor.privacy import epsilon_one

WINDOWS = Params.preset("windows")


def test_false_discoveries_at_the_papers_parameters() -> None:
    assert false_discovery_rate(WINDOWS, 0.01) == pytest.approx(0.985, abs=5e-4)
    assert false_discovery_rate(WINDOWS, 0.1) == pytest.approx(0.858, abs=5e-4)


def test_false_discoveries_are_not_proportional_to_f() -> None:
    found = [false_discovery_rate(replace(WINDOWS, f=f), 0.1) for f in (0.0, 0.5, 0.75)]
    assert found == pytest.approx([0.80, 0.858, 0.88], abs=6e-4)


def test_not_v_is_likelier_below_the_crossing() -> None:
    assert crossing(WINDOWS) == pytest.approx(0.401, abs=5e-5)
    assert posterior.posterior(WINDOWS, crossing(WINDOWS), "11") == pytest.approx(0.5)
    assert posterior.posterior(WINDOWS, 0.40, "11") < 0.5 < posterior.posterior(WINDOWS, 0.41, "11")


@pytest.mark.parametrize(("pattern", "frequency"), [("11", 0.401), ("10", 0.534), ("00", 0.662)])
def test_both_are_equally_likely_at_the_crossing_of_each_pattern(
    pattern: str, frequency: float
) -> None:
    at = crossing(WINDOWS, pattern.count("1"))
    assert at == pytest.approx(frequency, abs=5e-4)
    assert posterior.posterior(WINDOWS, at, pattern) == pytest.approx(0.5)


@pytest.mark.parametrize("set_bits", [-1, 3, 1.5, True, "1"])
def test_a_crossing_for_other_than_0_to_h_bits_is_refused(set_bits: Any) -> None:
    with pytest.raises(ParamsError, match="set_bits must be a whole number from 0 to 2"):
        crossing(WINDOWS, set_bits)


@pytest.mark.parametrize("params", [WINDOWS, Params(16, 3, 1, 0.3, 0.1, 0.6)])
def test_posteriors_are_bayes_rule_over_every_pattern(params: Params) -> None:
    x = Fraction(1, 8)
    p_star, q_star = channel(params)
    total = right = Fraction(0)
    for pattern in product((0, 1), repeat=params.h):
        if_held = if_not = Fraction(1)
        for bit in pattern:
            if_held *= q_star if bit else 1 - q_star
            if_not *= p_star if bit else 1 - p_star
        seen = x * if_held + (1 - x) * if_not
        assert posterior.posterior(params, 0.125, pattern) == pytest.approx(
            float(x * if_held / seen), rel=1e-12
        )
        total += seen
        right += max(x * if_held, (1 - x) * if_not)
    assert total == 1
    assert guess_accuracy(params, 0.125) == pytest.approx(float(right), rel=1e-12)


def test_fdr_is_what_the_posterior_leaves() -> None:
    for x in (0.0, 0.01, 0.5, 1.0):
        left = 1 - posterior.posterior(WINDOWS, x, (1, 1))
        assert false_discovery_rate(WINDOWS, x) == pytest.approx(left)
    p_star, q_star = channel(WINDOWS)
    assert picked_share(WINDOWS, 0.0) == float(p_star**2)
    assert picked_share(WINDOWS, 1.0) == float(q_star**2)


def test_both_respect_epsilon() -> None:
    for module in (fdr, posterior):
        for x in (0.0, 0.01, 0.5, 0.99, 1.0):
            found = module.attack(WINDOWS, frequency=x, trials=100)
            assert found.bound is not None
            assert found.bound.epsilon == epsilon_one(WINDOWS)
            assert found.bound.holds(found.exact)


def test_what_never_happens_is_not_simulated_rather_than_shown_as_zero() -> None:
    rare = Params(64, 16, 1, 0.0, 1e-6, 0.01)
    found = fdr.attack(rare, trials=10)
    assert found.simulated is None
    assert found.sigmas >= 0
    assert 0 < found.exact < 1


@pytest.mark.parametrize("pattern", ["1", "111", "12", "", "ab", (1, 2), (1,), 11, None, [True, 2]])
def test_patterns_that_are_not_h_bits_are_refused(pattern: Any) -> None:
    with pytest.raises(ParamsError, match=r"pattern must be h = 2 bits"):
        posterior.posterior(WINDOWS, 0.1, pattern)


@pytest.mark.parametrize("frequency", [-0.1, 1.1, float("nan"), "0.1", None, True])
def test_frequencies_outside_0_to_1_are_refused(frequency: Any) -> None:
    for function in (false_discovery_rate, guess_accuracy):
        with pytest.raises(ParamsError, match=r"frequency must be a number from 0 to 1"):
            function(WINDOWS, frequency)
