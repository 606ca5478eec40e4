"""Shrunken shares, and tests with all other candidates taken off the bits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from rappor import Params
from rappor.decoding import shrinkage
from rappor.decoding.design import build_design
from rappor.decoding.observe import observe
from rappor.decoding.randomization import placement
from rappor.decoding.search import BEYOND_DOUBT, Search
from rappor.decoding.shrinkage import shrink
from rappor.simulate import simulate

PARAMS = Params(64, 2, 16, 0.25, 0.35, 0.65)
STRINGS = [f"v{number}" for number in range(300)]
PRESENT = dict(zip(STRINGS, 0.97 ** np.arange(150), strict=False))
MISSING = {"missing": 0.3 * sum(PRESENT.values()), "missing too": 0.1 * sum(PRESENT.values())}


def searched(population=PRESENT, strings=STRINGS, *, seed=3, robustly=False):
    """A search among candidates, its fit and scores."""
    drawn = simulate(population, PARAMS, 150_000, seed=seed)
    search = Search(
        seen=observe([drawn.counts]),
        design=build_design(strings, PARAMS, "rappor-v1"),
        place=placement(PARAMS.k, PARAMS.h, "rappor-v1", collisions=False),
        level=np.ones(PARAMS.m * PARAMS.k),
        use_design=True,
    )
    return search, *search.grow((), 0.05, robustly=robustly)


def test_the_posterior_mean_is_that_of_the_law_behind_the_estimates():
    rng = np.random.default_rng(4)
    z = np.concatenate([rng.normal(0, 1, 9000), rng.normal(3, 1, 1000)])
    points = np.array([0.0, 1.5, 3.0, 4.0])
    odds = 0.1 * np.exp(-0.5 * (points - 3) ** 2) / (0.9 * np.exp(-0.5 * points**2))
    mean = shrink(np.append(z, points)).mean[-4:]
    assert mean == pytest.approx(3 * odds / (1 + odds), abs=0.25)


def test_what_is_beyond_doubt_is_not_shrunken():
    z = np.append(np.random.default_rng(5).normal(0, 1, 500), [15.0, 400.0])
    shrunken = shrink(z)
    assert shrunken.mean[-2:].tolist() == [15.0, 400.0]
    assert shrunken.slope[-2:].tolist() == [1.0, 1.0]


def test_shrinking_can_start_at_an_earlier_law():
    z = np.random.default_rng(6).normal(0, 1.5, 2000)
    first = shrink(z)
    assert shrink(z, first.weight).mean == pytest.approx(first.mean, abs=0.1)


@pytest.mark.parametrize("robustly", [False, True])
def test_estimates_stay_and_only_tests_change(robustly):
    population = {**PRESENT, **MISSING} if robustly else PRESENT
    search, fit, scores = searched(population, robustly=robustly)
    after, tested = shrinkage.test_without_others(search, fit, scores)
    assert tested.share is scores.share
    assert after.share is fit.share
    assert tested.by_design
    assert not np.array_equal(tested.p_design, search.leave_one_out(fit, scores).p_design)


def test_taking_others_off_makes_present_strings_stand_out():
    gains = []
    for seed in (3, 4):
        search, fit, scores = searched(seed=seed)
        _, tested = shrinkage.test_without_others(search, fit, scores)
        before = search.leave_one_out(fit, scores)
        clear = (scores.z > 2) & (scores.z < BEYOND_DOUBT)
        clear &= np.isin(search.design.strings.strings, list(PRESENT))
        gains.append(ndtri(before.p_design[clear]) - ndtri(tested.p_design[clear]))
    assert np.concatenate(gains).mean() > 0.02


def test_absent_strings_have_uniform_p_values():
    absent = [f"absent{number}" for number in range(4000)]
    search, fit, scores = searched(strings=[*STRINGS, *absent])
    _, tested = shrinkage.test_without_others(search, fit, scores)
    nulls = np.isin(search.design.strings.strings, absent)
    for level in (0.5, 0.1, 0.01):
        error = np.sqrt(level * (1 - level) / len(absent))
        assert (tested.p_design[nulls] <= level).mean() == pytest.approx(level, abs=4 * error)


def test_a_candidate_is_tested_nearly_as_if_the_others_had_settled_without_it():
    search, fit, scores = searched()
    rest = shrinkage._settle(search, fit, scores)
    p_values = shrinkage._p_values(search, rest)
    for column in np.flatnonzero(rest.open & (rest.z > 3) & (rest.z < 4.5))[:6]:
        others = np.delete(np.arange(len(STRINGS)), column)
        part = replace(search, design=search.design.subset(others))
        active = np.searchsorted(others, [each for each in fit.active if each != column])
        without = part.least_squares(tuple(int(place) for place in active))
        left = shrinkage._settle(part, without, part.score(without)).fit
        law = search.null(left, left.evidence)
        bits = search.design.columns([column]).indices
        exact = law.deviate(float(left.evidence[bits].sum()))
        assert -ndtri(p_values[column]) == pytest.approx(exact, abs=0.4)


def test_few_candidates_are_tested_left_out_and_that_is_all():
    search, fit, scores = searched(strings=STRINGS[:15])
    after, tested = shrinkage.test_without_others(search, fit, scores)
    assert after is fit
    assert not tested.by_design
    assert np.array_equal(tested.p_design, search.leave_one_out(fit, scores).p_design)
