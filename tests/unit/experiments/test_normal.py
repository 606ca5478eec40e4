"""Figure 4 (§5.1): a normal law from reports, with two seeds."""

from __future__ import annotations

import re

import pytest

from rappor.experiments.experiment import Outcome
from rappor.experiments.normal import experiment as module
from rappor.experiments.seeds import spread
from support.outcomes import about, check_complete

pytestmark = pytest.mark.long


def test_an_outcome_is_complete(outcome: Outcome) -> None:
    check_complete(outcome)


def test_the_interval_of_the_mean_covers_50(outcome: Outcome) -> None:
    covered = about(outcome, "interval of the mean")
    found = re.match(r"covers 50 in (\d+) of 100 seeds", covered.ours)
    assert found is not None
    assert int(found[1]) >= 90
    assert covered.verdict == "extra"


def test_an_interval_that_misses_is_noticed() -> None:
    from rappor.decoding.histogram import SummaryEstimate

    missed = module._coverage([SummaryEstimate(48.0, 0.6, 46.8, 49.2)] * 100)
    assert missed.verdict == "differs"


def test_the_normal_collection_costs_exactly_ln_3(outcome: Outcome) -> None:
    assert about(outcome, "ε of a report").ours == "ln 3"


def test_more_reports_bring_the_bell_curve_out(outcome: Outcome) -> None:
    signal = [
        spread([module.one_seed(size, seed).signal for seed in (1, 2)]).mean
        for size in module.SIZES
    ]
    assert signal[0] < 0.5 < signal[1] < 0.95 < signal[2]
    for words in ("10,000 reports: the", "100,000 reports: the", "1,000,000 reports: the"):
        matching = [each for each in outcome.comparisons if each.what.startswith(words)]
        assert [each.agrees for each in matching] == [True]


def test_smoothing_is_labelled_as_a_prior(outcome: Outcome) -> None:
    assert "prior" in about(outcome, "Smoothing").why
    smoothed = outcome.figures[1]
    assert "prior" in smoothed.title
    assert "no interval" in smoothed.caption
