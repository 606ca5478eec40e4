"""What every decoded row says, whatever was counted."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rappor import Params, Ranges
from rappor.aggregate import Counts
from rappor.charts.numbers import show_difference
from rappor.decoding.categories import decode_basic
from rappor.decoding.compare import compare
from rappor.decoding.exports import columns, difference_columns
from rappor.decoding.ordinal import decode_ordinal

NAMES = ["a", "b", "c", "d"]


@st.composite
def tables(draw, kind):
    """Counts of four bits, at the ends of what is possible as often as in between."""
    p, q = draw(st.sampled_from([(0.25, 0.75), (0.5, 0.75), (0.01, 0.9), (0.1, 0.99), (0.4, 0.45)]))
    params = Params(4, 1, 1, draw(st.sampled_from([0.0, 0.25, 0.75])), p, q)
    reports = draw(st.one_of(st.integers(1, 20), st.integers(1, 10**6), st.just(10**9)))
    anything = st.integers(0, reports)
    ones = draw(
        st.lists(
            st.one_of(anything, st.sampled_from([0, 1, reports - 1, reports])),
            min_size=4,
            max_size=4,
        )
    )
    repeats = draw(st.sampled_from([1, 7, None]))
    return Counts(params, [reports], [ones], kind=kind, reports_per_client=repeats)


def honest(found):
    """Every row tells one story: its verdict, its interval and its estimate agree."""
    n = found.reports
    for row in found.rows:
        low, high = row.interval
        assert 0 <= low <= row.estimate <= high <= n
        assert row.detected or low == 0
        assert row.presence_only == (row.detected and low == 0)
        assert 0 <= row.p_value <= row.adjusted_p_value + 1e-15 <= 1 + 1e-15
        assert row.std_error == 0 or abs(row.snr) > 1000 or low < high
        assert math.isfinite(row.raw_estimate)
    raw = found.rows.raw_estimate
    made_up, hidden = found.forged_reports()
    assert (np.isnan(made_up) == ~found.rows.detected).all()
    assert (np.isnan(hidden) == ~found.rows.detected).all()
    assert (made_up[found.rows.detected] >= 0).all()
    assert (hidden[found.rows.detected] >= 0).all()
    table = columns(found, every=True)
    for place, row in enumerate(found.rows):
        assert math.isnan(table["prop_low_95"][place]) == row.presence_only
    return raw


@pytest.mark.slow
@given(tables("category"), st.sampled_from(["fdr", "bh", "holm", "bonferroni", "none"]))
@settings(max_examples=15)
def test_rows_of_categories_agree_with_their_verdicts(counts, correction):
    found = decode_basic(counts, NAMES, correction=correction)
    raw = honest(found)
    assert (np.diff(raw) <= 0).all()
    mass = found.undetected_mass
    assert 0 <= mass.low_95 <= mass.count <= mass.high_95 <= counts.reports


@pytest.mark.slow
@given(tables("ordinal"))
@settings(max_examples=10)
def test_ranges_of_a_histogram_agree_with_their_verdicts(counts):
    hist = decode_ordinal(counts, Ranges((1, 2, 3)))
    honest(hist.decoded)
    assert hist.share.sum() == 1 or abs(hist.share.sum() - 1) < 1e-6 * max(1, abs(hist.share).max())
    for share, row in zip(hist.shares, hist.rows, strict=True):
        assert (share.share, share.low_95, share.high_95) == (
            row.proportion,
            row.prop_low_95,
            row.prop_high_95,
        )
    for each in hist.cumulative():
        assert 0 <= each.low_95 <= each.share <= each.high_95 <= 1
    spread = decode_ordinal(counts, [1, 2, 4, 8]).spread()
    assert 0 <= spread.low_95 <= spread.high_95
    assert math.isnan(spread.value) or spread.low_95 <= spread.value <= spread.high_95


@pytest.mark.slow
@given(tables("bits"))
@settings(max_examples=10)
def test_free_bits_agree_with_their_verdicts(counts):
    honest(decode_basic(counts))


@pytest.mark.slow
@given(
    tables("category"),
    tables("category"),
    st.sampled_from(["fdr", "bh", "holm", "bonferroni", "none"]),
)
@settings(max_examples=10)
def test_differences_agree_with_their_verdicts(one, other, correction):
    found = compare(one, other, NAMES, correction=correction)
    table = difference_columns(found, every=True)
    for place, row in enumerate(found.rows):
        assert -1 <= row.low_95 <= row.difference <= row.high_95 <= 1
        excludes_0 = row.low_95 > 0 or row.high_95 < 0
        assert (excludes_0 or row.side_only) == row.different
        assert not (excludes_0 and row.side_only)
        assert row.difference * row.raw_difference >= 0
        unknown = [math.isnan(table[end][place]) for end in ("low_95", "high_95")]
        assert any(unknown) == row.side_only == table["side_only"][place]
        if row.different:
            shown = show_difference(row.difference, row.low_95, row.high_95, different=True)
            ends = shown.interval.split(" – ")
            assert shown.is_limit or all(re.search("[1-9<>]", end) for end in ends)
