"""Figure 1 (§2): the life of a report, with two seeds."""

from __future__ import annotations

import pytest

from rappor.experiments.experiment import Outcome
from rappor.experiments.life_of_a_report import experiment as module
from rappor.experiments.seeds import spread
from support.outcomes import about, check_complete


@pytest.mark.slow
def test_an_outcome_is_complete(outcome: Outcome) -> None:
    check_complete(outcome)


def test_a_report_has_the_published_number_of_ones(outcome: Outcome) -> None:
    ones = about(outcome, "Ones in the 256 bits")
    assert ones.ours.startswith("144.5 ± 7.9 expected of one report; means of 250: 14")
    assert ones.published.startswith("145")
    assert ones.agrees


def test_two_seeds_judge_the_published_report_by_its_law_and_not_by_their_own_noise() -> None:
    """Three of four bits stay on average; means of 3.1 are 2.6 standard errors off, with no sd."""
    alike = [module.ReportLife(144.5, 3.1, 0.75)] * 2
    assert [each.verdict for each in module._compare(alike)] == ["agrees"] * 3


@pytest.mark.parametrize(
    ("planted", "wrong"),
    [((146.5, 3.0, 0.75), 0), ((144.5, 3.25, 0.75), 1), ((144.5, 3.0, 0.8), 2)],
)
def test_a_client_that_is_off_is_seen(planted: tuple[float, float, float], wrong: int) -> None:
    """Over 500 clients the errors are .35, .039 and .011: each planted one is above 4 of them."""
    found = list(module._compare([module.ReportLife(*planted)] * 2))
    assert [at for at, each in enumerate(found) if not each.agrees] == [wrong]
    assert "our own mean is off" in found[wrong].why


def test_the_report_drawn_fared_as_the_one_in_the_paper() -> None:
    signal, permanent, report = module.like_the_paper()
    assert signal.bit_count() == 4
    assert (signal & permanent).bit_count() == 2
    assert (signal & permanent & report.bits).bit_count() == 2
    assert module.like_the_paper() == (signal, permanent, report)


@pytest.mark.slow
def test_the_bits_of_the_value_survive_as_often_as_f_says() -> None:
    """|mean - 3| over 5,000 clients: sd √(4·.75·.25/5000) = .012, so 5 sd is .061."""
    kept = spread([module.one_seed(seed).kept for seed in range(20)]).mean
    assert abs(kept - 3) < 0.061
    assert abs(kept - 4 * (1 - 0.25 * 0.75)) > 0.061  # f/2 = .1875 would be noticed
