"""Figure 3 (§4.2): how many strings can be learnt, with the exact figures and two seeds."""

from __future__ import annotations

import pytest

from rappor.experiments.experiment import Outcome
from rappor.experiments.learnable import experiment as module
from rappor.experiments.seeds import spread
from support.outcomes import about, check_complete


@pytest.mark.slow
def test_an_outcome_is_complete(outcome: Outcome) -> None:
    check_complete(outcome)


def test_learnable_strings_are_the_exact_ones(outcome: Outcome) -> None:
    ten_billion = about(outcome, "10,000,000,000 reports")
    assert ten_billion.ours == "11,319 (M = 10,000)"
    assert ten_billion.published == "about 10,000"
    assert about(outcome, "from 100,000,000").ours == "1,285 (M = 1,000)"


def test_the_bound_is_the_formula_of_the_appendix() -> None:
    quantile = 4.417173413467606  # Φ⁻¹(1 - .05/10⁴)
    assert module.exact(10**10, 10**4) == pytest.approx(0.5 * 10**5 / quantile)


@pytest.mark.parametrize(
    ("frequency", "published"), [(0.01, 10**6), (0.001, 10**8), (0.0001, 10**10)]
)
def test_frequencies_need_about_the_published_reports(frequency: float, published: int) -> None:
    half = module.reports_needed(frequency, 10**4, 0.5)
    assert half == pytest.approx((4.417173413467606 / (0.5 * frequency)) ** 2, rel=1e-6)
    assert half < published < module.reports_needed(frequency, 10**4, 0.95)


def test_verdicts_and_the_table_count_strings_alike(outcome: Outcome) -> None:
    found = outcome
    simulated = [
        int(each.what.split()[0]) for each in found.comparisons if "equal strings in" in each.what
    ]
    row = next(row for row in found.tables[0].rows if row[1:3] == (10**6, 1000))
    assert simulated == list(row[3:]) == [128, 105, 90]
    assert {each.verdict for each in found.comparisons if "equal strings in" in each.what} == {
        "extra"
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "margin"),
    [
        pytest.param(2, 0.125, marks=pytest.mark.slow),
        pytest.param(8, 0.062, marks=pytest.mark.long),
    ],
)
def test_the_limit_has_a_power_of_one_half_in_simulation(seeds: int, margin: float) -> None:
    """128 strings × 8 seeds: sd √(.25/1024) = .016 between runs, so 4 sd is .062; of 2, .125."""
    from rappor.experiments.learnable.runs import one_seed

    runs = [one_seed(seed) for seed in range(seeds)]
    half = spread([each["0.5"] for each in runs]).mean
    assert abs(half - 0.5) < margin
    assert spread([each["0.8"] for each in runs]).mean > 0.7
    assert spread([each["with heavy hitters"] for each in runs]).mean < 0.1
    assert spread([each["through a Bloom filter"] for each in runs]).mean < 0.3
