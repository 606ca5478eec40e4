"""Shares of bits, their noise, and several (p, q) together."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.closed_form import estimate_bits
from rappor.decoding.observe import bit_shares, observe, pooled_shares
from rappor.errors import DecodeError
from rappor.mechanism.channel import channel

PARAMS = Params(8, 2, 3, 0.5, 0.25, 0.75)  # p* = .375, q* = .625
SCHEDULE = [
    Params(8, 2, 3, 0.5, 0.05, 0.95),
    Params(8, 2, 3, 0.5, 0.25, 0.75),
    Params(8, 2, 3, 0.5, 0.1, 0.6),
]


def drawn(params, totals, shares, rng, times=1, **more):
    """Counts with independent reports of which `shares` (m, k) have the bit; a list of them."""
    p_star, q_star = map(float, channel(params))
    sent = np.asarray(totals)[:, None]
    ones = rng.binomial(sent, p_star + (q_star - p_star) * shares, (times, *shares.shape))
    return [Counts(params, totals, each, **more) for each in ones]


def test_shares_are_the_closed_form():
    ones = np.full((3, 8), 400)
    ones[1, 4] = 625
    seen = observe([Counts(PARAMS, [1000, 1000, 1000], ones)])
    assert seen.shares[0, 0] == pytest.approx((0.4 - 0.375) / 0.25)
    assert seen.shares[1, 4] == pytest.approx(1.0)
    assert seen.expected == 0.25
    assert seen.rows == 24


def test_variances_follow_the_formula():
    seen = observe([Counts(PARAMS, [1000, 500, 100], np.zeros((3, 8), int))])
    shares = np.full((3, 8), 0.3)
    r = 0.375 + 0.25 * 0.3
    sizes = np.array([1000, 500, 100])[:, None]
    assert seen.variance(shares) == pytest.approx(r * (1 - r) / (0.0625 * sizes) + 0 * shares)
    fixed = 0.375 * 0.625 / 0.0625  # the same for a true 0 and a true 1
    assert seen.noise(shares) == pytest.approx(fixed / sizes + 0 * shares)
    # Who happens to be in a cohort is the difference of the two.
    gap = seen.variance(shares) - seen.noise(shares)
    assert gap == pytest.approx(0.3 * 0.7 / sizes + 0 * shares)


def test_cohorts_without_reports_have_no_share_and_infinite_noise():
    seen = observe([Counts(PARAMS, [1000, 0, 100], np.zeros((3, 8), int))])
    assert seen.live.tolist() == [True, False, True]
    assert seen.rows == 16
    assert (seen.shares[1] == 0).all()
    assert np.isinf(seen.variance(seen.shares)[1]).all()
    assert np.isfinite(seen.variance(seen.shares)[[0, 2]]).all()
    assert np.isfinite(seen.noise(seen.shares)).all()


def test_no_bit_is_free_of_noise():
    strong = Params(8, 2, 3, 0.0, 0.0001, 0.9)
    seen = observe([Counts(strong, [10, 10, 10], np.zeros((3, 8), int))])
    assert (seen.variance(np.full((3, 8), -0.5)) > 0).all()


def test_a_group_without_reports_in_a_cohort_leaves_the_others():
    one = Counts(SCHEDULE[0], [1000, 0, 0], np.full((3, 8), 300) * [[1], [0], [0]])
    two = Counts(SCHEDULE[1], [1000, 500, 0], np.full((3, 8), 200) * [[1], [1], [0]])
    seen = observe([one, two])
    assert seen.live.tolist() == [True, True, False]
    assert seen.totals.tolist() == [2000, 500, 0]
    alone = observe([two])
    assert seen.shares[1] == pytest.approx(alone.shares[1])
    inside = np.full((3, 8), 0.25)
    assert seen.variance(inside)[1] == pytest.approx(alone.variance(inside)[1])
    assert sum(group.weight for group in seen.groups).tolist() == [[1] * 8, [1] * 8, [0] * 8]


def test_weights_follow_what_each_bit_is_thought_to_hold():
    """A bit that everybody has is best seen where q* is next to 1, a rare one where p* is low."""
    groups = [
        Counts(Params(8, 2, 3, 0.0, p, q), [1000] * 3, np.zeros((3, 8), int))
        for p, q in ((0.05, 0.7), (0.3, 0.95))
    ]
    about = np.tile(np.linspace(0.0, 1.0, 8), (3, 1))
    seen = observe(groups, about)
    low, high = (group.weight for group in seen.groups)
    assert low + high == pytest.approx(np.ones((3, 8)))
    assert (np.diff(low, axis=1) < 0).all()
    best = 1 / sum(1 / observe([group]).variance(about) for group in groups)
    assert seen.variance(about) == pytest.approx(best)
    assert (observe(groups).variance(about)[:, [0, -1]] > 1.2 * best[:, [0, -1]]).all()


def test_one_group_has_all_the_weight_whatever_is_thought():
    counts = Counts(PARAMS, [1000, 500, 100], np.full((3, 8), 50))
    one, other = observe([counts]), observe([counts], np.full((3, 8), 0.9))
    assert one.groups[0].weight.tolist() == other.groups[0].weight.tolist() == [[1.0] * 8] * 3
    assert (one.shares == other.shares).all()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("sizes", [(1000, 1000, 1000), (200, 3000, 900)])
def test_several_p_and_q_are_weighted_nearly_as_well_as_can_be(share, sizes):
    """Within 5 % of 1 / Σ 1/v, the least variance there is, up to twice the expected share."""
    groups = [
        Counts(params, [size] * 3, np.zeros((3, 8), int))
        for params, size in zip(SCHEDULE, sizes, strict=True)
    ]
    shares = np.full((3, 8), share)
    best = 1 / sum(1 / observe([group]).variance(shares) for group in groups)
    found = observe(groups).variance(shares)
    assert (found >= best * (1 - 1e-12)).all()
    assert (found <= 1.05 * best).all()


@pytest.mark.slow
def test_the_combined_shares_vary_as_the_formula_says():
    """1,000 draws of 24 bits: mean and variance within 5 standard errors, pooled over bits."""
    rng = np.random.default_rng(32)
    shares = np.linspace(0.0, 0.6, 24).reshape(3, 8)
    totals = [[400, 900, 100], [800, 0, 300], [300, 700, 600]]
    parts = [
        drawn(params, sent, shares, rng, 1000)
        for params, sent in zip(SCHEDULE, totals, strict=True)
    ]
    seen = [observe(groups) for groups in zip(*parts, strict=True)]
    found = np.array([each.shares for each in seen])
    expected = seen[0].variance(shares)
    z = (found - shares) / np.sqrt(expected)
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2 / z.size)


@pytest.mark.slow
def test_the_weights_beat_equal_ones():
    rng = np.random.default_rng(33)
    shares = np.full((3, 8), 0.25)
    parts = [drawn(params, [500] * 3, shares, rng, 200) for params in SCHEDULE]
    best = np.var([observe(groups).shares for groups in zip(*parts, strict=True)])
    singles = [[observe([group]).shares for group in each] for each in parts]
    assert best < 0.8 * np.var(np.mean(singles, axis=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": Params(16, 2, 3, 0.5, 0.25, 0.75)}, "k is 8 and 16"),
        ({"params": Params(8, 1, 3, 0.5, 0.25, 0.75)}, "h is 2 and 1"),
        ({"params": Params(8, 2, 4, 0.5, 0.25, 0.75)}, "m is 3 and 4"),
        ({"params": Params(8, 2, 3, 0.25, 0.25, 0.75)}, "f is 0.5 and 0.25"),
        ({"kind": "category"}, "the same kind: string and category"),
        ({"dialect": "google"}, "the same dialect: None and google"),
        ({"collection": "other"}, "the same collection: None and other"),
    ],
)
def test_counts_that_do_not_go_together_are_refused_by_name(change, message):
    about = {"params": PARAMS, **change}
    with pytest.raises(DecodeError, match=message):
        observe([Counts.zero(PARAMS), Counts.zero(**about)])


def law_of_ones(params: Params, holders: int, reports: int) -> dict[int, Fraction]:
    """P(ones received), exactly: two binomials convolved."""
    p_star, q_star = channel(params)

    def binomial(n, one):
        return [comb(n, c) * one**c * (1 - one) ** (n - c) for c in range(n + 1)]

    law: dict[int, Fraction] = {}
    for i, a in enumerate(binomial(holders, q_star)):
        for j, b in enumerate(binomial(reports - holders, p_star)):
            law[i + j] = law.get(i + j, 0) + a * b
    return law


def one_bit(params: Params, ones: int, reports: int) -> Counts:
    return Counts(params, [reports], [[ones]], kind="bits")


@pytest.mark.parametrize(
    "params", [Params(1, 1, 1, 0.5, 0.5, 0.75), Params(1, 1, 1, 0.0, 0.25, 0.75)]
)
@pytest.mark.parametrize("holders", [0, 8, 16])
def test_the_estimate_is_unbiased_with_the_stated_variance(params, holders):
    reports = 16
    law = law_of_ones(params, holders, reports)
    counts = {c: reports * pooled_shares(one_bit(params, c, reports), 1)[0] for c in law}
    mean = sum(float(chance) * counts[c] for c, chance in law.items())
    assert mean == pytest.approx(holders, abs=1e-9)
    variance = sum(float(chance) * (counts[c] - holders) ** 2 for c, chance in law.items())
    p_star, q_star = channel(params)
    # The count of ones at which the estimate is exactly the truth gives the exact variance.
    at_truth = p_star * reports + holders * (q_star - p_star)
    assert at_truth.denominator == 1
    found = estimate_bits([one_bit(params, int(at_truth), reports)], 1)
    assert found.variance[0] == pytest.approx(variance)


def test_both_forms_of_the_estimate_agree():
    counts = one_bit(Params(1, 1, 1, 0.5, 0.5, 0.75), 3, 100)
    assert pooled_shares(counts, 1)[0] < 0
    assert pooled_shares(counts, 1)[0] == pytest.approx(bit_shares(counts)[0, 0])
