"""Candidate lists as people have them."""

import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from rappor import DecodeError, MissingExtraError
from rappor.decoding.candidates import Candidates


def read(tmp_path, name: str, data: bytes) -> Candidates:
    path = tmp_path / name
    path.write_bytes(data)
    return Candidates.read(path)


def test_order_is_that_of_utf8_bytes_whatever_was_given():
    given = ["b", "Z", "a", "é", "\U0001f600", "\uffff", "z", "aa", ""]
    found = Candidates.of(given)
    assert [text.encode() for text in found] == sorted(text.encode() for text in given)
    assert found.encoded() == sorted(text.encode() for text in given)
    assert Candidates.of(reversed(given)) == found


def test_duplicates_are_merged_counted_and_shown():
    found = Candidates.of(["b", "a", b"b", "b", "c", "a"])
    assert (found.strings, found.merged, found.repeated) == (("a", "b", "c"), 3, ("b", "a"))
    assert found.notes == ("3 duplicate candidates were merged, such as 'b', 'a'",)
    many = Candidates.of([*"abcdefg"] * 2)
    assert (many.merged, many.repeated) == (7, ("a", "b", "c"))
    assert many.notes[0].endswith("such as 'a', 'b', 'c', ...")


def test_a_clean_list_has_no_notes():
    found = Candidates.of(["a", "b"])
    assert (found.merged, found.repeated, found.notes) == (0, (), ())


def test_candidates_of_candidates_are_the_same():
    found = Candidates.of(["a"])
    assert Candidates.of(found) is found


def test_spaces_are_kept_and_told():
    found = Candidates.of([" a", "a", "b "])
    assert found.strings == (" a", "a", "b ")
    assert found.notes == ("2 candidates have spaces before or after, which were kept: ' a', 'b '",)


def test_the_empty_string_may_be_asked_for_and_is_told():
    assert Candidates.of([""]).notes == ("the empty string is one of the candidates",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "no candidates"),
        ("abc", "got one string"),
        (b"abc", "got one string"),
        (7, "must be a list of strings, got 7"),
        (["a", 7], "candidate 2 must be str or bytes, got int"),
        (["a", None], "candidate 2 must be str or bytes, got NoneType"),
        ([b"a", b"\xff"], "candidate 2 is not UTF-8 text"),
        (["a", "\ud800"], "half a surrogate pair"),
    ],
)
def test_what_is_no_list_of_strings_is_refused(given, message):
    with pytest.raises(DecodeError, match=message):
        Candidates.of(given)


# files


def test_text_may_have_a_mark_windows_line_ends_and_blank_lines(tmp_path):
    found = read(tmp_path, "c.txt", '\ufeffb\r\n\r\na, "q"\r\n  \r\nc\u2028d\x0ce'.encode())
    assert found.strings == ('a, "q"', "b", "c\u2028d\x0ce")
    assert found.notes == ("2 blank lines were skipped",)


def test_text_with_and_without_a_last_line_end_is_the_same(tmp_path):
    assert read(tmp_path, "c.txt", b"a\nb\n") == read(tmp_path, "d.txt", b"a\nb")
    assert read(tmp_path, "noname", b"a\nb\n").notes == ()


def test_quotes_in_text_are_kept_and_told(tmp_path):
    found = read(tmp_path, "c.txt", b'"a"\nb"\n"\n')
    assert found.strings == ('"', '"a"', 'b"')
    assert len(found.notes) == 1
    assert found.notes[0].startswith("1 candidate is in double quotes, which were kept")


@pytest.mark.parametrize("name", ["c.txt", "c.csv"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path, name, mark):
    with pytest.raises(DecodeError, match=rf"{name}, line 3: not UTF-8 text"):
        read(tmp_path, name, mark + b"a\nb\nZ\xfcrich\nd\n")


@pytest.mark.parametrize("name", ["c.txt", "c.csv"])
@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused_by_name(tmp_path, name, data):
    with pytest.raises(DecodeError, match=rf"{name}: no candidates"):
        read(tmp_path, name, data)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Candidates.read(tmp_path / "none.txt")


def test_csv_without_a_header_gives_its_first_column(tmp_path):
    found = read(tmp_path, "c.csv", b'b,1\r\n"a, ""x""",2\r\n\r\n"two\r\nlines"\r\n')
    assert found.strings == ('a, "x"', "b", "two\r\nlines")
    assert found.notes == ("1 blank line was skipped",)


@pytest.mark.parametrize("header", ["n,string,value", "value,STRING", 'n," Candidate ",value'])
def test_csv_with_a_header_gives_the_named_column(tmp_path, header):
    cells = ["no", "yes", "no"][: header.count(",") + 1]
    assert read(tmp_path, "c.CSV", f"{header}\n{','.join(cells)}\n".encode()).strings == ("yes",)


def test_csv_rows_that_lack_the_column_are_refused_with_their_line(tmp_path):
    with pytest.raises(
        DecodeError, match=r"c.csv, line 4: 1 column, but candidates are in col.* 2"
    ):
        read(tmp_path, "c.csv", b'n,string\n1,"a\nb"\n1\n')


def test_csv_with_broken_quotes_is_refused_with_its_line(tmp_path):
    with pytest.raises(DecodeError, match=r"c.csv, line 2: not CSV"):
        read(tmp_path, "c.csv", b'a\n"b"c\nd\n')


def write(tmp_path, **columns) -> str:
    path = tmp_path / "c.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_parquet_gives_the_named_text_column(tmp_path, kind):
    values = pa.array(["b", None, "é", "a", "", "b"]).cast(kind)
    found = Candidates.read(write(tmp_path, other=["x"] * 6, candidate=values, n=range(6)))
    assert (found.strings, found.merged) == (("a", "b", "é"), 1)
    assert found.notes[0] == "2 empty rows were skipped"


def test_parquet_gives_the_only_text_column_whatever_its_name(tmp_path):
    assert Candidates.read(write(tmp_path, n=[1], name=["a"])).strings == ("a",)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"one": ["a"], "two": ["b"]}, r"one \(string\), two \(string\)"),
        ({"n": [1]}, r"n \(int64\)"),
        ({"value": [1], "text": ["a"]}, r"value \(int64\), text \(string\)"),
    ],
)
def test_parquet_without_one_clear_text_column_is_refused(tmp_path, columns, found):
    with pytest.raises(DecodeError, match=f"c.parquet: expected a text column .*found {found}"):
        Candidates.read(write(tmp_path, **columns))


def test_parquet_that_is_not_utf8_is_refused_with_its_row(tmp_path):
    path = write(tmp_path, string=pa.array([b"a", b"\xff"]))
    with pytest.raises(DecodeError, match=r"c.parquet, row 2: not UTF-8 text"):
        Candidates.read(path)


def test_what_is_not_parquet_is_refused(tmp_path):
    with pytest.raises(DecodeError, match=r"c.parquet: cannot be read as Parquet"):
        read(tmp_path, "c.parquet", b"a\nb\n")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, string=["a"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"rappor\[analysis\]"):
        Candidates.read(path)
