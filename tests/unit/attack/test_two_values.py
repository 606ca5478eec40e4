"""Telling two values apart: the paper's numbers, and plain enumeration for small cases."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from rappor import Params, ParamsError
from rappor.attack import observers, secrets
from rappor.attack.result import max_belief
from rappor.attack.two_values import accuracy, majority
from rappor.mechanism import channel
from rappor.privacy import Step, epsilon_infinity, epsilon_n, epsilon_one
from rappor.privacy.enumeration import bit_chance

WINDOWS = Params.preset("windows")


def by_enumeration(params: Params, reports: int) -> float:
    """Bayes accuracy, (1/2) Σ max(P(outcome | v1), P(outcome | v2)), over all outcomes."""
    bits = min(params.h, params.k - params.h)
    steps = (Step(params.p, params.q),) * reports
    flip = params.exact.f / 2
    histories = list(product((False, True), repeat=reports))
    if_one = [bit_chance(flip, True, history, steps) for history in histories]
    if_zero = [bit_chance(flip, False, history, steps) for history in histories]
    total = Fraction(0)
    for outcome in product(range(len(histories)), repeat=2 * bits):
        first = second = Fraction(1)
        for place, seen in enumerate(outcome):
            first *= if_one[seen] if place < bits else if_zero[seen]
            second *= if_zero[seen] if place < bits else if_one[seen]
        total += max(first, second)
    return float(total / 2)


@pytest.mark.parametrize(
    ("params", "reports"),
    [
        (Params(8, 1, 1, 0.5, 0.5, 0.75), 1),
        (Params(8, 1, 1, 0.5, 0.5, 0.75), 5),
        (Params(8, 2, 1, 0.5, 0.5, 0.75), 1),
        (Params(8, 2, 1, 0.75, 0.25, 0.5), 2),
        (Params(3, 2, 1, 0.5, 0.5, 0.75), 3),  # k < 2h: one telling bit of either value
        (Params(8, 2, 1, 0.5, 0.0, 0.5), 2),
        (Params(8, 2, 1, 0.5, 0.25, 1.0), 2),
        (Params(8, 2, 1, 0.0, 0.25, 0.75), 2),
        (Params(8, 3, 1, 0.3, 0.2, 0.7), 1),
    ],
)
def test_accuracy_is_what_enumerating_every_outcome_gives(params: Params, reports: int) -> None:
    # Whole-number scores may only lose, and less than their rounding allows.
    best = by_enumeration(params, reports)
    assert best - 1e-6 < accuracy(params, reports) < best + 1e-12


def test_one_report_is_a_vote_of_bits() -> None:
    p_star, q_star = channel(WINDOWS)
    chance = Fraction(0)
    for held, other in product(range(3), repeat=2):
        ways = {0: 1, 1: 2, 2: 1}
        weight = (
            ways[held] * q_star**held * (1 - q_star) ** (2 - held)
            * ways[other] * p_star**other * (1 - p_star) ** (2 - other)
        )  # fmt: skip
        chance += weight * (1 if held > other else Fraction(1, 2) if held == other else 0)
    assert observers.single(WINDOWS, trials=10).exact == pytest.approx(float(chance), abs=1e-12)


def test_a_known_memo_gives_the_papers_figure() -> None:
    assert observers.unlimited(WINDOWS, trials=10).exact == 0.84375


@pytest.mark.parametrize(("number", "expected"), [(1, 0.844), (2, 0.929), (3, 0.966), (5, 0.991)])
def test_secrets_add_up(number: int, expected: float) -> None:
    found = secrets.attack(WINDOWS, secrets=number, trials=10)
    assert found.exact == pytest.approx(expected, abs=5e-4)
    assert found.figures[1].exact == 0.84375  # one shared secret


def test_one_time_reports_of_several_devices_add_up_in_spite_of_a_shared_secret() -> None:
    shown = [secrets.attack(WINDOWS, secrets=r, trials=10).figures[2].exact for r in (1, 2, 5)]
    assert shown == sorted(shown)
    assert shown[2] == pytest.approx(accuracy(replace(WINDOWS, f=0.0), 5))
    assert shown[2] > shown[0] + 0.15
    without = secrets.attack(Params(8, 1, 1, 0.5, 0.0, 1.0), trials=10)
    assert len(without.figures) == 2  # f = 0 would have no privacy there


def test_averaging_is_stopped_by_the_memo_and_by_nothing_else() -> None:
    kept, redrawn = (figure.exact for figure in observers.averaging(WINDOWS, trials=10).figures)
    assert kept == pytest.approx(0.84375, abs=1e-6)
    assert redrawn >= 0.99
    found = observers.averaging(WINDOWS, trials=10)
    warner = [value for label, value in found.table.items() if "Warner" in label]
    assert warner == [pytest.approx(3.0**-50)]


def test_many_reports_lead_to_the_known_memo() -> None:
    limit = float(majority(WINDOWS))
    found = [accuracy(WINDOWS, n) for n in (1, 2, 7, 30, 200)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(limit, abs=1e-6)
    assert observers.window(WINDOWS, reports=30, trials=10).exact == found[3]


def test_two_memos_tell_more_than_one_and_alternation_gives_two() -> None:
    found = observers.alternating(WINDOWS, reports=100, trials=20)
    order, even, both, seen = (figure.exact for figure in found.figures)
    assert order == pytest.approx(float(majority(WINDOWS, 2)), abs=1e-3)
    assert both == pytest.approx(even**2)
    assert seen > 0.999
    assert found.bound is not None
    assert found.bound.epsilon == pytest.approx(2 * epsilon_n(WINDOWS, 100))


@pytest.mark.parametrize("preset", ["windows", "chrome", "exponential", "normal"])
def test_no_figure_passes_what_epsilon_allows(preset: str) -> None:
    params = Params.preset(preset)
    assert observers.single(params, trials=10).exact <= max_belief(epsilon_one(params))
    for n in (1, 2, 10):
        assert accuracy(params, n) <= max_belief(epsilon_n(params, n))
    assert float(majority(params)) <= max_belief(epsilon_infinity(params))


def test_values_without_different_bits_are_refused() -> None:
    for params in (Params(1, 1, 1, 0.5, 0.5, 0.75), Params(4, 4, 1, 0.5, 0.5, 0.75)):
        with pytest.raises(ParamsError, match=r"h must be below k"):
            observers.single(params)
