"""What a client has spent: sums over values, versions, collections, periods and groups."""

from dataclasses import replace
from fractions import Fraction

import pytest

from rappor import LedgerError, Params
from rappor.privacy import Charge, Step, epsilon_history, epsilon_infinity, epsilon_n, spent

CHROME, WINDOWS = Params.preset("chrome"), Params.preset("windows")


def test_nothing_costs_nothing():
    assert spent([]).total == 0


def test_five_collections_of_three_values_cost_thirty():
    charges = [Charge(f"c{i}", "m", value, CHROME, 10**6) for i in range(5) for value in "abc"]
    ledger = spent(charges)
    assert ledger.total == pytest.approx(15 * epsilon_infinity(CHROME), abs=1e-9)
    assert ledger.total >= 15 * epsilon_infinity(CHROME) - 1e-14
    assert set(ledger.by_collection) == {f"c{i}" for i in range(5)}


def test_reports_of_one_value_are_one_history():
    charges = [Charge("c", "m", "a", WINDOWS, 1)] * 10
    assert spent(charges).total == epsilon_n(WINDOWS, 10)


def test_a_version_with_other_p_and_q_is_the_joint_history():
    later = replace(WINDOWS, p=0.25, q=0.5)
    ledger = spent([Charge("c", "m", "a", WINDOWS, 5), Charge("c", "m", "a", later, 5)])
    assert ledger.total == epsilon_history(WINDOWS, [Step(0.5, 0.75, 5), Step(0.25, 0.5, 5)])
    assert ledger.total < epsilon_n(WINDOWS, 5) + epsilon_n(later, 5)


def test_what_draws_another_memo_adds_up():
    one = spent([Charge("c", "m", "a", WINDOWS, 3)]).total
    for other in (
        Charge("c", "m2", "a", WINDOWS, 3),
        Charge("c", "m", "b", WINDOWS, 3),
        Charge("d", "m", "a", WINDOWS, 3),
        Charge("c", "m", "a", WINDOWS, 3, period="2026-W07"),
        Charge("c", "m", "a", WINDOWS, 3, secret="second phone"),
    ):
        total = spent([Charge("c", "m", "a", WINDOWS, 3), other]).total
        assert total == pytest.approx(2 * one, abs=1e-12)


def test_budget_mode_charges_each_period_apart():
    charges = [Charge("c", "m", "a", WINDOWS, 1, period=f"w{i}") for i in range(2)]
    assert spent(charges).total == pytest.approx(2 * epsilon_n(WINDOWS, 1))


def test_a_correlated_group_shows_its_joint_epsilon():
    charges = [
        Charge("os", "m", "a", WINDOWS, 1, group="device"),
        Charge("browser", "m", "a", WINDOWS, 1, group="device"),
        Charge("homepage", "m", "a", WINDOWS, 1),
    ]
    ledger = spent(charges)
    assert ledger.by_group == {"device": pytest.approx(2 * epsilon_n(WINDOWS, 1))}
    assert ledger.total == pytest.approx(3 * epsilon_n(WINDOWS, 1))


def test_the_ceiling_is_epsilon_infinity_of_everything():
    ledger = spent([Charge("c", "m", value, WINDOWS, 1) for value in "ab"])
    assert ledger.ceiling == pytest.approx(2 * epsilon_infinity(WINDOWS))
    assert ledger.total < ledger.ceiling


@pytest.mark.parametrize("others", [(1, True, 1.0, Fraction(1)), (0, False, None, "")])
def test_values_that_python_calls_equal_are_still_different_values(others):
    ledger = spent([Charge("c", "m", value, WINDOWS, 1) for value in others])
    assert ledger.total == pytest.approx(4 * epsilon_n(WINDOWS, 1))
    ledger = spent([Charge("c", "m", "v", WINDOWS, 1, secret=each) for each in others])
    assert ledger.total == pytest.approx(4 * epsilon_n(WINDOWS, 1))


@pytest.mark.slow
def test_the_total_is_never_above_the_ceiling():
    charges = [Charge(f"c{i}", "m", v, CHROME, 10**9) for i in range(7) for v in range(i + 1)]
    assert spent(charges).total <= spent(charges).ceiling


def test_values_and_secrets_do_not_show():
    shown = repr(Charge("c", "m", "marker", WINDOWS, 1, secret="marker"))
    assert "marker" not in shown


def test_contradictory_charges_are_refused():
    first = Charge("c", "m", "a", WINDOWS, 1)
    for other in (
        Charge("c", "m", "a", CHROME, 1),
        Charge("c", "m", "a", WINDOWS, 1, kind="boolean"),
        Charge("c", "m", "a", WINDOWS, 1, group="g"),
        Charge("c", "m", "b", WINDOWS, 1, group="g"),
        Charge("c", "m", "b", CHROME, 1),
    ):
        with pytest.raises(LedgerError, match="'c'"):
            spent([first, other])
