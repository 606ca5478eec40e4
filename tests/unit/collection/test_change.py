"""diff: what a change needs, whether it may be made, and what it costs in ε."""

import dataclasses
import datetime
from typing import Any

import pytest

from rappor.collection import Collection, DefinitionDifference, diff
from rappor.collection.change import RULES
from rappor.errors import ParamsError
from rappor.params import Params
from rappor.privacy import Step, epsilon_history, epsilon_infinity
from rappor.privacy.rounding import up

WINDOWS = Params.preset("windows")
OLD = Collection(
    "homepage", 3, WINDOWS, owner="web", expires=datetime.date(2027, 1, 1),
    dimensions={"os": ("mac",)}, keep_reports_days=30, reports_per_period=2, max_values=2,
)  # fmt: skip


def to(version: int = 3, **given: Any) -> DefinitionDifference:
    return diff(OLD, dataclasses.replace(OLD, version=version, **given))


def noise(**given: float) -> Params:
    return dataclasses.replace(WINDOWS, **given)


def test_every_field_has_a_rule() -> None:
    names = {field.name for field in dataclasses.fields(Collection)}
    assert set(RULES) == names - {"name", "version"}


@pytest.mark.parametrize(
    "given",
    [
        {"params": noise(q=0.7)},
        {"params": noise(m=16)},
        {"kind": "bits", "params": noise(k=3, h=1), "max_epsilon": 20.0},
        {"dialect": "google"},
        {"period": "week"},
        {"dimensions": {"os": ("mac", "linux")}},
        {"null_reports": True},
        {"schedule": (("2026-12-01", 0.5, 0.7),)},
        {"group": "pages"},
        {"account_secret": True},
        {"reports_per_period": 3},
        {"max_values": 3},
        {"max_epsilon": 100.0},
    ],
)
def test_what_clients_send_or_were_promised_needs_a_new_version(given: dict[str, Any]) -> None:
    refused = to(**given)
    assert not refused.allowed
    assert refused.refusal.endswith("changed: give it version 4")
    assert set(refused.refusal.split(" changed")[0].split(", ")) <= {*given, "max_epsilon"}
    allowed = to(4, **given)
    assert allowed.allowed
    assert allowed.refusal == ""


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        ({"description": "better words"}, "free"),
        ({"reviews": ("https://example.org/1",)}, "free"),
        ({"keep_reports_days": 7}, "free"),
        ({"keep_reports_days": 31}, "review"),
        ({"expires": datetime.date(2026, 12, 1)}, "free"),
        ({"expires": datetime.date(2027, 6, 1)}, "review"),
        ({"expires": None}, "review"),
        ({"on_expiry": "keep-counts"}, "review"),
        ({"reports_per_period": 1}, "free"),
        ({"max_values": 1}, "free"),
        ({"max_epsilon": 2.0}, "free"),
        ({"sensitivity": "high"}, "free"),
        ({"sensitivity": "low"}, "review"),
        ({"owner": "ads"}, "review"),
        ({"upload": "https://example.org/"}, "review"),
        ({"platform": "web"}, "review"),
        ({"expected_reports": 10}, "review"),
        ({"values": "slow"}, "review"),
        ({"shared": True}, "review"),
        ({"clients_per_person": 2}, "review"),
    ],
)
def test_other_changes_are_free_or_need_a_review(given: dict[str, Any], needs: str) -> None:
    found = to(**given)
    assert found.allowed
    assert [(each.field, each.needs) for each in found.changes] == [(next(iter(given)), needs)]
    assert found.cost == "B', p and q stay the same: one value costs no more ε than before."
    assert found.epsilon_after == found.epsilon_before


def test_a_change_of_p_and_q_costs_the_joint_history() -> None:
    found = to(4, params=noise(q=0.7))
    both = epsilon_history(WINDOWS, [Step(0.5, 0.75), Step(0.5, 0.7)])
    assert both == pytest.approx(1.8214, abs=1e-4)
    assert "ε = 1.822 together" in found.cost
    assert found.same_memo
    assert found.epsilon_before == found.epsilon_after == epsilon_infinity(WINDOWS)


def test_a_schedule_is_charged_at_its_costliest() -> None:
    found = to(4, schedule=(("2026-12-01", 0.25, 0.75),))
    both = epsilon_history(WINDOWS, [Step(0.5, 0.75), Step(0.25, 0.75)])
    assert both > epsilon_history(WINDOWS, [Step(0.5, 0.75, 2)])
    assert f"ε = {up(both)} together" in found.cost


@pytest.mark.parametrize("given", [{"f": 0.25}, {"m": 16}, {"k": 64}])
def test_another_permanent_response_adds(given: dict[str, Any]) -> None:
    new = noise(**given)
    found = to(4, params=new, max_epsilon=OLD.max_epsilon)
    total = epsilon_infinity(WINDOWS) + epsilon_infinity(new)
    assert not found.same_memo
    assert found.epsilon_after == pytest.approx(total)
    assert found.epsilon_after >= total
    assert "The new version has its own B', so ε adds" in found.cost


def test_another_secret_draws_the_same_digest_anew() -> None:
    found = to(4, account_secret=True)
    assert not found.same_memo
    assert found.epsilon_after == pytest.approx(2 * 4.39445, abs=1e-4)


def test_one_time_reports_are_the_same_or_cost_again() -> None:
    kept = Collection("once", 1, noise(p=0.0, q=1.0), one_time=True)
    same = diff(kept, dataclasses.replace(kept, version=2, description="words"))
    assert same.cost == "A one-time report of B' is the same under both: no ε."
    drawn = Collection("once", 1, noise(f=0.0), one_time=True)
    again = diff(drawn, dataclasses.replace(drawn, version=2))
    assert again.epsilon_after == pytest.approx(2 * drawn.epsilon_one)


def test_budget_mode_adds_report_by_report() -> None:
    found = to(4, budget=True, reports_per_period=1)
    assert found.epsilon_after == float("inf")
    assert "one report under each costs ε = 2.149" in found.cost


def test_versions_only_go_up_and_names_never_change() -> None:
    assert to(2).refusal == "version 2 is older than 3: versions only go up"
    assert to().changes == ()
    assert to().allowed
    with pytest.raises(ParamsError, match="two collections, not two versions of one"):
        diff(OLD, dataclasses.replace(OLD, name="start_page"))
