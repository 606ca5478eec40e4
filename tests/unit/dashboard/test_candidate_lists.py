"""Lists of candidates: nothing is dropped in silence, and limits are said."""

import io

import pyarrow as pa
import pytest
from pyarrow import parquet

from rappor.dashboard.candidates import candidate_upload as module
from rappor.dashboard.candidates.candidate_upload import (
    MAX_STRINGS,
    difference,
    digest_of,
    parse_upload,
)
from rappor.errors import ParamsError


def test_duplicates_are_merged_and_counted():
    found = parse_upload(b"b.org\r\na.org\r\nb.org\r\nb.org\r\n")
    assert found.strings == ("a.org", "b.org")
    assert (found.read, found.merged, found.left_out) == (4, 2, 0)
    assert found.words == "4 read · 2 duplicates merged"


def test_lines_that_are_no_text_are_reported_by_number_and_the_rest_is_kept():
    data = b"\xef\xbb\xbfa.org\n\xff\nb.org\n\nnul\0\n" + b"x" * 4097 + b"\nc.org"
    found = parse_upload(data)
    assert found.strings == ("a.org", "b.org", "c.org")
    assert [tuple(each) for each in found.unreadable] == [
        ("line 2", "not UTF-8 text"),
        ("line 5", "with a line break or a zero byte in it"),
        ("line 6", "longer than 4,096 characters"),
    ]
    assert found.words == "3 read · 3 unreadable lines"
    assert "1 blank line was skipped" in found.notes


def test_only_the_first_bad_lines_are_listed_and_all_are_counted():
    found = parse_upload(b"good\n" + b"\xff\n" * 50)
    assert len(found.unreadable) == 20
    assert found.left_out == 50


def test_csv_is_read_by_its_column():
    found = parse_upload(b'name,string\n1,"a,b"\n2,c\n', "csv")
    assert found.strings == ("a,b", "c")
    two_lines = parse_upload(b'string\n"a\nb"\nc\n', "csv")
    assert two_lines.strings == ("c",)
    assert two_lines.unreadable[0].why == "with a line break or a zero byte in it"
    with pytest.raises(ParamsError, match="line 2 is not UTF-8 text"):
        parse_upload(b"string\n\xff\n", "csv")
    with pytest.raises(ParamsError, match="not CSV"):
        parse_upload(b'string\n"a', "csv")


def test_parquet_is_known_by_its_first_bytes():
    sink = io.BytesIO()
    parquet.write_table(pa.table({"string": ["b", "a", "b"]}), sink)
    found = parse_upload(sink.getvalue())
    assert (found.strings, found.merged) == (("a", "b"), 1)
    with pytest.raises(ParamsError, match="the list: cannot be read as Parquet"):
        parse_upload(b"PAR1 and nothing else")


@pytest.mark.parametrize("data", [b"", b"\n\n  \n"])
def test_an_empty_list_is_refused(data):
    with pytest.raises(ParamsError, match="at least one string, but there is nothing in it"):
        parse_upload(data)


def test_a_list_of_nothing_readable_says_where():
    with pytest.raises(ParamsError, match="nothing could be read: line 1 is not UTF-8 text"):
        parse_upload(b"\xff\xff")


def test_limits_name_what_was_given_and_what_is_allowed(monkeypatch):
    monkeypatch.setattr(module, "MAX_STRINGS", 3)
    assert len(parse_upload(b"a\nb\nc").strings) == 3
    with pytest.raises(ParamsError, match="may have 3 strings; this one has 4"):
        parse_upload(b"a\nb\nc\nd")
    monkeypatch.setattr(module, "MAX_BYTES", 10**6)
    with pytest.raises(ParamsError, match=r"may have 1 MB; this one has 1\.5 MB"):
        parse_upload(b"x" * 1_500_000)


def test_an_unknown_form_is_refused():
    with pytest.raises(ParamsError, match="form must be one of lines, csv; got 'pdf'"):
        parse_upload(b"a", "pdf")


def test_a_million_strings_are_within_the_limits():
    assert module.MAX_STRINGS == 1_000_000
    assert module.MAX_BYTES == 32_000_000


def test_differences_are_counted_and_some_are_named():
    found = difference(map(str, range(100)), map(str, range(40, 200)))
    assert (found.added, found.removed) == (100, 40)
    assert len(found.some_added) == 50
    assert found.some_removed == tuple(sorted(map(str, range(40))))


def test_the_digest_of_a_list_tells_where_strings_end():
    assert digest_of(["ab", "c"]) != digest_of(["a", "bc"])


def test_a_small_file_that_unpacks_to_a_very_long_list_is_refused() -> None:
    packed = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(
        pa.array([0] * (MAX_STRINGS + 1), pa.int32()), pa.array(["a.example"])
    )
    parquet.write_table(pa.table({"string": column}), packed)
    assert len(packed.getvalue()) < 10_000
    with pytest.raises(ParamsError, match="1,000,000 strings"):
        parse_upload(packed.getvalue())


def test_a_small_file_that_unpacks_to_much_text_is_refused() -> None:
    packed = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(
        pa.array([0] * 100_000, pa.int32()), pa.array(["a" * 4000])
    )
    parquet.write_table(pa.table({"string": column}), packed, compression="zstd")
    assert len(packed.getvalue()) < 100_000
    with pytest.raises(ParamsError, match="32 MB"):
        parse_upload(packed.getvalue())
