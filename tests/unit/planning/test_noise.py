"""Noise from goals: never above ε, and as little of it as there can be."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rappor import Params
from rappor.mechanism.channel import channel
from rappor.planning.noise import Goal, min_f, min_noise, widest
from rappor.privacy import epsilon_infinity, epsilon_one

SHAPE = Params(128, 1, 16, 0.5, 0.5, 0.75)


def spread(p_star, q_star):
    """The variance of an absent string, for each report."""
    return p_star * (1 - p_star) / (q_star - p_star) ** 2


def test_the_design_that_beats_the_papers_is_found_without_being_told():
    """h = 1, f = .2001, p = .2239, q = .5307, at the paper's ε1 and ε∞ (DECODING)."""
    assert min_noise(Goal(1.0743, 4.3944), SHAPE, "string", spread) == Params(
        128, 1, 16, 0.2001, 0.2239, 0.5307
    )


@pytest.mark.parametrize("h", [1, 2, 4])
def test_the_optimum_without_a_permanent_step_is_the_known_one(h):
    """q* = 1/2 and p* = 1/(1 + e^(ε/h)) minimise the variance of an absent string."""
    made = min_noise(Goal(1.5, math.inf), Params(128, h, 16, 0.5, 0.5, 0.75), "string", spread)
    p_star, q_star = map(float, channel(made))
    assert q_star == pytest.approx(0.5, abs=2e-3)
    assert p_star == pytest.approx(1 / (1 + math.exp(1.5 / h)), abs=2e-3)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    once=st.floats(1e-6, 20),
    ratio=st.floats(1, 4),
    h=st.integers(1, 4),
    kind=st.sampled_from(["string", "category", "boolean"]),
)
def test_epsilon_is_never_above_the_goal_and_hardly_below(once, ratio, h, kind):
    shape = Params(1 if kind == "boolean" else 64, 1 if kind != "string" else h, 4, 0.5, 0.5, 0.75)
    goal = Goal(once, once * ratio)
    made = min_noise(goal, shape, kind, spread)
    assert epsilon_infinity(made, kind) <= goal.epsilon_infinity
    assert epsilon_infinity(made, kind) >= 0.998 * goal.epsilon_infinity - 0.002
    assert epsilon_one(made, kind) <= goal.epsilon_one
    if once <= 12:  # beyond, the few decimals of p and q are felt
        assert epsilon_one(made, kind) >= 0.99 * goal.epsilon_one


@pytest.mark.slow
@settings(max_examples=60)
@given(once=st.floats(0.05, 5), ratio=st.floats(1.01, 8), middle=st.floats(0.05, 0.95))
def test_no_other_p_and_q_with_the_same_middle_tell_more(once, ratio, middle):
    """Up to the width found ε1 is kept; a hair beyond it, it is not, or p or q is out of range."""
    f = min_f(once * ratio, SHAPE, "string")
    width = widest(once, middle, f, SHAPE, "string") / (1 - f)
    for factor, keeps in ((1 - 1e-6, True), (1 + 1e-6, False)):
        p, q = middle - factor * width / 2, middle + factor * width / 2
        if not 0 <= p < q <= 1:
            assert not keeps or min(p, 1 - q) > -1e-9
            continue
        assert (epsilon_one(Params(128, 1, 16, f, p, q)) <= once) is keeps


def test_f_is_the_smallest_of_four_digits():
    f = min_f(4.3944, SHAPE, "string")
    assert epsilon_infinity(Params(128, 1, 16, f, 0.5, 0.75)) <= 4.3944
    assert epsilon_infinity(Params(128, 1, 16, f - 1e-4, 0.5, 0.75)) > 4.3944
    assert min_f(math.inf, SHAPE, "string") == 0


def test_extreme_goals_keep_their_digits():
    tiny = min_noise(Goal(1e-4, 1e-3), SHAPE, "string", spread)
    assert 0.99e-4 <= epsilon_one(tiny) <= 1e-4
    large = min_noise(Goal(20, 40), SHAPE, "string", spread)
    assert 19.9 <= epsilon_one(large) <= 20
