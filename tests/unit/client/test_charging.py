"""Charging: what may be reported, and what the ledger says it costs."""

import datetime
import math

import pytest

from rappor.client.accounts import NULL, Ledger
from rappor.client.charging import Caps, ChargeDecision, decide
from rappor.collection import Collection
from rappor.params import Params
from rappor.privacy import epsilon_infinity, epsilon_n, epsilon_one, spent
from support.client import ECHO, MONDAY, WINDOWS, homepage

DAY = datetime.timedelta(days=1)
A, B, C, D = (letter * 32 for letter in "abcd")


def asked(ledger: Ledger, collection: Collection, *calls: tuple[int, str]) -> tuple[str, Ledger]:
    """The names of the answers to calls (day after MONDAY, value), and the ledger after them."""
    answers = []
    for day, value in calls:
        answer, ledger = decide(ledger, collection, MONDAY + day * DAY, value, Caps())
        answers.append(answer.name)
    return " ".join(answers), ledger


def test_a_value_is_charged_once_and_for_all_reports_up_to_expiry() -> None:
    collection = homepage(expires=MONDAY + 10 * DAY)
    answers, ledger = asked(Ledger("s"), collection, (0, A), (1, A), (2, A))
    assert answers == "YES YES YES"
    assert ledger.epsilon() == epsilon_n(WINDOWS, 10)
    assert ledger.accounts[0].terms[0].made == 3


def test_without_an_end_a_value_costs_epsilon_infinity() -> None:
    _, ledger = asked(Ledger("s"), homepage(), (0, A))
    assert ledger.epsilon() == pytest.approx(epsilon_infinity(WINDOWS), rel=1e-9)
    assert ledger.epsilon() <= epsilon_infinity(WINDOWS)


def test_one_report_a_period_and_the_clock_set_back_gives_no_other() -> None:
    answers, _ = asked(Ledger("s"), homepage(), (5, A), (5, B), (3, A), (5, A), (3, A), (4, A))
    assert answers == "YES FULL YES FULL FULL YES"


def test_distinct_values_stop_at_their_limit_and_old_values_go_on() -> None:
    answers, ledger = asked(Ledger("s"), homepage(), (0, A), (1, B), (2, C), (3, D), (4, A))
    assert answers == "YES YES YES CAPPED YES"
    assert ledger.accounts[0].distinct == 3


def test_nothing_is_reported_from_the_day_of_expiry_on() -> None:
    collection = homepage(expires=MONDAY + DAY)
    assert asked(Ledger("s"), collection, (1, A), (0, A), (400, A))[0] == "EXPIRED YES EXPIRED"


def test_epsilon_stops_values_before_their_number_does() -> None:
    one = epsilon_infinity(WINDOWS)
    collection = homepage(max_values=3, max_epsilon=2.5 * one)
    answers, ledger = asked(Ledger("s"), collection, (0, A), (1, B), (2, C))
    assert ledger.epsilon() <= 2.5 * one
    assert answers.startswith("YES YES")


def test_without_a_permanent_response_reports_stop_after_n(  # R31
) -> None:
    params = Params(k=8, h=1, m=1, f=0.0, p=0.5, q=0.75)
    one = epsilon_one(params, "category")
    collection = Collection(
        "sort", 1, params, kind="category", categories=("x", "y"), max_epsilon=4.5 * one
    )
    answers, ledger = asked(Ledger("s"), collection, *((day, A) for day in range(6)))
    assert answers == "YES YES YES YES CAPPED CAPPED"
    assert ledger.epsilon() == pytest.approx(4 * one)


def test_a_new_q_is_one_joint_history_and_a_new_f_adds() -> None:
    expires = MONDAY + 10 * DAY
    old = homepage(expires=expires)
    _, ledger = asked(Ledger("s"), old, (0, A))
    quieter = homepage(
        version=2, expires=expires, params=Params(128, 2, 8, 0.5, 0.5, 0.625), max_epsilon=99
    )
    _, joint = asked(ledger, quieter, (1, A))
    assert joint.epsilon() == spent(joint.charges()).total
    assert epsilon_n(WINDOWS, 10) < joint.epsilon() <= epsilon_infinity(WINDOWS)
    other = homepage(version=2, params=Params.preset("chrome"), max_epsilon=99)
    _, apart = asked(ledger, other, (1, A))
    assert apart.epsilon() == pytest.approx(
        ledger.epsilon() + epsilon_infinity(Params.preset("chrome")), rel=1e-9
    )


def test_a_schedule_charges_each_phase_with_its_own_q() -> None:
    collection = homepage(
        expires=MONDAY + 10 * DAY, schedule=(("2026-11-18", 0.5, 0.625),), max_epsilon=99
    )
    _, ledger = asked(Ledger("s"), collection, (0, A), (2, A))
    assert [(term.q, term.limit) for term in ledger.accounts[0].terms] == [(0.75, 2), (0.625, 8)]


def test_in_budget_mode_each_period_costs_again() -> None:
    collection = homepage(budget=True, max_epsilon=3.5 * epsilon_one(WINDOWS), max_values=9)
    answers, ledger = asked(Ledger("s"), collection, *((day, A) for day in range(5)))
    assert answers == "YES YES YES CAPPED CAPPED"
    assert ledger.epsilon() == pytest.approx(3 * epsilon_one(WINDOWS))


@pytest.mark.slow
def test_old_budget_periods_become_a_sum_that_still_counts() -> None:
    collection = homepage(budget=True, max_epsilon=1e6, max_values=9)
    _, ledger = asked(Ledger("s"), collection, *((day, A) for day in range(140)))
    assert ledger.epsilon() == pytest.approx(140 * epsilon_one(WINDOWS))
    assert len(ledger.accounts[0].terms) == 128
    assert ledger.carried["homepage"] == pytest.approx(12 * epsilon_one(WINDOWS))
    assert asked(ledger, collection, (3, B), (12, B), (100, B))[0] == "FULL FULL FULL"
    assert ledger.accounts[0].distinct == 1


def test_no_value_is_charged_beforehand_where_null_reports_are_made() -> None:
    collection = homepage(null_reports=True, max_values=1)
    answers, ledger = asked(Ledger("s"), collection, (0, A), (1, B), (1, NULL))
    assert answers == "YES CAPPED YES"
    assert set(ledger.accounts[0].values) == {A, NULL}
    assert ledger.epsilon() == pytest.approx(2 * epsilon_infinity(WINDOWS), rel=1e-9)


def test_a_one_time_collection_reports_once_whatever_the_period() -> None:
    collection = homepage(params=Params(128, 2, 8, 0.5, 0.0, 1.0), one_time=True)
    answers, ledger = asked(Ledger("s"), collection, (0, A), (1, B), (900, A))
    assert answers == "YES FULL FULL"
    assert ledger.epsilon() == epsilon_infinity(WINDOWS)


def test_a_group_shares_the_limit_of_the_collection_that_asks() -> None:
    one = epsilon_infinity(ECHO)
    first = homepage(name="os", params=ECHO, group="device", max_epsilon=1.5 * one)
    second = homepage(name="model", params=ECHO, group="device", max_epsilon=1.5 * one)
    _, ledger = asked(Ledger("s"), first, (0, A))
    assert asked(ledger, second, (0, A))[0] == "CAPPED"
    alone = homepage(name="model", params=ECHO, max_epsilon=1.5 * one)
    assert asked(ledger, alone, (0, A))[0] == "YES"


def test_a_group_is_remembered_when_its_secret_is_forgotten() -> None:
    one = epsilon_infinity(ECHO)
    second = homepage(name="model", params=ECHO, group="device", max_epsilon=1.5 * one)
    kept = Ledger("s", carried={"os": one}, groups={"os": "device"})
    assert asked(kept, second, (0, A))[0] == "CAPPED"
    assert asked(Ledger("s", carried={"os": one}), second, (0, A))[0] == "YES"


def test_the_clients_own_limit_counts_all_collections() -> None:
    caps = Caps(total=1.5 * epsilon_infinity(WINDOWS))
    _, ledger = decide(Ledger("s"), homepage(), MONDAY, A, caps)
    answer, same = decide(ledger, homepage(name="other"), MONDAY, A, caps)
    assert answer is ChargeDecision.CAPPED
    assert same is ledger


def test_a_shared_secret_is_charged_for_every_device() -> None:
    collection = homepage(expires=MONDAY + 2 * DAY, clients_per_person=4)
    _, ledger = decide(Ledger("s"), collection, MONDAY, A, Caps(shared=True))
    assert ledger.epsilon() == epsilon_n(WINDOWS, 8)


def test_several_reports_a_week_are_counted_by_week() -> None:
    collection = homepage(period="week", reports_per_period=2, expires=MONDAY + 14 * DAY)
    answers, ledger = asked(Ledger("s"), collection, (0, A), (3, A), (6, A), (7, A))
    assert answers == "YES YES FULL YES"
    assert ledger.accounts[0].terms[0].limit == 4


def test_what_forgotten_secrets_cost_counts_against_the_limit() -> None:
    ledger = Ledger("s", carried={"homepage": epsilon_infinity(WINDOWS)})
    assert asked(ledger, homepage(max_values=1), (0, A))[0] == "CAPPED"
    assert asked(Ledger("s", carried={"homepage": math.inf}), homepage(), (0, A))[0] == "CAPPED"
