"""Simulated collections in files: read back by the code that reads real ones."""

import csv
from functools import partial

import pytest

from rappor import Params
from rappor.aggregate import aggregate_files
from rappor.decoding.candidate_files import read_strings
from rappor.simulate import Scenario, reports
from rappor.simulate.crowd import draw_crowd
from rappor.simulate.full_reports import pieces
from rappor.simulate.output_files import (
    fits_lines,
    report_file,
    write_candidates,
    write_truth,
)
from rappor.wire.packing import from_text
from support.full_disk import full_disk

POPULATION = {"a.org": 3, "b.org": 1}


@pytest.mark.parametrize("k", [7, 32, 100])
@pytest.mark.parametrize("ending", ["parquet", "csv", "steps.csv"])
def test_files_count_to_the_same_as_the_reports(tmp_path, k, ending):
    params = Params(k, 2, 3, 0.5, 0.25, 0.75)
    path = tmp_path / f"reports.{ending}"
    steps = ending == "steps.csv"
    crowd = draw_crowd(Scenario(POPULATION, params, 500, seed=1))
    with report_file(path, k, google=ending != "parquet", steps=steps) as file:
        for part in pieces(crowd, keep_steps=steps):
            file.write(part)
    found = aggregate_files(path, params, dialect="rappor-v1", reports_per_client=1)
    assert found.malformed == 0
    assert found.counts == reports(POPULATION, params, 500, seed=1).count()


def test_the_steps_of_a_report_are_in_googles_columns(tmp_path):
    params = Params(12, 2, 3, 0.5, 0.25, 0.75)
    made = reports(POPULATION, params, 50, seed=2, keep_steps=True)
    with report_file(tmp_path / "r.csv", 12, google=True, steps=True) as file:
        file.write(made)
    with (tmp_path / "r.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["client", "cohort", "bloom", "prr", "irr"]
    for row, client, cohort, *steps in zip(
        rows, made.clients, made.cohorts, made.bloom, made.prr, made.packed, strict=True
    ):
        assert (row["client"], row["cohort"]) == (f"c{client}", str(cohort))
        for name, packed in zip(("bloom", "prr", "irr"), steps, strict=True):
            assert from_text(row[name], 12) == int.from_bytes(packed.tobytes(), "little")


def test_parquet_has_no_client_in_it(tmp_path):
    import pyarrow.parquet as pq

    params = Params(12, 2, 3, 0.5, 0.25, 0.75)
    with report_file(tmp_path / "r.parquet", 12) as file:
        file.write(reports(POPULATION, params, 50, seed=2))
    assert pq.read_schema(tmp_path / "r.parquet").names == ["cohort", "packed"]


def test_truth_has_counts_and_exact_proportions(tmp_path):
    write_truth(tmp_path / "truth.csv", {"a,b": 3, "c": 1, "nobody": 0})
    assert (tmp_path / "truth.csv").read_text("utf-8").splitlines() == [
        "string,count,proportion",
        '"a,b",3,0.75',
        '"c",1,0.25',
        '"nobody",0,0.0',
    ]


@pytest.mark.parametrize(
    ("listed", "plain"),
    [
        (["a.org", "b c", "naïve ☃"], True),
        (["two\nlines", "x"], False),
        (["", "x"], False),
        (["   ", "x"], False),
        (["ends\r", "x"], False),
        (["\ufeffmark", "x"], False),
    ],
)
def test_candidates_are_read_back_as_they_are(tmp_path, listed, plain):
    assert fits_lines(listed) is plain
    path = tmp_path / ("c.txt" if plain else "c.csv")
    write_candidates(path, listed)
    found = read_strings(path)[0]
    assert found == [each for each in listed if each.strip()]  # blank is no candidate in any file


def _write_reports(path, google):
    with report_file(path, 12, google=google) as file:
        file.write(reports(POPULATION, Params(12, 2, 3, 0.5, 0.25, 0.75), 5_000, seed=2))


@pytest.mark.parametrize(
    "write",
    [
        partial(_write_reports, google=False),
        partial(_write_reports, google=True),
        partial(write_truth, truth={f"string {number}": number for number in range(5_000)}),
        partial(write_candidates, candidates=[f"string {number}" for number in range(5_000)]),
    ],
)
def test_on_a_full_disk_the_old_file_stays_whole(tmp_path, write):
    path = tmp_path / "file"
    path.write_text("old")
    with full_disk(), pytest.raises(OSError, match="large"):
        write(path)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"
    write(path)
    assert path.stat().st_size > 5_000
