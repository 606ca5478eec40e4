"""Simulated collections in files: read back by the code that reads real ones."""

import csv

import pytest

from rappor import Params
from rappor.aggregate import aggregate_files
from rappor.decoding.candidate_files import read_strings
from rappor.simulate import reports
from rappor.simulate.crowd import gather
from rappor.simulate.files import (
    CsvReports,
    ParquetReports,
    fits_lines,
    write_candidates,
    write_truth,
)
from rappor.simulate.full_reports import pieces
from rappor.wire.packing import from_text

POPULATION = {"a.org": 3, "b.org": 1}


@pytest.mark.parametrize("k", [7, 32, 100])
@pytest.mark.parametrize("ending", ["parquet", "csv", "steps.csv"])
def test_files_count_to_the_same_as_the_reports(tmp_path, k, ending):
    params = Params(k, 2, 3, 0.5, 0.25, 0.75)
    path = tmp_path / f"reports.{ending}"
    steps = ending == "steps.csv"
    file = ParquetReports(path, k) if ending == "parquet" else CsvReports(path, k, steps=steps)
    for part in pieces(gather(POPULATION, params, 500, seed=1), keep_steps=steps):
        file.write(part)
    file.close()
    found = aggregate_files(path, params, dialect="rappor-v1", reports_per_client=1)
    assert found.malformed == 0
    assert found.counts == reports(POPULATION, params, 500, seed=1).count()


def test_the_steps_of_a_report_are_in_googles_columns(tmp_path):
    params = Params(12, 2, 3, 0.5, 0.25, 0.75)
    made = reports(POPULATION, params, 50, seed=2, keep_steps=True)
    file = CsvReports(tmp_path / "r.csv", 12, steps=True)
    file.write(made)
    file.close()
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
    file = ParquetReports(tmp_path / "r.parquet", 12)
    file.write(reports(POPULATION, params, 50, seed=2))
    file.close()
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
