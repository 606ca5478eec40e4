"""Simulated collections: what they hold, and what they refuse."""

import numpy as np
import pytest

from rappor import Params
from rappor.aggregate import Counts
from rappor.errors import ParamsError
from rappor.mechanism import bloom_positions
from rappor.mechanism.channel import channel
from rappor.simulate import counts, simulate

PARAMS = Params(32, 2, 4, 0.5, 0.25, 0.75)
POPULATION = {"a.org": 6, "b.org": 3, "c.org": 1}


def test_counts_carry_what_they_were_made_with():
    made = counts(POPULATION, PARAMS, 10_000, seed=1, dialect="google", reports_per_client=5)
    assert isinstance(made, Counts)
    assert made.params == PARAMS
    assert (made.kind, made.dialect, made.reports_per_client) == ("string", "google", 5)
    assert made.totals.tolist() == [2500] * 4
    assert counts(["a", "b"], PARAMS, 100, kind="category").dialect is None


@pytest.mark.parametrize("repeats", [1, 10])
@pytest.mark.parametrize("kind", ["string", "category", "ordinal"])
def test_truth_adds_up_to_the_reports(kind, repeats):
    made = simulate(POPULATION, PARAMS, 5_000, seed=2, kind=kind, reports_per_client=repeats)
    assert list(made.truth) == list(POPULATION)
    assert sum(made.truth.values()) == made.counts.reports == 5_000
    assert all(number % repeats == 0 for number in made.truth.values())


def test_truth_follows_the_frequencies():
    truth = simulate(POPULATION, PARAMS, 10**6, seed=3).truth
    for name, weight in POPULATION.items():
        expected = weight / 10 * 10**6
        assert abs(truth[name] - expected) < 5 * np.sqrt(expected * (1 - weight / 10))
    alike = simulate(["x", "y"], PARAMS, 10**6, seed=3).truth
    assert abs(alike["x"] - 500_000) < 2_500


def test_a_seed_repeats_a_collection_and_another_does_not():
    same = [counts(POPULATION, PARAMS, 10_000, seed=[7, 1]) for _ in range(2)]
    assert same[0] == same[1]
    assert counts(POPULATION, PARAMS, 10_000, seed=[7, 2]) != same[0]
    assert counts(POPULATION, PARAMS, 10_000) != counts(POPULATION, PARAMS, 10_000)
    assert simulate(POPULATION, PARAMS, 10_000, seed=[7, 1]).counts == same[0]


@pytest.mark.parametrize("dialect", ["rappor-v1", "google"])
def test_without_noise_the_counts_are_the_bits_of_the_values(dialect):
    clear = Params(16, 3, 4, 0.0, 1e-12, 1 - 1e-12)  # noise that never shows
    made = simulate({"a.org": 1}, clear, 400, seed=4, dialect=dialect)
    for cohort in range(4):
        set_bits = set(bloom_positions("a.org", cohort, clear, dialect=dialect))
        assert set(np.flatnonzero(made.counts.ones[cohort])) == set_bits
        assert made.counts.ones[cohort].max() == 100  # a bit that two hashes set counts once


def test_a_category_sets_the_bit_of_its_place():
    clear = Params(4, 1, 1, 0.0, 1e-12, 1 - 1e-12)
    made = simulate(POPULATION, clear, 1_000, seed=5, kind="category")
    assert made.counts.ones[0].tolist() == [*made.truth.values(), 0]


def test_a_boolean_sets_its_bit_where_it_is_true():
    clear = Params(1, 1, 1, 0.0, 1e-12, 1 - 1e-12)
    made = simulate({"false": 3, "true": 1}, clear, 1_000, seed=6, kind="boolean")
    assert made.counts.ones[0, 0] == made.truth["true"]
    never = simulate({"false": 1}, clear, 1_000, seed=6, kind="boolean")
    assert never.counts.ones[0, 0] == 0


def test_cohorts_are_sized_as_asked_and_add_up():
    made = counts(POPULATION, PARAMS, 1_001, seed=8, cohort_sizes=[1, 2, 0, 4])
    assert made.totals.sum() == 1_001
    assert made.totals[2] == 0
    assert np.abs(made.totals - 1_001 * np.array([1, 2, 0, 4]) / 7).max() <= 1
    even = counts(POPULATION, PARAMS, 1_002, seed=8)
    assert even.totals.max() - even.totals.min() <= 1


def test_no_reports_are_a_collection_too():
    made = simulate(POPULATION, PARAMS, 0, seed=9)
    assert made.counts.reports == 0
    assert set(made.truth.values()) == {0}


@pytest.mark.parametrize("repeats", [1, 3])
def test_no_bit_is_set_more_often_than_reports_were_sent(repeats):
    made = counts(POPULATION, PARAMS, 12, seed=10, reports_per_client=repeats)
    assert (made.ones <= made.totals[:, None]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"population": {}}, "population must map values to frequencies"),
        ({"population": {"a": -1.0}}, "population must map values to frequencies"),
        ({"population": {"a": float("nan")}}, "population must map values to frequencies"),
        ({"population": {"a": 0}}, "population must map values to frequencies"),
        ({"reports": -1}, "reports must be a whole number from 0 to"),
        ({"reports": 1.5}, "reports must be a whole number"),
        ({"reports_per_client": 0}, "reports_per_client must be a whole number from 1 to"),
        ({"reports_per_client": 7}, "reports must be a multiple of reports_per_client"),
        ({"kind": "bits"}, "kind bits has no list of values to draw from"),
        ({"kind": "words"}, "kind must be one of"),
        ({"dialect": "klingon"}, "dialect must be one of"),
        ({"cohort_sizes": [1, 2]}, "cohort_sizes must be 4 numbers from 0 on"),
        ({"cohort_sizes": [1, -1, 1, 1]}, "cohort_sizes must be 4 numbers from 0 on"),
        ({"cohort_sizes": [0, 0, 0, 0]}, "cohort_sizes must not all be 0"),
        ({"population": [f"v{i}" for i in range(33)], "kind": "category"}, "do not fit 32 bits"),
        ({"params": (32, 2)}, "params"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(change, message):
    asked = {"population": POPULATION, "params": PARAMS, "reports": 1_000, **change}
    with pytest.raises(ParamsError, match=message):
        simulate(**asked)


def test_the_mean_of_every_bit_is_that_of_lemma_1():
    """10^7 reports: each of 128 bits within 5 standard errors."""
    made = counts(POPULATION, PARAMS, 10**7, seed=11)
    share = np.zeros((4, 32))
    for value, weight in POPULATION.items():
        for cohort in range(4):
            share[cohort, list(set(bloom_positions(value, cohort, PARAMS)))] += weight / 10
    p_star, q_star = map(float, channel(PARAMS))
    r = p_star + (q_star - p_star) * share
    sent = made.totals[:, None]
    assert (np.abs(made.ones - sent * r) < 5 * np.sqrt(sent * r * (1 - r))).all()
