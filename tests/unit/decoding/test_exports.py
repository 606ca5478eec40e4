"""Files of a result: which columns they have, and what is left empty."""

import csv
import io
import json
import math

import pytest
from pyarrow import parquet

from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.categories import decode_basic
from rappor.decoding.decode import decode
from rappor.decoding.exports import COLUMNS, columns, csv_lines, document, mass_in, write_parquet
from rappor.simulate import simulate

NAMES = ["sized", "present", "absent", "below"]
PARAMS = Params(4, 1, 1, 0.0, 0.25, 0.75)


@pytest.fixture(scope="module")
def found():
    """Of 10,000 reports, 2,500 ones are noise; 2,605 are just detected among four."""
    counts = Counts(PARAMS, [10_000], [[4_000, 2_605, 2_500, 2_300]], kind="category")
    return decode_basic(counts, NAMES)


def test_the_rows_are_what_the_others_are_about(found):
    assert [row.string for row in found.rows] == NAMES
    assert [row.detected for row in found.rows] == [True, True, False, False]
    assert [row.presence_only for row in found.rows] == [False, True, False, False]


def test_columns_follow_google_and_then_say_what_is_new(found):
    table = columns(found, every=False)
    assert tuple(table) == (*COLUMNS, "detected")
    assert COLUMNS[:7] == (
        *("string", "estimate", "std_error", "proportion", "prop_std_error"),
        *("prop_low_95", "prop_high_95"),
    )
    assert COLUMNS[-4:] == (
        *("raw_estimate", "presence_only", "forged_to_make_up", "forged_to_hide"),
    )
    assert table["raw_estimate"] == pytest.approx([3_000, 210, 0, -400])
    assert table["estimate"][0] == pytest.approx(3_000)
    assert 0 < table["estimate"][1] < 210
    assert table["estimate"][2:] == [0, 0]
    assert table["snr"] == pytest.approx(
        [row.raw_estimate / row.std_error for row in found.rows], abs=1e-12
    )


def test_a_presence_has_no_lower_end_and_an_upper_limit_begins_at_0(found):
    table = columns(found, every=True)
    low = table["prop_low_95"]
    assert low[0] == pytest.approx(found.rows[0].prop_low_95)
    assert math.isnan(low[1])
    assert low[2:] == [0, 0]
    assert table["presence_only"] == [False, True, False, False]
    assert all(0 < high < 1 for high in table["prop_high_95"])


def test_forged_reports_are_numbered_for_what_was_detected(found):
    table = columns(found, every=True)
    made_up, hidden = table["forged_to_make_up"], table["forged_to_hide"]
    assert made_up[:2] == [2_000, 140]
    assert hidden[0] == math.ceil((3_000 - found.threshold) / 0.5)
    assert hidden[1] == math.ceil((210 - found.threshold) / 0.5)
    assert all(map(math.isnan, [*made_up[2:], *hidden[2:]]))


def test_csv_has_empty_cells_for_what_is_not_known(found):
    text = "".join(csv_lines(columns(found, every=True)))
    rows = {row["string"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["present"]["prop_low_95"] == ""
    assert rows["present"]["presence_only"] == "true"
    assert rows["sized"]["presence_only"] == "false"
    assert float(rows["sized"]["prop_low_95"]) > 0
    assert float(rows["absent"]["prop_low_95"]) == 0
    assert rows["absent"]["forged_to_make_up"] == rows["absent"]["forged_to_hide"] == ""
    assert float(rows["below"]["raw_estimate"]) == -400
    assert float(rows["below"]["estimate"]) == 0
    assert not {"-0.0", "nan", "inf"} & {cell for row in rows.values() for cell in row.values()}


def test_json_has_null_and_says_what_it_takes_to_be_detected(found):
    ready = document(found, every=True)
    assert json.loads(json.dumps(ready, allow_nan=False)) == ready
    rows = {row["string"]: row for row in ready["rows"]}
    assert rows["present"]["prop_low_95"] is None
    assert rows["present"]["presence_only"] is True
    assert rows["absent"]["forged_to_hide"] is None
    assert ready["forged_to_detect"] == pytest.approx(found.threshold / 1.5)
    assert mass_in(ready) == mass_in({"unlisted": ready["undetected_mass"]})  # of older versions
    left = ready["undetected_mass"]
    assert 0 <= left["low_95"] <= left["count"] <= left["high_95"] <= 10_000


def test_parquet_keeps_types(found, tmp_path):
    write_parquet(columns(found, every=True), tmp_path / "results.parquet")
    table = parquet.read_table(tmp_path / "results.parquet")
    assert table.column_names == [*COLUMNS, "detected"]
    assert str(table.schema.field("presence_only").type) == "bool"
    assert str(table.schema.field("forged_to_hide").type) == "double"
    assert table.column("presence_only").to_pylist() == [False, True, False, False]


def test_strings_have_only_what_was_detected_unless_all_are_asked_for():
    counts = simulate({"a": 0.7, "b": 0.3}, Params(16, 2, 4, 0.25, 0.3, 0.7), 50_000, seed=3).counts
    result = decode(counts, ["a", "b", "c", "d"])
    assert columns(result, every=False)["string"] == ["a", "b"]
    assert tuple(columns(result, every=False)) == COLUMNS
    assert not any(map(math.isnan, columns(result, every=False)["forged_to_hide"]))
    assert len(columns(result, every=True)["string"]) == 4


def test_no_reports_are_a_file_too():
    empty = document(decode_basic(Counts.zero(PARAMS, kind="category"), NAMES), every=True)
    assert empty["forged_to_detect"] == empty["threshold"] == "inf"
    for row in empty["rows"]:
        assert (row["raw_estimate"], row["prop_high_95"], row["snr"]) == (0, 0, None)
        assert row["presence_only"] is False
