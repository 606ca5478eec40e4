"""The tutorials run, and print what they say or store."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rappor.cli.main import build_parser
from support.command import environment

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
SCRIPTS = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
EXECUTE = Path(__file__).parents[1] / "support" / "notebooks.py"


@pytest.mark.long
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_tutorial_prints_what_it_says(script: Path) -> None:
    promised = re.findall(r"^# prints: (.*)$", script.read_text("utf-8"), re.MULTILINE)
    assert len(promised) >= 5
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        env=environment({}),
        timeout=300,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == promised


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_shows_what_it_stores(notebook: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXECUTE, "--check", notebook],
        capture_output=True,
        env=environment({"DO_NOT_TRACK": "1"}),
        timeout=600,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_stored_with_its_outputs_and_without_places_or_errors(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["source"]]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert len(outputs) >= 5
    assert {output["output_type"] for output in outputs} <= {"stream", "execute_result"}
    assert all(output.get("name") != "stderr" for output in outputs)
    assert not re.search(r"/(home|root|tmp|Users)/", json.dumps(outputs))


def test_the_page_lists_every_tutorial_and_its_commands_parse() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    assert (len(SCRIPTS), len(NOTEBOOKS)) == (2, 2)
    assert all(f"({tutorial.name})" in page for tutorial in [*SCRIPTS, *NOTEBOOKS])
    commands = re.findall(r"^rappor .*$", page, re.MULTILINE)
    assert len(commands) == 3
    for line in commands:
        words = shlex.split(line)
        assert build_parser().parse_args(words[1:]).verb == words[1]
