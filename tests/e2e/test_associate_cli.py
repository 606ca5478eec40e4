"""`rappor associate` on google/rappor's association files, and on the pair counts it keeps."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import rappor as package
from rappor import PairCounts, Params
from rappor.decoding.design import build_design
from rappor.decoding.mapfile import write_map
from rappor.simulate import pair_reports
from support.command import rappor
from support.joint_tables import dependent, write_google_files

PARAMS = Params(8, 1, 16, 0.25, 0.25, 0.75)
VALUES = [f"x{number}" for number in range(4)]
GOOGLE = Path(__file__).parents[1] / "vectors" / "reference" / "association"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of a string and a boolean, as google/rappor's clients and tools write them."""
    folder = tmp_path_factory.mktemp("associate")
    drawn = pair_reports(
        dependent(4, 2),
        (PARAMS, Params(1, 1, 16, 0.25, 0.25, 0.75)),
        20_000,
        seed=1,
        kinds=("string", "boolean"),
        dialect="google",
    )
    write_google_files(folder, drawn, ("domain", "secure"))
    (folder / "candidates.txt").write_text("\n".join(VALUES), encoding="utf-8")
    write_map(build_design(VALUES, PARAMS, "google"), folder / "map.csv")
    return folder


def files(place: Path, *more: str | Path) -> tuple[str | Path, ...]:
    return ("associate", place / "reports.csv", "--schema", place / "rappor-vars.csv", *more)


def test_files_are_associated_as_the_library_does_it(place: Path) -> None:
    kept = place / "pairs.npz"
    done = rappor(*files(place, "--map", place / "map.csv", "--json", "--save", kept))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = package.associate(PairCounts.from_npz(kept), (VALUES, None))
    assert found["names"] == ["domain", "secure"]
    assert found["reports"] == 20_000
    shares = {(row["first"], row["second"]): row["share"] for row in found["rows"]}
    for cell in wanted.rows:
        assert shares[cell.first, cell.second] == cell.share
    assert "reported separately, so ε adds" in done.stderr
    again = rappor("associate", kept, "--candidates", place / "candidates.txt", "--json")
    assert json.loads(again.stdout)["rows"] == found["rows"]


def test_a_table_a_csv_and_a_chart_are_written(place: Path) -> None:
    chart, results = place / "chart.svg", place / "results.csv"
    given = ("--candidates", place / "candidates.txt")
    done = rappor(*files(place, *given, "--plot", chart, "--output", results))
    assert done.returncode == 0, done.stderr
    with results.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert {"first", "second", "share", "std_error", "low_95", "adjusted_p_value"} <= set(rows[0])
    assert chart.read_text(encoding="utf-8").startswith("<svg")
    printed = rappor(*files(place, *given))
    assert "domain and secure are associated" in printed.stdout
    assert "x0 × true" in printed.stdout


def test_the_exit_code_says_whether_an_association_was_found(place: Path) -> None:
    given = ("--candidates", place / "candidates.txt", "--exit-code")
    assert rappor(*files(place, *given)).returncode == 0
    assert rappor(*files(place, *given, "--alpha", "1e-300")).returncode == 4


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ((), 2, "domain holds strings: give --candidates or --map for it"),
        (("--variables", "domain,zork"), 2, "--variables must be two of domain, secure; got zork"),
        (("--metric", "n"), 2, "--metric must be one of m; got n"),
        (("--candidates", "secure=x.txt"), 2, "secure is boolean and needs no list"),
        (("--output", "x.zork"), 2, "--output must end in .csv, .json, .parquet"),
        (("--candidates", "missing.txt"), 3, "missing.txt"),
    ],
)
def test_wrong_arguments_are_named_with_a_way_out(
    place: Path, more: tuple[str, ...], code: int, words: str
) -> None:
    done = rappor(*files(place, *more))
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_malformed_lines_are_counted_and_said(place: Path, tmp_path: Path) -> None:
    lines = (place / "reports.csv").read_text(encoding="utf-8").splitlines()
    lines[5:7] = ["c,999,00000000,1", "c,1,0000000,1"]
    broken = tmp_path / "reports.csv"
    broken.write_text("\n".join(lines) + "\n", encoding="utf-8")
    given = ("--schema", place / "rappor-vars.csv", "--candidates", place / "candidates.txt")
    done = rappor("associate", broken, *given, "--json")
    assert json.loads(done.stdout)["reports"] == 19_998
    assert "2 lines are not reports" in done.stderr


def test_reports_without_a_schema_and_other_files_are_named(place: Path) -> None:
    done = rappor("associate", place / "reports.csv", "--candidates", place / "candidates.txt")
    assert done.returncode == 2
    assert "--schema" in done.stderr
    wrong = rappor("associate", place / "reports.csv", "--schema", place / "reports.csv")
    assert wrong.returncode == 3
    assert "expected the header metric, var, var_type, params" in wrong.stderr


def test_googles_own_files_are_associated() -> None:
    given = ("associate", GOOGLE / "reports.csv.gz", "--schema", GOOGLE / "rappor-vars.csv")
    done = rappor(*given, "--map", GOOGLE / "domain_map.csv", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["reports"], found["names"]) == (50_000, ["domain", "flag..HTTPS"])
    cells = {(row["first"], row["second"]): row for row in found["rows"]}
    assert cells["google.com", "true"]["associated"]
    assert {first for first, _ in cells} == {"google.com", "yahoo.com", "bing.com", 'q"q', "other"}
    by_name = rappor(*given, "--candidates", f"domain={GOOGLE / 'cand.txt'}", "--all")
    assert by_name.returncode == 0, by_name.stderr
    assert "domain and flag..HTTPS are associated" in by_name.stdout
    assert 'q"q × true' in by_name.stdout
