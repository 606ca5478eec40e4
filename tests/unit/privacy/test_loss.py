"""ε against the paper's numbers, against enumeration, and rounded the right way."""

import math
import random
from decimal import Decimal, getcontext
from fractions import Fraction

import pytest

from rappor import Params, ParamsError
from rappor.mechanism import channel, extreme_changes
from rappor.mechanism.prr import flip_probability
from rappor.privacy import (
    Step,
    epsilon_by_enumeration,
    epsilon_history,
    epsilon_infinity,
    epsilon_n,
    epsilon_one,
)
from rappor.privacy.enumeration import epsilon_of_histories

WINDOWS, CHROME = Params.preset("windows"), Params.preset("chrome")
KINDS = ("string", "category", "boolean", "ordinal", "bits", "tuple")
CASES = [*range(40), *(pytest.param(n, marks=pytest.mark.long) for n in range(40, 200))]  # random


def theorem_2(params: Params) -> Decimal:
    getcontext().prec = 50
    p, q = channel(params)
    odds = q * (1 - p) / (p * (1 - q))
    return params.h * (Decimal(odds.numerator) / Decimal(odds.denominator)).ln()


def theorem_1(params: Params) -> Decimal:
    getcontext().prec = 50
    a = flip_probability(params)
    odds = (1 - a) / a
    return 2 * params.h * (Decimal(odds.numerator) / Decimal(odds.denominator)).ln()


@pytest.mark.parametrize(
    ("params", "one", "ever"), [(WINDOWS, 1.07429, 4.39445), (CHROME, 0.53432, 2.04330)]
)
def test_the_paper_s_figures(params, one, ever):
    assert epsilon_one(params) == pytest.approx(one, abs=1e-4)
    assert epsilon_infinity(params) == pytest.approx(ever, abs=1e-4)


@pytest.mark.parametrize(("n", "expected"), [(1, 1.074), (2, 2.017), (5, 3.656), (10, 4.299)])
def test_epsilon_n_of_the_paper_s_parameters(n, expected):
    assert epsilon_n(WINDOWS, n) == pytest.approx(expected, abs=5e-4)


def test_a_boolean_is_not_half_a_string():
    assert epsilon_one(WINDOWS, "boolean") == pytest.approx(0.3365, abs=1e-4)
    assert epsilon_one(WINDOWS) / 4 == pytest.approx(0.2686, abs=1e-4)
    assert epsilon_infinity(WINDOWS, "boolean") == pytest.approx(math.log(3), abs=1e-12)


def test_without_the_permanent_step_epsilon_is_ln_3_once_and_infinite_for_ever():
    normal = Params.preset("normal")
    assert epsilon_one(normal, "category") == pytest.approx(math.log(3), abs=1e-12)
    for kind in KINDS:
        assert epsilon_infinity(normal, kind) == math.inf
        assert epsilon_n(normal, 1000, kind) == pytest.approx(1000 * epsilon_one(normal, kind))


def random_params(rng: random.Random, k: int, h: int) -> Params:
    while True:
        f, p, q = rng.choice([0.0, rng.random()]), rng.random(), rng.random()
        edge = rng.random()
        if f and edge < 0.1:
            p = 0.0
        elif f and edge < 0.2:
            q = 1.0
        if p < q:
            return Params(k, h, 1, f, p, q)


SHAPES = {"string": [(4, 2), (3, 1), (2, 1)], "category": [(2, 1), (3, 1)], "boolean": [(1, 1)],
          "ordinal": [(3, 1)], "bits": [(1, 1), (2, 1)]}  # fmt: skip


@pytest.mark.parametrize("number", CASES)
def test_epsilon_n_equals_enumeration_of_all_outputs_and_value_pairs(number):
    rng = random.Random(number)
    for kind in ("string", "category", "boolean", "bits"):
        k, h = rng.choice(SHAPES[kind])
        params = random_params(rng, k, h)
        n = rng.randint(1, 3 if k < 3 else 2 if k < 4 else 1)
        expected = epsilon_by_enumeration(params, [Step(params.p, params.q, n)], kind)
        assert epsilon_n(params, n, kind) == pytest.approx(expected, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("number", CASES)
def test_epsilon_n_equals_enumeration_of_all_histories_of_a_bit(number):
    rng = random.Random(1000 + number)
    kind = rng.choice(KINDS)
    params = random_params(rng, 4, 2)
    steps = [Step(params.p, params.q, rng.randint(1, 8))]
    changes = extreme_changes(kind, params)
    expected = epsilon_of_histories(flip_probability(params), steps, changes)
    found = epsilon_n(params, steps[0].reports, kind)
    assert found == pytest.approx(expected, abs=1e-10, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("number", CASES)
def test_histories_of_changing_p_and_q_equal_enumeration(number):
    rng = random.Random(2000 + number)
    params = random_params(rng, 2, 1)
    steps = [Step(*sorted((rng.random(), rng.random()))) for _ in range(rng.randint(1, 3))]
    for kind in ("string", "category", "boolean", "bits"):
        expected = epsilon_by_enumeration(params, steps, kind)
        assert epsilon_history(params, steps, kind) == pytest.approx(expected, abs=1e-10)
    steps += [Step(*sorted((rng.random(), rng.random()))) for _ in range(5)]
    changes = extreme_changes("string", params)
    expected = epsilon_of_histories(flip_probability(params), steps, changes)
    assert epsilon_history(params, steps) == pytest.approx(expected, abs=1e-10, rel=1e-12)


def test_a_null_value_costs_no_more_than_two_values():
    params = Params(4, 2, 1, 0.5, 0.5, 0.75)
    steps = [Step(0.5, 0.75, 1)]
    with_null = epsilon_by_enumeration(params, steps, "string", null=True)
    assert with_null == pytest.approx(epsilon_one(params), abs=1e-10)


@pytest.mark.parametrize("number", range(100))
def test_epsilon_is_never_below_the_true_value_and_within_a_hair_of_it(number):
    rng = random.Random(3000 + number)
    params = random_params(rng, 8, rng.randint(1, 3))
    if params.f:
        assert 0 <= Decimal(epsilon_infinity(params)) - theorem_1(params) < Decimal("1e-12")
    assert 0 <= Decimal(epsilon_one(params)) - theorem_2(params) < Decimal("1e-12")


def test_epsilon_grows_with_n_towards_its_limit():
    for kind in KINDS:
        losses = [epsilon_n(WINDOWS, n, kind) for n in (0, 1, 2, 3, 10, 100, 10**6, 10**18)]
        assert losses == sorted(losses)
        assert losses[0] == 0
        assert losses[-1] == epsilon_infinity(WINDOWS, kind) == epsilon_n(WINDOWS, math.inf, kind)


def test_one_time_reports_without_the_second_step_cost_epsilon_infinity_at_once():
    params = Params(128, 2, 1, 0.5, 0.0, 1.0)
    assert epsilon_one(params) == epsilon_n(params, 7) == epsilon_infinity(params)


@pytest.mark.parametrize("same", [0.0, 0.5, 1.0])
def test_a_step_without_information_costs_nothing(same):
    empty, real = Step(same, same, 3), Step(0.5, 0.75, 2)
    for kind in KINDS:
        assert epsilon_history(WINDOWS, [empty], kind) == 0
        assert epsilon_history(WINDOWS, [empty, real], kind) == epsilon_n(WINDOWS, 2, kind)
    small = Params(2, 1, 1, 0.5, 0.5, 0.75)
    steps = [Step(0.5, 0.75), Step(same, same)]
    expected = epsilon_by_enumeration(small, steps)
    assert epsilon_history(small, steps) == pytest.approx(expected, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "h"), [(3, 2), (4, 3)])
@pytest.mark.parametrize("null", [False, True])
def test_short_filters_are_within_the_bound_in_every_dialect(k, h, null):
    params = Params(k, h, 1, 0.5, 0.5, 0.75)
    found = epsilon_by_enumeration(params, [Step(0.5, 0.75)], null=null, distinct=False)
    assert found <= epsilon_one(params)


def test_enumeration_sees_the_smallest_differences():
    q = math.nextafter(0.5, 1)
    found = epsilon_by_enumeration(Params(1, 1, 1, 0.0, 0.5, q), [Step(0.5, q)], "boolean")
    assert found == pytest.approx(2.22e-16, rel=0.01)
    with pytest.raises(ParamsError):
        epsilon_by_enumeration(WINDOWS, [Step(-0.5, 1.75)])


@pytest.mark.parametrize("step", [(0.5, 0.75), None, 3, (0.5, 0.75, -1), (0.5, 0.75, 1.5)])
def test_what_is_no_step_is_refused(step):
    with pytest.raises(ParamsError):
        epsilon_history(WINDOWS, [step])


@pytest.mark.parametrize("call", [epsilon_one, epsilon_infinity, lambda p: epsilon_n(p, 3)])
def test_what_is_no_params_is_refused(call):
    with pytest.raises(ParamsError, match="params must be"):
        call(None)


@pytest.mark.parametrize("n", [-1, 1.0, 0.5, True, None, "1", math.nan])
def test_the_number_of_reports_is_a_whole_number(n):
    with pytest.raises(ParamsError, match="n must be a whole number"):
        epsilon_n(WINDOWS, n)


@pytest.mark.parametrize("kind", ["strings", None, 3, ["string"]])
def test_an_unknown_kind_is_refused(kind):
    with pytest.raises(ParamsError, match="kind must be one of"):
        epsilon_one(WINDOWS, kind)


@pytest.mark.parametrize(
    ("p", "q"), [(0.6, 0.5), (-0.1, 0.5), (0.5, 1.1), (math.nan, 0.5), (Fraction(1, 3), 0.5)]
)
def test_steps_are_checked(p, q):
    with pytest.raises(ParamsError):
        epsilon_history(WINDOWS, [Step(p, q)])
