"""Figure 7 (R61), with two seeds."""

import pytest

from rappor.charts.render import to_svg
from rappor.experiments.fdr import experiment as module
from rappor.experiments.reproduce import check_names
from support.outcomes import by_what


@pytest.mark.slow
def test_the_two_numbers_of_the_papers_parameters(outcome):
    rare = by_what(outcome, "share of those picked who do not hold v, frequency 1 %")
    frequent = by_what(outcome, "share of those picked who do not hold v, frequency 10 %")
    assert rare.ours.startswith("exact 98.5 %; simulated 98.")
    assert frequent.ours.startswith("exact 85.8 %; simulated 8")
    assert rare.agrees
    assert frequent.agrees


def test_the_rate_is_not_proportional_to_f(outcome):
    found = by_what(outcome, "the rate at 10 %")
    assert found.ours == "0.800 / 0.831 / 0.858 / 0.880"
    assert not found.agrees


@pytest.mark.slow
def test_the_simulation_agrees_and_that_of_another_f_would_not(outcome):
    assert by_what(outcome, "the simulated attack").verdict == "extra"
    cells = module.one_seed(1)
    assert len(cells) == 44
    point = cells[0.5, 0.1]
    assert point.sigmas < 4
    other = module.false_discovery_rate(module.with_noise(0.25), 0.1)
    assert abs(point.simulated - other) > 4 * point.std_error


@pytest.mark.slow
def test_the_outcome_is_complete_and_can_be_drawn(outcome):
    check_names(outcome)
    (table,) = outcome.tables
    assert len(table.rows) == 44
    assert all(len(row) == len(table.columns) for row in table.rows)
    (figure,) = outcome.figures
    assert "98.5 % at 1 %" in to_svg(figure.spec)
