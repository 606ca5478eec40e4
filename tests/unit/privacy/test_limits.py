"""What can be learnt, with the paper's figures; deniability; Warner's surveys."""

import math
from fractions import Fraction

import pytest

from rappor import Params, ParamsError, bloom_positions
from rappor.mechanism import KINDS
from rappor.privacy import (
    candidates_per_pattern,
    critical_value,
    deniability,
    detectable,
    learnable_strings,
    patterns,
    signal_bits,
    smallest_count,
    standard_error,
)
from rappor.privacy.survey import (
    ONE_COIN_EPSILON,
    TWO_COIN_EPSILON,
    averaging_posterior,
    one_coin_estimate,
    two_coin_estimate,
)

NORMAL, WINDOWS = Params.preset("normal"), Params.preset("windows")


@pytest.mark.parametrize(
    ("reports", "candidates", "expected"), [(10**10, 10**4, 11319), (10**8, 10**3, 1285)]
)
def test_learnable_strings_of_the_paper_s_figure(reports, candidates, expected):
    found = learnable_strings(NORMAL, reports, candidates)
    assert round(found) == expected
    assert found == pytest.approx(0.5 * math.sqrt(reports) / critical_value(candidates))


@pytest.mark.parametrize(("share", "reports"), [(0.01, 1e6), (0.001, 1e8), (0.0001, 1e10)])
def test_ten_times_rarer_needs_a_hundred_times_the_reports(share, reports):
    assert detectable(NORMAL, reports, 10**4).frequency < share


@pytest.mark.parametrize(
    ("preset", "reports", "expected"), [("exponential", 10**6, 2806), ("windows", 186_792, 1213)]
)
def test_standard_errors_of_the_paper_s_tables(preset, reports, expected):
    assert round(standard_error(Params.preset(preset), reports)) == expected


def test_a_signal_too_faint_for_floats_is_never_detected():
    faint = Params(1, 1, 1, 0.5, 0.0, 5e-324)
    for power in (0.5, 0.8):
        assert detectable(faint, 10**6, 100, power, hashes=1).count == math.inf
    weak = Params(8, 1, 1, 0.9999999999, 0.5, 0.5000000000000002)
    expected = 0.5 * 1e3 / (1e-10 * 2**-52)
    assert standard_error(weak, 10**6) == pytest.approx(expected, rel=1e-5)


def test_more_power_needs_a_larger_count():
    counts = [detectable(WINDOWS, 10**6, 200, power).count for power in (0.5, 0.8, 0.95)]
    assert counts == sorted(counts)
    assert counts[0] == pytest.approx(critical_value(200) * standard_error(WINDOWS, 10**6))


def test_heavy_hitters_and_shared_bits_lower_the_number_of_strings():
    assert learnable_strings(NORMAL, 1e8, 1e3, heavy_share=0.85) == pytest.approx(
        0.15 * learnable_strings(NORMAL, 1e8, 1e3)
    )
    assert learnable_strings(WINDOWS, 1e8, 1e3) < learnable_strings(NORMAL, 1e8, 1e3)


def test_epsilon_turned_into_a_count_is_the_one_bit_design_of_that_epsilon():
    epsilon = math.log(3)
    same = detectable(NORMAL, 10**6, 200).count
    assert smallest_count(epsilon, 10**6, 200) == pytest.approx(same)
    counts = [smallest_count(e, 10**6, 200) for e in (0.01, 0.1, 1, 10)]
    assert counts == sorted(counts, reverse=True)


def test_the_critical_value_is_right_far_in_the_tail():
    assert critical_value(1, 0.05) == pytest.approx(1.6449, abs=1e-4)
    assert critical_value(1e12) == pytest.approx(7.4409, abs=1e-4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: critical_value(0),
        lambda: critical_value(10, 0),
        lambda: critical_value(1, 0.5),
        lambda: critical_value(1e300, 1e-100),
        lambda: detectable(WINDOWS, 10**400, 10),
        lambda: learnable_strings(WINDOWS, 10, 10, heavy_share="x"),
        lambda: deniability(None),
        lambda: critical_value(10, 1),
        lambda: detectable(WINDOWS, 0, 10),
        lambda: detectable(WINDOWS, math.nan, 10),
        lambda: detectable(WINDOWS, 10, 10, power=1),
        lambda: learnable_strings(WINDOWS, 10, 10, heavy_share=1),
        lambda: smallest_count(0, 10, 10),
        lambda: standard_error(WINDOWS, -1),
        lambda: standard_error(WINDOWS, 10, hashes=0),
        lambda: standard_error(None, 10),
        lambda: critical_value("3"),
    ],
)
def test_impossible_questions_are_refused(call):
    with pytest.raises(ParamsError):
        call()


def test_deniability_of_the_paper_s_parameters():
    assert deniability(WINDOWS) == (Fraction(1, 16), Fraction(1, 4))
    assert deniability(NORMAL) == (0, 0)


def test_deniability_of_every_kind_counts_the_bits_that_a_value_sets():
    f = Fraction(1, 2)
    found = {kind: [deniability(WINDOWS, n) for n in signal_bits(WINDOWS, kind)] for kind in KINDS}
    one = ((f / 2), f)
    assert found["string"] == [deniability(WINDOWS)] * 2
    assert found["category"] == found["ordinal"] == found["boolean"] == [one, one]
    assert found["bits"] == [one, ((f / 2) ** 128, f**128)]


def test_patterns_count_candidates_that_share_bits():
    params = Params(8, 2, 4, 0.5, 0.5, 0.75)
    names = [f"name {i}" for i in range(281)]
    counted = patterns(names, 1, params)
    assert sum(counted.values()) == 281
    bits = sum(1 << bit for bit in bloom_positions("name 0", 1, params))
    assert counted[bits] >= 1
    assert candidates_per_pattern(params, 281) == 10


def test_warner_s_estimators_invert_his_coins():
    for truth in (0.0, 0.3, 1.0):
        assert two_coin_estimate(truth / 2 + 0.25) == pytest.approx(truth)
        assert one_coin_estimate(truth / 2 + 0.5) == pytest.approx(truth)
    assert pytest.approx(math.log(0.75 / 0.25)) == TWO_COIN_EPSILON
    assert math.inf == ONE_COIN_EPSILON


def test_averaging_reveals_a_survey_without_memory():
    assert float(averaging_posterior(75, 100)) == pytest.approx(3.0**-50, rel=1e-9)
    assert averaging_posterior(50, 100) == Fraction(1, 2)
    with pytest.raises(ParamsError, match="yes"):
        averaging_posterior(101, 100)
