"""google/rappor's regression grid: its cells, two of them run, and failures that show."""

import csv
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
REFERENCE = Path(__file__).parents[1] / "vectors" / "reference"
sys.path.append(str(BENCHMARKS))

from regression import measure  # noqa: E402
from regression.cells import Cell, grid  # noqa: E402
from regression.measure import (  # noqa: E402
    COLUMNS,
    JUDGED,
    count_reference,
    mean,
    run_cell,
    run_reference,
)
from regression.page import headline, page  # noqa: E402


def regtest(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", BENCHMARKS / "regtest.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


class Outline(HTMLParser):
    """The tags that are open, the rows of tables, and whatever would be loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag == "meta":
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    assert not found.open
    return found


@pytest.fixture(scope="module")
def two_cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("regtest")
    done = regtest("--output", folder, "--cells", "r-exp-small-typical,demo3", "--seeds", "2")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.startswith("All 2 cells ran. Of ")
    return folder


def test_every_cell_of_the_grid_is_there() -> None:
    cells = {cell.name: cell for cell in grid()}
    assert len(cells) == 5 * 4 * 5 + 5
    large = cells["r-zipf1.5-large-over_x10"]
    assert (large.strings, large.reports, large.absent) == (10_000, 100_000_000, 100_000)
    assert (large.params.k, large.params.h, large.params.m) == (8, 2, 128)
    typical = cells["r-unif-tiny-typical"].population()
    assert len(typical.candidates) == 90 + 20
    assert typical.unlisted == tuple(f"v{i}" for i in range(9, 100, 10))
    assert cells["r-unif-tiny-sharp"].population().unlisted == ()
    assert cells["demo3"].shape == "exp"
    assert (cells["demo3"].reports, cells["demo3"].each) == (100_000, 10)


@pytest.mark.long
def test_two_cells_have_figures_in_all_three_files(two_cells: Path) -> None:
    with (two_cells / "cells.csv").open(newline="") as file:
        rows = {(row["cell"], row["decoder"]): row for row in csv.DictReader(file)}
    not_there = [
        (key, decoder)
        for (_, decoder), row in rows.items()
        for key, value in row.items()
        if value == "" and key != "error"
    ]
    assert set(not_there) == {("seconds", "google/rappor")}  # which was not stored
    small = rows["r-exp-small-typical", "rappor"]
    assert 30 <= float(small["true_positives"]) <= 50
    assert float(small["fdr"]) < 0.15
    assert 0.1 < float(small["total_variation"]) < 0.25
    assert float(small["l1"]) == pytest.approx(2 * float(small["total_variation"]))
    demo = rows["demo3", "rappor"]
    assert float(demo["covered"]) > 0.9 * float(demo["detected"])
    document = json.loads((two_cells / "cells.json").read_text())
    assert [row["cell"] for row in document["cells"]] == ["r-exp-small-typical", "demo3"]
    assert [row["seed"] for row in document["cells"]] == ["1 to 2", "1 to 2"]


@pytest.mark.long
def test_googles_stored_results_are_beside_ours(two_cells: Path) -> None:
    document = json.loads((two_cells / "cells.json").read_text())
    names = [(row["cell"], row["decoder"]) for row in document["reference"]]
    stored = [("exponential", 1), ("exponential", 2), ("exponential", 3)]
    stored += [("windows", 1), ("windows", 2), ("chrome", 1)]
    assert names == [
        (f"{name} {number}", decoder)
        for name, number in stored
        for decoder in ("google/rappor", "rappor")
    ]
    first = document["reference"][0]
    assert (first["detected"], first["reports"], first["listed"]) == (44, 1_000_000, 200)
    assert document["counted"] == [
        {"name": "reports", "reports": 5_000, "malformed": 0, "same": True, "error": ""}
    ]


@pytest.mark.long
def test_the_page_is_whole_and_needs_nothing_else(two_cells: Path) -> None:
    text = (two_cells / "index.html").read_text("utf-8")
    found = outline(text)
    assert found.loaded == []
    assert "<script" not in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text
    cells = [row for row in found.rows if row[0] in ("r-exp-small-typical", "demo3")]
    assert len(cells) == 2
    assert all(re.search(r"\w", cell) for row in found.rows for cell in row)


def test_a_cell_that_fails_has_a_row_that_says_why() -> None:
    good = {cell.name: cell for cell in grid()}["demo1"]
    broken = replace(good, name="broken", shape="no <shape>")
    row = run_cell(broken, 1)
    assert "ParamsError: shape must be one of" in row.error
    fine = run_cell(good, 1)
    assert fine.error == ""
    text = page([row, fine], [], [], "about")
    rows = {each[0]: each for each in outline(text).rows}
    assert "failed: ParamsError" in rows["broken"][1]
    assert "no <shape>" in rows["broken"][1]
    assert headline([row, fine]).startswith("1 of 2 cells FAILED")


def test_a_cell_that_fails_has_no_figures_rather_than_zeros() -> None:
    good = {cell.name: cell for cell in grid()}["demo1"]
    row = run_cell(replace(good, shape="none"), 1)
    assert {name for name, value in row.flat().items() if value is None} == set(JUDGED)
    both = mean([row, replace(row, seed="2")])
    assert {name for name, value in both.flat().items() if value is None} == set(JUDGED)
    assert both.error.count("ParamsError") == 2


def test_several_seeds_are_averaged_and_one_that_failed_is_left_out_and_named() -> None:
    cell = {cell.name: cell for cell in grid()}["demo1"]
    first, second, third = (run_cell(cell, seed) for seed in (1, 2, 3))
    lost = replace(third, found=None, error="lost")
    found, one, two = (row.flat() for row in (mean([first, second, lost]), first, second))
    assert found["error"] == "seed 3: lost"
    assert found["seed"] == "1 to 3"
    assert found["seconds"] == pytest.approx(first.seconds + second.seconds + lost.seconds)
    for name in JUDGED:
        assert found[name] == pytest.approx((one[name] + two[name]) / 2)


def test_a_stored_set_that_fails_has_a_row_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "windows" / "1"
    shutil.copytree(REFERENCE / "windows" / "1", folder)
    theirs, ours = run_reference(folder)
    assert not theirs.error + ours.error
    with monkeypatch.context() as patch:
        patch.setattr(measure, "decode", lambda *_, **__: 1 / 0)
        theirs_still, broken = run_reference(folder)
    assert theirs_still == theirs
    assert (broken.found, broken.error) == (None, "ZeroDivisionError: division by zero")
    (folder / "truth.csv").unlink()
    (unread,) = run_reference(folder)
    assert "truth.csv" in unread.error
    uncounted = count_reference(folder)  # it has no reports.csv
    assert "reports.csv" in uncounted.error
    rows = outline(page([], [theirs, broken, unread], [uncounted], "about")).rows
    assert [row[2] for row in rows if row[0] == "windows 1"][1:] == [
        f"failed: {broken.error}",
        f"failed: {unread.error}",
    ]
    assert rows[-1] == ["1", f"failed: {uncounted.error}"]


def with_bug(bug: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the grid after a change to its modules `cells` and `measure`."""
    start = f"""
import sys
sys.path.insert(0, {str(BENCHMARKS)!r})
import runpy
from dataclasses import replace
from regression import cells, measure
{bug}
sys.argv = ["regtest.py", *{[str(each) for each in arguments]!r}]
runpy.run_path({str(BENCHMARKS / "regtest.py")!r}, run_name="__main__")
"""
    return subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.long
def test_a_failed_cell_fails_the_run(tmp_path: Path) -> None:
    bug = """
found = [replace(cell, shape="none") if cell.name == "demo2" else cell for cell in cells.grid()]
cells.grid = lambda: found
"""
    done = with_bug(bug, "--output", tmp_path, "--cells", "demo[12]", "--no-reference")
    assert done.returncode == 1, done.stderr
    assert "FAILED demo2: ParamsError" in done.stderr
    rows = outline((tmp_path / "index.html").read_text("utf-8")).rows
    assert {"demo1", "demo2"} <= {row[0] for row in rows}


@pytest.mark.long
def test_failed_stored_sets_fail_the_run_and_leave_the_page_whole(tmp_path: Path) -> None:
    bug = """
def lost(*_, **__):
    raise OSError("lost")
measure.read_truth = measure.aggregate_files = lost
"""
    done = with_bug(bug, "--output", tmp_path, "--cells", "demo1")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("OSError: lost") == 6 + 1
    assert "Traceback" not in done.stderr
    rows = outline((tmp_path / "index.html").read_text("utf-8")).rows
    assert [row for row in rows if row[0] == "chrome 1"] == [
        ["chrome 1", "rappor", "failed: OSError: lost"]
    ]
    assert rows[-1] == ["reports", "failed: OSError: lost"]
    document = json.loads((tmp_path / "cells.json").read_text())
    assert document["cells"][0]["error"] == ""
    assert {row["detected"] for row in document["reference"]} == {None}


@pytest.mark.long
def test_a_log_is_told_now_and_then_how_far_it_is(tmp_path: Path) -> None:
    done = regtest("--output", tmp_path, "--cells", "r-*-tiny-*", "--no-reference")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "10 of 25 collections decoded",
        "20 of 25 collections decoded",
    ]


@pytest.mark.long
def test_wrong_options_are_named(tmp_path: Path) -> None:
    done = regtest("--output", tmp_path, "--cells", "r-none-*")
    assert done.returncode == 2
    assert "no cell is called r-none-*" in done.stderr
    assert regtest("--output", tmp_path, "--seeds", "0").returncode == 2


def test_rows_name_every_column() -> None:
    cell = {cell.name: cell for cell in grid()}["r-zipf1.5-tiny-loose"]
    assert isinstance(cell, Cell)
    assert tuple(run_cell(cell, 1).flat()) == COLUMNS
    assert COLUMNS[6:-3] == JUDGED
