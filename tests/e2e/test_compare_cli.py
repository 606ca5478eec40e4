"""`rappor compare` on files and on a data folder: the numbers of rappor.compare, new minus old."""

import csv
import datetime
import json
from pathlib import Path

import pytest

import rappor as package
from rappor.collection import Collection
from support.command import rappor
from support.dashboard import TODAY, Sample
from support.difference_rows import file_row

PARAMS = package.Params(k=32, h=2, m=4, f=0.25, p=0.35, q=0.65)
NAMES = ["a.org", "b.org", "c.org", "nobody.org"]
OLD, NEW = (str(TODAY - datetime.timedelta(days=back)) for back in (1, 0))
SHARES = {
    OLD: {"a.org": 0.5, "b.org": 0.3, "c.org": 0.2},
    NEW: {"a.org": 0.3, "b.org": 0.5, "c.org": 0.2},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of a collection in a data folder, and the counts of both as files."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "candidates.txt").write_text("\n".join(NAMES))
    PARAMS.to_csv(folder / "params.csv")
    sample = Sample(folder)
    asked = Collection("homepage", 1, PARAMS, owner="x", dimensions={"country": ("NZ", "AU")})
    sample.define(asked)
    for number, (day, shares) in enumerate(SHARES.items()):
        counts = package.simulate.counts(shares, PARAMS, 40_000, seed=number)
        counts.to_npz(folder / f"{'old' if day == OLD else 'new'}.npz")
        counts.to_csv(folder / f"{'old' if day == OLD else 'new'}.csv")
        sample.add(asked, day, shares, 40_000, [("country", "NZ")], seed=number)
        sample.add(asked, day, SHARES[OLD], 30_000, [("country", "AU")], seed=7 + number)
    sample.store()
    return folder


def files(place: Path) -> tuple[str | Path, ...]:
    given = ("--candidates", place / "candidates.txt")
    return ("compare", place / "old.npz", place / "new.npz", *given)


def stored(place: Path, *more: str) -> tuple[str | Path, ...]:
    given = ("--candidates", place / "candidates.txt")
    return ("compare", "homepage", "--data", place / "data", *given, *more)


def test_two_files_are_compared_as_the_library_compares_them(place: Path) -> None:
    done = rappor(*files(place), "--json", "--all")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    new, old = (package.Counts.from_npz(place / f"{name}.npz") for name in ("new", "old"))
    wanted = package.compare(new, old, NAMES)
    assert found["names"] == ["new.npz", "old.npz"]
    assert found["rows"] == [file_row(row) for row in wanted.rows]
    changes = {row["string"]: row["difference"] for row in found["rows"]}
    assert changes["b.org"] > 0.1 > -0.1 > changes["a.org"]  # new minus old
    about = ("--params", place / "params.csv", "--dialect", "rappor-v1")
    given = (place / "old.csv", place / "new.csv", *files(place)[3:], *about)
    texts = rappor("compare", *given, "--all", "--output", "-")
    rows = list(csv.DictReader(texts.stdout.splitlines()))
    assert {row["string"]: float(row["difference"]) for row in rows} == changes


def test_a_data_folder_is_compared_as_rappor_open_does_it(place: Path) -> None:
    data = package.open(place / "data")
    for options, asked in (
        ((), {}),
        (("--period", OLD, "--with", NEW), {"period": OLD, "against": NEW}),
        (
            ("--dimension", "country=NZ", "--with", "country=AU"),
            {"dimensions": {"country": "NZ"}, "against": "country=AU"},
        ),
    ):
        found = json.loads(rappor(*stored(place, *options), "--json", "--all").stdout)
        wanted = data.compare("homepage", place / "candidates.txt", **asked)
        assert found["rows"] == [file_row(row) for row in wanted.rows]
        assert found["names"] == list(wanted.names)
        is_periods = "--dimension" not in options
        assert (found["new"]["periods"] > found["old"]["periods"]) == is_periods
    assert found["new"]["dimensions"] == {"country": "NZ"}


def test_the_table_names_both_sides_and_what_is_subtracted(place: Path) -> None:
    done = rappor(*stored(place, "--dimension", "country=NZ"))
    head, *rows = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert head.split()[0] == "string"
    assert "difference" in head
    changed = {row.split()[0]: row for row in rows[:2]}
    assert "+" in changed["b.org"]
    assert "\N{MINUS SIGN}" in changed["a.org"]
    assert f"differences are {NEW}, country NZ (40,000 reports) minus {OLD}, country NZ" in rows[-1]
    plain = rappor(*stored(place))
    assert plain.stdout.split()[1:3] == [NEW, OLD]


def test_files_hold_what_json_says(place: Path, tmp_path: Path) -> None:
    document = json.loads(rappor(*files(place), "--json").stdout)
    assert document["different"] == len(document["rows"]) == 2
    for ending in ("csv", "json", "parquet"):
        path = tmp_path / f"differences.{ending}"
        done = rappor(*files(place), "--output", path)
        assert (done.returncode, done.stdout) == (0, "")
        assert "2 of 4 candidates differ" in done.stderr
        if ending == "json":
            assert json.loads(path.read_text()) == document
        elif ending == "csv":
            rows = list(csv.DictReader(path.read_text().splitlines()))
            assert [row["string"] for row in rows] == [row["string"] for row in document["rows"]]
            assert list(rows[0]) == list(document["rows"][0])
        else:
            from pyarrow import parquet

            assert parquet.read_table(path).to_pylist() == document["rows"]


def test_the_exit_code_says_when_nothing_differs(place: Path) -> None:
    same = ("--dimension", "country=AU", "--exit-code")
    assert rappor(*stored(place, *same)).returncode == 4
    assert rappor(*stored(place, "--dimension", "country=NZ", "--exit-code")).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("{place}/old.npz",), 2, "to be compared with?"),
        (("{place}/old.npz", "{place}/new.npz", "x"), 2, "give two files, the older first"),
        (("{place}/old.npz", "{place}/new.npz"), 2, "give --candidates or --map"),
        (("{place}/old.npz", "{place}/none.npz", "--candidates", "x"), 3, "none.npz"),
        (("{place}/old.npz", "{place}/new.npz", "--period", NEW), 2, "--period goes with a coll"),
        (("{place}/old.npz", "{place}/new.npz", "--with", NEW), 2, "--with goes with a collection"),
        (("a", "b", "--data", "{place}/data"), 2, "one collection"),
        (("homepage", "--data", "{place}/data", "--k", "8"), 2, "--k does not go with a coll"),
        (("homepage", "--data", "{place}/data", "--null-reports"), 2, "--null-reports does not"),
        (("homepage", "--data", "{place}/data"), 2, "give --candidates or --map"),
        (("homepage", "--data", "{place}/data", "--dimension", "NZ"), 2, "must be NAME=VALUE"),
        (("other", "--data", "{place}/data"), 3, "the store has no collection 'other'"),
        (("homepage", "--data", "nowhere"), 3, "no such data folder"),
        (("--json",), 2, "required: COLLECTION | OLD NEW"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    place: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = rappor("compare", *(each.format(place=place) for each in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_sides_that_share_reports_or_have_no_past_are_refused(place: Path) -> None:
    for options, code, message in (
        (("--with", NEW), 3, "have reports in common"),
        (("--period", OLD), 2, "there is no earlier period; say what to compare with: --with"),
        (("--with", "country=AU"), 3, "part of all"),
        (("--with", "2026-02-01..2026-01-01"), 2, "ends before it begins"),
    ):
        done = rappor(*stored(place, *options))
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
