"""`rappor reproduce` in a real process: files, an offline page, JSON, errors."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from urllib.parse import urlparse

import pytest

from support.command import rappor

NAME = "life-of-a-report"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("reproduce") / "made" / "here"
    done = rappor("reproduce", NAME, "--output", directory, "--seeds", "4")
    assert done.returncode == 0, done.stderr
    assert "[1/1] life-of-a-report: done" in done.stderr
    assert re.search(rf"^{NAME} +3 agree +\S+index\.html$", done.stdout, re.MULTILINE)
    assert str(directory / "index.html") in done.stdout
    return directory


def test_the_files_are_there(output: Path) -> None:
    assert {file.name for file in output.iterdir()} == {"index.html", "summary.json", NAME}
    assert {file.name for file in (output / NAME).iterdir()} == {
        "index.html",
        "life-of-a-report.png",
        "life-of-a-report.svg",
        "life-of-a-report-dark.svg",
        "life-of-a-report-bits.csv",
    }


def test_pages_refer_to_nothing_but_files_beside_them(output: Path) -> None:
    for page in (output / "index.html", output / NAME / "index.html"):
        text = page.read_text(encoding="utf-8")
        assert "<script" not in text
        assert "http" not in text
        for target in re.findall(r'(?:src|href|srcset)="([^"]+)"', text):
            parts = urlparse(target)
            assert not parts.scheme
            assert not parts.netloc
            if parts.path:
                assert (page.parent / parts.path).is_file(), target
            if parts.fragment:
                assert f'id="{parts.fragment}"' in text


def test_charts_load_nothing(output: Path) -> None:
    for chart in output.rglob("*.svg"):
        text = chart.read_text(encoding="utf-8")
        assert not re.search(r'href="(?!#)', text)
        assert "url(http" not in text
        assert "<script" not in text


def test_the_summary_has_the_verdicts(output: Path) -> None:
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    (item,) = summary["experiments"].values()
    assert item["seeds"] == 4
    assert item["failed"] is None
    first = item["comparisons"][0]
    assert set(first) == {"what", "published", "ours", "verdict", "why"}
    assert first["verdict"] == "agrees"


def test_the_table_is_plain_csv(output: Path) -> None:
    with (output / NAME / "life-of-a-report-bits.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 256
    assert sum(int(row["B"]) for row in rows) == 4


def test_json_says_what_was_found_and_where(tmp_path: Path) -> None:
    done = rappor("reproduce", NAME, "--output", tmp_path, "--seeds", "2", "--json")
    facts = json.loads(done.stdout)
    assert facts["output"] == str(tmp_path)
    assert facts["seeds"] == 2
    assert list(facts["experiments"]) == [NAME]


@pytest.mark.long
def test_the_same_seeds_give_the_same_files(output: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert rappor("reproduce", NAME, "--output", again, "--seeds", "4").returncode == 0
    for file in ("life-of-a-report.svg", "life-of-a-report.png", "life-of-a-report-bits.csv"):
        assert (again / NAME / file).read_bytes() == (output / NAME / file).read_bytes()


@pytest.mark.parametrize("arguments", [(), ("--list",)])
def test_names_are_listed(arguments: tuple[str, ...]) -> None:
    done = rappor("reproduce", *arguments)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()][:4] == [
        NAME,
        "recall-precision",
        "learnable",
        "normal",
    ]
    listed = json.loads(rappor("reproduce", "--list", "--json").stdout)["experiments"]
    assert len(listed) == 9


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("normall", "--output", "x"), 3, "did you mean normal?"),
        (("normal",), 2, "--output DIR"),
        (("--output", "x"), 2, "the NAME of an experiment, or all"),
        (("normal", "--output", "x", "--seeds", "1"), 2, "at least 2"),
        (("normal", "--output", "x", "--seeds", "0"), 2, "at least 2"),
        (("normal", "--output", "x", "--seeds", "few"), 2, "whole number"),
        (("normal", "--output", __file__), 3, "this is a file; name a folder"),
        (("normal", "--output", "~nobody-of-this-name/x"), 3, "no such home directory"),
    ],
)
def test_mistakes_get_one_line_and_no_traceback(
    arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = rappor("reproduce", *arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not Path("x").exists()
