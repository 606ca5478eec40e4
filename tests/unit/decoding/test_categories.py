"""Basic RAPPOR: closed form, honest variances, every edge of the input."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, ndtr

from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.categories import decode_basic
from rappor.decoding.closed_form import best_weights, estimate_bits
from rappor.decoding.decode import decode
from rappor.decoding.repeats import design_effect, shared_noise
from rappor.decoding.result import mass
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism import channel

P = Params(4, 1, 3, 0.5, 0.5, 0.75)
TOTALS = np.array([4000, 0, 1000])
ONES = np.array([[2600, 2500, 2300, 2250], [0, 0, 0, 0], [640, 590, 560, 570]])
NAMES = ["a", "b", "c", "d"]


def category(**more):
    return Counts(P, TOTALS, ONES, kind="category", **more)


def by_name(decoded):
    return {row.string: row for row in decoded.rows}


def tail(ones, reports, chance):
    """P(X >= ones) of the binomial law; between whole numbers too."""
    return betainc(ones, reports - ones + 1, chance)


def quiet(params, share, reports):
    """Counts without noise: each bit's expected ones, rounded."""
    p_star, q_star = map(float, channel(params))
    ones = [round(reports * (s * q_star + (1 - s) * p_star)) for s in share]
    return Counts(params, [reports], [ones], kind="category")


def test_the_estimate_is_the_closed_form_over_unequal_and_empty_cohorts():
    rows = by_name(decode_basic(category(), NAMES))
    p_star, q_star = map(float, channel(P))
    for bit, name in enumerate(NAMES):
        by_cohort = [(ONES[j, bit] - p_star * TOTALS[j]) / (q_star - p_star) for j in range(3)]
        assert rows[name].raw_estimate == pytest.approx(sum(by_cohort), rel=1e-12)
        held = min(max(sum(by_cohort), 0), 5000)
        noise = held * q_star * (1 - q_star) + (5000 - held) * p_star * (1 - p_star)
        error = math.sqrt(noise) / (q_star - p_star)
        assert rows[name].std_error == pytest.approx(error, rel=1e-12)
        assert rows[name].snr == pytest.approx(sum(by_cohort) / error)
        low, high = rows[name].interval
        assert 0 <= low <= rows[name].estimate <= high <= 5000
        assert rows[name].proportion == rows[name].estimate / 5000


def test_counts_beyond_a_floats_precision_stay_exact():
    params = Params(1, 1, 1, 0.0, 0.25, 0.75)
    n = 2**61
    counts = Counts(params, [n], [[n // 4 + 1]], kind="bits")
    assert decode_basic(counts).rows[0].raw_estimate == 2.0


def test_the_p_value_is_the_binomial_tail_of_an_absent_category():
    """Within 1 % of the exact tail, down to 1e-35, where a normal tail is half of it."""
    p_star, _ = map(float, channel(P))
    for name, row in by_name(decode_basic(category(), NAMES)).items():
        ones = ONES.sum(axis=0)[NAMES.index(name)]
        assert row.p_value == pytest.approx(tail(ones, 5000, p_star), rel=0.01)


def test_with_few_expected_ones_a_tail_is_nowhere_near_normal():
    """Three ones where .5 are expected have a chance of 1.4 %; their z of 3.5 would say .02 %.

    The tail is exact to a fifth, and never too small.
    """
    params = Params(4, 1, 1, 0.0, 0.005, 0.75)
    counts = Counts(params, [100], [[3, 2, 1, 0]], kind="category")
    for name, row in by_name(decode_basic(counts, NAMES)).items():
        true = tail(3 - NAMES.index(name), 100, 0.005) if name != "d" else 1.0
        assert true <= row.p_value < 1.2 * true


def test_rows_are_sorted_by_raw_estimate_and_ties_by_string():
    counts = Counts(P, [100, 0, 0], [[60, 70, 60, 70], [0] * 4, [0] * 4], kind="category")
    found = decode_basic(counts, ["z", "d", "a", "c"])
    assert [row.string for row in found.rows] == ["c", "d", "a", "z"]
    below = Counts(P, [100, 0, 0], [[40, 30, 50, 40], [0] * 4, [0] * 4], kind="category")
    found = decode_basic(below, ["z", "a", "d", "c"])
    assert [row.estimate for row in found.rows] == [0.0] * 4
    assert [row.string for row in found.rows] == ["d", "c", "z", "a"]


def test_raw_estimates_are_not_clipped_but_estimates_and_intervals_are():
    counts = Counts(P, [100, 0, 0], [[0, 100, 56, 56], [0] * 4, [0] * 4], kind="category")
    rows = by_name(decode_basic(counts, NAMES))
    assert rows["a"].raw_estimate == pytest.approx(-450)
    assert rows["a"].estimate == rows["a"].interval[0] == 0
    assert rows["b"].raw_estimate == pytest.approx(350)
    assert rows["b"].estimate == rows["b"].interval[1] == 100
    assert rows["a"].std_error > 0


@pytest.mark.parametrize("ones", [0, 1, 5, 100, 99, 95])
def test_counts_at_the_end_of_their_law_still_have_limits(ones):
    """However far noise seems to have carried a count, its interval is not a point."""
    for params in (P, Params(4, 1, 3, 0.0, 0.01, 0.9), Params(4, 1, 3, 0.0, 0.1, 0.99)):
        counts = Counts(params, [100, 0, 0], [[ones] * 4, [0] * 4, [0] * 4], kind="category")
        low, high = decode_basic(counts, NAMES).rows[0].interval
        assert 0 <= low < high <= 100


def test_what_was_not_detected_has_an_upper_limit_only():
    """The limit T is where P(X <= x | T) is 2.5 % of P(X < x | 0): a mean cannot be below 0."""
    p_star, q_star = map(float, channel(P))
    found = decode_basic(category(), NAMES, correction="bonferroni")
    quiet_rows = [row for row in found.rows if not row.detected]
    assert {row.string for row in quiet_rows} == {"c", "d"}
    for row in quiet_rows:
        low, high = row.interval
        assert low == 0
        assert not row.presence_only
        ones = ONES.sum(axis=0)[NAMES.index(row.string)]
        mean = high * q_star + (5000 - high) * p_star
        spread = math.sqrt(high * q_star * (1 - q_star) + (5000 - high) * p_star * (1 - p_star))
        # So many reports are as good as normal, half a report between the steps.
        seen = ndtr((ones + 0.5 - mean) / spread)
        assert seen == pytest.approx(0.025 * (1 - tail(ones, 5000, p_star)), rel=0.02)


def test_a_row_that_just_passed_is_known_to_be_present_and_no_more():
    params = Params(4, 1, 1, 0.0, 0.25, 0.75)
    found = decode_basic(
        Counts(params, [10_000], [[2_605, 2_500, 2_500, 4_000]], kind="category"), NAMES
    )
    row = by_name(found)["a"]
    assert row.detected
    assert row.presence_only
    assert row.interval[0] == 0 < row.estimate < row.raw_estimate < row.interval[1]
    assert not by_name(found)["d"].presence_only
    assert by_name(found)["d"].estimate == pytest.approx(by_name(found)["d"].raw_estimate)


@pytest.mark.parametrize("repeated", [2, 7, 30])
def test_repeated_reports_widen_by_the_design_effect(repeated):
    once, often = (decode_basic(category(reports_per_client=r), NAMES) for r in (1, repeated))
    extra = 5000 * (repeated - 1) * shared_noise(P)
    for one, many in zip(once.rows, often.rows, strict=True):
        assert many.raw_estimate == one.raw_estimate
        assert many.std_error**2 == pytest.approx(one.std_error**2 + extra)
        assert many.interval[1] > one.interval[1]
    effect = design_effect(P, reports_per_client=repeated)
    expected = 5000 * float(channel(P).p_star)
    for name, row in by_name(often).items():
        ones = ONES.sum(axis=0)[NAMES.index(name)]
        nearer = expected + (ones - expected) / math.sqrt(effect)
        true = tail(nearer, 5000, float(channel(P).p_star))
        assert row.p_value == pytest.approx(true, rel=0.01)
    assert often.scale == often.design_effect > design_effect(P, reports_per_client=repeated) - 0.01
    assert once.scale == 1


def checks(found):
    return {check.code: check for check in found.checks}


def test_unknown_repetition_is_said_and_is_no_failure():
    found = checks(decode_basic(category(reports_per_client=None), NAMES))["repeats"]
    assert found.ok
    assert "do not say how many reports" in found.text


@pytest.mark.parametrize("named", [1, 2, 3])
def test_undetected_mass_is_what_the_categories_leave_and_lies_within_its_interval(named):
    found = decode_basic(category(), NAMES[:named])
    rows = list(found.rows)
    assert len(rows) == found.candidates == named
    left = 5000 - sum(row.raw_estimate for row in rows)
    assert left == pytest.approx([1580, -640, -1020][named - 1])
    assert found.undetected_mass.count == pytest.approx(max(left, 0.0))
    assert found.undetected_mass.std_error == pytest.approx(
        math.sqrt(sum(row.std_error**2 for row in rows))
    )
    low, high = found.undetected_mass.low_95, found.undetected_mass.high_95
    assert 0 <= low <= found.undetected_mass.count <= high <= 5000
    assert found.undetected_mass.prop_high_95 == high / 5000


@pytest.mark.parametrize("count", [-500.0, -5.0, 0.0, 40.0, 100.0, 105.0, 900.0])
def test_a_mass_lies_within_its_interval_and_that_within_all_reports(count):
    found = mass(count, 10.0, 100)
    assert 0 <= found.low_95 <= found.count <= found.high_95 <= 100
    assert found.count == min(max(count, 0.0), 100.0)
    assert (found.proportion, found.prop_low_95) == (found.count / 100, found.low_95 / 100)
    assert found.high_95 > 0
    assert found.low_95 < 100
    assert astuple(mass(0.0, 0.0, 0)) == (0,) * 8


@pytest.mark.parametrize("z", [-5.0, -2.0, 0.0, 1.0, 4.0, 9.0])
def test_no_mass_is_claimed_with_certainty_where_noise_carried_it_beyond(z):
    """The limit μ solves Φ(z - μ) = .025 Φ(z); at N it is the same from above."""
    found, above = mass(10 * z, 10.0, 10**6), mass(10**6 - 10 * z, 10.0, 10**6)
    limit = found.high_95 / 10
    assert stats.norm.cdf(z - limit) == pytest.approx(0.025 * stats.norm.cdf(z), rel=1e-6)
    assert above.low_95 == pytest.approx(10**6 - found.high_95)
    assert found.low_95 == pytest.approx(max(10 * (z - 1.959964), 0.0), rel=1e-5)
    assert above.high_95 == pytest.approx(10**6 - found.low_95)


@pytest.mark.parametrize("share", [0.0, 1e-3, 0.5, 1.0])
def test_masses_near_none_and_all_are_covered(share):
    """Of 20,000, at least 95 % less three standard errors."""
    noise = np.random.default_rng(8).normal(size=20_000)
    found = [mass(1_000 * share + 30 * each, 30.0, 1_000) for each in noise]
    covered = np.mean([each.low_95 <= 1_000 * share <= each.high_95 for each in found])
    assert covered >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(noise))
    assert all(each.low_95 < each.high_95 for each in found)


def test_a_boolean_has_two_rows_that_add_up():
    counts = Counts(Params(1, 1, 2, 0.5, 0.25, 0.75), [600, 400], [[300], [210]], kind="boolean")
    rows = by_name(decode_basic(counts))
    assert set(rows) == {"true", "false"}
    assert rows["true"].raw_estimate + rows["false"].raw_estimate == pytest.approx(1000)
    assert rows["true"].std_error == rows["false"].std_error
    p_star, q_star = map(float, channel(counts.params))
    assert rows["true"].p_value == pytest.approx(tail(510, 1000, p_star), rel=0.01)
    assert rows["false"].p_value == pytest.approx(tail(490, 1000, 1 - q_star), rel=0.01)
    assert astuple(decode_basic(counts).undetected_mass) == (0,) * 8
    assert set(by_name(decode_basic(counts, ["yes", "no"]))) == {"yes", "no"}


def test_free_bits_have_names_and_no_undetected_mass():
    counts = Counts(P, TOTALS, ONES, kind="bits")
    found = decode_basic(counts)
    assert set(by_name(found)) == {"bit 0", "bit 1", "bit 2", "bit 3"}
    assert all(map(math.isnan, astuple(found.undetected_mass)))


def test_no_reports_give_zeros_and_a_warning():
    found = decode_basic(Counts.zero(P, kind="category"), NAMES)
    assert found.warnings == ("There are no reports: nothing can be said.",)
    for row in found.rows:
        assert (row.estimate, row.std_error, row.interval) == (0, 0, (0, 0))
        assert (row.p_value, row.adjusted_p_value, row.detected) == (1, 1, False)
    assert found.threshold == math.inf
    assert astuple(found.undetected_mass) == (0,) * 8


def test_one_report_is_decoded_and_called_rough():
    counts = Counts(P, [0, 1, 0], [[0] * 4, [1, 0, 0, 1], [0] * 4], kind="category")
    found = decode_basic(counts, NAMES)
    assert any("rough" in warning for warning in found.warnings)
    assert all(math.isfinite(row.estimate) and row.std_error > 0 for row in found.rows)
    assert not found.detected


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "fdr", "bh", "none"])
def test_the_threshold_separates_what_is_detected(correction):
    params = Params(40, 1, 1, 0.5, 0.5, 0.75)
    rng = np.random.default_rng(11)
    p_star, q_star = map(float, channel(params))
    truth = (20_000 * 0.8 ** np.arange(40)).astype(int)
    n = 200_000
    ones = rng.binomial(truth, q_star) + rng.binomial(n - truth, p_star)
    counts = Counts(params, [n], [ones], kind="category")
    found = decode_basic(counts, [f"v{i}" for i in range(40)], correction=correction)
    assert 0 < len(found.detected) < 40
    for row in found.rows:
        passes = row.raw_estimate >= found.threshold
        assert row.detected == (row.adjusted_p_value <= 0.05) == passes
    if correction in ("bonferroni", "none"):
        tests = 40 if correction == "bonferroni" else 1
        ones = n * p_star + found.threshold * (q_star - p_star)
        assert tail(ones, n, p_star) == pytest.approx(0.05 / tests, rel=1e-3)


def test_the_correction_is_for_all_rows():
    found = decode_basic(category(), NAMES, correction="bonferroni")
    for row in found.rows:
        assert row.adjusted_p_value == pytest.approx(min(1, 4 * row.p_value))


def test_parameters_that_are_not_those_of_the_reports_are_noticed():
    ones = np.full((1, 4), 37_000)
    made = Counts(Params(4, 1, 1, 0.0, 0.25, 0.75), [100_000], ones, kind="category")
    wrong = Counts(Params(4, 1, 1, 0.0, 0.5, 0.75), [100_000], ones, kind="category")
    assert decode_basic(made, NAMES).warnings == ()
    found = checks(decode_basic(wrong, NAMES))
    assert not found["estimates"].ok
    assert not found["ones"].ok
    assert "these parameters" in found["estimates"].text


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "needs labels"),
        ([*NAMES, "e"], "5 labels do not fit the k = 4"),
        (["a", "a"], "distinct"),
        ([], "non-empty"),
        ([1, 2], "strings"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, words):
    with pytest.raises(DecodeError, match=words):
        decode_basic(category(), labels)


def test_counts_that_do_not_fit_are_refused():
    with pytest.raises(DecodeError, match="kind 'string'"):
        decode_basic(Counts(P, TOTALS, ONES), NAMES)
    with pytest.raises(DecodeError, match="one bit"):
        decode_basic(Counts(P, TOTALS, ONES, kind="boolean"))
    with pytest.raises(DecodeError, match="two labels"):
        decode_basic(Counts(Params(1, 1, 1, 0.0, 0.25, 0.75), [9], [[4]], kind="boolean"), ["yes"])
    with pytest.raises(DecodeError, match="at least one"):
        decode_basic([], NAMES)
    with pytest.raises(DecodeError, match="one kind and one k"):
        decode_basic([category(), Counts(P, TOTALS, ONES, kind="bits")], NAMES)
    with pytest.raises(ParamsError, match="alpha"):
        decode_basic(category(), NAMES, alpha=1.5)
    with pytest.raises(DecodeError, match="weights"):
        decode_basic(category(), NAMES, weights="equal")


# Several p and q (R32)

SCHEDULE = [Params(4, 1, 1, 0.5, 0.5, q) for q in (0.75, 0.625, 0.5625)]
SHARES = [0.5, 0.3, 0.05, 0.0]


def schedule(sizes=(40_000, 40_000, 40_000)):
    return [quiet(params, SHARES, n) for params, n in zip(SCHEDULE, sizes, strict=True)]


def test_groups_without_noise_give_the_common_share():
    found = by_name(decode_basic(schedule(), NAMES))
    for name, share in zip(NAMES, SHARES, strict=True):
        assert found[name].raw_estimate / 120_000 == pytest.approx(share, abs=2e-3)


def test_weights_are_within_five_percent_of_the_best_there_are():
    groups = schedule((40_000, 10_000, 90_000))
    sizes = np.array([group.reports for group in groups])
    used = estimate_bits(groups, 4).weights
    for bit, share in enumerate(SHARES):
        noise = np.array([channel(group.params).noise for group in groups])
        true = np.diag((share * noise[:, 1] + (1 - share) * noise[:, 0]) / sizes)
        best = best_weights(true)
        assert used[bit] @ true @ used[bit] <= 1.05 * (best @ true @ best)
    summed = estimate_bits(groups, 4, weights="reports")
    assert (estimate_bits(groups, 4).variance < 0.3 * summed.variance).all()


def test_weights_by_reports_add_the_groups_counts():
    groups = schedule((4000, 1000, 2000))
    found = estimate_bits(groups, 4, weights="reports")
    alone = [estimate_bits([group], 4) for group in groups]
    np.testing.assert_allclose(found.count, sum(each.count for each in alone), rtol=1e-9)
    # Each group's variance is taken at the common share, so noise in it may move it a little.
    np.testing.assert_allclose(found.variance, sum(each.variance for each in alone), rtol=0.02)


def test_groups_with_the_same_parameters_are_one_group():
    parts = [quiet(SCHEDULE[0], SHARES, n) for n in (30_000, 10_000)]
    together = estimate_bits([parts[0] + parts[1]], 4)
    apart = estimate_bits(parts, 4)
    np.testing.assert_allclose(apart.weights, [[0.75, 0.25]] * 4, rtol=1e-9)
    np.testing.assert_allclose(apart.count, together.count, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(apart.variance, together.variance, rtol=1e-9)


def test_empty_groups_change_nothing_but_are_counted():
    groups = [schedule()[0], Counts.zero(SCHEDULE[1], kind="category")]
    found = estimate_bits(groups, 4)
    alone = estimate_bits(groups[:1], 4)
    np.testing.assert_array_equal(found.count, alone.count)
    np.testing.assert_array_equal(found.variance, alone.variance)
    assert found.weights.tolist() == [[1.0, 0.0]] * 4


def test_shared_clients_add_their_covariance():
    groups = [quiet(SCHEDULE[0], SHARES, n) for n in (30_000, 10_000)]
    overlap = [[0, 8000], [8000, 0]]
    apart, shared = (
        estimate_bits(groups, 4, overlap=o, weights="reports") for o in (None, overlap)
    )
    np.testing.assert_allclose(
        shared.variance - apart.variance, 2 * 8000 * shared_noise(SCHEDULE[0]), rtol=1e-9
    )


def test_the_bound_on_shared_clients_is_at_least_any_overlap():
    groups = schedule((40_000, 10_000, 90_000))
    bound = estimate_bits(groups, 4, overlap="bound")
    apart = estimate_bits(groups, 4)
    np.testing.assert_allclose(bound.weights, apart.weights)
    assert (bound.weights >= 0).all()
    for shared in (1000, 5000, 10_000):
        table = np.full((3, 3), shared)
        exact = estimate_bits(groups, 4, overlap=table)
        assert (apart.variance < bound.variance).all()
        assert (exact.variance <= bound.variance).all()
    assert (bound.may_overlap, apart.may_overlap) == (True, False)


def test_clients_may_have_reported_in_several_tables_unless_one_says_not():
    groups = schedule((40_000, 10_000, 90_000))
    found, bounded, apart = (
        decode_basic(groups, NAMES, **more)
        for more in ({}, {"overlap": "bound"}, {"overlap": None})
    )
    assert list(found.rows) == list(bounded.rows)
    assert (by_name(found)["a"].std_error, by_name(apart)["a"].std_error) == pytest.approx(
        [math.sqrt(estimate_bits(groups, 4, overlap=o).variance[0]) for o in ("bound", None)]
    )
    assert by_name(apart)["a"].std_error < by_name(found)["a"].std_error
    assert list(decode(groups, NAMES).rows) == list(found.rows)
    assert list(decode(groups, NAMES, overlap=None).rows) == list(apart.rows)
    assert "several of the tables" in checks(found)["repeats"].text
    assert "several of the tables" not in checks(apart)["repeats"].text


def test_overlap_that_cannot_be_is_refused():
    groups = schedule((100, 50, 70))
    for table in ([[0, 51, 0], [51, 0, 0], [0, 0, 0]], [[0, 1, 0], [2, 0, 0], [0, 0, 0]], [[1]]):
        with pytest.raises(DecodeError, match="overlap"):
            estimate_bits(groups, 4, overlap=table)
    with pytest.raises(DecodeError, match="overlap"):
        estimate_bits(groups, 4, overlap="all")
    other = Counts(Params(4, 1, 1, 0.25, 0.5, 0.75), [50], [[30] * 4], kind="category")
    with pytest.raises(DecodeError, match="share none"):
        estimate_bits([groups[0], other], 4, overlap=[[0, 5], [5, 0]])
    assert estimate_bits([groups[0], other], 4, overlap="bound").design_effect == 1


def test_groups_that_differ_are_noticed():
    same = schedule()
    differ = [same[0], quiet(SCHEDULE[0], SHARES[::-1], 40_000)]
    assert estimate_bits(same, 4).chi2_dof < 0.1
    found = estimate_bits(differ, 4)
    assert found.chi2_dof > 10
    assert found.agreement < 1e-6 < estimate_bits(same, 4).agreement
    assert not checks(decode_basic(differ, NAMES))["agreement"].ok
    assert checks(decode_basic(same, NAMES))["agreement"].ok
    assert math.isnan(estimate_bits(same[:1], 4).chi2_dof)


def test_the_same_input_gives_the_same_output():
    first, second = (decode_basic(schedule(), NAMES, overlap="bound") for _ in range(2))
    assert list(first.rows) == list(second.rows)
    assert first.undetected_mass == second.undetected_mass
    assert first.params_digest.split() == [params.digest for params in SCHEDULE]
