"""Files of google/rappor's association analysis are named for what they are, with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

import rappor
from rappor import DecodeError, Params, ParamsError
from rappor.aggregate import aggregate_files
from rappor.google_files import file_kind

# As google/rappor writes them: two variables that a client reports together.
REPORTS = "client,cohort,domain,flag..HTTPS\nc0,3,10101111,0\nc1,1,01100010,1\n"
VARIABLES = "metric, var, var_type, params\nm,domain,string,m_params\n"
RESULTS = '"flag..HTTPS","domain","proportion"\n"TRUE","a.org",0.4\n'
PARAMS = Params(8, 1, 4, 0.5, 0.25, 0.75)


def written(folder: Path, text: str) -> Path:
    file = folder / "file.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_reports_of_several_variables_are_named_when_they_are_counted(tmp_path: Path) -> None:
    file = written(tmp_path, REPORTS)
    with pytest.raises(DecodeError, match=r"association reports, 2 variables in each") as refused:
        aggregate_files([file], PARAMS)
    assert "keep the columns client and cohort and its own, and call it rappor" in (
        str(refused.value)
    )
    assert "domain" not in str(refused.value)


def test_the_way_out_works(tmp_path: Path) -> None:
    lines = [",".join(line.split(",")[:3]) for line in REPORTS.splitlines()]
    file = written(tmp_path, "\n".join(["client,cohort,rappor", *lines[1:], ""]))
    counted = aggregate_files([file], PARAMS)
    assert counted.counts.reports == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (REPORTS, "association reports"),
        (RESULTS, "results of google/rappor's association analysis, shares of pairs"),
        (VARIABLES, "lists the variables of google/rappor's association analysis"),
        ("client,cohort,irr\nc0,3,10101111\n", "holds reports: count them first"),
        ("string,estimate,std_error\n", "holds results: there is nothing to decode"),
    ],
)
def test_what_is_given_as_counts_or_params_is_named(tmp_path: Path, text: str, words: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(DecodeError, match=words):
        rappor.Counts.from_csv(file, PARAMS)
    with pytest.raises(ParamsError, match=words):
        Params.from_csv(file)


def test_other_headers_are_not_guessed_at() -> None:
    for header in ("client,cohort,zork", "k,h,m,p,q,f", "", "a,b,c,d", "1,2,3"):
        assert file_kind(header.split(",")) is None
