"""The formula for power: the paper's limits where it must agree, and its own corrections."""

from dataclasses import replace

import pytest
from scipy import stats

from rappor import Params
from rappor.planning.expected_detections import ExpectedCrowd, expected
from rappor.planning.power import Detector, detector
from rappor.privacy import critical_value, detectable, standard_error
from rappor.simulate.populations import exponential, uniform

EXPONENTIAL = Params.preset("exponential")
Q = critical_value(200)


def test_the_standard_error_is_the_papers_for_long_filters():
    long = Params(4096, 2, 1024, 0.5, 0.5, 0.75)
    found = detector(long, 10**6, Q)
    assert found.absent() * 10**6 == pytest.approx(standard_error(long, 10**6), rel=1e-3)
    assert detector(EXPONENTIAL, 10**6, Q).absent() * 10**6 == pytest.approx(2806, rel=0.01)


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_a_bit_of_its_own_gives_the_limits_of_the_appendix(power):
    """Categories share no bits: the formula is that of rappor.privacy.detectable."""
    params = Params.preset("normal")
    mine = detector(params, 10**6, Q, "category").detectable(power)
    theirs = detectable(params, 10**6, 200, power, hashes=1)
    # privacy.detectable is about a realised count; here the sample varies too: s(1-s)/N more.
    assert mine.frequency == pytest.approx(theirs.frequency, rel=2e-3)
    assert mine.frequency >= theirs.frequency


@pytest.mark.parametrize("kind", ["string", "category"])
def test_power_at_the_detectable_frequency_is_the_one_asked_for(kind):
    found = detector(Params(128, 1, 64, 0.2, 0.22, 0.53), 10**5, Q, kind)
    for power in (0.1, 0.5, 0.8, 0.95, 0.999):
        assert found.power(found.detectable(power).frequency) == pytest.approx(power, abs=1e-6)


def test_few_bits_raise_the_threshold_and_many_do_not():
    few, many = (detector(Params(64, 1, m, 0.5, 0.25, 0.75), 10**6, Q) for m in (8, 1024))
    assert few.threshold() > Q + 0.1
    assert many.threshold() == pytest.approx(Q, abs=0.01)
    assert detector(Params(64, 1, 3, 0.5, 0.25, 0.75), 10**6, Q).threshold() == float("inf")
    assert detector(Params(64, 1, 3, 0.5, 0.25, 0.75), 10**6, Q).power(0.9) == 0


def test_undetected_strings_are_unrest_and_detected_ones_are_not():
    found = detector(EXPONENTIAL, 10**6, Q)
    crowd = ExpectedCrowd.of(exponential(100, absent=100))
    amid = crowd.around(found)
    limit = amid.threshold() * amid.absent()
    assert amid.fitted == (crowd.listed >= limit).sum()
    assert amid.unrest == pytest.approx((crowd.listed[crowd.listed < limit] ** 2).sum())
    assert found.absent() < amid.absent()
    unlisted = ExpectedCrowd.of(exponential(100, unlisted=20)).around(found)
    assert unlisted.unrest > amid.unrest


def test_expected_detections_are_those_of_the_best_possible_test():
    """S1: the oracle finds 33.7 and 45.3, this decoder 33.1 and 44.4 (docs/calibration.md)."""
    crowd = ExpectedCrowd.of(exponential(100, absent=100))
    found = expected(crowd.around(detector(EXPONENTIAL, 10**6, Q)), crowd, 200, 0.05)
    assert 31.5 <= found.family_wise <= 33.7
    assert 43.5 <= found.fdr <= 45.3
    assert found.present == 100
    everything = replace(detector(EXPONENTIAL, 10**12, Q))
    assert expected(everything, crowd, 200, 0.05).family_wise == pytest.approx(100, abs=0.01)
    nothing = detector(EXPONENTIAL, 10**3, Q)
    assert expected(nothing, crowd, 200, 0.05).fdr < 0.1


def test_the_false_discovery_level_is_the_fixed_point_of_benjamini_and_hochberg():
    """Twenty equal strings far above the noise: all are found, and so is the level."""
    crowd = ExpectedCrowd.of(uniform(20, absent=180))
    amid = crowd.around(detector(EXPONENTIAL, 10**6, Q))
    found = expected(amid, crowd, 200, 0.05)
    z = (0.05 - stats.norm.isf(0.05 * 20 / 180) * amid.absent()) / amid.present(0.05)
    assert found.fdr == pytest.approx(20 * stats.norm.cdf(z), rel=1e-3)


def test_levels_beyond_what_a_normal_table_holds_give_a_threshold():
    for critical in (8.0, 9.0, 40.0):
        found = detector(Params(128, 2, 64, 0.5, 0.5, 0.75), 10**6, critical)
        assert found.threshold() >= critical


@pytest.mark.parametrize(("reports", "p_star"), [(1_100, 0.01), (2_000, 0.0005), (500, 0.02)])
def test_a_category_with_few_ones_is_detected_by_the_exact_binomial_tail(reports, p_star):
    found = Detector(p_star, 0.7, 100, 1, 1, reports, Q, hashed=False)
    ones = int(found.needed_ones(Q))
    chance = float(stats.norm.sf(Q))
    assert (
        stats.binom.sf(ones - 1, reports, p_star)
        <= chance
        < stats.binom.sf(ones - 2, reports, p_star)
    )
    for power in (0.5, 0.8, 0.95):
        share = found.detectable(power).frequency
        rate = p_star + share * (0.7 - p_star)
        assert stats.binom.sf(ones - 1, reports, rate) == pytest.approx(power, abs=1e-9)
        assert found.power(share) == pytest.approx(power, abs=1e-9)


def test_a_category_that_needs_more_ones_than_reports_is_never_detected():
    found = Detector(0.5, 0.7, 100, 1, 1, 5, Q, hashed=False)
    assert found.power(1.0) == 0
    assert found.detectable(0.8).frequency == float("inf")
