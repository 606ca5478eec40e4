"""Clients: how many, in which cohorts, how often they report, and on which values."""

import inspect

import numpy as np
import pytest

from rappor import Params
from rappor.errors import ParamsError
from rappor.simulate import Scenario, counts, exponential, reports, simulate, uniform, zipf
from rappor.simulate.crowd import UNIT, distinct_values, draw_crowd, unit_lengths

PARAMS = Params(32, 2, 4, 0.5, 0.25, 0.75)
POPULATION = {"a.org": 6, "b.org": 3, "c.org": 1}
MACHINES = zipf(500, power=1.6, shift=15, absent=500)


@pytest.mark.slow
def test_windows_machines_report_each_name_at_most_once():
    """R53, at a tenth of its size: some machines have 18, some 19, and none repeats itself."""
    made = reports(
        MACHINES, Params.preset("windows"), 18_679, seed=1, values="distinct", clients=1_013
    )
    assert len(made) == 18_679
    assert made.reports_per_client == made.count().reports_per_client == 1
    each = np.bincount(made.clients)
    assert len(each) == 1_013
    assert set(each.tolist()) == {18, 19}
    pairs = made.clients * 500 + made.values
    assert len(np.unique(pairs)) == len(pairs)
    for client in (0, 500, 1_012):
        assert len(set(made.cohorts[made.clients == client])) == 1


def test_distinct_values_keep_their_shares():
    """A client holds a value with probability share × reports: each of 500 within 5 sd."""
    truth = simulate(
        MACHINES, Params.preset("windows"), 186_792, seed=2, values="distinct", clients=10_133
    ).truth
    for name, share in zip(MACHINES.strings, MACHINES.shares, strict=True):
        expected = 186_792 * share
        assert abs(truth[name] - expected) < 5 * np.sqrt(expected)
    assert all(truth[name] == 0 for name in MACHINES.absent)


def test_a_share_that_distinct_values_cannot_reach_is_refused():
    with pytest.raises(ParamsError, match=r"'a.org' has a share of 0.6: clients with 2 different"):
        counts(POPULATION, PARAMS, 200, values="distinct", reports_per_client=2)
    made = simulate(["a", "b"], PARAMS, 200, values="distinct", reports_per_client=2, seed=1)
    assert made.truth == {"a": 100, "b": 100}  # everybody holds both


@pytest.mark.parametrize("each", [1, 2, 3, 7])
def test_lengths_add_up_and_none_can_be_hit_twice(each):
    rng = np.random.default_rng(each)
    shares = rng.random(20) ** 3 + 0.2
    shares /= shares.sum()
    lengths = unit_lengths(shares, each)
    assert lengths.sum() == each * UNIT
    assert lengths.max() <= UNIT
    assert np.abs(lengths - shares * each * UNIT).max() <= 1.01
    full = unit_lengths(np.full(each, 1 / each), each)
    assert full.tolist() == [UNIT] * each
    values = distinct_values(np.full(each, 1 / each), 5, each, rng)
    assert np.array_equal(np.sort(values, axis=1), np.tile(np.arange(each), (5, 1)))


def test_distinct_pairs_are_about_as_frequent_as_chance_makes_them():
    """10 equal values, 2 of them each: 45 pairs; χ² over 9,000 clients within the 1e-6 bound.

    A comb on one fixed order would never pair neighbours.
    """
    values = distinct_values(np.full(10, 0.1), 9_000, 2, np.random.default_rng(3))
    low, high = values.min(axis=1), values.max(axis=1)
    found = np.bincount(low * 10 + high, minlength=100)
    found = found[found > 0]
    assert len(found) == 45
    # 8 clients share an order, which makes pairs of one block alike: at most 8 times the variance.
    assert ((found - 200) ** 2 / 200).sum() < 8 * 115


def test_clients_need_not_divide_reports():
    made = reports(POPULATION, PARAMS, 1_003, seed=4, clients=200)
    each = np.bincount(made.clients, minlength=200)
    assert each.sum() == 1_003
    assert sorted(set(each.tolist())) == [5, 6]
    assert (each == 6).sum() == 3
    assert made.reports_per_client == 6
    for client in range(200):
        assert len(set(made.values[made.clients == client])) == 1
    drawn = simulate(POPULATION, PARAMS, 1_003, seed=4, clients=200)
    assert drawn.truth == made.truth
    assert drawn.counts.totals.tolist() == made.count().totals.tolist()
    assert drawn.counts.reports_per_client == 6


def test_more_clients_than_reports_leave_some_silent():
    made = reports(POPULATION, PARAMS, 10, seed=5, clients=1_000)
    assert len(made) == 10
    assert len(set(made.clients.tolist())) == 10
    assert made.clients.max() < 1_000
    assert made.reports_per_client == 1


def test_clients_that_divide_reports_are_reports_per_client():
    one = simulate(POPULATION, PARAMS, 1_000, seed=6, clients=200)
    other = simulate(POPULATION, PARAMS, 1_000, seed=6, reports_per_client=5)
    assert one.counts == other.counts
    assert one.truth == other.truth


def test_random_cohorts_are_drawn_and_repeat_with_the_seed():
    one, same, other = (
        counts(POPULATION, PARAMS, 10_000, seed=seed, cohort_sizes="random") for seed in (7, 7, 8)
    )
    assert one == same
    assert one.totals.tolist() != other.totals.tolist()
    assert one.totals.sum() == 10_000
    assert (np.abs(one.totals - 2_500) < 5 * np.sqrt(10_000 * 3 / 16)).all()
    assert len(set(one.totals.tolist())) > 1


@pytest.mark.parametrize(("change", "kept"), [(0.0, 1.0), (0.5, 0.5 + 0.5 * 0.46), (1.0, 0.46)])
def test_changing_values_are_drawn_anew_as_often_as_asked(change, kept):
    """Shares .6, .3, .1: a new draw gives the same value with probability .46."""
    made = reports(
        POPULATION, PARAMS, 60_000, seed=9, values="changing", change=change, reports_per_client=3
    )
    values = made.values.reshape(-1, 3)
    assert np.array_equal(made.clients.reshape(-1, 3)[:, 0], np.arange(20_000))
    same = (values[:, 1:] == values[:, :-1]).mean()
    assert abs(same - kept) < 5 * np.sqrt(0.25 / 40_000)
    first = np.bincount(values[:, 0]) / 20_000
    last = np.bincount(values[:, 2]) / 20_000
    for found in (first, last):
        assert np.abs(found - [0.6, 0.3, 0.1]).max() < 5 * np.sqrt(0.25 / 20_000)
    assert made.reports_per_client == 3


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"reports_per_client": 3},
        {"clients": 1_234},
        {"cohort_sizes": "random"},
        {"values": "changing", "change": 0.3, "reports_per_client": 6},
        {"values": "distinct", "reports_per_client": 3},
    ],
    ids=str,
)
def test_both_modes_have_the_same_truth_for_a_seed(how):
    population = uniform(12, absent=2)
    drawn = simulate(population, PARAMS, 6_000, seed=[1, 2], **how)
    made = reports(population, PARAMS, 6_000, seed=[1, 2], **how)
    assert drawn.truth == made.truth
    assert list(drawn.truth) == [*population.strings, *population.absent]
    assert drawn.counts.totals.tolist() == made.count().totals.tolist()
    about = ("params", "kind", "dialect", "reports_per_client")
    assert all(getattr(drawn.counts, name) == getattr(made.count(), name) for name in about)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": "often"}, "values must be one of same, changing, distinct; got 'often'"),
        ({"values": 3}, "values must be one of"),
        ({"values": "changing"}, "changing values need change"),
        ({"values": "changing", "change": 1.5}, "a number from 0 to 1, got 1.5"),
        ({"values": "changing", "change": float("nan")}, "a number from 0 to 1, got nan"),
        ({"change": 0.5}, "change goes with values changing, not with values same"),
        ({"clients": 0}, "clients must be a whole number from 1"),
        ({"clients": 5, "reports_per_client": 2}, "give clients or reports_per_client, not both"),
        ({"cohort_sizes": "uneven"}, 'cohort_sizes must be 4 numbers from 0 on, or "random"'),
        ({"population": ["\ud800"]}, "half a surrogate pair"),
        ({"seed": -1}, "seed must be a whole number from 0 on, several, or None; got -1"),
        ({"seed": "x"}, "seed must be a whole number from 0 on"),
        (
            {"reports": 2**23, "reports_per_client": 2**23, "values": "distinct"},
            "a client has at most 4194304 distinct values",
        ),
    ],
)
@pytest.mark.parametrize("make", [simulate, reports])
def test_what_no_crowd_can_do_is_refused_by_name(make, change, message):
    asked = {"population": POPULATION, "params": PARAMS, "reports": 1_000, **change}
    with pytest.raises(ParamsError, match=message):
        make(**asked)


def test_sections_hold_every_client_once():
    crowd = draw_crowd(Scenario(exponential(5), PARAMS, 1_001, seed=1, clients=100))
    assert sum(section.clients for section in crowd.sections) == 100
    assert crowd.reports == 1_001
    starts = [section.first_client for section in crowd.sections]
    ends = [section.first_client + section.clients for section in crowd.sections]
    assert starts == [0, *ends[:-1]]
    assert {section.reports_each for section in crowd.sections} == {10, 11}


@pytest.mark.parametrize("function", [simulate, counts, reports])
def test_each_function_takes_the_fields_of_a_scenario(function):
    fields = list(inspect.signature(Scenario).parameters.values())
    assert list(inspect.signature(function).parameters.values())[: len(fields)] == fields
    with pytest.raises(TypeError, match="wrong"):
        function(exponential(5), PARAMS, 100, wrong=1)
