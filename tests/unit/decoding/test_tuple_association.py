"""The joint table of two fields of a tuple, and what is refused in one sentence."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import rappor
from rappor import Counts, Params
from rappor.decoding import Association
from rappor.decoding.tuple_design import fields_of, tuple_design
from rappor.decoding.tuple_fit import fit_tuples
from rappor.errors import DecodeError
from rappor.mechanism import Field, View, Views
from rappor.mechanism.bloom import bloom_positions
from rappor.simulate import simulate, tuples
from support.joint_tables import dependent, in_table, independent, tuple_counts, tuple_views

PARAMS = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)
Y = ("y0", "y1", "y2")
X = [f"x{number}" for number in range(4)]
VIEWS = tuple_views(Y)
ALL_VIEWS = tuple_views(None, (0.6, 0.2, 0.2))
Drawn = tuple[Counts, dict[tuple[str, str], float]]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return tuple_counts(dependent(4, 3), VIEWS, PARAMS, 100_000, seed=3)


@pytest.fixture(scope="module")
def found(drawn: Drawn) -> Association:
    return rappor.associate(drawn[0], (X, None), views=VIEWS)


def exact_counts(joint: dict[tuple[str, str], float], views: Views, params: Params) -> Counts:
    """Counts without noise: f = p = 0 would not be private, so noise is taken out by hand."""
    from rappor.mechanism.channel import channel

    p_star, q_star = channel(params)
    sent = 10**12
    ones = np.zeros((params.m, params.k))
    for cohort, view in enumerate(views.table(params.m)):
        for (one, two), share in joint.items():
            value = views.encode(view, {"x": one, "y": two})
            ones[cohort, list(bloom_positions(value, cohort, params))] += share
    seen = np.rint(sent * (float(p_star) + float(q_star - p_star) * ones)).astype(np.int64)
    return Counts(params, [sent] * params.m, seen, kind="tuple", dialect="rappor-v1")


@pytest.mark.parametrize("h", [1, 2])
@pytest.mark.parametrize("views", [VIEWS, ALL_VIEWS])
def test_without_noise_the_table_is_found_exactly(views: Views, h: int) -> None:
    joint = dependent(4, 3)
    params = replace(PARAMS, h=h)
    listed = None if views is VIEWS else list(Y)
    table = rappor.associate(exact_counts(joint, views, params), (X, listed), views=views)
    for (one, two), share in joint.items():
        assert table.cell(one, two).share == pytest.approx(share, abs=1e-9)
    assert table.margins[0][-1].share == pytest.approx(0, abs=1e-8)


def test_shares_lie_within_their_errors_of_the_truth(drawn: Drawn, found: Association) -> None:
    z = (found.share - in_table(drawn[1], *found.labels)) / found.std_error
    known = z[:4]
    assert np.abs(known).max() < 4
    assert (
        np.abs(known).max() > 0.1
    )  # errors that are ten times too large would pass the line above


def test_a_dependent_pair_is_found_and_an_independent_one_is_not(found: Association) -> None:
    assert found.method == "tuple"
    assert found.is_associated
    assert {cell.first for cell in found.associated} >= {"x0"}
    counts, _ = tuple_counts(independent(4, 3), VIEWS, PARAMS, 100_000, seed=5)
    other = rappor.associate(counts, {"x": X}, views=VIEWS)
    assert not other.is_associated
    assert not other.associated


def test_epsilon_is_that_of_one_report(found: Association) -> None:
    assert found.epsilon_one == rappor.privacy.epsilon_one(PARAMS, "tuple")
    text = next(check.text for check in found.checks if check.code == "epsilon")
    assert "One report tells both fields" in text


def test_what_no_cohort_sees_is_left_out_and_the_missing_view_is_named(found: Association) -> None:
    assert found.labels[0][-1] == "other"
    assert math.isnan(found.cell("other", "y0").share)
    assert all(math.isnan(value.share) for value in found.margins[1])
    assert all(math.isfinite(value.share) for value in found.margins[0])
    text = next(check.text for check in found.checks if check.code == "views")
    assert text.endswith("A view of y would tell.")
    assert "other" not in str(found).splitlines()[1]
    assert found.plot().spec["description"]
    table = found.projected()
    assert np.nansum(table) == pytest.approx(np.nansum(found.share))
    assert np.nanmin(table) >= 0


def test_shrunk_shares_are_nearer_to_the_truth_where_the_fields_are_independent() -> None:
    counts, truth = tuple_counts(independent(4, 3), VIEWS, PARAMS, 30_000, seed=5)
    table = rappor.associate(counts, {"x": X}, views=VIEWS)
    real = in_table(truth, *table.labels)[:4]
    before, after = (made[:4] for made in (table.projected(), table.shrunk()))
    assert np.abs(after - real).sum() < 0.8 * np.abs(before - real).sum()


def test_a_shrunken_table_knows_the_cells_that_a_projected_one_knows(found: Association) -> None:
    table, unmoved = found.shrunk(), found.projected()
    assert np.array_equal(np.isnan(table), np.isnan(unmoved))
    assert np.nansum(table) == pytest.approx(np.nansum(unmoved))
    assert np.nanmin(table) >= 0


def test_shrinking_leaves_cells_far_above_noise_where_they_are(found: Association) -> None:
    clear = found.share > 10 * found.std_error
    assert clear.sum() > 3
    moved = (found.shrunk() - found.share) / found.std_error
    assert np.abs(moved[clear]).max() < 2


def test_a_field_without_any_listed_value_is_said_not_to_be_tested() -> None:
    counts, _ = tuple_counts(independent(4, 3), VIEWS, PARAMS, 30_000, seed=5)
    table = rappor.associate(counts, {"x": ["no", "nor"]}, views=VIEWS)
    assert table.tested == 0
    assert "Whether x and y are associated was not tested." in str(table)
    assert "χ²" not in repr(table)
    assert any("hardly more than noise" in text for text in table.warnings)


def test_with_a_view_of_each_field_every_cell_and_margin_is_known() -> None:
    joint = dependent(4, 3, heavy=0.2)
    counts, truth = tuple_counts(joint, ALL_VIEWS, PARAMS, 200_000, seed=2)
    table = rappor.associate(counts, (X, ["y0", "y1"]), views=ALL_VIEWS)
    assert table.share.shape == (5, 3)
    assert table.share.sum() == pytest.approx(1)
    z = (table.share - in_table(truth, *table.labels)) / table.std_error
    assert np.abs(z).max() < 4.5
    for margin, axis in zip(table.margins, (1, 0), strict=True):
        sums = table.share.sum(axis=axis)
        assert [value.share for value in margin] == pytest.approx(sums.tolist())


def test_two_closed_fields_sum_to_one() -> None:
    views = tuple_views(Y, first="4")
    counts, truth = tuple_counts(dependent(4, 3), views, PARAMS, 100_000, seed=2)
    table = rappor.associate(counts, views=views)
    assert table.share.sum() == pytest.approx(1)
    assert table.unlisted_mass == (0, 0, 0)
    z = (table.share - in_table(truth, *table.labels)) / table.std_error
    assert np.abs(z).max() < 4
    free = rappor.associate(counts, views=views, null_reports=True)
    assert free.share.sum() != pytest.approx(1, abs=1e-9)


def test_some_categories_leave_the_others_to_other() -> None:
    counts, _ = tuple_counts(dependent(4, 3), VIEWS, PARAMS, 100_000, seed=3)
    table = rappor.associate(counts, (X, ["y0", "y1"]), views=VIEWS)
    assert table.labels[1] == ("y0", "y1", "other")
    low, high = table.cell("x0", "other").low_95, table.cell("x0", "other").high_95
    assert low < dependent(4, 3)["x0", "y2"] < high


def test_repeated_reports_widen_the_intervals(drawn: Drawn, found: Association) -> None:
    wider = rappor.associate(replace(drawn[0], reports_per_client=20), (X, None), views=VIEWS)
    assert (wider.std_error[:4] > 1.2 * found.std_error[:4]).all()
    assert wider.independence.p_value > found.independence.p_value


def test_a_frequent_unlisted_value_hardly_counts_and_is_named() -> None:
    joint = dependent(4, 3, heavy=0.4)
    counts, truth = tuple_counts(joint, VIEWS, PARAMS, 1_000_000, seed=1)
    table = rappor.associate(counts, (X, None), views=VIEWS)
    assert any("hardly count." in text for text in table.warnings)
    z = (table.share - in_table(truth, *table.labels)) / table.std_error
    assert np.abs(z[:4]).max() < 4
    _, low, high = table.unlisted_mass
    assert low < 0.4 < high


def test_a_cohort_that_does_not_fit_is_named(
    drawn: Drawn,
) -> None:
    ones = drawn[0].ones.copy()
    ones[3] = np.roll(ones[3], 17)
    moved = replace(drawn[0], ones=ones)
    table = rappor.associate(moved, (X, None), views=VIEWS)
    assert any("cohorts do not fit while the others do: 3." in text for text in table.warnings)


def test_counts_under_two_p_and_q_are_read_together(drawn: Drawn, found: Association) -> None:
    other = replace(PARAMS, p=0.3, q=0.6)
    more, truth = tuple_counts(dependent(4, 3), VIEWS, other, 100_000, seed=9)
    table = rappor.associate([drawn[0], more], (X, None), views=VIEWS)
    assert table.reports == 200_000
    assert np.nanmedian(table.std_error) < 0.85 * np.nanmedian(found.std_error)
    both = {pair: (truth[pair] + drawn[1][pair]) / 2 for pair in truth}
    z = (table.share - in_table(both, *table.labels)) / table.std_error
    assert np.abs(z[:4]).max() < 4


def test_a_third_closed_field_is_summed_over_and_a_third_string_refused() -> None:
    joint = {
        (one, two, flag): share / 2
        for (one, two), share in dependent(4, 3).items()
        for flag in (True, False)
    }
    closed = Views(
        (Field("x", "string"), Field("y", "category", categories=Y), Field("beta", "boolean"))
    )
    params = replace(PARAMS, m=32)
    counts = simulate(
        tuples(closed.fields, joint),
        params,
        reports=100_000,
        seed=4,
        kind="tuple",
        fields=closed.fields,
    ).counts
    table = rappor.associate(counts, (X, None), views=closed, fields=("x", "y"))
    z = (table.share[:4] - in_table(dependent(4, 3), *table.labels)[:4]) / table.std_error[:4]
    assert np.abs(z).max() < 4.5
    with pytest.raises(DecodeError, match="name two of the fields x, y, beta"):
        rappor.associate(counts, (X, None), views=closed)
    with pytest.raises(DecodeError, match="collect with a view of y and beta"):
        rappor.associate(counts, (None, None), views=closed, fields=("y", "beta"))


def test_no_view_of_both_is_refused() -> None:
    apart = Views(VIEWS.fields, (View(("x",), 0.5), View(("y",), 0.5)))
    counts, _ = tuple_counts(dependent(4, 3), apart, PARAMS, 1_000, seed=1)
    with pytest.raises(DecodeError, match="no cohort sees x and y together"):
        rappor.associate(counts, (X, None), views=apart)


def test_a_view_with_a_further_string_is_passed_over_for_one_that_serves() -> None:
    names = [("x", "y", "page"), ("x", "y", "beta")]
    views = Views(
        (
            Field("x", "category", categories=tuple(X)),
            Field("y", "category", categories=Y),
            Field("beta", "boolean"),
            Field("page", "string"),
        ),
        tuple(View(fields, 0.5) for fields in names),
    )
    joint = {
        (one, two, beta, "a.example"): share / 2
        for (one, two), share in dependent(4, 3).items()
        for beta in (True, False)
    }
    params = replace(PARAMS, m=32)
    counts = simulate(
        tuples(views.fields, joint), params, 200_000, seed=1, kind="tuple", fields=views.fields,
        views=views.views,
    ).counts  # fmt: skip
    table = rappor.associate(counts, views=views, fields=("x", "y"))
    z = (table.share - in_table(dependent(4, 3), *table.labels)) / table.std_error
    assert np.abs(z).max() < 4.5
    alone = Views(views.fields, (View(names[0], 0.5), View(("beta",), 0.5)))
    with pytest.raises(DecodeError, match="only seen together with page, which holds strings"):
        rappor.associate(counts, views=alone, fields=("x", "y"))


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ((None, None), "x holds strings: give candidates for it"),
        (([], None), "x: no candidates: give at least one string"),
        ((["x0"], None), "x has one listed value, and no cohort sees y alone"),
        ((X, ["z"]), "y: 'z' is not one of its values, which are y0, y1, y2"),
        ((X, ["y0", "y0"]), "y has a value twice"),
        (({"z": X}), "candidates for z, but the fields are x and y"),
        ((X,), "candidates must be a pair"),
        (
            ([f"x{n}" for n in range(400)], None),
            "1,200 pairs needs 1,201 equations",
        ),
        (([f"x{n}" for n in range(2001)], None), "at most 2,000 values of a field"),
    ],
)
def test_wrong_lists_are_refused_in_one_sentence(
    drawn: Drawn, candidates: object, words: str
) -> None:
    with pytest.raises(DecodeError, match=words):
        rappor.associate(drawn[0], candidates, views=VIEWS)  # type: ignore[arg-type]


def test_too_many_pairs_are_refused_with_the_cohorts_that_would_be_enough(
    drawn: Drawn,
) -> None:
    many = [f"x{number}" for number in range(300)]
    with pytest.raises(DecodeError, match="or collect with 22 cohorts"):
        rappor.associate(drawn[0], (many, None), views=VIEWS)
    params = replace(PARAMS, m=22)
    counts, _ = tuple_counts(dependent(4, 3), VIEWS, params, 100_000, seed=1)
    assert len(rappor.associate(counts, (many, None), views=VIEWS).rows) == 903


def test_counts_of_another_kind_and_counts_without_views_are_refused(
    drawn: Drawn,
) -> None:
    with pytest.raises(DecodeError, match="of kind string, which holds one variable"):
        rappor.associate(Counts.zero(PARAMS), (X, None), views=VIEWS)
    with pytest.raises(DecodeError, match="do not say what each cohort sees"):
        rappor.associate(drawn[0], (X, None))
    zero = Counts.zero(PARAMS, kind="tuple")
    with pytest.raises(DecodeError, match="there are no reports"):
        rappor.associate(zero, (X, None), views=VIEWS)


def test_a_field_that_is_entirely_unlisted_is_not_tested(
    drawn: Drawn,
) -> None:
    table = rappor.associate(drawn[0], (["z1", "z2"], None), views=VIEWS)
    assert any("independence was not tested" in text for text in table.warnings)
    assert table.independence.p_value == 1
    assert not table.associated
    _, low, high = table.unlisted_mass
    assert low < 1 < high
    assert "not tested" in str(table)


def test_one_listed_value_is_compared_with_all_others_if_a_view_shows_them() -> None:
    counts, truth = tuple_counts(dependent(4, 3), ALL_VIEWS, PARAMS, 100_000, seed=3)
    table = rappor.associate(counts, (["x0"], list(Y)), views=ALL_VIEWS)
    cell = table.cell("x0", "y0")
    assert cell.low_95 < truth["x0", "y0"] < cell.high_95
    assert table.is_associated


def test_one_listed_value_of_each_field_is_refused_in_one_sentence() -> None:
    """Though cohorts see each field alone: collecting with such views is no way out."""
    counts, _ = tuple_counts(dependent(4, 3), ALL_VIEWS, PARAMS, 30_000, seed=3)
    with pytest.raises(DecodeError, match="x and y have one listed value each"):
        rappor.associate(counts, (["x0"], ["y0"]), views=ALL_VIEWS)


@pytest.mark.parametrize(
    ("mass", "words"),
    [
        ((0.3, 0.2, 0.4), "30 % (20 – 40) of the reports hold"),
        ((0.01, -0.02, 0.04), "At most 4.0 % of the reports hold"),
        ((-0.1, -0.17, -0.03), "No report seems to hold"),
        ((9.8, 0.3, 19.3), "100 % (30 – 100) of the reports hold"),
        ((4.0, -1.0, 9.0), "At most 100 % of the reports hold"),
        ((1.3, 1.1, 1.5), "Every report seems to hold"),
    ],
    ids=str,
)
def test_the_sentence_on_unlisted_values_stays_between_0_and_100(
    found: Association, mass: tuple[float, float, float], words: str
) -> None:
    assert f"{words} a value that is not listed." in str(replace(found, unlisted_mass=mass))


def test_the_order_of_candidates_does_not_matter(drawn: Drawn, found: Association) -> None:
    again = rappor.associate(drawn[0], (X[::-1], None), views=VIEWS)
    assert np.array_equal(again.share, found.share, equal_nan=True)


def test_a_large_table_is_solved_without_its_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, _ = tuple_counts(dependent(40, 3), VIEWS, PARAMS, 300_000, seed=1)
    fields = fields_of(VIEWS, None, ([f"x{n}" for n in range(40)], None))
    design = tuple_design(PARAMS, counts.totals, VIEWS, fields, None)
    dense = fit_tuples([counts], design)
    monkeypatch.setattr("rappor.decoding.least_squares.MAX_DENSE", 50)
    sparse = fit_tuples([counts], design)
    near = np.sqrt(dense.variance[:40])
    assert np.abs(sparse.share[:40] - dense.share[:40]).max() < 0.1 * near.min()
    ratio = np.sqrt(sparse.variance[:40] / dense.variance[:40])
    assert 0.9 < ratio.mean() < 1.1
    assert ratio.std() < 0.1
    assert sparse.independence.statistic == pytest.approx(dense.independence.statistic, rel=0.05)
    parts = [np.sqrt(fit.margin_variances[0]) for fit in (sparse, dense)]
    assert 0.85 < (parts[0] / parts[1]).mean() < 1.15


def test_a_large_table_with_a_third_field_is_tested_as_a_dense_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cells are sums of two shares then, and not the first shares of the design."""
    third = Views(
        (Field("x", "string"), Field("y", "category", categories=Y), Field("beta", "boolean"))
    )
    joint = {
        (one, two, flag): share * (0.8 if flag else 0.2)
        for (one, two), share in dependent(20, 3).items()
        for flag in (True, False)
    }
    params = replace(PARAMS, m=32)
    counts = simulate(
        tuples(third.fields, joint),
        params,
        reports=300_000,
        seed=4,
        kind="tuple",
        fields=third.fields,
    ).counts
    fields = fields_of(third, ("x", "y"), ([f"x{n}" for n in range(20)], None))
    design = tuple_design(params, counts.totals, third, fields, None)
    assert design.further == 2
    dense = fit_tuples([counts], design)
    monkeypatch.setattr("rappor.decoding.least_squares.MAX_DENSE", 50)
    sparse = fit_tuples([counts], design)
    assert sparse.independence.statistic == pytest.approx(dense.independence.statistic, rel=0.05)
    error = np.sqrt(dense.departure_variance[:20])
    assert np.abs(sparse.departure - dense.departure)[:20].max() < 0.2 * error.min()
    ratio = np.sqrt(sparse.departure_variance[:20]) / error
    assert 0.9 < ratio.mean() < 1.1


def test_pairs_that_only_repeated_sums_would_tell_are_refused() -> None:
    """A value sets one of 16 bits: 15 of them say something, and the sum is known."""
    params = Params(16, 1, 20, 0.2001, 0.2239, 0.5307)
    views = tuple_views(Y, shares=(1.0,))
    counts, _ = tuple_counts(dependent(4, 3), views, params, 20_000, seed=1)
    many = [f"x{number}" for number in range(101)]
    words = "303 pairs needs 304 equations, but 20 cohorts .* give 301: .* with 26 cohorts"
    with pytest.raises(DecodeError, match=words):
        rappor.associate(counts, (many, None), views=views)
    counts, _ = tuple_counts(dependent(4, 3), views, replace(params, m=26), 20_000, seed=1)
    assert len(rappor.associate(counts, (many, None), views=views).rows) == 306


def test_a_field_of_one_value_is_refused() -> None:
    views = Views((Field("x", "string"), Field("y", "category", categories=("only",))))
    counts, _ = tuple_counts({("x0", "only"): 1.0}, views, PARAMS, 1_000, seed=1)
    with pytest.raises(DecodeError, match="y has one value: a table of 1 × n has no association"):
        rappor.associate(counts, (X, None), views=views)


def test_names_are_refused_because_fields_have_them(drawn: Drawn) -> None:
    with pytest.raises(DecodeError, match="names= is for pair counts only: leave it out"):
        rappor.associate(drawn[0], (X, None), views=VIEWS, names=("site", "channel"))
