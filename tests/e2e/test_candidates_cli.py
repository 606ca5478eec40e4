"""`rappor candidates` in real processes, with google/rappor's own files."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rappor import Params
from rappor.decoding.candidates import Candidates
from rappor.decoding.design import build_design
from rappor.decoding.mapfile import map_lines, read_map
from support.command import COMMAND, environment, rappor

REFERENCE = Path(__file__).parents[1] / "vectors" / "reference"
WINDOWS = REFERENCE / "windows" / "1"
SIX = ("--k", "4", "--h", "2", "--m", "1", "--f", ".5", "--p", ".5", "--q", ".75")


def google(folder: Path, *more: str | Path):
    file, params = folder / "candidates.txt", folder / "params.csv"
    return rappor("candidates", file, "--params", params, "--dialect", "google", *more)


@pytest.mark.parametrize("name", ["exponential/1", "windows/1"])
def test_googles_map_is_written_to_the_byte(name, tmp_path):
    done = google(REFERENCE / name, "--output", tmp_path / "map.csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "map.csv").read_bytes() == (REFERENCE / name / "map.csv").read_bytes()


def test_without_output_the_map_goes_to_standard_output():
    done = google(WINDOWS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.encode() == (WINDOWS / "map.csv").read_bytes()


def test_a_list_of_thousands_is_placed_as_it_is_read_back(tmp_path):
    folder, out = REFERENCE / "chrome" / "1", tmp_path / "map.csv"
    assert google(folder, "--output", out).returncode == 0
    params = Params.from_csv(folder / "params.csv")
    candidates = Candidates.read(folder / "candidates.txt")
    read, built = read_map(out, params), build_design(candidates, params, "google")
    assert read.strings == built.strings
    assert (read.index == built.index).all()
    assert len(read) == 8616


def test_the_summary_counts_what_is_there(tmp_path):
    out = tmp_path / "map.csv"
    done = google(WINDOWS, "--json", "--output", out)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    rows = [line.split(",")[1:] for line in (WINDOWS / "map.csv").read_text().split()]
    repeats = sum(len(row) - len(set(row)) for row in rows)
    assert found == {
        "params": Params.preset("windows").to_dict(),
        "dialect": "google",
        "candidates": 500,
        "merged": 0,
        "notes": [],
        "groups": [],
        "collisions": repeats,
        "expected_collisions": 500 * 8 / 128,
    }
    assert out.read_bytes() == (WINDOWS / "map.csv").read_bytes()


def test_what_was_done_to_the_list_is_said_on_standard_error(tmp_path):
    file = tmp_path / "list.txt"
    texts = [f"candidate {number}" for number in range(9)]
    file.write_text("\n".join(["zz", "", *texts, "zz", " b"]))
    done = rappor("candidates", file, *SIX)
    assert done.returncode == 0
    # The order of the file, each string once. Four bits hold six pairs: eleven cannot all differ.
    assert [row[0] for row in csv.reader(done.stdout.splitlines())] == ["zz", *texts, " b"]
    notes = done.stderr.splitlines()
    assert notes[:3] == [
        "note: 1 blank line was skipped",
        "note: 1 duplicate candidate was merged, such as 'zz'",
        "note: 1 candidate has spaces before or after, which were kept: ' b'",
    ]
    assert len(notes) == 4
    assert "have the same bits in every cohort and cannot be told apart" in notes[3]
    found = json.loads(rappor("candidates", file, *SIX, "--json").stdout)
    assert (found["candidates"], found["merged"], len(found["notes"])) == (11, 1, 3)
    assert (found["collisions"], found["expected_collisions"]) == (0, 0)
    design = build_design(["zz", *texts, " b"], Params(4, 2, 1, 0.5, 0.5, 0.75), "rappor-v1")
    names = design.strings.strings
    assert found["groups"] == [[names[i] for i in group] for group in design.groups()]
    assert found["groups"]


def test_a_dash_is_standard_output(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("a.org\nb.org\n")
    printed = rappor("candidates", file, *SIX, "--output", "-", cwd=tmp_path)
    assert printed.stdout == rappor("candidates", file, *SIX).stdout
    refused = rappor("candidates", file, *SIX, "--output", "-", "--json", cwd=tmp_path)
    assert (refused.returncode, "both print" in refused.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["list.txt"]


def test_strings_outside_the_terminals_letters_are_written_as_utf8(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("Zürich\n日本, 語\n", encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "candidates", file, "--preset", "windows"],
        capture_output=True,
        env=environment({"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}),
        timeout=300,
        check=True,
    )
    design = build_design(["Zürich", "日本, 語"], Params.preset("windows"), "rappor-v1")
    assert done.stdout == "".join(map_lines(design)).encode()
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "list.txt: no candidates: give at least one string to look for"),
        (b"a\n\xff\n", "list.txt, line 2: not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_a_bad_list_is_one_clear_message_and_no_map(data, message, tmp_path):
    file, out = tmp_path / "list.txt", tmp_path / "map.csv"
    file.write_bytes(data)
    done = rappor("candidates", file, "--preset", "windows", "--output", out)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.splitlines()[0].endswith(message)
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()


def test_wrong_use_and_missing_files_have_their_exit_codes(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("a\n")
    assert rappor("candidates", file).returncode == 2
    assert rappor("candidates", "--preset", "windows").returncode == 2
    assert rappor("candidates", tmp_path / "none.txt", "--preset", "windows").returncode == 3
    done = rappor("candidates", file, "--preset", "windows", "--dialect", "murmur")
    assert (done.returncode, "dialect must be one of" in done.stderr) == (3, True)
    done = rappor("candidates", file, "--preset", "normal")
    assert (done.returncode, "only strings have candidates" in done.stderr) == (2, True)


def test_help_loads_nothing_that_an_extra_brings():
    code = "import sys; from rappor.cli.main import build_parser; build_parser().format_help(); "
    code += "sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'pyarrow', 'tqdm')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_extra_it_says_what_to_install(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("a\n")
    # A site directory of its own, with nothing but this package in it, is the base install.
    source = Path(__import__("rappor").__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "rappor", "candidates", file, "--preset", "windows"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install 'rappor[analysis]'" in done.stderr


def test_candidates_are_read_from_standard_input(tmp_path):
    (tmp_path / "list.txt").write_text("a.org\nb.org\n")
    piped = rappor("candidates", "-", *SIX, stdin="a.org\nb.org\n")
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == rappor("candidates", tmp_path / "list.txt", *SIX).stdout
    for data, words in ((b"", "standard input: "), (b"\xff", "standard input, line 1: not UTF-8")):
        done = rappor("candidates", "-", *SIX, stdin=data)
        assert (done.returncode, done.stdout) == (3, "")
        assert words in done.stderr
