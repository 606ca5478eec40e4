"""Plans: what they promise, what they solve, what they refuse and warn of."""

import functools
import inspect
import math
import re

import pytest

import rappor
from rappor import ParamsError
from rappor.planning import PlanRequest, plan
from rappor.planning.layouts import ALIKE
from rappor.privacy import epsilon_infinity, epsilon_n, epsilon_one
from rappor.simulate.populations import uniform, zipf

PAPER = {"epsilon_one": 1.0743, "epsilon_infinity": 4.3944, "candidates": 200, "check": 0}
SHORT = {"max_bytes": 4}  # few designs, for tests that are not about which one is best


@functools.cache
def planned(**asked):
    """A plan that several tests look at: the same request gives the same plan."""
    return plan(**asked)


@pytest.mark.slow
def test_the_papers_goal_gets_one_hash_and_a_better_design():
    assert rappor.plan is plan
    found = planned(**PAPER, reports=10**6)
    best = found.best
    assert (best.params.h, best.params.k) == (1, 256)
    assert best.params.f == pytest.approx(0.2001, abs=0.002)
    assert best.params.p == pytest.approx(0.2239, abs=0.01)
    assert best.params.q == pytest.approx(0.5307, abs=0.01)
    assert best.expected.family_wise > 41.5
    assert best.expected.fdr > 54.5
    by_hashes = {each.params.h: each for each in found if each.params.k == 256}
    assert sorted(by_hashes, key=lambda h: by_hashes[h].at(0.5).frequency) == [1, 2, 3, 4]


@pytest.mark.slow
def test_every_plan_states_the_exact_epsilon_and_keeps_the_request():
    for goal in ({"epsilon_one": 0.5, "epsilon_infinity": 2}, {"epsilon_one": 3, "one_time": True}):
        for each in plan(**goal, reports=10**5, candidates=50, n=(2, 9), check=0):
            assert each.epsilon_one == epsilon_one(each.params) <= goal["epsilon_one"]
            assert each.epsilon_infinity == epsilon_infinity(each.params)
            assert each.epsilon_infinity <= goal.get("epsilon_infinity", math.inf)
            reports = () if "one_time" in goal else (2, 9)  # one report is all there is
            assert each.epsilon_n == {n: epsilon_n(each.params, n) for n in reports}
            assert each.bytes_per_report == (each.params.k + 7) // 8
            assert each.cohort_size == 10**5 / each.params.m


def test_plans_are_ranked_by_what_they_detect_and_the_best_is_short():
    found = planned(**PAPER, reports=10**6)
    frequencies = [each.at(0.8).frequency for each in found]
    assert frequencies[1:] == sorted(frequencies[1:])
    assert frequencies[0] <= 1.01 * min(frequencies)
    assert all(each.params.k >= found.best.params.k for each in found if each.at(0.8).frequency
               <= 1.01 * min(frequencies))  # fmt: skip
    assert len(found) == len(list(found))
    assert found[0] is found.best


@pytest.mark.slow
def test_reports_are_solved_from_the_others():
    by_reports = planned(**PAPER, **SHORT, reports=10**6)
    assert by_reports.settled.solved == "frequency"
    frequency = min(each.at(0.8).frequency for each in by_reports)
    by_frequency = plan(**PAPER, **SHORT, frequency=frequency)
    assert by_frequency.settled.solved == "reports"
    assert by_frequency.settled.reports == pytest.approx(10**6, rel=0.01)


@pytest.mark.slow
def test_epsilon_is_solved_from_the_others():
    by_reports = planned(**PAPER, **SHORT, reports=10**6)
    frequency = min(each.at(0.8).frequency for each in by_reports)
    asked = {"reports": 10**6, "frequency": frequency, "candidates": 200, "check": 0, **SHORT}
    by_both = plan(**asked, epsilon_infinity=4.3944)
    assert by_both.settled.solved == "epsilon"
    assert by_both.settled.goal.epsilon_one == pytest.approx(1.0743, rel=0.01)
    assert by_both.best.at(0.8).frequency <= frequency * 1.001
    free = plan(**asked).settled.goal
    assert free.epsilon_infinity == pytest.approx(4 * free.epsilon_one)


@pytest.mark.slow
def test_all_three_that_fit_together_are_accepted():
    found = plan(**PAPER, reports=10**6, frequency=0.01)
    assert found.settled.solved == ""
    assert found.best.at(0.8).frequency <= 0.01
    # What only a longer report detects is not refused.
    rarest = min(each.at(0.8).frequency for each in found)
    assert plan(**PAPER, reports=10**6, frequency=rarest).best.at(0.8).frequency <= rarest


@pytest.mark.slow
def test_epsilon_for_ever_alone_is_a_goal():
    goal = plan(epsilon_infinity=4, reports=10**6, candidates=200, check=0).settled.goal
    assert (goal.epsilon_one, goal.epsilon_infinity) == (1, 4)


@pytest.mark.long
def test_more_of_anything_detects_less_frequent_strings():
    def rarest(**change):
        return planned(**{**PAPER, "reports": 10**6, **change}).best.at(0.8).frequency

    usual = rarest()
    assert rarest(reports=10**7) < usual
    assert rarest(epsilon_one=2) < usual
    assert rarest(candidates=20) < usual
    assert rarest(power=0.8, alpha=0.2) < usual
    assert rarest(max_bytes=2) > usual


@pytest.mark.slow
def test_a_category_has_a_bit_for_each_candidate_and_a_boolean_one():
    category = plan(1, reports=10**6, candidates=30, kind="category", check=0).best
    assert (category.params.k, category.params.h, category.params.m) == (30, 1, 1)
    assert category.epsilon_one == epsilon_one(category.params, "category") <= 1
    boolean = plan(1, reports=10**4, candidates=1, kind="boolean", check=0).best
    assert (boolean.params.k, boolean.params.m) == (1, 1)
    assert boolean.params.p + boolean.params.q == pytest.approx(1, abs=0.05)
    # One bit that changes one way gives away less: at the same ε more is seen.
    assert boolean.at(0.8).count < plan(1, reports=10**4, candidates=1, check=0).best.at(0.8).count


@pytest.mark.long
def test_the_population_counts_what_is_found_and_disturbs():
    def found(population):
        return plan(**PAPER, reports=10**6, population=population).best

    assert found(uniform(20, absent=180)).expected.family_wise == pytest.approx(20, abs=0.1)
    assert found(zipf(1000, absent=100)).expected.family_wise < 40
    unlisted = uniform(400, unlisted=300)
    calm, disturbed = found(uniform(20, absent=180)), found(unlisted)
    assert disturbed.detector.unrest > 0 == calm.detector.unrest
    # More bits in all are worth their price where unlisted strings fall on them.
    assert disturbed.params.k * disturbed.params.m > calm.params.k * calm.params.m


@pytest.mark.slow
def test_the_same_request_gives_the_same_plans():
    asked = {**PAPER, **SHORT, "reports": 10**5, "check": 2}
    assert plan(**asked) == planned(**asked)


# What cannot be had.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "impossible", "nearest"),
    [
        ({"epsilon_one": 0, "reports": 10**6}, "epsilon_one = 0 is impossible", "epsilon_one = 0."),
        ({"epsilon_one": -1, "reports": 10**6}, "epsilon_one = -1 is imposs", "epsilon_one = 0."),
        ({"epsilon_one": 1, "epsilon_infinity": 0, "reports": 10**6},
         "epsilon_infinity = 0 is impossible", "epsilon_one = 0."),
        ({"epsilon_one": 0}, "epsilon_one = 0 is impossible", "small number above 0"),
        ({"epsilon_one": 1, "reports": 0}, "reports = 0 is impossible", "it takes "),
        ({"epsilon_one": 1, "reports": -5}, "reports = -5 is impossible", "it takes "),
        ({"reports": 0}, "reports = 0 is impossible", "leave reports out"),
        ({"epsilon_one": 1, "reports": 100, "frequency": 1e-9}, "1e-07 of a report", "1e-09 takes"),
        ({"reports": 100, "frequency": 1e-9}, "1e-07 of a report", "1,000,000,000 reports"),
        ({"epsilon_one": 1, "reports": 10**6, "frequency": 0}, "nobody holds it", "Leave freq"),
        ({"epsilon_one": 3, "epsilon_infinity": 1, "reports": 10**6},
         "epsilon_one = 3 above epsilon_infinity = 1 is impossible", "nearest is epsilon_one = 1"),
        ({"epsilon_one": 0.1, "reports": 10**4, "frequency": 0.01, "max_bytes": 16},
         "cannot detect 1 %", "reports; or epsilon_one = "),
        ({"epsilon_one": 0.01, "reports": 200}, "detect nothing", "it takes "),
        ({"reports": 200, "frequency": 0.006}, "cannot detect 0.6 %", "Nearest: "),
        ({"epsilon_infinity": 0.5, "reports": 1000, "frequency": 0.01}, "cannot detect 1 %",
         "not even with epsilon_one = 0.5"),
        ({"epsilon_one": 1e-3, "frequency": 1e-12}, "no number of reports", "Nearest: "),
    ],
)  # fmt: skip
def test_the_impossible_is_named_with_the_nearest_that_is_possible(asked, impossible, nearest):
    with pytest.raises(ParamsError) as caught:
        plan(**SHORT | asked, candidates=200, check=0)
    assert impossible in str(caught.value)
    assert nearest in str(caught.value)


@pytest.mark.slow
def test_the_nearest_that_is_named_is_possible():
    with pytest.raises(ParamsError) as caught:
        plan(0.1, reports=10**4, frequency=0.01, candidates=200, check=0, max_bytes=16)
    named = re.search(r"or ([\d,]+) reports; or epsilon_one = ([\d.]+)", str(caught.value))
    asked = {"frequency": 0.01, "candidates": 200, "check": 0, "max_bytes": 16}
    assert plan(0.1, reports=int(named[1].replace(",", "")), **asked)
    assert plan(float(named[2]), reports=10**4, **asked)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": 0}, "candidates must be a whole number from 1"),
        ({"power": 1}, "power must be a number above 0 and below 1"),
        ({"alpha": 0}, "alpha must be"),
        ({"kind": "bits"}, "kind must be one of string, category, boolean"),
        ({"kind": "boolean"}, "kind boolean needs 1 candidate"),
        ({"kind": "category", "candidates": 5000}, "plan kind string"),
        ({"epsilon_one": float("nan")}, "epsilon_one must be a number above 0"),
        ({"epsilon_one": 100, "epsilon_infinity": 400}, "promises nothing"),
        ({"epsilon_one": 1e-9}, "needs more reports than there are"),
        ({"epsilon_one": "1"}, "epsilon_one must be a number above 0"),
        ({"reports": 1.5}, "reports must be a whole number"),
        ({"frequency": 2}, "a share of reports is below 1"),
        ({"platform": "toaster"}, "platform must be one of device, web"),
        ({"values": "wild"}, "values must be one of fixed, slow, fast"),
        ({"one_time": True}, "epsilon_infinity = 4.3944 is about repeated reports"),
        ({"devices": 0}, "devices must be a whole number from 1"),
        ({"n": (0,)}, "n must be a whole number from 1"),
        ({"check": -1}, "check must be a whole number from 0"),
        ({"epsilon_one": None, "epsilon_infinity": None}, "give two of epsilon_one"),
        ({"reports": None}, "give two of epsilon_one"),
    ],
)
def test_what_is_no_request_is_refused_by_name(change, message):
    with pytest.raises(ParamsError, match=message):
        plan(**{**PAPER, "reports": 10**6, **change})


# Cautions.


def codes(**change):
    asked = {**PAPER, **SHORT, "reports": 10**6, **change}
    return [each.code for each in planned(**asked).best.cautions]


@pytest.mark.slow
def test_each_caution_is_given_where_it_applies_and_only_there():
    assert codes(max_bytes=32) == ["trackable-bits"]
    assert "forgetful-platform" in codes(platform="web")
    assert "several-devices" in codes(devices=3)
    assert "several-collections" in codes(collections=2)
    assert "changing-values" in codes(values="slow")
    assert "small-cohorts" in codes(reports=5000)
    assert "linkable-reports" in codes(epsilon_one=3, epsilon_infinity=3)
    assert codes(epsilon_infinity=None, one_time=True) == []


@pytest.mark.slow
def test_sums_of_epsilon_are_never_rounded_down():
    best = plan(**PAPER, reports=10**6, devices=3).best
    (text,) = [each.text for each in best.cautions if each.code == "several-devices"]
    stated = float(text.split("ε = ")[1].split(" ")[0])
    assert 3 * best.epsilon_infinity <= stated <= 3 * best.epsilon_infinity + 1e-3


@pytest.mark.slow
def test_values_that_change_fast_and_tiny_cells_are_refused_with_a_way_out():
    with pytest.raises(ParamsError, match=r"change fast.*one-time collection, or spread a budget"):
        plan(**PAPER, reports=10**6, values="fast")
    assert plan(1, reports=10**6, candidates=200, one_time=True, values="fast", check=0)
    with pytest.raises(ParamsError, match=r"too few to hide in.*at least 2,000"):
        plan(8, 20, reports=1990, candidates=5, cells=20, check=0)


@pytest.mark.slow
@pytest.mark.parametrize("reports", [5_000, 100_000])
def test_a_design_that_detects_nothing_is_no_plan(reports: int) -> None:
    for found in plan(1, 4, reports=reports, cells=50, check=0):
        assert found.at(0.8).frequency <= 1
        assert found.params.q - found.params.p > 0.1  # the noise of a search that found nothing


def test_a_one_time_collection_has_no_epsilon_of_several_reports() -> None:
    for found in plan(1, reports=10**6, one_time=True, check=0):
        assert found.epsilon_n == {}
    assert set(plan(1, reports=10**6, check=0).best.epsilon_n) == {7, 30, 365}


def test_the_first_plan_is_the_shortest_near_the_rarest_and_the_others_are_in_order() -> None:
    for reports in (10**5, 10**6, 10**7):
        first, *others = plan(1, 4, reports=reports, check=0)
        frequencies = [each.at(0.8).frequency for each in others]
        assert frequencies == sorted(frequencies)
        limit = ALIKE * min(first.at(0.8).frequency, *frequencies)
        near = [each for each in (first, *others) if each.at(0.8).frequency <= limit]
        assert first.params.k == min(each.params.k for each in near)


def test_cells_have_cohorts_large_enough_to_hide_in():
    for reports, cells in ((10**6, 1), (10**6, 50), (10**4, 1), (3 * 10**5, 20)):
        best = plan(2, 8, reports=reports, candidates=20, cells=cells, check=0).best
        assert reports / cells / best.params.m >= 100


@pytest.mark.slow
def test_a_value_that_all_share_gets_a_filter_too_short_to_track():
    for each in plan(**PAPER, reports=10**6, shared=True):
        a = each.params.f / 2
        chance = -each.params.k * (a * math.log2(a) + (1 - a) * math.log2(1 - a))
        assert chance <= math.log2(10**6) / 2
    with pytest.raises(ParamsError, match="tell them apart"):
        plan(0.1, 0.2, reports=10**4, candidates=2, shared=True, check=0)


# The check, and the chart.


@pytest.mark.slow
def test_the_check_counts_what_the_decoder_detects():
    checked = planned(**{**PAPER, **SHORT, "reports": 10**5, "check": 2}).checked
    assert checked.collections == 2
    assert [each.power for each in checked.levels] == [0.5, 0.8, 0.95]
    assert checked.holds
    assert planned(**PAPER, reports=10**6).checked is None


def test_a_false_promise_would_be_noticed():
    from rappor.planning.power_check import Checked, PlanCheck

    good = Checked(0.8, 0.01, 0.79, 0.01, 1600)
    assert PlanCheck(100, (good,)).holds
    assert not PlanCheck(100, (good, Checked(0.8, 0.01, 0.74, 0.01, 1600))).holds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidates", "kind"), [(1, "string"), (3, "string"), (5, "category"), (1, "boolean")]
)
@pytest.mark.parametrize(
    "check",
    [pytest.param(1, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.long)],
)
def test_short_lists_are_checked_with_one_string_at_a_time(candidates, kind, check):
    asked = {"epsilon_one": 1, "epsilon_infinity": 4, "reports": 10**5, "candidates": candidates}
    checked = plan(**asked, kind=kind, check=check).checked
    assert checked.collections == 10 * check
    assert sum(each.strings for each in checked.levels) == 10 * check
    assert all(10 * check // 3 <= each.strings <= 10 * check // 3 + 1 for each in checked.levels)
    assert checked.holds


@pytest.mark.long
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(
            {"epsilon_one": 8, "reports": 10_000, "candidates": 30, "check": 2},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"epsilon_one": 8, "reports": 20_000, "candidates": 100, "check": 4},
            marks=pytest.mark.long,
        ),
    ],
    ids=["30 candidates", "100 candidates"],
)
def test_a_formula_that_is_wrong_is_replaced_by_what_simulations_show(asked):
    """At ε = 8 and few reports bits hold one or two: a count of them is far from normal."""
    formula, found = plan(**{**asked, "check": 0}), plan(**asked)
    assert formula.best.detector.measured is None
    assert found.checked.corrected
    assert found.checked.holds
    assert found.best.at(0.8).frequency > 1.05 * formula.best.at(0.8).frequency
    assert found.best.detector.power(found.best.at(0.8).frequency) == pytest.approx(0.8)


@pytest.mark.slow
def test_the_requested_chance_is_checked_too():
    checked = plan(**{**PAPER, **SHORT, "check": 2}, reports=10**5, power=0.9).checked
    assert [each.power for each in checked.levels] == [0.5, 0.8, 0.9, 0.95]


@pytest.mark.slow
def test_the_chart_shows_the_request_and_one_line_for_each_number_of_hashes(tmp_path):
    chart = planned(**PAPER, reports=10**6).plot()
    values = chart.spec["data"]["values"]
    assert len({each["plan"] for each in values}) == 4
    assert chart.save(tmp_path / "plan.svg").read_text().startswith("<svg")


def test_a_plan_is_asked_for_by_the_fields_of_a_request_and_remembers_them():
    asked = inspect.signature(PlanRequest).parameters
    assert asked.items() <= inspect.signature(plan).parameters.items()
    found = plan(1, reports=10**5, candidates=30, check=0, progress=lambda line: None, **SHORT)
    assert found.request == PlanRequest(1, reports=10**5, candidates=30, check=0, **SHORT).checked()
    assert found.request.progress is None
