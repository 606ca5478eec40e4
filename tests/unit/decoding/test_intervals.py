"""Limits that tell the story of the verdict: conditional coverage, upper limits, and the ends."""

import numpy as np
import pytest
from scipy import integrate, stats

from rappor.decoding.intervals import (
    Z_95,
    above_undetected,
    limits,
    margins,
    selected_lower,
    selected_mean,
    selected_upper,
    selection_excess,
)

NORMAL = stats.norm
ALL = 1e9  # so many reports that no limit comes near


def passed(mean, threshold, chances):
    """Quantiles of the normal law around a mean that had to lie above the threshold."""
    return mean + NORMAL.isf((1 - chances) * NORMAL.sf(threshold - mean))


def found_for(z, threshold, detected=True, most=ALL):
    """Limits of rows whose standard error is 1, which far from all reports are those of z."""
    return limits(np.asarray(z, float), np.ones(len(z)), np.full(len(z), detected), threshold, most)


MEANS = [
    pytest.param(3.5, marks=pytest.mark.slow),
    *(
        pytest.param(mean, marks=pytest.mark.long)
        for mean in (0.0, 0.5, 1.5, 2.5, 4.0, 4.5, 6.0, 9.0)
    ),
]


@pytest.mark.parametrize("threshold", [1.6, 3.5, 5.0])
@pytest.mark.parametrize("mean", MEANS)
def test_intervals_of_what_passed_cover_95_percent(mean, threshold):
    """20,000 draws above the threshold; alpha 1e-6 two-sided, 4.9 standard errors, is .0076.

    Ordinary intervals of a mean half a standard error below the threshold or more miss too often,
    and are noticed.
    """
    n = 20_000
    z = passed(mean, threshold, np.random.default_rng(43).random(n))
    low, high = found_for(z, threshold)[1:]
    bound = 4.9 * np.sqrt(0.95 * 0.05 / n)
    assert ((low <= mean) & (mean <= high)).mean() == pytest.approx(0.95, abs=bound)
    if mean <= threshold - 0.5:
        naive = (z - Z_95 <= mean) & (mean <= z + Z_95)
        assert naive.mean() < 0.95 - bound


@pytest.mark.long
@pytest.mark.parametrize("threshold", [1.6, 3.5, 5.0])
def test_the_coverage_is_exact_and_not_just_on_average(threshold):
    """At 1,000 quantiles of the truncated law, one of which may lie on either side of an end."""
    for mean in np.linspace(0.0, 12.0, 25):
        z = passed(mean, threshold, (np.arange(1_000) + 0.5) / 1_000)
        low, high = found_for(z, threshold)[1:]
        assert ((low <= mean) & (mean <= high)).mean() == pytest.approx(0.95, abs=2.1 / 1_000)


@pytest.mark.parametrize("threshold", [1.6, 3.5, 5.0])
def test_the_lower_end_leaves_0_as_early_as_the_law_of_an_absent_string_allows(threshold):
    """Where z is above the 95 % quantile of what an absent string shows if it passes, and not
    before. An interval of two equal tails would wait for the 97.5 % quantile."""
    edge = passed(0.0, threshold, np.array([0.95]))[0]
    z = edge + np.array([-0.5, -1e-6, 1e-6, 0.02, 0.5])
    low = found_for(z, threshold).low
    assert low[:2].tolist() == [0.0, 0.0]
    assert (low[2:] > 0).all()
    assert (np.diff(low[1:]) > 0).all()
    assert edge < passed(0.0, threshold, np.array([0.975]))[0] - 0.1


def test_ends_are_those_of_the_regions_that_are_shortest_where_small_counts_prevail():
    """The region of a mean just below its interval's end does not hold z, that just above does.

    It is found here by minimising its length, weighted by exp(-s z), among all regions with 95 % of
    the truncated law: z falls off like 1/z, which is exp(-s z) near the mean if s is one over it.
    """
    threshold = 3.5
    for z in (4.4, 5.0, 6.5):
        for end, side in (
            (selected_lower(np.array([z]), np.array([threshold]))[0], 1),
            (selected_upper(np.array([z]), np.array([threshold]))[0], -1),
        ):
            for step, holds in ((1e-3, True), (-1e-3, False)):
                mean = end + side * step
                rate = min(1.0, 1 - (mean - threshold) / 8) / max(mean, 3.0)
                start = np.linspace(0.0, 0.05, 20_001)
                first, last = (passed(mean, threshold, start + by) for by in (0.0, 0.95 - 1e-12))
                shortest = np.argmin(np.exp(-rate * first) - np.exp(-rate * last))
                assert (first[shortest] <= z <= last[shortest]) == holds


def test_intervals_of_strings_near_the_threshold_are_shorter_than_pratts():
    """Over strings that fall off evenly on a log scale, the mean width of those that pass 3.5 is
    4.33; the shortest regions of the truncated law (Pratt) give 4.36, and ± 1.96 has 3.92."""
    means = 10 * 0.95 ** np.arange(40)
    widths, weights = [], []
    for mean in means:
        z = passed(mean, 3.5, (np.arange(200) + 0.5) / 200)
        found = found_for(z, 3.5)
        widths.append((found.high - found.low).mean())
        weights.append(NORMAL.sf(3.5 - mean))
    assert np.average(widths, weights=weights) < 4.35


def test_far_above_the_threshold_intervals_and_estimates_are_ordinary():
    z = np.array([15.6, 20.0, 400.0])
    estimate, low, high = found_for(z, 3.5)
    assert estimate == pytest.approx(z, abs=1e-9)
    assert low == pytest.approx(z - Z_95, abs=1e-9)
    assert high == pytest.approx(z + Z_95, abs=1e-9)
    # Where selection ceases to show there is no step.
    edge = found_for(3.5 + 12.0 + np.array([-1e-9, 1e-9]), 3.5)
    for column in edge:
        assert column[0] == pytest.approx(column[1], abs=1e-4)
    easily = found_for(np.array([3.5]), -30.0)
    assert np.ravel(easily) == pytest.approx([3.5, 3.5 - Z_95, 3.5 + Z_95], abs=1e-4)


def test_a_larger_z_never_has_a_smaller_estimate_or_limit():
    z = np.linspace(3.5, 16, 400)
    for column in found_for(z, 3.5):
        assert (np.diff(column) > -1e-9).all()
    for column in found_for(np.linspace(-30, 3.5, 400), 3.5, detected=False):
        assert (np.diff(column) > -1e-9).all()


def test_the_estimate_is_the_mean_of_the_truncated_likelihood():
    threshold = 3.5
    for z in (3.5, 3.6, 4.2, 5.0, 7.0):

        def weight(mean, z=z):
            return NORMAL.pdf(z - mean) / NORMAL.sf(threshold - mean)

        top = integrate.quad(lambda mean: mean * weight(mean), 0, z + 8, limit=200)[0]
        whole = integrate.quad(weight, 0, z + 8, limit=200)[0]
        found = selected_mean(np.array([z]), np.array([threshold]))[0]
        assert found == pytest.approx(top / whole, abs=1e-3)
    assert 1.5 < selected_mean(np.array([3.5]), np.array([3.5]))[0] < 1.7


def test_adjusted_estimates_are_off_by_far_less_than_raw_ones():
    """What strings of five true sizes show if they pass 3.5, at 4,000 quantiles: raw estimates are
    too large by 1 to 3.8 standard errors, adjusted ones off by a little more than half of that at
    an absent string, and by less than a quarter from a mean of 2 on."""
    for mean, share in ((0.0, 0.55), (1.0, 0.45), (2.0, 0.25), (3.0, 0.25)):
        z = passed(mean, 3.5, (np.arange(4_000) + 0.5) / 4_000)
        raw, adjusted = z.mean() - mean, found_for(z, 3.5).estimate.mean() - mean
        assert raw > 1.0
        assert abs(adjusted) < share * raw


@pytest.mark.parametrize("seed", range(5))
def test_an_estimate_lies_within_its_limits_whatever_is_given(seed):
    rng = np.random.default_rng(seed)
    n = 4_000
    error = rng.choice([0.0, 1e-6, 1.0, 30.0, 2_000.0], n) * rng.uniform(0.5, 2, n)
    raw = rng.normal(300, 600, n) * rng.choice([1e-3, 1.0, 3.0], n)
    detected, threshold = (rng.random(n) < 0.5) & (raw > 0), rng.uniform(-2, 6, n)
    given = raw.copy()
    for cut in (threshold, 3.5):
        estimate, low, high = limits(raw, error, detected, cut, 1000.0)
        assert np.isfinite([estimate, low, high]).all()
        assert (low >= 0).all()
        assert (low <= estimate).all()
        assert (estimate <= high).all()
        assert (high <= 1000).all()
        assert (low[~detected & (error > 0)] == 0).all()
        assert (high[raw > -1000 * error] > 0).all()
    assert (raw == given).all()


def test_where_only_presence_is_known_the_lower_end_is_0_and_not_nearly_0():
    """3.6 standard errors of 10,000 sizes, of which rounding would leave some just above 0."""
    error = np.random.default_rng(49).uniform(1, 1000, 10_000)
    found = limits(3.6 * error, error, np.ones(10_000, bool), 3.5, ALL)
    assert (found.low == 0).all()
    assert (found.estimate > 0).all()


def test_each_row_may_have_a_threshold_of_its_own():
    z, cuts = np.array([4.0, 4.0, 5.0]), np.array([3.0, 3.9, 4.5])
    together = found_for(z, cuts)
    for row, (size, cut) in enumerate(zip(z, cuts, strict=True)):
        alone = found_for(np.array([size]), cut)
        assert [column[row] for column in together] == pytest.approx(np.ravel(alone))
    # Who passed though z lies below, by a test that is not quite z, just passed.
    below, at = found_for(np.array([3.4]), 3.5), found_for(np.array([3.4]), 3.4)
    assert np.ravel(below).tolist() == np.ravel(at).tolist()
    assert below.low[0] == 0


@pytest.mark.long
@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0, 2.0, 4.0])
def test_upper_limits_of_what_was_not_detected_cover_97_5_percent(mean):
    """40,000 draws; alpha 1e-6 one-sided, 4.75 standard errors, is .0037.

    A one-sided limit of 95 % misses twice as often from a mean of 2 on, and is noticed.
    """
    n = 40_000
    z = mean + np.random.default_rng(46).normal(size=n)
    estimate, low, high = found_for(z, 9.0, detected=False)
    bound = 4.75 * np.sqrt(0.025 * 0.975 / n)
    assert (high < mean).mean() < 0.025 + bound
    assert (low == 0).all()
    assert estimate == pytest.approx(np.clip(z, 0, None))
    if mean == 4.0:  # where the limit is nearly z + 1.96
        assert (high < mean).mean() == pytest.approx(0.025, abs=bound + 0.001)
    planted = np.maximum(z, 0) + 1.645
    assert (planted < mean).mean() > 0.025 + bound or mean < 2.0


def test_the_upper_limit_solves_its_equation_and_never_reaches_0():
    z = np.array([-30.0, -8.0, -4.0, -1.0, 0.0, 2.0, 6.0])
    limit = z + above_undetected(z)
    tail = NORMAL.logcdf(z - limit) - NORMAL.logcdf(z)
    assert tail == pytest.approx(np.log(0.025))
    assert (limit > 0).all()
    assert (np.diff(limit) > 0).all()
    assert above_undetected(np.array([8.0, 40.0])) == pytest.approx(Z_95)


def test_only_the_detected_are_treated_as_selected():
    raw, error = np.array([40.0, 40.0]), np.array([10.0, 10.0])
    estimate, low, high = limits(raw, error, np.array([True, False]), 3.5, ALL)
    assert estimate[0] < 30 < estimate[1] == 40
    assert low.tolist() == [0, 0]  # present, and not detected
    assert 40 <= high[0] < high[1] == pytest.approx(40 + 10 * Z_95, abs=0.01)


@pytest.mark.long
@pytest.mark.parametrize("left", [0.0, 0.3, 1.0, 3.0])
def test_limits_near_all_reports_cover(left):
    """40,000 draws of 1,000 reports with a standard error of 20, of which `left` standard errors
    are others; alpha 1e-6 one-sided. Clipping the raw estimate would leave a point at the end."""
    n, most, error = 40_000, 1000.0, 20.0
    mean = most - left * error
    raw = mean + error * np.random.default_rng(47).normal(size=n)
    estimate, low, high = limits(raw, np.full(n, error), np.ones(n, bool), 3.5, most)
    assert (low > mean).mean() < 0.025 + 4.75 * np.sqrt(0.025 * 0.975 / n)
    assert (high <= most).all()
    assert (low < most).all()
    assert (estimate <= most).all()
    beyond = raw > most
    assert beyond.sum() > 10
    assert (estimate[beyond] == most).all()
    assert (most - low[beyond] > 0.5 * error).mean() > 0.99


def test_the_lower_limit_near_all_reports_is_what_the_upper_limit_of_the_others_leaves():
    raw, error, most = np.array([1030.0, 1000.0, 990.0, 500.0]), np.full(4, 20.0), 1000.0
    low = limits(raw, error, np.ones(4, bool), 3.5, most).low
    others = limits(most - raw, error, np.zeros(4, bool), 3.5, most).high
    assert low[:3] == pytest.approx(most - others[:3])
    assert low[3] == pytest.approx(500 - 20 * Z_95)


def test_an_error_of_0_is_a_point():
    for detected in (True, False):
        found = limits(
            np.array([7.0, -7.0, 70.0]), np.zeros(3), np.full(3, detected), np.full(3, 3.5), 10.0
        )
        assert [column.tolist() for column in found] == [[7.0, 0.0, 10.0]] * 3


def test_no_rows_are_no_trouble():
    nothing = np.zeros(0)
    assert [len(column) for column in limits(nothing, nothing, nothing > 0, 3.5, 10.0)] == [0] * 3
    assert [len(column) for column in margins(nothing, nothing > 0, 3.5)] == [0] * 3


@pytest.mark.slow
def test_the_excess_of_a_sum_is_what_selection_added_to_it():
    """2,000 tables of 500 strings with a true z from 0 to 8: the mean error of the sum of those
    above 3.5 is 0 within 4.9 standard errors once the excess is taken off, and 9 times as far from
    it if not. Its variance is at most what the strings and the excess state together (five standard
    errors of a variance are 16 %), and more than half of that."""
    rng = np.random.default_rng(48)
    tables, strings, threshold = 2_000, 500, 3.5
    mean = rng.uniform(0, 8, (tables, strings))
    z = mean + rng.normal(size=(tables, strings))
    above = z > threshold
    added = ((z - mean) * above).sum(axis=1)
    parts = selection_excess(z.ravel(), z.ravel(), threshold, absent=0.0)
    excess, noise = (part.reshape(z.shape).sum(axis=1) for part in parts)
    left = added - excess
    error = left.std() / np.sqrt(tables)
    assert abs(left.mean()) < 4.9 * error
    assert added.mean() > 9 * 4.9 * error
    stated = (above.sum(axis=1) + noise).mean()
    assert 0.5 * stated < left.var() < 1.16 * stated


def test_strings_away_from_the_threshold_have_no_part_in_the_excess():
    z = np.array([0.0, 2.6, 3.4, 3.5, 3.6, 4.4, 9.0])
    excess, noise = selection_excess(z, z, 3.5, absent=0.0)
    assert (
        (excess > 0).tolist() == (noise > 0).tolist() == [False, False, True, True, True, *[0] * 2]
    )
    assert excess[2] == pytest.approx(excess[4])
    # A kernel of weight 1: evenly spread strings add up to their density.
    fine = np.linspace(0, 7, 70_001)
    excess, _ = selection_excess(fine, fine, 3.5, absent=0.0)
    assert excess.sum() == pytest.approx(1e4, rel=1e-3)


def test_what_the_kernel_adds_to_absent_strings_is_taken_off():
    """The kernel on the density of absent strings, minus that density at the threshold."""
    for threshold in (1.6, 3.5, 3.9, 5.0):
        z = np.linspace(threshold - 1, threshold + 1, 200_001)
        kernel, _ = selection_excess(z, z, threshold, absent=0.0)
        smeared = integrate.trapezoid(kernel * NORMAL.pdf(z), z)
        far = np.array([-9.0])
        without, _ = selection_excess(far, far, threshold, absent=1.0)
        assert without[0] == pytest.approx(NORMAL.pdf(threshold) - smeared, rel=1e-6)
    assert smeared > 2 * NORMAL.pdf(5.0)


def test_the_excess_of_a_long_list_of_absent_strings_is_theirs():
    """1,000 tables of 8,000 absent strings and 30 present ones: mean error 0 within 4.9 standard
    errors, and more than 7 standard errors if the kernel's smear were left in."""
    rng = np.random.default_rng(49)
    tables, threshold = 1_000, 3.9
    mean = np.concatenate([np.zeros(8_000), np.linspace(2, 9, 30)])
    left, smear = np.empty(tables), np.empty(tables)
    for table in range(tables):
        z = mean + rng.standard_normal(len(mean))
        added = float(((z - mean) * (z > threshold)).sum())
        excess, smeared = (
            selection_excess(z, z, threshold, absent)[0].sum() for absent in (8_000 / 8_030, 0.0)
        )
        left[table], smear[table] = added - excess, smeared - excess
    error = left.std() / np.sqrt(tables)
    assert abs(left.mean()) < 4.9 * error
    assert smear.mean() > 1.5 * 4.9 * error


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.2, 0.3])
@pytest.mark.parametrize("present", [0, 40])
def test_a_test_by_another_table_is_judged_by_its_own_deviates(apart, present):
    """1,000 tables of 2,000 absent strings, tested by deviates that are not quite z: mean error 0
    within 4.9 standard errors. Strings whose z and deviate are both near 0 have no part in it,
    whatever the ratio of the two: thresholds in units of z are wrong by more than 9 of them."""
    rng = np.random.default_rng(50)
    tables, threshold = 1_000, 3.9
    mean = np.concatenate([np.zeros(2_000), np.linspace(1, 8, present)])
    left, scaled = np.empty(tables), np.empty(tables)
    for table in range(tables):
        z = mean + rng.standard_normal(len(mean))
        deviate = (z + apart * rng.standard_normal(len(mean))) / np.hypot(1, apart)
        added = float(((z - mean) * (deviate > threshold)).sum())
        left[table] = added - selection_excess(z, deviate, threshold, 2_000 / len(mean))[0].sum()
        gap = (z - z * threshold / np.where(deviate > 0.5, deviate, 1e-9)) / 0.8
        scaled[table] = added - 0.75 / 0.8 * np.maximum(1 - gap**2, 0).sum()
    error = left.std() / np.sqrt(tables)
    assert abs(left.mean()) < 4.9 * error
    assert abs(scaled.mean()) > 9 * error
