"""Associations of two variables that were reported separately."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import rappor
from rappor import Association, DecodeError, PairCounts, Params
from rappor.decoding.field_design import field_design
from rappor.decoding.pair_fit import fit_pairs
from rappor.simulate import PairReports, pair_reports
from support.joint_tables import (
    bits_of,
    dependent,
    independent,
    listed,
    maximum_likelihood,
    realised,
    tuple_views,
    whole_reports,
)

WIDE = Params(16, 2, 8, 0.25, 0.25, 0.75)
FLAG = Params(1, 1, 8, 0.25, 0.25, 0.75)
KINDS = ("string", "boolean")
VALUES = [f"x{number}" for number in range(4)]


@pytest.fixture(scope="module")
def reports() -> PairReports:
    return pair_reports(dependent(4, 2), (WIDE, FLAG), 40_000, seed=3, kinds=KINDS)


@pytest.fixture(scope="module")
def found(reports: PairReports) -> Association:
    return rappor.associate(reports.count(("site", "secure")), (VALUES, None))


def exact_counts(joint: dict[tuple[str, str], float], scale: int) -> PairCounts:
    """Counts without noise of sampling: every moment as it is expected, up to rounding."""
    design = field_design("x", rappor.Counts.zero(WIDE, dialect="rappor-v1"), VALUES, None).table
    p, q = 0.3125, 0.6875  # p*, q* of these parameters
    first = [np.zeros((8, 16)), np.zeros((8, 1)), np.zeros((8, 16, 1))]
    for (one, two), share in joint.items():
        ones = p + (q - p) * design[:, 1:, VALUES.index(one)]
        other = q if two == "true" else p
        first[0] += share * ones
        first[1] += share * other
        first[2] += share * ones[:, :, None] * other
    one, two, both = (np.rint(scale * table).astype(np.int64) for table in first)
    sent = np.full(8, scale)
    about = {"dialect": "rappor-v1"}
    return PairCounts(
        rappor.Counts(WIDE, sent, one, collection="x", **about),
        rappor.Counts(FLAG, sent, two, kind="boolean", collection="y"),
        both,
    )


def test_without_noise_the_joint_table_is_recovered_exactly() -> None:
    joint = dependent(4, 2)
    found = rappor.associate(exact_counts(joint, 10**12), (VALUES, None))
    for (one, two), share in joint.items():
        assert found.cell(one, two).share == pytest.approx(share, abs=1e-9)
    assert found.margins[0][-1].share == pytest.approx(0, abs=1e-9)


def test_cells_sum_to_one_and_margins_are_their_sums(found: Association) -> None:
    assert found.share.sum() == pytest.approx(1, abs=1e-12)
    for margin, axis in zip(found.margins, (1, 0), strict=True):
        sums = found.share.sum(axis=axis)
        assert [value.share for value in margin] == pytest.approx(sums.tolist(), abs=1e-12)


def test_shares_lie_within_their_errors_of_the_truth(
    reports: PairReports, found: Association
) -> None:
    z = (found.share - realised(reports, *found.labels)) / found.std_error
    assert np.abs(z).max() < 4
    assert np.abs(z).max() > 0.1  # errors that are ten times too large would pass the line above


def test_a_dependent_pair_is_found_and_an_independent_one_is_not(found: Association) -> None:
    assert found.is_associated
    assert found.independence.p_value < 1e-6
    assert {cell.first for cell in found.associated} >= {"x0"}
    drawn = pair_reports(independent(4, 2), (WIDE, FLAG), 40_000, seed=5, kinds=KINDS)
    other = rappor.associate(drawn.count(), (VALUES, None))
    assert not other.is_associated
    assert not other.associated


@pytest.mark.slow
def test_every_listed_cell_is_within_two_errors_of_converged_em(reports: PairReports) -> None:
    counts = reports.count()
    fields = (
        field_design("x", counts.first, VALUES, None),
        field_design("y", counts.second, None, None),
    )
    fit = fit_pairs(counts, fields)
    likeliest = maximum_likelihood(whole_reports(reports.cohorts, bits_of(reports), fields))
    z = (fit.share - likeliest) / np.sqrt(fit.variance)
    assert np.abs(z[:4]).max() < 2


def test_conditional_shares_are_cells_over_sums_with_an_interval_around(
    found: Association,
) -> None:
    cell = found.cell("x0", "true")
    margin = next(value for value in found.margins[0] if value.value == "x0")
    assert cell.share_given_first == pytest.approx(cell.share / margin.share)
    assert cell.given_first_low_95 < cell.share_given_first < cell.given_first_high_95
    drawn = pair_reports(dependent(4, 2), (WIDE, FLAG), 40_000, seed=4, kinds=KINDS)
    rare = rappor.associate(drawn.count(), (["x0", "nobody"], None)).cell("nobody", "true")
    assert math.isnan(rare.share_given_first)


def test_conditional_shares_and_their_intervals_end_at_0_and_1(found: Association) -> None:
    ends = [
        end
        for cell in found.rows
        for end in (cell.given_first_low_95, cell.share_given_first, cell.given_first_high_95)
        if not math.isnan(end)
    ]
    assert 0.0 in ends  # a pair that nobody has, which noise would put below
    assert all(0 <= end <= 1 for end in ends)


def test_other_cells_are_shown_but_not_tested(found: Association) -> None:
    assert found.labels[0] == (*VALUES, "other")
    assert found.tested == 8
    assert math.isnan(found.cell("other", "true").p_value)


def test_epsilon_of_both_variables_adds_up_and_the_result_says_so(found: Association) -> None:
    single = [
        rappor.privacy.epsilon_one(params, kind)
        for params, kind in ((WIDE, "string"), (FLAG, "boolean"))
    ]
    assert found.epsilon_one == pytest.approx(sum(single))
    text = next(check.text for check in found.checks if check.code == "epsilon")
    assert "reported separately, so ε adds" in text


def test_repeated_reports_widen_the_intervals() -> None:
    drawn = pair_reports(dependent(4, 2), (WIDE, FLAG), 40_000, seed=3, kinds=KINDS)
    counts = drawn.count()
    known = [
        rappor.Counts(
            side.params, side.totals, side.ones, side.kind, side.dialect, reports_per_client=20
        )
        for side in (counts.first, counts.second)
    ]
    wider = rappor.associate(PairCounts(known[0], known[1], counts.both), (VALUES, None))
    plain = rappor.associate(counts, (VALUES, None))
    assert (wider.std_error > plain.std_error).all()
    assert wider.independence.p_value > plain.independence.p_value
    assert "up to 20 reports" in next(c.text for c in wider.checks if c.code == "repeats")


def test_a_heavy_unlisted_value_is_noticed_and_allowed_for() -> None:
    joint = dependent(4, 2, heavy=0.3)
    drawn = pair_reports(joint, (WIDE, FLAG), 40_000, seed=3, kinds=KINDS)
    found = rappor.associate(drawn.count(("site", "secure")), (listed(joint)[0], None))
    assert any("site: the bits hold more than noise" in text for text in found.warnings)
    _, low, high = found.unlisted_mass
    assert low < 0.3 < high


def test_projected_shares_are_nowhere_negative_and_sum_to_one(found: Association) -> None:
    table = found.projected()
    assert table.min() >= 0
    assert table.sum() == pytest.approx(1)


def test_the_same_input_gives_the_same_result(reports: PairReports, found: Association) -> None:
    again = rappor.associate(reports.count(("site", "secure")), (VALUES[::-1], None))
    assert np.array_equal(again.share, found.share)


def test_printing_shows_the_verdict_and_the_cost(found: Association) -> None:
    text = str(found)
    assert "site and secure are associated" in text
    assert "x0 × true" in text
    assert "for one report on both" in text
    assert found.plot().spec["description"]


def test_more_cells_than_equations_are_refused_with_what_would_be_enough() -> None:
    small = Params(4, 1, 2, 0.25, 0.25, 0.75)
    drawn = pair_reports({("x0", "y0"): 1.0}, (small, small), 100, seed=1)
    lists = [f"x{n}" for n in range(20)], ["y0"]
    words = r"2 cohorts of 4 bits give 6 equations: list fewer .* with 9 cohorts"
    with pytest.raises(DecodeError, match=words):
        rappor.associate(drawn.count(), lists)
    enough = replace(small, m=9)
    drawn = pair_reports({("x0", "y0"): 1.0}, (enough, enough), 10_000, seed=1)
    assert len(rappor.associate(drawn.count(), lists).rows) == 42
    more = Params(6, 2, 3, 0.25, 0.25, 0.75)
    drawn = pair_reports({("x0", "y0"): 1.0}, (more, more), 100, seed=1)
    many = [f"x{n}" for n in range(13)], [f"y{n}" for n in range(13)]
    words = "196 cells needs 169 equations .* 3 cohorts give 75: .* with 9 cohorts"
    with pytest.raises(DecodeError, match=words):
        rappor.associate(drawn.count(), many)


@pytest.mark.parametrize(
    ("params", "values", "message"),
    [
        (Params(6, 2, 3, 0.25, 0.25, 0.75), 13, "needs 169 equations"),
        (Params(8, 2, 3, 0.25, 0.25, 0.75), 14, "needs 196 equations"),
        # Enough equations, but some pairs set the same bits in every cohort.
        (Params(8, 1, 8, 0.25, 0.25, 0.75), 14, "cannot be told apart"),
        (Params(16, 1, 4, 0.25, 0.25, 0.75), 20, "cannot be told apart"),
    ],
    ids=str,
)
@pytest.mark.parametrize("max_dense", [0, 1_600])
def test_the_cohorts_that_a_refusal_advises_are_enough(
    params: Params,
    values: int,
    message: str,
    max_dense: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rappor.decoding.pair_fit._MAX_DENSE", max_dense)
    lists = [f"x{n}" for n in range(values)], [f"y{n}" for n in range(values)]

    def drawn(each: Params) -> PairCounts:
        return pair_reports(dependent(values, values), (each, each), 50_000, seed=1).count()

    with pytest.raises(DecodeError, match=message) as refused:
        rappor.associate(drawn(params), lists)
    advised = re.search(r"collect with (\d+) cohorts", str(refused.value))
    assert advised is not None
    made = rappor.associate(drawn(replace(params, m=int(advised[1]))), lists)
    assert np.isfinite(made.std_error).all()


def test_covariances_with_a_row_add_up_to_the_variance_of_its_sum() -> None:
    """Also what a frequent unlisted value adds: conditional shares need both alike."""
    joint = dependent(4, 4, heavy=0.3)
    params = Params(16, 2, 16, 0.25, 0.25, 0.75)
    counts = pair_reports(joint, (params, params), 100_000, seed=3).count()
    fields = (
        field_design("x", counts.first, VALUES, None),
        field_design("y", counts.second, [f"y{n}" for n in range(4)], None),
    )
    fit = fit_pairs(counts, fields)
    assert fit.excess[0] > 1.5
    assert fit.with_row.sum(axis=1) == pytest.approx(fit.margin_variances[0], rel=0.1)
    assert fit.with_column.sum(axis=0) == pytest.approx(fit.margin_variances[1], rel=0.1)


def test_a_large_table_has_nearly_the_errors_that_a_dense_one_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half as many unknown numbers as equations: without the factor errors are 20 % to 30 % off."""
    params = Params(16, 2, 8, 0.25, 0.25, 0.75)
    lists = [f"x{n}" for n in range(30)], [f"y{n}" for n in range(30)]
    counts = pair_reports(dependent(30, 30), (params, params), 100_000, seed=1).count()
    dense = rappor.associate(counts, lists)
    monkeypatch.setattr("rappor.decoding.pair_fit._MAX_DENSE", 0)
    probed = rappor.associate(counts, lists)
    ratio = probed.std_error / dense.std_error
    assert 0.97 < ratio.mean() < 1.03
    assert ratio.std() < 0.12
    assert np.array_equal(probed.share, dense.share)


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ((None, None), "first holds strings: give candidates for it"),
        (([], None), "first: no candidates: give at least one string"),
        ((["x0"], ["a", "b", "c"]), "is boolean: name true and false"),
        (["x0"], "candidates must be a pair"),
    ],
)
def test_wrong_lists_are_refused_in_one_sentence(
    reports: PairReports, candidates: object, words: str
) -> None:
    with pytest.raises(DecodeError, match=words):
        rappor.associate(reports.count(), candidates)  # type: ignore[arg-type]


def test_a_table_of_one_row_is_refused() -> None:
    one = Params(1, 1, 8, 0.25, 0.25, 0.75)
    joint = {("true", value): 0.5 for value in ("y0", "y1")}
    drawn = pair_reports(joint, (one, WIDE), 1_000, seed=1, kinds=("category", "string"))
    with pytest.raises(DecodeError, match="x has one value: a table of 1 × n has no association"):
        rappor.associate(drawn.count(("x", "y")), (["true"], ["y0", "y1"]))


@pytest.mark.parametrize(
    "given",
    [{"views": tuple_views(None)}, {"fields": ("x", "y")}, {"null_reports": True}],
    ids=("views", "fields", "null_reports"),
)
def test_what_is_meant_for_a_tuple_is_refused(
    reports: PairReports, given: dict[str, object]
) -> None:
    (name,) = given
    with pytest.raises(DecodeError, match=f"{name}= is for counts of a tuple only: leave it out"):
        rappor.associate(reports.count(), (VALUES, None), **given)  # type: ignore[arg-type]


def test_no_reports_are_refused() -> None:
    zero = PairCounts.zero(
        rappor.Counts.zero(WIDE, dialect="rappor-v1"), rappor.Counts.zero(FLAG, kind="boolean")
    )
    with pytest.raises(DecodeError, match="there are no reports"):
        rappor.associate(zero, (VALUES, None))


def test_a_field_that_is_entirely_unlisted_is_all_other() -> None:
    drawn = pair_reports(dependent(4, 2), (WIDE, FLAG), 40_000, seed=3, kinds=KINDS)
    found = rappor.associate(drawn.count(), (["z1", "z2"], None))
    other = found.margins[0][-1]
    assert other.low_95 < 1 < other.high_95
    assert not found.associated


def test_one_listed_value_and_other_is_a_table_that_works() -> None:
    drawn = pair_reports(dependent(4, 2), (WIDE, FLAG), 40_000, seed=3, kinds=KINDS)
    found = rappor.associate(drawn.count(), (["x0"], None))
    assert found.share.shape == (2, 2)
    assert found.cell("x0", "true").low_95 < drawn.truth["x0", "true"] / 40_000
