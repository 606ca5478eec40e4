"""The tutorials run, and print what they say."""

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


def test_the_page_lists_every_tutorial_and_its_commands_parse() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    assert len(SCRIPTS) == 2
    assert all(f"({script.name})" in page for script in SCRIPTS)
    commands = re.findall(r"^rappor .*$", page, re.MULTILINE)
    assert len(commands) == 3
    for line in commands:
        words = shlex.split(line)
        assert build_parser().parse_args(words[1:]).verb == words[1]
