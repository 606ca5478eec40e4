"""Tables for other libraries and for notebooks."""

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.categories import decode_basic
from rappor.decoding.frames import (
    MissingPackageError,
    columns,
    html,
    to_arrow,
    to_pandas,
    to_polars,
)
from rappor.errors import RapporError

PARAMS = Params(80, 1, 1, 0.0, 0.25, 0.75)
NAMES = ["<script>alert(1)</script>", 'a "quoted" & b', "", *[f"v{i}" for i in range(3, 80)]]


def decoded(detected=10, **more):
    ones = np.where(np.arange(80) < detected, 3000, 2480)
    return decode_basic(Counts(PARAMS, [10_000], [ones], kind="category", **more), NAMES)


def test_columns_hold_what_the_rows_hold():
    found = decoded()
    table = columns(found)
    assert list(table)[:3] == ["string", "estimate", "std_error"]
    for index, row in enumerate(found.rows):
        for name, column in table.items():
            if name in ("low_95", "high_95"):
                assert column[index] == row.interval[name == "high_95"]
            else:
                assert column[index] == getattr(row, name)
    assert columns(found, detected_only=True)["string"] == [r.string for r in found.detected]


def present():
    """One row that was just detected, and one that is large."""
    ones = [np.where(np.arange(80) == 3, 2_660, np.where(np.arange(80) == 4, 4_000, 2_480))]
    return decode_basic(Counts(PARAMS, [10_000], ones, kind="category"), NAMES)


def test_a_row_that_is_only_present_has_no_lower_end():
    found = present()
    assert [row.string for row in found.detected] == ["v4", "v3"]
    table = columns(found, detected_only=True)
    assert table["presence_only"].tolist() == [False, True]
    for name in ("low_95", "prop_low_95"):
        assert table[name][0] > 0
        assert math.isnan(table[name][1])
    assert table["raw_estimate"] == pytest.approx([3_000, 320])
    assert table["snr"] == pytest.approx(table["raw_estimate"] / table["std_error"])
    assert 0 < table["estimate"][1] < 320
    rest = columns(found)
    assert (rest["low_95"][~rest["detected"]] == 0).all()
    assert not rest["presence_only"][~rest["detected"]].any()
    assert to_arrow(found).schema.field("presence_only").type == "bool"


def test_html_says_present_where_a_size_is_not_known():
    page = html(present())
    assert re.search(r"<td>present</td><td>at most \d+</td>", page)
    assert re.search(r"<td>present</td><td>at most [\d.]+\xa0%</td>", page)
    assert re.search(r"v4</th><td>3,000</td><td>2,[89]\d0 – 3,[012]\d0</td>", page), page


@pytest.mark.slow
@pytest.mark.parametrize("make", [to_arrow, to_pandas, to_polars])
def test_every_library_gets_the_same_table(make):
    found = decoded()
    for only in (False, True):
        table = make(found, detected_only=only)
        expected = columns(found, detected_only=only)
        as_lists = table.to_pydict() if make is to_arrow else {n: list(table[n]) for n in expected}
        assert list(as_lists) == list(expected)
        for name, column in expected.items():
            assert list(as_lists[name]) == list(column)


@pytest.mark.parametrize("make", [to_arrow, to_pandas, to_polars])
def test_types_are_kept_even_without_rows(make):
    empty, full = make(decoded(0), detected_only=True), make(decoded())
    assert len(empty) == 0
    if make is to_arrow:
        assert empty.schema == full.schema
        assert str(full.schema.field("string").type) == "string"
    elif make is to_polars:
        assert empty.schema == full.schema
    else:
        assert full["estimate"].dtype == np.float64
        assert full["detected"].dtype == bool


def test_no_reports_have_no_signal_to_noise():
    found = decode_basic(Counts.zero(PARAMS, kind="category"), NAMES)
    assert all(map(math.isnan, columns(found)["snr"]))
    assert "in 0 reports" in html(found)


@pytest.mark.parametrize(("make", "name"), [(to_pandas, "pandas"), (to_polars, "polars")])
def test_a_missing_package_is_named(monkeypatch, make, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=f"pip install {name}") as caught:
        make(decoded())
    assert isinstance(caught.value, RapporError)
    assert isinstance(caught.value, ImportError)
    line = "in a clone of rappor, pip install --require-hashes -r constraints.txt"
    assert line in str(caught.value)
    pinned = (Path(__file__).parents[3] / "constraints.txt").read_text("utf-8")
    assert f"\n{name}==" in pinned


def test_html_escapes_every_string():
    page = html(decoded())
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "a &quot;quoted&quot; &amp; b" in page


def test_html_says_what_was_found_and_what_was_not():
    page = html(decoded(reports_per_client=None))
    assert "10 of 80 candidates detected in 10,000 reports (FDR 5\u00a0%, adaptive)." in page
    assert re.search(r"Undetected mass: [\d.−,]+\xa0% \(", page)
    assert page.count("<tr>") == 11
    assert page.count('scope="row"') == 10
    assert "Nothing was detected" in html(decoded(0))
    warned = decode_basic(Counts.zero(PARAMS, kind="category"), NAMES)
    assert "There are no reports: nothing can be said." in html(warned)


def test_html_stops_at_fifty_rows_and_says_so():
    page = html(decoded(73))
    assert page.count('scope="row"') == 50
    assert "23 more detected rows are not shown." in page


def test_free_bits_show_no_undetected_mass():
    counts = Counts(PARAMS, [10_000], [np.full(80, 3000)], kind="bits")
    assert "Undetected" not in html(decode_basic(counts))
