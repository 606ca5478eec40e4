"""jobs.toml: what it says, and what is wrong with it."""

from pathlib import Path

import pytest

from rappor.errors import ParamsError
from rappor.runs.jobs_file import CandidateSource, parse_jobs, read_jobs
from rappor.runs.units import stages

TOP = 'data = "data"\noutput = "results"\n'
HERE = Path("/srv/night")


def jobs(text: str) -> str:
    return f"{TOP}[[jobs]]\n{text}"


def test_a_job_has_defaults() -> None:
    file = parse_jobs(jobs('collection = "homepage"'), HERE)
    (job,) = file.jobs
    assert (file.data, file.output) == (HERE / "data", HERE / "results")
    assert (file.formats, file.processes, file.dashboard) == (("csv",), None, False)
    assert (job.name, job.collections, job.periods) == ("homepage", ("homepage",), "latest")
    assert (job.correction, job.alpha, job.method) == ("fdr", 0.05, "auto")


def test_all_collections_are_named_all() -> None:
    (job,) = parse_jobs(jobs('collections = "all"'), HERE).jobs
    assert (job.name, job.collections) == ("all", None)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ('"lists/a.txt"', CandidateSource(file=HERE / "lists/a.txt")),
        ('{file = "a.txt"}', CandidateSource(file=HERE / "a.txt")),
        ('{data = "file:///srv/other%20data"}', CandidateSource(data=Path("/srv/other data"))),
        (
            '{data = "/srv/other", collection = "start", version = 3}',
            CandidateSource(data=Path("/srv/other"), collection="start", version=3),
        ),
        ('{run = "results", job = "us"}', CandidateSource(run=HERE / "results", job="us")),
    ],
)
def test_candidates_come_from_three_places(text: str, source: CandidateSource) -> None:
    (job,) = parse_jobs(jobs(f'collection = "homepage"\ncandidates = {text}'), HERE).jobs
    assert job.candidates == source


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('collection = "a"\nalpha = 2', "jobs[0].alpha must be a number above 0 and below 1"),
        ('collection = "a"\nalpha = true', "jobs[0].alpha must be"),
        ('collection = "a"\nperiods = "lately"', 'jobs[0].periods must be "latest"'),
        ('collection = "a"\nperiods = "last 0"', "jobs[0].periods must be"),
        ('collection = "a"\nperiods = "2026-W47..2026-W46"', "jobs[0].periods must be"),
        ('collection = "a"\ncorrection = "fdrs"', "jobs[0].correction must be one of fdr"),
        ('collection = "a"\ncollections = ["b"]', 'jobs[0] needs collection = "NAME"'),
        ('name = "../up"\ncollection = "a"', "jobs[0].name must be letters"),
        ('collections = ["a", "b"]\nversion = 1', "jobs[0].version goes with one collection"),
        ('collection = "a"\ncandidates = {file = "f", run = "r"}', "exactly one of file, data"),
        ('collection = "a"\ncandidates = {run = "r"}', "jobs[0].candidates.job is missing"),
        ('collection = "a"\ncandidates = {data = "s3://b"}', "must be a path or a file:// URL"),
        ('collection = "a"\nperiod = "all"', "did you mean periods?"),
        ('collection = "a"\n[[jobs]]\ncollection = "a"', "jobs[1].name: 'a' is taken"),
        ('collection = "a"\nby = "c"\ndimensions = {c = "x"}', "dimensions choose one c already"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(ParamsError) as caught:
        parse_jobs(jobs(text), HERE)
    assert words in str(caught.value)


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(ParamsError, match=r"jobs\.toml: not UTF-8 text"):
        read_jobs(path)
    path.write_text("jobs = [", encoding="utf-8")
    with pytest.raises(ParamsError, match=r"jobs\.toml: not valid TOML"):
        read_jobs(path)


AFTER = 'collection = "{0}"\ncandidates = {{run = "results", job = "{1}"}}'


def test_a_job_comes_after_the_job_whose_results_it_takes() -> None:
    text = f'{jobs(AFTER.format("a", "b"))}\n[[jobs]]\ncollection = "b"'
    order = stages(parse_jobs(text, HERE))
    assert [[job.name for job in jobs] for jobs in order] == [["b"], ["a"]]


def test_jobs_that_wait_for_each_other_are_refused() -> None:
    text = f"{jobs(AFTER.format('a', 'b'))}\n[[jobs]]\n{AFTER.format('b', 'a')}"
    with pytest.raises(ParamsError, match="wait for each other's results: a, b"):
        stages(parse_jobs(text, HERE))
