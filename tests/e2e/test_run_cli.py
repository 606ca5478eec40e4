"""`rappor run`: the nightly job, killed, resumed, refused, with failures, as real processes."""

import json
import os
import random
from pathlib import Path

import pytest

from support.command import rappor
from support.dashboard import Sample
from support.running import (
    LISTED,
    NightlyRun,
    day,
    entries,
    night_folder,
    result_bytes,
    write_jobs,
)
from support.waiting import wait_for

ALL = 'collections = "all"\nperiods = "all"\ncandidates = "pages.txt"'


def report(output: Path) -> dict:
    return json.loads((output / "run.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return night_folder(tmp_path_factory.mktemp("night"), names=3, periods=4)


@pytest.fixture(scope="module")
def said(night: Sample) -> str:
    """What a run that nobody disturbed says."""
    done = rappor("run", write_jobs(night, ALL, output="undisturbed", processes=2))
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def undisturbed(night: Sample, said: str) -> Path:
    """The results of a run that nobody disturbed, in two processes; the others have one."""
    return night.folder / "undisturbed"


def test_a_run_writes_every_format_of_every_collection_and_period(undisturbed: Path) -> None:
    names = {Path(name).parent.name for name in result_bytes(undisturbed)}
    assert names == {"page-00", "page-01", "theme-02"}
    assert len(result_bytes(undisturbed)) == 3 * 4 * 3
    found = report(undisturbed)
    assert (found["state"], found["done"], found["failed"]) == ("finished", 12, 0)
    assert all(unit["reports"] >= 50_000 for unit in found["units"])


def test_a_result_is_that_of_decode(night: Sample, undisturbed: Path) -> None:
    single = night.folder / "single.csv"
    listed = night.folder / "pages.txt"
    fixed = ["--data", night.data, "--candidates", listed, "--period", day(1), "--output", single]
    done = rappor("decode", "page-00", *fixed)
    assert done.returncode == 0, done.stderr
    assert single.read_bytes() == (undisturbed / "all/page-00" / f"{day(1)}.csv").read_bytes()


def test_progress_and_remaining_time_are_shown(said: str) -> None:
    lines = [line for line in said.splitlines() if line.startswith("rappor run: ")]
    assert "1 of 12 (8 %)" in lines[0]
    assert "left" in lines[0]
    assert "12 of 12 (100 %)" in lines[-1]
    assert len(lines) >= 5


@pytest.mark.long
def test_a_second_run_at_the_same_time_is_refused(night: Sample) -> None:
    listed = night.folder / "pipe.txt"
    os.mkfifo(listed)  # the first run cannot go on before somebody writes to it
    jobs = write_jobs(night, ALL.replace("pages.txt", listed.name), output="twice")
    first = NightlyRun(jobs)
    try:
        wait_for((night.folder / "twice" / "run.json").exists)
        second = rappor("run", jobs)
    finally:
        listed.write_text("\n".join(LISTED), encoding="utf-8")
        code = first.end()
    assert second.returncode == 1
    assert "another run writes to this folder" in second.stderr
    assert code == 0


def test_a_failure_does_not_stop_the_others(night: Sample) -> None:
    jobs = write_jobs(
        night,
        'collection = "nobody"',
        'name = "no-list"\ncollection = "page-00"',
        'name = "good"\ncollection = "page-01"\nperiods = "last 2"\ncandidates = "pages.txt"',
        output="failures",
    )
    done = rappor("run", jobs)
    assert done.returncode == 1
    found = report(night.folder / "failures")
    status = {unit["name"]: unit["status"] for unit in found["units"]}
    assert status == {
        "nobody/nobody": "failed",
        "no-list/page-00": "failed",
        f"good/page-01/{day(0)}": "done",
        f"good/page-01/{day(1)}": "done",
    }
    assert "failed: nobody/nobody: the store has no collection 'nobody'" in done.stderr


def resumed(sample: Sample, output: str, kills: int, total: int, seed: int) -> Path:
    """Run, kill at random progress, run again, until it ends by itself."""
    jobs, folder = write_jobs(sample, ALL, output=output), sample.folder / output
    dice = random.Random(seed)
    for _ in range(kills):
        more = dice.randint(1, max(1, total // (kills + 2)))
        NightlyRun(jobs).kill_after(folder, entries(folder) + more)
    before = entries(folder)
    assert 0 < before < total
    done = rappor("run", jobs, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["failed"] == 0
    assert 0 < found["unchanged"] <= total
    assert found["done"] + found["unchanged"] == total
    return folder


def test_a_killed_run_goes_on_and_gives_the_same_bytes(night: Sample, undisturbed: Path) -> None:
    folder = resumed(night, "killed", kills=1, total=12, seed=1)
    assert result_bytes(folder) == result_bytes(undisturbed)


@pytest.mark.long
def test_twenty_collections_of_thirty_periods_survive_three_kills(tmp_path: Path) -> None:
    sample = night_folder(tmp_path, names=20, periods=30)
    done = rappor("run", write_jobs(sample, ALL, output="undisturbed", processes=2))
    assert done.returncode == 0, done.stderr
    folder = resumed(sample, "killed", kills=3, total=600, seed=2)
    expected = result_bytes(tmp_path / "undisturbed")
    assert len(expected) == 20 * 30 * 3
    assert result_bytes(folder) == expected


@pytest.mark.long
def test_a_result_that_was_damaged_is_made_again(night: Sample, undisturbed: Path) -> None:
    before = result_bytes(undisturbed)
    name = next(iter(before))
    (undisturbed / name).write_bytes(before[name][:-1])
    done = rappor("run", write_jobs(night, ALL, output="undisturbed"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["done"], found["unchanged"]) == (1, 11)
    assert result_bytes(undisturbed) == before


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("output = 'o'", 3, "jobs is missing"),
        ("output = 'o'\n[[jobs]]\ncollection = 'a'", 3, "data is missing"),
        ("data = 'd'\noutput = 'o'\n[[jobs]]\ncolection = 'a'", 3, "jobs[0].colection is not"),
        ("data = 'd'\noutput = 'o'\n[[jobs]]\ncollection = 'a'", 3, "no such data folder"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, code: int, words: str) -> None:
    jobs = tmp_path / "jobs.toml"
    jobs.write_text(text, encoding="utf-8")
    done = rappor("run", jobs)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert words in done.stderr
