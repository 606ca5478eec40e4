"""Two collections side by side, and one decoded again with more candidates."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet
from scipy import stats

from rappor import Params
from rappor.aggregate import Counts
from rappor.charts.numbers import show_finding
from rappor.decoding.compare import FITTED_TOGETHER, compare
from rappor.decoding.decode import decode
from rappor.decoding.exports import (
    csv_lines,
    difference_columns,
    difference_document,
    write_parquet,
)
from rappor.decoding.intervals import limits
from rappor.decoding.realised_variance import realised_variance
from rappor.errors import DecodeError
from rappor.mechanism.predicates import Ranges
from rappor.simulate import simulate

PARAMS = Params(64, 2, 8, 0.5, 0.25, 0.75)
NAMES = [f"v{i:02}" for i in range(30)]
POPULATION = {name: 0.7**i for i, name in enumerate(NAMES[:15])}
SHIFTED = {**POPULATION, "v04": 3 * 0.7**4}
N = 100_000


def counts(population=POPULATION, params=PARAMS, reports=N, seed=1, **more):
    return simulate(population, params, reports, seed=seed, **more).counts


def share(name, population):
    return population.get(name, 0.0) / sum(population.values())


@pytest.fixture(scope="module")
def shifted():
    return compare(counts(SHIFTED), counts(seed=2, reports=2 * N), NAMES)


@pytest.mark.slow
def test_tables_show_each_share_as_its_side_alone_is_decoded():
    new, old = counts(SHIFTED), counts(seed=2)
    found = compare(new, old, [*NAMES, "nobody"])
    strings = ["v04", "v00", "nobody"]
    for side, alone in enumerate(decode(each, [*NAMES, "nobody"]) for each in (new, old)):
        for string, shown in zip(strings, found.shown_shares(strings), strict=True):
            row = alone.row(string)
            assert shown[side] == str(
                show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
            )
    assert all(shown.startswith("at most ") for shown in found.shown_shares(["nobody"])[0])
    row = next(line for line in str(found).splitlines() if line.startswith("v04 "))
    for shown in found.shown_shares(["v04"])[0]:
        assert shown.replace("\u00a0", " ") in row
        assert shown in found._repr_html_()
    assert FITTED_TOGETHER in found.notes


@pytest.mark.slow
def test_a_string_that_grew_is_found_with_its_difference(shifted):
    row = shifted.different[0]
    assert row.string == "v04"
    true = share("v04", SHIFTED) - share("v04", POPULATION)
    assert row.low_95 <= true <= row.high_95
    assert row.adjusted_p_value <= 0.05
    assert shifted.reports == (N, 2 * N)
    assert shifted.candidates == len(shifted.rows) == 30


def test_rows_are_sorted_by_p_value_and_add_up(shifted):
    p_values = [row.p_value for row in shifted.rows]
    assert p_values == sorted(p_values)
    for row in shifted.rows:
        assert row.raw_difference == row.share_one - row.share_two
        z = row.raw_difference / row.std_error
        assert row.p_value == pytest.approx(2 * stats.norm.sf(abs(z)))
        assert row.low_95 <= row.difference <= row.high_95
        assert row.different == (row.adjusted_p_value <= 0.05)
        if row.different:
            assert row.low_95 >= 0 if row.difference > 0 else row.high_95 <= 0
        else:
            assert row.low_95 <= 0 <= row.high_95
    assert {row.string for row in shifted.rows} == set(NAMES)
    assert shifted.rows[1:3] == list(shifted.rows)[1:3]
    assert shifted.rows[-1].string == shifted.rows.strings[-1]


@pytest.mark.slow
def test_swapping_the_two_turns_the_sign_and_nothing_else(shifted):
    back = compare(counts(seed=2, reports=2 * N), counts(SHIFTED), NAMES)
    assert [row.string for row in back.rows] == [row.string for row in shifted.rows]
    for one, other in zip(shifted.rows, back.rows, strict=True):
        assert other.difference == pytest.approx(-one.difference)
        assert other.raw_difference == pytest.approx(-one.raw_difference)
        assert (other.low_95, other.high_95) == pytest.approx((-one.high_95, -one.low_95))
        assert other.p_value == pytest.approx(one.p_value)


def test_the_order_of_candidates_does_not_matter(shifted):
    again = compare(counts(SHIFTED), counts(seed=2, reports=2 * N), iter(NAMES[::-1]))
    assert list(again.rows) == list(shifted.rows)


def test_a_string_in_one_of_the_two_only_is_fitted_in_both():
    only = {**POPULATION, "v20": 0.5}
    found = compare(counts(only), counts(seed=2), NAMES)
    row = found.row("v20")
    assert row.different
    assert abs(row.share_two) < 4 * row.std_error
    others = [each.string for each in found.different if each.difference > 0]
    assert others == ["v20"]  # all the others had to give way


@pytest.mark.slow
def test_variances_add_up(shifted):
    found = compare(counts(), counts(seed=2), NAMES)
    one, other = decode(counts(), NAMES).detail, decode(counts(seed=2), NAMES).detail
    active = tuple(sorted({*one.fit.active, *other.fit.active}))
    fits = [
        detail.search.least_squares(active).widened().allowing_for_few_cohorts(PARAMS.m)
        for detail in (one, other)
    ]
    column = active[0]
    name = one.search.design.strings.strings[column]
    variance = 0.0
    for detail, fit in zip((one, other), fits, strict=True):
        drawn = fit.share[0] * (1 - fit.share[0]) / detail.search.seen.totals.sum()
        variance += realised_variance(detail.search.seen, fit)[0] + drawn
    assert found.row(name).std_error == pytest.approx(math.sqrt(variance))
    # The bits of a string in a cohort are drawn together, which the fits do not know.
    assert variance > sum(fit.covariance[1, 1] * fit.scale for fit in fits)


@pytest.mark.slow
def test_the_robust_path_serves_both_where_one_needs_it():
    left = {name: 0.7 * value for name, value in POPULATION.items()}
    left["elsewhere"] = 0.3 * sum(POPULATION.values())
    found = compare(counts(left), counts(seed=2), NAMES)
    assert found.robust
    assert found.row("v00").different
    assert any(line.startswith("First: The counts hold more") for line in found.warnings)


def test_p_and_q_may_differ():
    other = Params(64, 2, 8, 0.25, 0.1, 0.9)
    found = compare(counts(), counts(params=other, seed=2), NAMES)
    assert not found.different


def test_candidates_with_the_same_bits_stand_for_each_other():
    params = Params(8, 1, 1, 0.25, 0.1, 0.9)
    names = [f"w{i}" for i in range(30)]
    found = compare(counts({"w0": 1, "w1": 1}, params), counts({"w0": 1}, params, seed=2), names)
    assert found.untestable
    for name in found.untestable:
        row = found.row(name)
        assert (row.p_value, row.std_error) == (1.0, math.inf)
        assert (row.low_95, row.high_95) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": Params(32, 2, 8, 0.5, 0.25, 0.75)}, "the same k: 64 and 32"),
        ({"params": Params(64, 1, 8, 0.5, 0.25, 0.75)}, "the same h: 2 and 1"),
        ({"params": Params(64, 2, 4, 0.5, 0.25, 0.75)}, "the same m: 8 and 4"),
        ({"dialect": "google"}, "dialect cannot be compared, rappor-v1 and google: choose two"),
        ({"reports": 0}, "the second of the two has no reports"),
    ],
)
def test_counts_that_do_not_belong_together_are_refused_by_name(change, message):
    with pytest.raises(DecodeError, match=re.escape(message)):
        compare(counts(), counts(**change), NAMES)


def test_other_mistakes_are_refused_by_name():
    with pytest.raises(DecodeError, match="the first of the two has no reports"):
        compare(counts(reports=0), counts(), NAMES)
    with pytest.raises(DecodeError, match="kind cannot be compared, string and category: choose"):
        compare(counts(), Counts(PARAMS, [0] * 8, np.zeros((8, 64), int), kind="category"), NAMES)
    with pytest.raises(DecodeError, match="correction must be one of"):
        compare(counts(), counts(), NAMES, correction="by")
    with pytest.raises(DecodeError, match="second of the two must be Counts"):
        compare(counts(), "counts.csv", NAMES)
    other = Params(64, 2, 8, 0.5, 0.2, 0.7)
    with pytest.raises(DecodeError, match="compare periods with the same p and q"):
        compare([counts(), counts(params=other)], counts(), NAMES)
    with pytest.raises(DecodeError, match="'nobody' is not among the candidates"):
        compare(counts(), counts(seed=2), NAMES).row("nobody")


def test_a_list_of_one_is_compared_and_progress_is_told():
    said = []
    found = compare([bit_counts([5_000, 4_000])], bit_counts([4_000, 5_000]), ["a", "b"])
    assert len(found.different) == 2
    compare(counts(), [counts(seed=2)], NAMES, progress=said.append)
    assert said


def test_the_chart_draws_both_sides_and_what_differs_first(shifted):
    spec = shifted.plot().spec
    assert spec["title"]["text"].startswith(f"{len(shifted.different)} of 30 candidates differ")
    drawn = [row["string"] for row in spec["data"]["values"]]
    assert drawn[:2] == ["v04", "v04"]
    assert {row["side"] for row in spec["data"]["values"]} == {0, 1}
    with pytest.raises(DecodeError, match="cannot be drawn"):
        replace(shifted, sides=None).plot()


@pytest.mark.parametrize(
    ("kind", "one", "other", "named"),
    [
        ("category", [5_000, 4_500], [4_500, 5_000], ["a", "b"]),
        ("boolean", [5_000], [4_500], None),
        ("ordinal", [5_000, 4_500], [4_500, 5_000], Ranges((10,))),
    ],
)
def test_every_kind_can_be_drawn(kind, one, other, named):
    found = compare(bit_counts(one, kind), bit_counts(other, kind), named)
    drawn = {row["string"] for row in found.plot().spec["data"]["values"]}
    assert drawn == set(found.rows.strings)


def bit_counts(ones, kind="category", reports=10_000, **more):
    params = Params(len(ones), 1, 1, 0.5, 0.25, 0.75)
    return Counts(params, [reports], [ones], kind=kind, **more)


def test_categories_are_compared_in_closed_form():
    one, other = bit_counts([5_000, 4_500, 4_250]), bit_counts([5_200, 4_300, 4_250])
    found = compare(one, other, ["a", "b", "c"])
    row = found.row("a")
    assert (row.share_one, row.share_two) == pytest.approx((0.5, 0.58))
    noise = 0.375 * 0.625 / 0.25**2  # the same for a true 0 and a true 1
    variance = (2 * noise + 0.5 * 0.5 + 0.58 * 0.42) / 10_000
    assert row.std_error == pytest.approx(math.sqrt(variance))
    assert row.p_value == pytest.approx(2 * stats.norm.sf(0.08 / math.sqrt(variance)))
    assert found.row("c").p_value == 1.0
    assert found.candidates == 3


def test_repeated_reports_widen_the_difference():
    once = compare(bit_counts([5_000, 4_000]), bit_counts([5_200, 4_000]), ["a", "b"])
    often = compare(
        bit_counts([5_000, 4_000], reports_per_client=10),
        bit_counts([5_200, 4_000], reports_per_client=10),
        ["a", "b"],
    )
    # Per report: noise 3.75, κ = .75 for each of 9 others, s(1-s) for each of 10.
    wide = 2 * (3.75 + 9 * 0.75) + 10 * (0.5 * 0.5 + 0.58 * 0.42)
    assert often.row("a").std_error == pytest.approx(math.sqrt(wide / 10_000))
    assert once.row("a").std_error < often.row("a").std_error


def test_a_boolean_is_one_test():
    found = compare(bit_counts([5_000], "boolean"), bit_counts([5_500], "boolean"))
    assert [row.string for row in found.rows] == ["true"]
    assert found.rows[0].raw_difference == pytest.approx(-0.2)
    named = compare(bit_counts([5_000], "boolean"), bit_counts([5_500], "boolean"), ["yes", "no"])
    assert [row.string for row in named.rows] == ["yes"]


def test_bits_and_ordinals_are_compared_bit_by_bit():
    one, other = [5_000, 4_000, 4_000], [4_500, 4_500, 4_000]
    bits = compare(bit_counts(one, "bits"), bit_counts(other, "bits"))
    assert {row.string for row in bits.different} == {"bit 0", "bit 1"}
    ranges = Ranges([10, 20])
    found = compare(bit_counts(one, "ordinal"), bit_counts(other, "ordinal"), ranges)
    assert {row.string for row in found.different} == {ranges.labels[0], ranges.labels[1]}
    assert sum(row.raw_difference for row in found.rows) == pytest.approx(0.0, abs=1e-9)


def two_sided(z, **more):
    """One category whose difference is so many standard errors, next to one without any."""
    spread = math.sqrt(2 * 3.75 + 2 * 0.25) / 100  # of the difference of two shares of a half
    step = round(z * spread * 10_000 * 0.25 / 2)
    one, other = bit_counts([5_000 + step, 5_000]), bit_counts([5_000 - step, 5_000])
    return compare(one, other, ["a", "b"], **more)


@pytest.mark.parametrize("side", [1, -1])
def test_just_above_the_threshold_only_the_side_of_a_difference_is_known(side):
    """P < .05 needs 1.96 standard errors: at 2.1 the interval begins at 0, and ends there."""
    row = two_sided(2.1 * side, correction="none").row("a")
    assert row.different
    assert row.difference * side > 0
    near, far = (row.low_95, row.high_95)[::side]
    assert near == 0
    assert row.side_only
    assert far * side > abs(row.raw_difference) > abs(row.difference)
    shown = two_sided(2.1 * side, correction="none")._repr_html_()
    assert ("higher" if side > 0 else "lower") in shown
    assert "by at most" in shown


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("z", [2.0, 2.5, 3.0, 5.0, 12.0])
def test_intervals_after_selection_are_those_of_a_size_that_had_to_pass(side, z):
    row = two_sided(z * side, correction="none").row("a")
    size, error = np.array([abs(row.raw_difference)]), np.array([row.std_error])
    threshold = stats.norm.isf(0.025)
    found = limits(size, error, np.ones(1, bool), threshold, 1.0)
    ends = sorted(side * float(end[0]) for end in found[1:])
    assert (row.low_95, row.high_95) == pytest.approx(ends, abs=1e-9)
    assert row.difference == pytest.approx(side * float(found.estimate[0]), abs=1e-9)
    if z > 11:
        assert row.high_95 - row.low_95 == pytest.approx(2 * 1.959964 * row.std_error, rel=1e-4)


@pytest.mark.parametrize("side", [1, -1])
def test_files_have_no_end_where_only_the_side_of_a_difference_is_known(side, tmp_path):
    found = two_sided(2.1 * side, correction="none")
    near, far = ("low_95", "high_95")[::side]
    table = difference_columns(found, every=True)
    at = table["string"].index("a")
    assert math.isnan(table[near][at])
    assert table[far][at] == getattr(found.row("a"), far)
    assert (table["side_only"][at], table["different"][at]) == (True, True)
    assert not table["side_only"][1 - at]  # the other does not differ: its interval holds 0
    assert {row["string"]: row for row in difference_document(found, every=True)["rows"]}["a"][
        near
    ] is None
    lines = list(csv_lines(table))
    assert lines[1 + at].split(",")[lines[0].split(",").index(near)] == ""
    write_parquet(table, tmp_path / "differences.parquet")
    stored = parquet.read_table(tmp_path / "differences.parquet").to_pylist()[at]
    assert math.isnan(stored[near])
    assert stored["side_only"] is True
    assert math.isnan(found.to_pandas()[near][at])
    assert math.isnan(found.to_arrow().column(near)[at].as_py())


@pytest.mark.parametrize("z", [-1.9, -0.5, 0.0, 1.0, 1.9])
def test_a_row_that_does_not_differ_has_an_interval_around_0(z):
    row = two_sided(z, correction="none").row("a")
    assert not row.different
    assert row.low_95 <= 0 <= row.high_95
    assert row.high_95 - row.low_95 == pytest.approx(2 * 1.959964 * row.std_error)
    # A stricter threshold leaves an ordinary interval that would not hold 0: it is moved to do so.
    strict = two_sided(2.5, correction="bonferroni", alpha=0.001).row("a")
    assert not strict.different
    assert strict.low_95 == 0 < strict.difference < strict.high_95


def test_the_table_goes_to_pandas_arrow_and_notebooks(shifted):
    frame = shifted.to_pandas()
    *fields, last = shifted.rows[0]._fields
    assert list(frame.columns) == [*fields, "side_only", last]
    assert len(frame) == 30
    assert shifted.to_arrow().column("string").to_pylist() == list(shifted.rows.strings)
    html = shifted._repr_html_()
    assert "candidates differ between 100,000 and 200,000 reports." in html
    assert '<th scope="row">v04</th>' in html
    same = compare(counts({"<b>": 1}), counts({"<b>": 1}, seed=2), ["<b>", "c"])
    assert "<b>" not in same._repr_html_().replace("&lt;b&gt;", "")


@pytest.mark.slow
def test_decoding_again_with_more_candidates_needs_nothing_but_the_counts():
    made = counts({**POPULATION, "added": 0.6})
    before = made.ones.copy(), made.totals.copy()
    first = decode(made, NAMES)
    second = decode(made, [*NAMES, "added"])
    assert (made.ones == before[0]).all()
    assert (made.totals == before[1]).all()
    assert "added" not in {row.string for row in first.rows}
    assert second.row("added").detected
    low, high = second.row("added").prop_low_95, second.row("added").prop_high_95
    assert low <= 0.6 / (0.6 + sum(POPULATION.values())) <= high
    assert (
        second.undetected_mass.count
        < first.undetected_mass.count - 0.5 * second.row("added").estimate
    )
    for found in (first, second):
        assert (
            0
            <= found.undetected_mass.low_95
            <= found.undetected_mass.count
            <= found.undetected_mass.high_95
        )
    assert decode(made, NAMES).undetected_mass == first.undetected_mass


def test_errors_allow_for_few_cohorts_as_those_of_a_single_table_do(monkeypatch):
    """With two cohorts 1.2 times as large, for strings that no fit holds; decode says the same."""
    two = Params(128, 2, 2, 0.5, 0.25, 0.75)
    sides = counts(params=two), counts(params=two, seed=2)

    def errors():
        rows = [compare(*sides, NAMES), *(decode(side, NAMES) for side in sides)]
        return [next(row for row in each.rows if row.string == "v29").std_error for each in rows]

    with_factor = np.array(errors())
    monkeypatch.setattr("rappor.decoding.fit._FEW_COHORTS", 0.0)
    assert with_factor / errors() == pytest.approx(1.2, rel=1e-9)
