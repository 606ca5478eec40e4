"""Budgets over time: R32 a, b and c."""

import math
import random
from fractions import Fraction
from itertools import product

import pytest

from rappor import Params, ParamsError
from rappor.mechanism import extreme_changes
from rappor.mechanism.prr import flip_probability
from rappor.privacy import (
    Step,
    epsilon_budget,
    epsilon_changing,
    epsilon_history,
    epsilon_infinity,
    epsilon_one,
    solve_q,
    spend,
)
from rappor.privacy.enumeration import bit_chance

WINDOWS = Params.preset("windows")


def random_steps(rng, count):
    return [Step(*sorted((rng.random(), rng.random()))) for _ in range(count)]


def formula_a(params, steps):
    """R32a as REQUIREMENTS prints it, in floats."""
    a, h = params.f / 2, params.h
    q1, p1 = math.prod(s.q for s in steps), math.prod(s.p for s in steps)
    q0, p0 = math.prod(1 - s.q for s in steps), math.prod(1 - s.p for s in steps)
    ones = ((1 - a) * q1 + a * p1) / (a * q1 + (1 - a) * p1)
    zeros = ((1 - a) * q0 + a * p0) / (a * q0 + (1 - a) * p0)
    return h * (math.log(ones) - math.log(zeros))


@pytest.mark.parametrize("number", range(200))
def test_schedule_a_is_the_formula_and_at_most_epsilon_infinity(number):
    rng = random.Random(number)
    params = Params(8, 2, 1, 0.05 + 0.9 * rng.random(), 0.5, 0.75)
    steps = random_steps(rng, rng.randint(1, 8))
    found = epsilon_history(params, steps)
    assert found == pytest.approx(formula_a(params, steps), abs=1e-10)
    assert found <= epsilon_infinity(params)


def law_of_reports(params, steps, values, memo):
    """P(reports) of a sequence of values, for all reports: bits 0.. of each value, k = 2, h = 1.

    `values` names a value (bit) for each step; equal names share B' when `memo`.
    """
    flip = flip_probability(params)
    law = []
    keys = values if memo else tuple(enumerate(values))
    for outputs in product(range(4), repeat=len(steps)):
        chance = Fraction(1)
        for bit in range(2):
            for key in dict.fromkeys(keys):
                at = [i for i, other in enumerate(keys) if other == key]
                name = key if memo else key[1]
                history = tuple(bool(outputs[i] >> bit & 1) for i in at)
                rounds = tuple(steps[i] for i in at)
                chance *= bit_chance(flip, name == bit, history, rounds)
        law.append(chance)
    return law


def epsilon_between(mine, yours):
    """ε between two laws of all reports."""
    return math.log(max(max(a / b, b / a) for a, b in zip(mine, yours, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_schedule_b_bounds_changing_values_with_the_same_pattern(number):
    rng = random.Random(100 + number)
    params = Params(2, 1, 1, 0.05 + 0.9 * rng.random(), 0.5, 0.75)
    steps = random_steps(rng, 4)
    mine, yours = (
        law_of_reports(params, steps, values, memo=True) for values in ((0, 1, 0, 1), (1, 0, 1, 0))
    )
    histories = [[steps[0], steps[2]], [steps[1], steps[3]]]
    expected = epsilon_between(mine, yours)
    found = epsilon_changing(params, histories)
    assert found == pytest.approx(expected, abs=1e-10)
    assert found <= epsilon_budget(params, steps) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_schedule_c_bounds_every_pair_of_sequences(number):
    rng = random.Random(200 + number)
    params = Params(2, 1, 1, 0.05 + 0.9 * rng.random(), 0.5, 0.75)
    steps = random_steps(rng, 3)
    bound = epsilon_budget(params, steps)
    laws = [
        law_of_reports(params, steps, values, memo=False) for values in product((0, 1), repeat=3)
    ]
    measured = [epsilon_between(mine, yours) for mine, yours in product(laws, repeat=2)]
    assert max(measured) == pytest.approx(bound, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("periods", "price"), [(10, 2.32), (30, 6.89), (365, 83.7)])
def test_the_price_of_spreading_a_budget(periods, price):
    plan = spend(4 * math.log(3), periods, WINDOWS)
    assert len(plan.periods) == periods
    assert plan.epsilon <= 4 * math.log(3)
    assert plan.epsilon == pytest.approx(4 * math.log(3), rel=1e-6)
    assert plan.price[-1] == pytest.approx(price, rel=2e-3)
    assert all(each.p < each.q <= WINDOWS.q for each in plan.periods)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.5, 0.9, 0.99])
def test_a_geometric_plan_without_an_end_stays_within_the_budget(ratio):
    for periods in (1, 5, 40):
        plan = spend(3.0, periods, WINDOWS, ratio=ratio)
        assert plan.epsilon <= 3.0
        qs = [each.q for each in plan.periods]
        assert qs == sorted(qs, reverse=True)


def test_a_generous_budget_leaves_q_as_it_is():
    assert spend(100.0, 3, WINDOWS).periods == (WINDOWS,) * 3


@pytest.mark.parametrize("share", [1.0, 0.1, 1e-3, 1e-9])
@pytest.mark.parametrize("kind", ["string", "boolean"])
def test_the_solver_rounds_towards_p_and_no_further_than_a_float(share, kind):
    from dataclasses import replace

    q = solve_q(share, WINDOWS, kind)
    assert epsilon_one(replace(WINDOWS, q=q), kind) <= share
    if q < WINDOWS.q:
        above = replace(WINDOWS, q=math.nextafter(q, 1))
        assert epsilon_one(above, kind) > share


@pytest.mark.parametrize(
    ("epsilon", "periods", "ratio"),
    [
        (0, 3, None),
        (-1, 3, None),
        (math.nan, 3, None),
        (math.inf, 3, None),
        (1, 0, None),
        (1, 2.5, None),
        (1, 3, 0),
        (1, 3, 1),
        (1, 3, math.nan),
        (1e-30, 3, None),
    ],
)
def test_impossible_budgets_are_refused(epsilon, periods, ratio):
    with pytest.raises(ParamsError):
        spend(epsilon, periods, WINDOWS, ratio=ratio)


def test_extreme_changes_of_a_string_are_h_both_ways():
    assert extreme_changes("string", WINDOWS) == ((2, 2),)
