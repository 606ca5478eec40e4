"""The README, from an empty folder: clients over real HTTP, the collector, decode."""

import json
import subprocess
import sys
from pathlib import Path

from support.code_blocks import blocks
from support.command import environment, rappor

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
RUN_IT = [block for block in blocks(README) if block.section == "Engineer" and block.is_run]


def test_the_quick_start_is_ten_lines_of_python_and_two_commands() -> None:
    (python,) = (block.code for block in RUN_IT if block.language == "python")
    assert len([line for line in python.splitlines() if line]) <= 10
    collect, decode, *_ = (
        block.code for block in RUN_IT if block.language == "sh" and not block.hidden
    )
    assert collect.startswith("rappor collect ")
    listed, decoded = decode.splitlines()
    assert listed.startswith("printf ")
    assert decoded.startswith("rappor decode homepage ")


def test_every_block_of_the_readme_runs_and_the_quick_start_shows_the_strings(
    tmp_path: Path,
) -> None:
    runner = ROOT / "tests" / "support" / "code_blocks.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", runner, README, "--folder", tmp_path, "--forked"],
        env=environment({"PYTHONPATH": str(ROOT / "tests"), "HOME": str(tmp_path)}),
        capture_output=True,
        timeout=600,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shown = ("--data", "data", "--candidates", "candidates.txt", "--json")
    found = rappor("decode", "homepage", *shown, cwd=tmp_path)
    facts = json.loads(found.stdout)
    assert facts["reports"] == 150
    # The clients' noise is real: in a few runs of a hundred the third string is a false find.
    assert {row["string"] for row in facts["rows"]} >= {"example.com", "example.org"}
