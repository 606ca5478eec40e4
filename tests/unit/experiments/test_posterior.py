"""Figure 8 (R62), with two seeds."""

import pytest

from rappor.charts.render import to_svg
from rappor.experiments.posterior import experiment as module
from rappor.experiments.reproduce import check_names
from support.outcomes import by_what


@pytest.mark.slow
def test_not_v_is_the_likelier_below_forty_percent(outcome):
    found = by_what(outcome, "strings for which not v")
    assert found.ours == "all with less than 40.1 %, those below 10 % among them"
    assert found.agrees
    crossing = by_what(outcome, "frequency at which the curves")
    assert (crossing.ours, crossing.verdict) == ("40.1 %", "extra")


def test_at_ten_percent_v_is_much_less_likely(outcome):
    found = by_what(outcome, "P(v) with both bits set")
    assert found.ours.startswith("exact 14.2 %, against 85.8 % for not v; simulated 14.")
    assert found.agrees


@pytest.mark.parametrize("pattern", ["11", "10", "00"])
def test_both_are_equally_likely_at_the_crossing(pattern):
    at = module.crossing(module.PARAMS, pattern.count("1"))
    assert module.posterior(module.PARAMS, at, pattern) == pytest.approx(0.5)


def test_one_bit_is_as_good_as_the_other():
    for x in module.FREQUENCIES:
        assert module.posterior(module.PARAMS, x, "10") == module.posterior(module.PARAMS, x, "01")


@pytest.mark.slow
def test_simulated_clients_agree_and_another_pattern_would_not(outcome):
    assert by_what(outcome, "the simulated attack").verdict == "extra"
    cells = module.one_seed(1)
    assert set(cells) == {(p, x) for p in module.PATTERNS for x in module.FREQUENCIES}
    both, one = cells["11", 0.5], cells["10", 0.5]
    assert both.sigmas < 4
    assert abs(both.simulated - one.exact) > 4 * both.std_error


def test_the_outcome_is_complete_and_can_be_drawn(outcome):
    check_names(outcome)
    assert all(len(row) == len(each.columns) for each in outcome.tables for row in each.rows)
    (figure,) = outcome.figures
    assert "crossing: 40.1 %" in to_svg(figure.spec)
