"""The best possible test, the published tables, and simulations beside exact numbers."""

import itertools

import numpy as np
import pytest
from scipy import stats

from rappor import Params, decode
from rappor.attack.result import AttackFigure
from rappor.experiments.attack_agreement import agreement, attack_point
from rappor.experiments.best_test import count_for, discovery_level, number_found, power, sd_found
from rappor.experiments.detected_strings import decode_strings, detected
from rappor.experiments.published_tables import TABLE_1, TABLE_2, explain_p_values
from rappor.privacy.limits import standard_error
from rappor.simulate import simulate
from rappor.simulate.populations import exponential


def test_power_is_that_of_a_simulated_z_test():
    """4 standard errors of a share over 100,000 draws; a test at twice the level is seen."""
    rng = np.random.default_rng(1)
    count, error, level, n = 10_000.0, 2806.0, 0.05 / 200, 100_000
    found = (rng.normal(count, error, n) / error > stats.norm.isf(level)).mean()
    margin = 4 * np.sqrt(0.25 / n)
    assert abs(found - power([count], error, level)[0]) < margin
    assert abs(found - power([count], error, 2 * level)[0]) > margin


def test_the_count_for_a_chance_has_that_chance():
    for chance in (0.1, 0.5, 0.8):
        count = count_for(chance, 2806.0, 1e-3)
        assert power([count], 2806.0, 1e-3)[0] == pytest.approx(chance)


def test_the_number_found_is_the_sum_over_all_outcomes():
    chances = [0.1, 0.5, 0.7, 0.9]
    law = np.zeros(5)
    for outcome in itertools.product((0, 1), repeat=4):
        law[sum(outcome)] += np.prod(
            [c if o else 1 - c for c, o in zip(chances, outcome, strict=True)]
        )
    assert number_found(chances) == pytest.approx(law)
    mean = law @ np.arange(5)
    assert sd_found(chances) == pytest.approx(np.sqrt(law @ (np.arange(5) - mean) ** 2))


def test_the_discovery_level_keeps_the_false_discovery_rate():
    counts = 1e6 * np.array(exponential().shares)
    level = discovery_level(counts, 2806.0, 200, 0.05)
    false, true = 100 * level, power(counts, 2806.0, level).sum()
    assert false / (false + true) == pytest.approx(0.05, rel=0.01)
    # With nothing to find, the level is that of one test among all.
    assert discovery_level(np.zeros(0), 2806.0, 200, 0.05) == pytest.approx(0.05 / 200)


def test_table_1_is_consistent_with_itself():
    for row in TABLE_1:
        assert row.snr == pytest.approx(row.estimate / row.stdev, abs=0.006)
        assert row.proportion == round(row.truth / 1e6, 2)
    by_snr = sorted(TABLE_1, key=lambda row: -row.estimate / row.stdev)
    assert [row.p_value for row in by_snr] == sorted(row.p_value for row in TABLE_1)


def test_the_truth_of_table_1_follows_the_population():
    """χ² of 20 counts at alpha = .001; a decay of .95 instead of .9505 would be refused."""

    def chi2(decay):
        people = exponential(decay=decay, prefix="V_")
        shares = dict(zip(people.strings, people.shares, strict=True))
        return sum(
            (r.truth - 1e6 * shares[r.string]) ** 2 / (1e6 * shares[r.string]) for r in TABLE_1
        )

    limit = stats.chi2.isf(0.001, len(TABLE_1))
    assert chi2(0.9505) < limit < chi2(0.949)


@pytest.mark.slow
def test_p_values_of_table_1_fit_a_two_sided_t_and_nothing_else():
    z = [row.estimate / row.stdev for row in TABLE_1]
    best, *others = explain_p_values(z, [row.p_value for row in TABLE_1], 2048)
    assert (best.test, best.freedom) == ("two-sided t", 1935)
    assert best.factor < 1.05
    assert all(other.factor > 1.8 for other in others)


def test_p_values_of_table_2_are_one_sided_z_with_the_formulas_standard_error():
    error = standard_error(Params.preset("windows"), 186_792)
    z = [row.estimate / error for row in TABLE_2]
    best, *others = explain_p_values(z, [row.p_value for row in TABLE_2], 1024)
    assert best.test == "one-sided z"
    assert best.factor < 1.006
    assert all(other.factor > 1.5 for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("correction", ["bonferroni", "holm", "fdr", "none"])
def test_one_fit_serves_every_correction(correction):
    people = exponential(30, decay=0.9, absent=30)
    drawn = simulate(people, Params.preset("exponential"), 10**5, seed=3)
    names = people.candidates
    hits = detected(decode_strings(drawn.counts, names), names, correction, 0.05)
    again = decode(drawn.counts, names, correction=correction)
    assert {name for name, hit in zip(names, hits, strict=True) if hit} == {
        r.string for r in again.detected
    }


def test_a_simulation_that_is_off_is_seen():
    right = [AttackFigure("", 0.5, 0.5 + off, 0.01) for off in (0.012, -0.004, 0.003)]
    wrong = [AttackFigure("", 0.5, 0.5 + off, 0.01) for off in (0.032, 0.026, 0.023)]
    assert agreement([attack_point(right)], 3, 100).verdict == "extra"
    both = agreement([attack_point(right), attack_point(wrong)], 3, 100)
    assert both.verdict == "differs"
