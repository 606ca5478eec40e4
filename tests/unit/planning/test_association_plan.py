"""The plan of an association: ε, views, reports, and a power that simulations confirm."""

from __future__ import annotations

import inspect

import pytest

from rappor.decoding.joint_fit import ChiSquare
from rappor.errors import ParamsError
from rappor.params import Params
from rappor.planning import Plans, plan
from rappor.planning.association_plan import MeasuredPower
from rappor.planning.association_power import AssociationQuestion
from rappor.planning.association_request import AssociationRequest, OpenFields
from rappor.planning.request import PlanRequest
from rappor.privacy import epsilon_infinity, epsilon_one

GOAL = (1.0743, 4.3944)


def test_the_plan_keeps_its_epsilon_and_recommends_the_tuple() -> None:
    found = plan(*GOAL, associate=(20, 2), check=0)
    assert found.epsilon_one == epsilon_one(found.params, "tuple") <= GOAL[0]
    assert found.epsilon_infinity == epsilon_infinity(found.params, "tuple") <= GOAL[1]
    assert found.solved == "reports"
    assert found.power >= 0.8
    assert found.separate_reports > 20 * found.reports
    text = str(found)
    assert f"Reports needed: {found.reports:,}." in text
    assert "first and second  80 % of the cohorts" in text
    assert "use the tuple" in text


def test_text_and_numbers_ask_for_the_same_table_and_none_for_single_strings() -> None:
    by_text = plan(*GOAL, associate="20x2", check=0)
    assert by_text == plan(*GOAL, associate=(20, 2), check=0)
    assert isinstance(plan(*GOAL, 10**6, associate=None, check=0), Plans)
    shown = inspect.signature(plan).parameters
    assert shown["associate"].default is None
    assert shown["strength"].default == 0.1
    with pytest.raises(TypeError, match="unexpected keyword argument 'tables'"):
        plan(1.0, tables=(20, 2))  # type: ignore[call-overload]


def test_a_weaker_association_needs_more_reports_and_more_reports_have_more_power() -> None:
    usual = plan(*GOAL, associate=(20, 2), check=0)
    weaker = plan(*GOAL, associate=(20, 2), strength=0.05, check=0)
    assert 3 < weaker.reports / usual.reports < 5  # as the square of the strength
    more = plan(*GOAL, 2 * usual.reports, associate=(20, 2), check=0)
    assert more.solved == "power"
    assert more.power > 0.95
    assert more.detectable < 0.08


@pytest.mark.slow
def test_epsilon_is_solved_for() -> None:
    found = plan(associate=(5, 2), reports=100_000, check=0)
    assert found.solved == "epsilon"
    assert found.power >= 0.79
    needed = plan(found.epsilon_one, associate=(5, 2), check=0).reports
    assert 0.8 < needed / 100_000 < 1.25


def test_views_follow_from_which_fields_are_open() -> None:
    both = plan(*GOAL, associate=(5, 3), open_fields="both", check=0)
    assert [view.fields for view in both.views.views] == [
        ("first", "second"),
        ("first",),
        ("second",),
    ]
    none = plan(*GOAL, associate=(5, 3), open_fields="none", check=0)
    assert [view.share for view in none.views.views] == [1.0]


@pytest.mark.long
@pytest.mark.parametrize("open_fields", ["first", "both", "none"])
def test_the_promised_power_is_kept_in_simulations(open_fields: OpenFields) -> None:
    """.8 ± 3 standard errors of 60 collections; a promise of .5 or .95 would be noticed."""
    found = plan(*GOAL, associate=(10, 4), open_fields=open_fields, check=60)
    assert found.checked is not None
    assert 0.65 < found.checked.share < 0.95


FREEDOM = pytest.mark.parametrize(
    ("open_fields", "freedom"), [("first", 2), ("both", 5), ("none", 2)]
)


def question(open_fields: OpenFields) -> AssociationQuestion:
    return AssociationQuestion.of(
        AssociationRequest(*GOAL, associate=(3, 2), open_fields=open_fields)
    )


@pytest.mark.slow
@FREEDOM
def test_a_plan_counts_the_degrees_of_freedom_that_the_fit_tests(
    open_fields: OpenFields, freedom: int
) -> None:
    """Two open fields have a row and a column of others: 3 × 2 + 3 + 2 cells and no corner.

    The 3 degrees that a smaller table lacks take a third more reports.
    """
    asked = question(open_fields)
    goal = PlanRequest(*GOAL, 1).checked().goal
    assert goal is not None
    layout = asked.layout(goal, 32)
    assert layout is not None
    assert layout.freedom == freedom
    reports = asked.needed(layout.freedom) / layout.per_report
    assert asked.chance(layout.per_report * reports, freedom) == pytest.approx(0.8)
    assert asked.needed(5) > 1.3 * asked.needed(2)


@pytest.mark.long
@FREEDOM
def test_simulated_collections_have_the_planned_noncentrality(
    open_fields: OpenFields, freedom: int
) -> None:
    """Their statistic is freedom + λ on average, with a standard deviation of √(2 freedom + 4 λ).

    That is less than 8 here: the mean of 40 is within 4 of the plan with 3 standard errors.
    """
    found = plan(*GOAL, associate=(3, 2), open_fields=open_fields, check=40)
    assert found.checked is not None
    needed = question(open_fields).needed(freedom)
    assert found.checked.noncentrality == pytest.approx(needed, abs=4)


def test_a_formula_that_promises_too_much_is_corrected_until_simulations_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One correction is not enough where a hundred times too few reports tell next to nothing."""
    honest = AssociationQuestion.noiseless

    def boasting(question: AssociationQuestion, params: Params) -> ChiSquare:
        test = honest(question, params)
        return test._replace(statistic=100 * test.statistic)

    sound = plan(*GOAL, associate=(3, 2), open_fields="none", check=0)
    monkeypatch.setattr(AssociationQuestion, "noiseless", boasting)
    found = plan(*GOAL, associate=(3, 2), open_fields="none", check=20)
    assert found.checked is not None
    assert not found.falls_short
    assert found.reports > sound.reports / 3
    assert "CONTRADICTS" not in str(found)


def test_a_plan_that_simulations_contradict_in_the_end_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contrary = MeasuredPower(11, 20, 1_000.0)
    monkeypatch.setattr("rappor.planning.association_plan._checked", lambda *_: contrary)
    found = plan(*GOAL, associate=(3, 2), open_fields="none", check=20)
    assert found.falls_short
    assert "11 were found.\nThat CONTRADICTS the plan: count on what was measured." in str(found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"associate": (50,)}, "associate must be two numbers"),
        ({"associate": (1, 5)}, "a table of 1 × 5 has no association"),
        ({"associate": "5 by 5"}, "two numbers such as 50x10"),
        ({"associate": (2000, 2000)}, "more than 40,000"),
        ({"associate": (5, 2)}, "give an ε or the number of reports"),
        ({"associate": (5, 2), "reports": 50}, "at any ε1 up to 5"),
        ({"associate": (500, 80), "epsilon_one": 1, "max_bytes": 2}, "allow longer reports"),
        ({"associate": (5, 2), "epsilon_one": 1, "open_fields": "x"}, "first, both, none"),
        ({"associate": (5, 2), "epsilon_one": 1, "strength": 2}, "strength"),
        ({"associate": (5, 2), "epsilon_one": 1, "candidates": 9}, "candidates does not go with"),
        ({"epsilon_one": 1, "strength": 0.1}, "strength goes with associate"),
    ],
)
def test_impossible_plans_are_refused_in_one_sentence(
    arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(ParamsError, match=words):
        plan(**{"check": 0, **arguments})  # type: ignore[arg-type]
