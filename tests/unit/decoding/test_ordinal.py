"""Histograms: shares that sum to 1, and what is said of them."""

import math
from dataclasses import astuple

import numpy as np
import pytest

from rappor import Params, Ranges
from rappor.aggregate import Counts
from rappor.decoding.decode import decode
from rappor.decoding.ordinal import Histogram, decode_ordinal
from rappor.decoding.result import Decoded
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism import channel

PARAMS = Params(5, 1, 2, 0.25, 0.25, 0.75)
TRUTH = np.array([500, 2500, 4000, 2000, 1000])
AGES = Ranges((18, 30, 50, 65))


def counted(truth=TRUTH, reports=10_000, seed=None, params=PARAMS, **more):
    p_star, q_star = map(float, channel(params))
    if seed is None:
        ones = np.rint(truth * q_star + (reports - truth) * p_star)
    else:
        rng = np.random.default_rng(seed)
        ones = rng.binomial(truth, q_star) + rng.binomial(reports - truth, p_star)
    empty = np.zeros((params.m - 1, params.k))
    totals = [reports, *[0] * (params.m - 1)]
    return Counts(params, totals, np.vstack([ones, empty]), kind="ordinal", **more)


def linear_variance(found: Histogram, a) -> float:
    return float(np.asarray(a) @ found.covariance @ np.asarray(a))


def test_shares_sum_to_one_and_are_near_the_truth():
    found = decode_ordinal(counted(seed=1), AGES)
    assert found.share.sum() == pytest.approx(1, abs=1e-12)
    free = decode_ordinal(counted(seed=1), AGES, complete=False)
    assert free.share.sum() != pytest.approx(1, abs=1e-6)
    for row, share in zip(found.rows, found.shares, strict=True):
        assert row.string == share.label
        assert row.proportion == pytest.approx(share.share)
        assert row.prop_std_error == pytest.approx(share.std_error)
    assert [row.string for row in found.rows] == list(AGES.labels)
    assert astuple(found.undetected_mass) == (0,) * 8


def test_imposing_the_sum_is_the_generalised_least_squares_projection():
    free = decode_ordinal(counted(seed=1), AGES, complete=False)
    found = decode_ordinal(counted(seed=1), AGES)
    v = np.diag(free.variance)
    one = np.ones((5, 1))
    gain = v @ one @ np.linalg.inv(one.T @ v @ one)
    np.testing.assert_allclose(found.share, free.share - gain[:, 0] * (free.share.sum() - 1))
    np.testing.assert_allclose(found.covariance, v - gain @ one.T @ v, atol=1e-15)
    np.testing.assert_allclose(found.covariance @ one[:, 0], 0, atol=1e-15)
    assert (np.diag(found.covariance) < free.variance).all()


def test_every_standard_error_follows_from_the_covariance():
    for complete in (True, False):
        found = decode_ordinal(counted(seed=2), [1, 2, 4, 8, 16], complete=complete)
        for index, each in enumerate(found.cumulative()):
            upto = (np.arange(5) <= index).astype(float)
            assert each.share == pytest.approx(float(upto @ found.share))
            assert each.std_error == pytest.approx(
                math.sqrt(max(linear_variance(found, upto), 0)), abs=1e-9
            )
        x, total = np.array([1, 2, 4, 8, 16.0]), found.share.sum()
        mean = found.mean()
        assert mean.value == pytest.approx(x @ found.share / total)
        slope = (x - mean.value) / total
        assert mean.std_error == pytest.approx(math.sqrt(linear_variance(found, slope)))


def test_without_noise_everything_is_the_truth():
    found = decode_ordinal(counted(TRUTH * 10_000, 10**8), [1, 2, 4, 8, 16])
    np.testing.assert_allclose(found.share, TRUTH / 10_000, atol=1e-6)
    x = np.array([1, 2, 4, 8, 16.0])
    mean = float(x @ TRUTH) / 10_000
    assert found.mean().value == pytest.approx(mean, abs=1e-4)
    spread = found.spread()
    assert spread.value == pytest.approx(
        math.sqrt(float((x - mean) ** 2 @ TRUTH) / 10_000), abs=1e-3
    )
    assert spread.low_95 < spread.value < spread.high_95
    for p, value in ((0.01, 1), (0.06, 2), (0.29, 2), (0.5, 4), (0.71, 8), (0.95, 16)):
        quantile = found.quantile(p)
        assert (quantile.value, quantile.low_95, quantile.high_95) == (value, value, value)


def test_quantiles_are_interpolated_within_closed_ranges_only():
    found = decode_ordinal(counted(TRUTH * 10_000, 10**8), AGES)
    median = found.quantile(0.5)  # 30 % lie below 30, 70 % below 50
    assert median.label == "30 to < 50"
    assert median.value == pytest.approx(40, abs=0.01)
    assert (median.low_95, median.high_95) == (30, 50)
    lowest = found.quantile(0.02)
    assert (lowest.label, lowest.value) == ("< 18", None)
    assert (lowest.low_95, lowest.high_95) == (-math.inf, 18)
    highest = found.quantile(0.99)
    assert (highest.value, highest.low_95, highest.high_95) == (None, 65, math.inf)


def test_quantiles_of_named_ranges_are_names():
    found = decode_ordinal(counted(TRUTH * 10_000, 10**8), list("abcde"))
    quantile = found.quantile(0.5)
    assert (quantile.label, quantile.low_label, quantile.high_label) == ("c", "c", "c")
    assert quantile.value is quantile.low_95 is quantile.high_95 is None


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("complete", [True, False])
def test_a_quantiles_interval_is_the_hull_of_what_the_band_allows(seed, complete):
    params = Params(30, 1, 1, 0.5, 0.5, 0.75)
    truth = np.full(30, 100)
    found = decode_ordinal(counted(truth, 3000, seed, params), range(30), complete=complete)
    cumulative = np.cumsum(found.share)
    for p in (0.1, 0.5, 0.93):
        if cumulative[-1] <= 0:
            with pytest.raises(DecodeError, match="no reports"):
                found.quantile(p)
            continue
        allowed = []
        for i in range(30):
            ends = []
            for j, side in ((i - 1, -1), (i, 1)):
                a = (np.arange(30) <= j).astype(float) - p
                error = math.sqrt(max(linear_variance(found, a), 0.0))
                ends.append(float(a @ found.share) + side * 1.959964 * error)
            if (i == 0 or ends[0] < 0) and (i == 29 or ends[1] >= 0):
                allowed.append(i)
        quantile = found.quantile(p)
        assert (quantile.low_95, quantile.high_95) == (min(allowed), max(allowed))
        assert quantile.low_95 <= quantile.value <= quantile.high_95


def test_quantiles_grow_with_the_probability():
    found = decode_ordinal(counted(np.full(30, 100), 3000, 3, Params(30, 1, 1, 0, 0.5, 0.75)))
    order = [found.labels.index(found.quantile(p).label) for p in np.linspace(0.02, 0.98, 49)]
    assert order == sorted(order)


def test_a_mean_needs_values_for_open_ranges():
    found = decode_ordinal(counted(), AGES)
    with pytest.raises(DecodeError, match=r"open ranges .*< 18, >= 65"):
        found.mean()
    given = found.mean([10, 24, 40, 57.5, 75])
    assert decode_ordinal(counted(), AGES, values=[10, 24, 40, 57.5, 75]).mean() == given
    assert 10 <= given.low_95 <= given.value <= given.high_95 <= 75
    with pytest.raises(DecodeError, match="5 finite numbers"):
        found.mean([1, 2, 3])
    with pytest.raises(DecodeError, match="5 finite numbers"):
        found.mean([1, 2, 3, 4, math.inf])
    with pytest.raises(DecodeError, match="labels only"):
        decode_ordinal(counted(), list("abcde")).mean()


def test_only_an_upper_limit_of_the_spread_is_shown_where_its_square_may_be_0():
    truth = np.array([0, 0, 400, 0, 0])
    noisy = Params(5, 1, 1, 0.75, 0.5, 0.75)
    shown = [
        decode_ordinal(counted(truth, 400, seed, noisy), range(5)).spread() for seed in range(20)
    ]
    limits = [each for each in shown if math.isnan(each.value)]
    assert len(limits) >= 15
    for each in limits:
        assert math.isnan(each.std_error)
        assert 0 == each.low_95 < each.high_95 <= 2  # half the distance of the outermost values
    for each in shown:
        assert math.isnan(each.value) or 0 <= each.low_95 <= each.value <= each.high_95 <= 2


def test_missing_values_are_noticed_and_can_be_allowed():
    half = counted(TRUTH * 50, 1_000_000)
    assert any("hold 50 %" in line for line in decode_ordinal(half, AGES).warnings)
    found = decode_ordinal(half, [1, 2, 4, 8, 16], complete=False)
    failed = {check.code for check in found.decoded.checks if not check.ok}
    assert failed == {"balance"}  # one of the two cohorts is empty
    assert found.undetected_mass.proportion == pytest.approx(0.5, abs=1e-3)
    assert found.mean().value == pytest.approx(float(TRUTH @ [1, 2, 4, 8, 16]) / 10_000, abs=0.01)
    assert found.quantile(0.5).value == 4


def test_no_reports_have_no_mean():
    found = decode_ordinal(Counts.zero(PARAMS, kind="ordinal"), AGES)
    assert found.reports == 0
    assert found.share.tolist() == [0] * 5
    assert found.warnings == ("There are no reports: nothing can be said.",)
    for ask in (lambda: found.mean(range(5)), lambda: found.quantile(0.5)):
        with pytest.raises(DecodeError, match="no reports"):
            ask()


def test_one_range_holds_everything():
    params = Params(1, 1, 1, 0.25, 0.25, 0.75)
    found = decode_ordinal(Counts(params, [50], [[30]], kind="ordinal"), [7])
    assert found.shares[0].share == pytest.approx(1)
    assert (found.mean().value, found.quantile(0.5).value) == (7, 7)


@pytest.mark.parametrize(("reports", "ones"), [(3, [0, 0, 0, 3]), (20, [2, 4, 3, 20])])
def test_a_sum_that_carries_a_share_beyond_all_reports_is_no_certainty(reports, ones):
    """Three reports, all with one bit and none with another: more than its own ones can show."""
    params = Params(4, 1, 1, 0.0, 0.25, 0.75)
    found = decode_ordinal(Counts(params, [reports], [ones], kind="ordinal"), Ranges((1, 2, 3)))
    row = found.rows[3]
    assert row.raw_estimate > reports
    assert 0 < row.p_value < 1e-4
    assert 0 < row.interval[0] < row.interval[1] == row.estimate == reports


def test_unused_bits_are_left_out():
    found = decode_ordinal(counted(), Ranges((10, 20)))
    assert found.labels == ("< 10", "10 to < 20", ">= 20")
    assert len(found.rows) == 3


def test_repetition_widens_every_interval():
    once, often = (
        decode_ordinal(counted(seed=4, reports_per_client=r), [1, 2, 4, 8, 16]) for r in (1, 20)
    )
    assert often.decoded.scale > 2
    assert often.mean().std_error > 1.4 * once.mean().std_error
    assert often.cumulative()[1].std_error > 1.4 * once.cumulative()[1].std_error


def test_several_p_and_q_are_combined():
    groups = [counted(TRUTH * 10, 10**5, 5, Params(5, 1, 1, 0.25, 0.25, q)) for q in (0.75, 0.5)]
    found = decode_ordinal(groups, [1, 2, 4, 8, 16])
    alone = decode_ordinal(groups[0], [1, 2, 4, 8, 16])
    assert found.reports == 2 * 10**5
    assert found.mean().std_error < alone.mean().std_error
    assert found.share.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        (Ranges(range(5)), "6 ranges do not fit the k = 5"),
        ([3, 2, 1], "increasing"),
        ([1, math.nan], "finite"),
        (["a", "a"], "distinct"),
        (["a", 1], "strings"),
        ([], "non-empty"),
    ],
)
def test_ranges_that_do_not_fit_are_refused(ranges, words):
    with pytest.raises(DecodeError, match=words):
        decode_ordinal(counted(), ranges)


def test_other_kinds_and_probabilities_are_refused():
    with pytest.raises(DecodeError, match="kind 'bits'"):
        decode_ordinal(Counts.zero(PARAMS, kind="bits"))
    for wrong in (0, 1, -1, "median"):
        with pytest.raises(ParamsError, match="probability"):
            decode_ordinal(counted()).quantile(wrong)


def test_a_histogram_is_also_a_table_and_a_chart():
    found = decode_ordinal(counted(), AGES)
    assert found.to_pandas()["string"].tolist() == list(AGES.labels)
    assert found.to_arrow().num_rows == found.to_polars().height == 5
    assert len(found.detected) == found.to_pandas(detected_only=True).shape[0] == 5
    assert "30 to &lt; 50" in found._repr_html_()
    assert found.plot().spec["data"]["values"][2]["range"] == "30 to < 50"


def test_decode_returns_one_type_with_the_histogram_in_it():
    counts = counted(TRUTH * 100, 1_000_000)
    found = decode(counts, AGES)
    own = decode_ordinal(counts, AGES)
    assert isinstance(found, Decoded)
    assert found.histogram.quantile(0.5) == own.quantile(0.5)
    assert list(found.rows) == list(own.rows)
    assert found.checks == own.decoded.checks
    assert found.plot().spec == own.plot().spec
