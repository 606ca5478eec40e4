"""Table 1 and Figure 5 (R52), with two seeds."""

import numpy as np
import pytest

from rappor.charts.render import to_svg
from rappor.experiments import exponential as module
from rappor.experiments.best_test import number_found
from rappor.experiments.exponential_runs import RULES, SHARES, best_possible, one_seed
from rappor.experiments.write import check_names


@pytest.fixture(scope="module")
def outcome():
    return module.EXPERIMENT.run(2, lambda _: None)


def by_what(outcome, start):
    (found,) = (each for each in outcome.comparisons if each.what.startswith(start))
    return found


def test_the_population_is_a_hundred_strings_of_which_32_are_above_one_percent():
    assert (SHARES > 0.01).sum() == 32
    assert SHARES[0] == pytest.approx(0.0498, abs=5e-5)


def test_what_the_best_test_finds():
    strict, loose = best_possible(0.05 / 200), best_possible(0.025)
    assert strict.sum() == pytest.approx(33.6, abs=0.05)
    assert loose.sum() == pytest.approx(47.6, abs=0.05)
    assert number_found(strict)[45:].sum() == pytest.approx(1.66e-8, rel=0.01)
    assert number_found(loose)[45:].sum() == pytest.approx(0.876, abs=0.001)


def test_the_published_number_cannot_be_bonferronis(outcome):
    found = by_what(outcome, "strings detected under Bonferroni")
    assert not found.agrees
    assert "33.6" in found.why
    assert "47.6 true and 2.5 false" in found.why
    assert by_what(outcome, "strings detected at a false discovery rate").agrees


def test_standard_errors_are_within_two_percent_of_2806(outcome):
    found = by_what(outcome, "standard error")
    assert "formula 2806" in found.ours
    assert found.agrees


def test_common_strings_are_found_and_all_else_agrees(outcome):
    assert by_what(outcome, "strings above 1 %").agrees
    assert [each.what for each in outcome.comparisons if not each.agrees] == [
        "strings detected under Bonferroni"
    ]


def test_every_rule_is_applied_to_every_candidate():
    run = one_seed(1)
    assert set(run.detected) == set(RULES)
    assert all(hits.shape == (200,) for hits in run.detected.values())
    strict, loose = (run.detected[rule] for rule in ("Bonferroni", "FDR 5 %"))
    assert (strict <= loose).all()
    true, false = run.found("FDR 5 %")
    assert (true, false) == (loose[:100].sum(), loose[100:].sum())
    off = (run.estimate - run.truth)[:40] / run.error[:40]
    assert np.sqrt(np.mean(off**2)) == pytest.approx(1, abs=0.5)


def test_the_outcome_is_complete_and_can_be_drawn(outcome):
    check_names(outcome)
    table, *_ = (each for each in outcome.tables if each.name == "exponential-table-1")
    assert len(table.rows) == 20
    assert table.rows[0][:4] == ("V_1", 48803, 2808, "5.65E-63")
    assert all(len(row) == len(each.columns) for each in outcome.tables for row in each.rows)
    assert {each.name for each in outcome.figures} == {
        "exponential-population",
        "exponential-seeds",
        "exponential-possible",
    }
    for figure in outcome.figures:
        assert "<svg" in to_svg(figure.spec)
