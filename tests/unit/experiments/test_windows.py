"""Table 2 (R53), on its stand-in, with few seeds."""

import re

import numpy as np
import pytest

from rappor.charts.render import to_svg
from rappor.experiments.best_test import power
from rappor.experiments.reproduce import check_names
from rappor.experiments.windows import experiment as module
from rappor.experiments.windows.runs import (
    LISTED,
    MACHINES,
    PARAMS,
    REPORTS,
    SHARES,
    distinct_names,
    one_name_each,
    population,
)
from rappor.privacy.limits import standard_error
from support.outcomes import by_what


@pytest.mark.long
def test_the_stand_in_is_labelled_everywhere(outcome):
    assert module.EXPERIMENT.stand_in.startswith("Synthetic")
    for figure in outcome.figures:
        assert "synthetic stand-in" in figure.spec["description"].lower()
    (table,) = (each for each in outcome.tables if each.name == "windows-table-2")
    assert "Synthetic stand-in" in table.note


def test_the_stand_in_has_the_published_shares_and_made_up_names_otherwise():
    people = population(1)
    assert people.strings[:10] == LISTED
    assert people.shares[people.strings.index("BADAPPLE.COM")] == pytest.approx(0.026, abs=1e-4)
    assert SHARES[10] < 0.01 < SHARES[9]
    assert (len(people.strings), len(people.absent)) == (1000, 1000)
    assert not set(people.candidates[10:]) & set(population(2).candidates[10:])


def test_no_machine_reports_a_name_twice():
    """At 4.3 % of 18.4 reports a name is on 79 % of machines; drawn freely it would repeat."""
    truth = distinct_names(1).truth
    assert truth.sum() == REPORTS
    expected = SHARES[0] * REPORTS
    # Each machine has the name or not: the variance of a draw without repeats, 5 sd.
    assert abs(truth[0] - expected) < 5 * np.sqrt(expected * (1 - expected / MACHINES))
    assert truth.max() <= MACHINES


@pytest.mark.long
def test_the_standard_error_is_within_two_percent_of_1213(outcome):
    found = by_what(outcome, "standard error")
    assert found.agrees
    own, printed = (float(each) for each in re.findall(r"(\d+) ±", found.ours))
    assert abs(own / 1212.84 - 1) <= 0.02
    assert own < printed < 1.05 * 1212.84
    assert "as the decoder prints it" in found.ours
    assert standard_error(PARAMS, REPORTS) == pytest.approx(1212.84, abs=0.005)


@pytest.mark.long
def test_a_share_that_went_in_is_no_agreement_when_it_comes_out(outcome):
    assert by_what(outcome, "BADAPPLE.COM").verdict == "extra"


@pytest.mark.long
def test_one_and_a_half_percent_are_2_3_standard_errors_and_rarely_found(outcome):
    found = by_what(outcome, "smallest share expected")
    assert found.ours.startswith("2.31 standard errors")
    assert not found.agrees
    chance = power([0.015 * REPORTS], standard_error(PARAMS, REPORTS), module.detection_level())
    assert chance[0] == pytest.approx(0.16, abs=0.01)


@pytest.mark.long
def test_distinct_names_need_no_correction_and_repeated_ones_do():
    """Ten seeds: χ²/dof has a standard error of .014; the two cases lie .8 apart."""
    seeds = range(1, 11)
    different, same = ([one(seed) for seed in seeds] for one in (distinct_names, one_name_each))
    assert np.mean([each.chi2_dof for each in different]) == pytest.approx(1.02, abs=0.06)
    assert np.mean([each.chi2_dof for each in same]) == pytest.approx(1.85, abs=0.15)
    assert 0.93 < np.mean([each.covered for each in different]) < 0.97
    assert np.mean([each.covered for each in same]) < 0.89
    assert 0.93 < np.mean([each.widened for each in same]) < 0.975
    assert sum(each.any_false for each in same) > sum(each.any_false for each in different)


@pytest.mark.long
def test_the_outcome_is_complete_and_can_be_drawn(outcome):
    check_names(outcome)
    assert by_what(outcome, "the test behind").ours.startswith("one-sided z")
    assert by_what(outcome, "BADAPPLE.COM").published == "4860 reports, 2.6 %"
    assert all(len(row) == len(each.columns) for each in outcome.tables for row in each.rows)
    for figure in outcome.figures:
        assert "<svg" in to_svg(figure.spec)
