"""Everything end to end, as a researcher runs it: the paper, and google/rappor's grid (minutes)."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rappor.experiments import names
from support.command import COMMAND, environment

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
AN_HOUR = 3600


@pytest.mark.soak
def test_the_whole_paper_is_reproduced(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "reproduce", "all", "--output", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=AN_HOUR,
        env=environment({}),
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert list(summary["experiments"]) == list(names())
    for name, item in summary["experiments"].items():
        assert item["failed"] is None, name
        assert item["seeds"] == 20
        assert item["comparisons"], name
        assert {each["verdict"] for each in item["comparisons"]} <= {"agrees", "differs", "extra"}
        assert all(each["ours"] and each["why"] for each in item["comparisons"]), name
        written = {file.suffix for file in (tmp_path / name).iterdir()}
        assert written == {".html", ".png", ".svg", ".csv"}, name
    agreeing = [
        each["verdict"] == "agrees"
        for item in summary["experiments"].values()
        for each in item["comparisons"]
        if each["verdict"] != "extra"
    ]
    assert sum(agreeing) > len(agreeing) / 2


@pytest.mark.soak
def test_every_cell_of_googles_grid_has_a_row_with_figures(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", BENCHMARKS / "regtest.py", "--output", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=AN_HOUR,
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "cells.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["group"] != "reference"]
    sizes = ("tiny", "small", "medium", "large")
    shapes = ("unif", "exp", "gauss", "zipf1", "zipf1.5")
    configurations = ("typical", "sharp", "loose", "over_x2", "over_x10")
    expected = [f"r-{a}-{b}-{c}" for b in sizes for a in shapes for c in configurations]
    expected += [f"demo{number}" for number in range(1, 6)]
    assert [row["cell"] for row in rows] == expected
    for row in rows:
        empty = {name for name, value in row.items() if value == ""}
        assert empty == {"error"}, row["cell"]
        assert float(row["true_positives"]) + float(row["missed"]) == float(row["present_listed"])
        assert float(row["total_variation"]) > 0
        assert float(row["covered"]) <= float(row["detected"])
