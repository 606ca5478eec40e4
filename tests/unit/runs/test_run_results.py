"""Runs over a data folder: parts, candidates of other runs, the dashboard, faults of the disk."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.settings import STATE_FILE
from rappor.dashboard.state import DashboardState
from rappor.errors import StoreBusy
from rappor.runs import nightly, read_jobs, run_jobs
from rappor.runs.journal import Journal
from rappor.runs.unit_work import UnitWorker
from rappor.runs.units import DecodeUnit, OutputOptions
from rappor.runs.worker_pool import UnitEnd, _try
from support.dashboard import Sample
from support.dashboard_context import entered, made_context
from support.running import LISTED, day, night_folder, result_bytes, write_jobs

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def one_process() -> Iterator[None]:
    """Work in this process: tests/e2e/test_run_cli.py has real ones."""

    def work(units: list[DecodeUnit], options: OutputOptions, _: int) -> Iterator[UnitEnd]:
        worker = UnitWorker(options)
        for unit in units:
            yield UnitEnd(unit, *_try(worker, unit))

    with patch.object(nightly, "work_all", work):
        yield


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return night_folder(tmp_path_factory.mktemp("parts"), names=3, periods=3, countries=True)


def ran(sample: Sample, *jobs: str, output: str, **top: Any) -> dict[str, dict[str, Any]]:
    """The units of a run, by name."""
    done = run_jobs(read_jobs(write_jobs(sample, *jobs, output=output, **top)))
    return {unit["name"]: unit for unit in done.document()["units"]}


PAGES = 'candidates = "pages.txt"'


def test_periods_are_decoded_each_or_together(sample: Sample) -> None:
    units = ran(
        sample,
        f'name = "each"\ncollection = "page-00"\nperiods = "last 2"\n{PAGES}',
        f'name = "sum"\ncollection = "page-00"\nperiods = "all"\ntogether = true\n{PAGES}',
        f'name = "latest"\ncollection = "page-00"\n{PAGES}',
        output="periods",
    )
    assert set(units) == {
        f"each/page-00/{day(0)}",
        f"each/page-00/{day(1)}",
        f"sum/page-00/{day(2)}..{day(0)}",
        f"latest/page-00/{day(0)}",
    }
    assert units[f"sum/page-00/{day(2)}..{day(0)}"]["reports"] == 2 * (50_000 + 50_100 + 50_200)


def test_values_of_a_dimension_are_decoded_each(sample: Sample) -> None:
    units = ran(sample, 'collection = "theme-02"\nby = "country"', output="by")
    assert {name: unit["reports"] for name, unit in units.items()} == {
        f"theme-02/theme-02/{day(0)},country=CH": 50_000,
        f"theme-02/theme-02/{day(0)},country=NZ": 50_000,
    }


def test_candidates_come_from_the_results_of_another_collection(sample: Sample) -> None:
    after = 'name = "after"\ncollection = "page-01"\ncandidates = {run = "chain", job = "page-00"}'
    units = ran(sample, after, f'collection = "page-00"\n{PAGES}', output="chain")
    first, second = units[f"page-00/page-00/{day(0)}"], units[f"after/page-01/{day(0)}"]
    assert second["candidates"] == first["detected"] > 0


def test_strings_are_not_tested_again_on_reports_that_chose_them(sample: Sample) -> None:
    after = 'name = "again"\ncollection = "page-00"\ncandidates = {run = "same", job = "page-00"}'
    units = ran(sample, after, f'collection = "page-00"\n{PAGES}', output="same")
    assert units["again/page-00"]["status"] == "failed"
    assert "p-values would be too small" in units["again/page-00"]["error"]


def test_candidates_come_from_the_list_of_a_data_folder(sample: Sample) -> None:
    with closing(DashboardState(sample.data / STATE_FILE)) as state:
        state.save_candidates("page-01", LISTED[:12], "ann")
    named = 'collection = "page-00"\ncandidates = {data = "data", collection = "page-01"}'
    units = ran(sample, named, 'collection = "page-01"', output="lists")
    assert {unit["candidates"] for unit in units.values()} == {12}
    missing = ran(sample, 'name = "x"\ncollection = "page-00"', output="missing")
    assert "has no list of candidates for 'page-00'" in missing["x/page-00"]["error"]


def test_only_what_changed_is_decoded_again(tmp_path: Path) -> None:
    sample = night_folder(tmp_path, names=1, periods=2)
    job = f'collection = "page-00"\nperiods = "all"\n{PAGES}'
    assert {unit["status"] for unit in ran(sample, job, output="r").values()} == {"done"}
    before = result_bytes(tmp_path / "r")
    assert {unit["status"] for unit in ran(sample, job, output="r").values()} == {"unchanged"}
    sample.add(sample.collections["page-00-1"], day(1), {LISTED[0]: 1.0}, 500, seed=9)
    sample.store()
    status = {name[-10:]: unit["status"] for name, unit in ran(sample, job, output="r").items()}
    assert status == {day(0): "unchanged", day(1): "done"}
    after = result_bytes(tmp_path / "r")
    assert {name for name in before if before[name] != after[name]} == {
        f"page-00/page-00/{day(1)}.{ending}" for ending in ("csv", "json", "parquet")
    }


def test_another_list_or_option_decodes_again(sample: Sample) -> None:
    job = f'collection = "page-00"\n{PAGES}'
    ran(sample, job, output="options")
    assert {
        u["status"] for u in ran(sample, f"{job}\nalpha = 0.01", output="options").values()
    } == {"done"}
    listed = write_jobs(sample, f"{job}\nalpha = 0.01", output="options")
    (sample.folder / "pages.txt").write_text("\n".join(LISTED[:5]), encoding="utf-8")
    again = run_jobs(read_jobs(listed)).document()["units"]
    assert [(unit["status"], unit["candidates"]) for unit in again] == [("done", 5)]


def test_pages_show_published_results_without_decoding(tmp_path: Path) -> None:
    sample = night_folder(tmp_path, names=3, periods=2, countries=True)
    units = ran(
        sample,
        f'collections = "all"\nperiods = "all"\n{PAGES}',
        f'name = "nz"\ncollection = "page-00"\ndimensions = {{country = "NZ"}}\n{PAGES}',
        output="published",
        dashboard=True,
    )
    assert all(unit["published"] for unit in units.values())
    with made_context(tmp_path, sample=sample) as context:
        browser = entered(context, Role.VIEWER)  # who may not start a decode
        for name in ("page-00", "page-01", "theme-02"):
            for period in (day(0), day(1)):
                page = browser.get(f"/collections/{name}?to={period}").text
                assert 'id="summary"' in page, (name, period)
                assert "Published by the job all of <code>rappor run</code>" in page
        chosen = browser.get(f"/collections/page-00?to={day(0)}&country=NZ").text
        assert "Published by the job nz" in chosen
        written = (tmp_path / "published/all/page-00" / f"{day(0)}.json").read_text("ascii")
        shown = json.loads(browser.get(f"/collections/page-00.json?to={day(0)}").text)
        detected = {row["string"]: row for row in json.loads(written)["rows"]}
        assert detected
        for row in shown["rows"]:
            if row["string"] in detected:
                assert row["estimate"] == detected[row["string"]]["estimate"]
        assert context.jobs.all() == []
        (version,) = context.state.candidate_versions("page-00")
        assert version.size == len(LISTED)


def test_publishing_twice_saves_one_list(tmp_path: Path) -> None:
    sample = night_folder(tmp_path, names=1, periods=1)
    for _ in range(2):
        ran(sample, f'collection = "page-00"\n{PAGES}', output="twice", dashboard=True)
    with closing(DashboardState(sample.data / STATE_FILE)) as state:
        assert len(state.candidate_versions("page-00")) == 1


def test_a_full_disk_fails_a_unit_and_not_the_run(sample: Sample) -> None:
    folder = sample.folder / "blocked" / "theme-02"
    folder.mkdir(parents=True)
    (folder / "theme-02").write_text("a file where a folder should be", encoding="utf-8")
    job = 'collection = "theme-02"\nperiods = "latest"'
    units = ran(sample, job, f'collection = "page-00"\n{PAGES}', output="blocked")
    assert units[f"theme-02/theme-02/{day(0)}"]["status"] == "failed"
    assert units[f"page-00/page-00/{day(0)}"]["status"] == "done"


def test_drafts_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    left, other = tmp_path / "all" / ".2026-11-01.4711.csv", tmp_path / "all" / ".profile"
    for path in (left, other):
        path.write_text("half", encoding="utf-8")
    with closing(Journal(tmp_path)), pytest.raises(StoreBusy, match="another run writes"):
        Journal(tmp_path)
    assert (left.exists(), other.exists()) == (False, True)
