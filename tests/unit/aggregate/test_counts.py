"""Counts: what they refuse, and that files give back exactly what was written."""

import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rappor import DecodeError, Params, ParamsError
from rappor.aggregate import Counts
from support.full_disk import full_disk

REFERENCE = Path(__file__).parents[2] / "vectors" / "reference" / "reports"
SMALL = Params(3, 1, 2, 0.5, 0.5, 0.75)
BIG = 2**63 - 1


def counts(**about: object) -> Counts:
    return Counts(SMALL, [5, BIG], [[1, 0, 5], [10**12 + 1, 2**53 + 1, BIG]], **about)


LABELLED = {
    "kind": "category",
    "dialect": "google",
    "collection": "größe",
    "version": "v2",
    "reports_per_client": 7,
}


# Addition.


@pytest.mark.parametrize(
    ("name", "mine", "theirs"),
    [
        ("kind", "string", "category"),
        ("dialect", "google", None),
        ("collection", "a", "b"),
        ("version", 1, 2),
        ("version", 1, None),
    ],
)
def test_counts_of_another_label_are_not_added(name: str, mine: object, theirs: object) -> None:
    with pytest.raises(DecodeError, match=f"another {name}: {mine} and {theirs}"):
        _ = Counts.zero(SMALL, **{name: mine}) + Counts.zero(SMALL, **{name: theirs})


def test_counts_of_other_params_are_not_added() -> None:
    with pytest.raises(DecodeError, match="another params"):
        _ = Counts.zero(SMALL) + Counts.zero(Params(3, 1, 2, 0.5, 0.5, 0.8))


def test_only_counts_are_added_to_counts() -> None:
    with pytest.raises(TypeError):
        _ = Counts.zero(SMALL) + 1


def test_a_sum_beyond_64_bits_is_refused_and_not_wrapped() -> None:
    with pytest.raises(DecodeError, match=r"above 2\^63 - 1"):
        _ = counts() + counts()


def test_reports_per_client_is_the_larger_in_one_period_and_adds_over_periods() -> None:
    one, two = (Counts.zero(SMALL, reports_per_client=n) for n in (3, 4))
    unknown = Counts.zero(SMALL, reports_per_client=None)
    assert (one + two).reports_per_client == 4
    assert (one + unknown).reports_per_client is None
    assert Counts.sum_periods([one, two, two]).reports_per_client == 11
    assert Counts.sum_periods([one, unknown]).reports_per_client is None


# counts.csv


def write(folder: Path, data: bytes) -> Path:
    path = folder / "counts.csv"
    path.write_bytes(data)
    return path


def test_a_csv_gives_back_what_was_written_to_the_last_digit(tmp_path: Path) -> None:
    counts(**LABELLED).to_csv(tmp_path / "counts.csv")
    assert (tmp_path / "counts.csv").read_bytes() == (
        b"5,1,0,5\n9223372036854775807,1000000000001,9007199254740993,9223372036854775807\n"
    )
    assert Counts.from_csv(tmp_path / "counts.csv", SMALL, **LABELLED) == counts(**LABELLED)


def test_a_csv_says_nothing_about_repeats() -> None:
    params = Params.from_csv(REFERENCE / "params.csv")
    found = Counts.from_csv(REFERENCE / "counts.csv", params)
    assert found.reports_per_client is None
    assert (found.reports, found.totals[0], found.ones[0, 0], found.ones[0, 31]) == (
        5000,
        82,
        50,
        43,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"5,1,0,5\n7,1,2,3\n",
        b"5,1,0,5\n7,1,2,3",
        b"5,1,0,5\r\n7,1,2,3\r\n",
        b"\xef\xbb\xbf5,1,0,5\n7,1,2,3\n\n\r\n  \n",
        b'"5","1",0,5\n7,"1",2,"3"\n',
        b" 5, 1,0 ,5\n\n7,1,2,3\n,,,\n",
        b"05,1,0,5\n7,001,2,3\n",
    ],
    ids=["lf", "no last newline", "crlf", "bom and blank lines", "quotes", "spaces", "zeros"],
)
def test_the_ways_people_write_csv_are_read(tmp_path: Path, data: bytes) -> None:
    found = Counts.from_csv(write(tmp_path, data), SMALL)
    assert (found.totals.tolist(), found.ones.tolist()) == ([5, 7], [[1, 0, 5], [1, 2, 3]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"5,1,0\n7,1,2\n", r"line 1: expected 4 columns.* k = 3 bits; found 3, so 2 bits"),
        (b"5,1,0,5\n7,1,2,3,4\n", r"line 2: .* found 5, so 4 bits \(counts of another k\?\)"),
        (b"5,1,0,5\n", r"m = 2 cohorts, found 1 \(counts of another m\?\)"),
        (b"5,1,0,5\n" * 3, r"m = 2 cohorts, found 3"),
        (b"", r"m = 2 cohorts, found 0"),
        (b"5,1,0,5\n\n1e6,1,2,3\n", r"line 3, column 1: .*in digits.*got '1e6'"),
        (b"5,1,0,5\n7,1,2.0,3\n", r"line 2, column 3: .*got '2.0'"),
        (b"5,1,0,5\n7,1,-2,3\n", r"line 2, column 3: .*got '-2'"),
        (b"5,1,0,5\n7,1,,3\n", r"line 2, column 3: .*got ''"),
        (b"5,1,0,5\n7,1,NaN,3\n", r"line 2, column 3: .*got 'NaN'"),
        ("5,1,0,5\n7,1,²,3\n".encode(), r"line 2, column 3: .*got '²'"),
        (b"9223372036854775808,1,0,5\n7,1,2,3\n", r"line 1, column 1: .*2\^63 - 1"),
        (b"total,a,b,c\n5,1,0,5\n7,1,2,3\n", r"line 1, column 1: .*no header.*got 'total'"),
        (b"5,1,0,6\n7,1,2,3\n", r"line 1: cohort 0 has 5 reports, but bit 2 is set in 6"),
        (b'5,1,0,5\n7,"1,2,3\n', r"line 2: not CSV"),
        (b"\xff\xfe5\x00", "not UTF-8"),
    ],
)
def test_a_bad_csv_is_refused_with_its_line(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message) as caught:
        Counts.from_csv(write(tmp_path, data), SMALL)
    assert "counts.csv" in str(caught.value)


def test_a_missing_csv_is_a_decode_error(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=r"cannot read .*none.csv: No such file"):
        Counts.from_csv(tmp_path / "none.csv", SMALL)


def test_labels_are_checked_when_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"5,1,0,5\n7,1,2,3\n")
    with pytest.raises(ParamsError, match="dialect"):
        Counts.from_csv(path, SMALL, dialect="klingon")
    with pytest.raises(ParamsError, match="kind"):
        Counts.from_csv(path, SMALL, kind="klingon")


# Parquet and npz


@pytest.mark.parametrize("form", ["parquet", "npz"])
@pytest.mark.parametrize(
    "about", [{}, LABELLED, {"version": 3}, {"reports_per_client": None}], ids=str
)
def test_a_round_trip_keeps_everything(tmp_path: Path, form: str, about: dict[str, object]) -> None:
    path = tmp_path / "counts.with.any.name"
    getattr(counts(**about), f"to_{form}")(path)
    found = getattr(Counts, f"from_{form}")(path)
    assert found == counts(**about)
    assert type(found.version) is type(about.get("version"))
    assert found.ones.dtype == np.int64
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", ["parquet", "npz"])
def test_a_damaged_file_is_a_decode_error(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"counts.{form}"
    getattr(counts(), f"to_{form}")(path)
    whole = path.read_bytes()
    for data in (b"", b"nonsense", whole[: len(whole) // 2], whole[:-9], b"5,1,0,5\n"):
        path.write_bytes(data)
        with pytest.raises(DecodeError, match=f"counts.{form}"):
            getattr(Counts, f"from_{form}")(path)
    with pytest.raises(DecodeError, match=r"cannot read .*none: No such file"):
        getattr(Counts, f"from_{form}")(tmp_path / "none")


def test_an_npz_never_unpickles(tmp_path: Path) -> None:
    path = tmp_path / "counts.npz"
    np.savez(path, totals=np.array([{}], object), ones=np.zeros(1), about=np.array("{}"))
    with pytest.raises(DecodeError, match="damaged, or not a file of counts"):
        Counts.from_npz(path)


def test_other_arrays_are_not_counts(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", totals=np.zeros(2))
    with pytest.raises(DecodeError, match="without totals, ones and about"):
        Counts.from_npz(tmp_path / "other.npz")
    np.save(tmp_path / "other.npy", np.zeros(2))
    with pytest.raises(DecodeError, match="not counts written by to_npz"):
        Counts.from_npz(tmp_path / "other.npy")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(DecodeError, match="not counts written by to_parquet"):
        Counts.from_parquet(tmp_path / "other.parquet")


@pytest.mark.parametrize(
    "about", ['{"format": 2}', "[]", "x", '{"format": 1, "params": {"k": 3}}', '{"format": 1}']
)
def test_an_unknown_description_is_refused(tmp_path: Path, about: str) -> None:
    path = tmp_path / "counts.npz"
    np.savez(path, totals=np.zeros(2, int), ones=np.zeros((2, 3), int), about=np.array(about))
    with pytest.raises(DecodeError, match=r"counts\.npz"):
        Counts.from_npz(path)


def test_numbers_that_contradict_their_description_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.parquet"
    counts().to_parquet(path)
    table = pq.read_table(path)
    about = table.schema.metadata
    for bad in (
        table.slice(0, 1),
        table.take([1, 0]),
        table.drop(["cohort"]),
        table.set_column(1, "reports", pa.array([5, None])),
        table.set_column(2, "ones", pa.array([[1], [2]], pa.list_(pa.int64(), 1))),
        table.set_column(1, "reports", pa.array([5, 1])),
    ):
        pq.write_table(bad.replace_schema_metadata(about), path)
        with pytest.raises(DecodeError):
            Counts.from_parquet(path)


def test_an_npz_is_plain_arrays(tmp_path: Path) -> None:
    counts().to_npz(tmp_path / "counts.npz")
    with zipfile.ZipFile(tmp_path / "counts.npz") as archive:
        assert sorted(archive.namelist()) == ["about.npy", "ones.npy", "totals.npy"]


def test_an_npz_damaged_anywhere_is_a_decode_error_or_unharmed(tmp_path) -> None:
    whole, damaged = tmp_path / "whole.npz", tmp_path / "damaged.npz"
    expected = Counts.zero(SMALL)
    expected.to_npz(whole)
    data = bytearray(whole.read_bytes())
    for place in range(0, len(data), 7):
        changed = data.copy()
        changed[place] ^= 0x55
        damaged.write_bytes(changed)
        try:
            found = Counts.from_npz(damaged)
        except DecodeError:
            continue
        assert found == expected


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_on_a_full_disk_the_old_file_stays_whole(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"counts.{ending}"
    path.write_text("old")
    made = Counts(Params.preset("windows"), [9] * 8, [[number % 9 for number in range(128)]] * 8)
    with full_disk(), pytest.raises(OSError, match="large"):
        getattr(made, f"to_{ending}")(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_behind_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    link = tmp_path / "latest.csv"
    link.symlink_to("today.csv")
    counts().to_csv(link)
    assert link.is_symlink()
    assert Counts.from_csv(tmp_path / "today.csv", SMALL).totals.tolist() == [5, BIG]
