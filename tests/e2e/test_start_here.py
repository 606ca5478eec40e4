"""docs/start-here.md: the first commands of every role work as they stand, in an empty folder."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rappor.cli.main import build_parser
from rappor.cli.roles import ROLES
from support.command import environment
from support.waiting import wait_for

PAGE = (Path(__file__).parents[2] / "docs" / "start-here.md").read_text(encoding="utf-8")
SECTIONS = {text.partition("\n")[0]: text for text in PAGE.split("\n## ")[1:]}
ROLE_NAMES = [role.partition(",")[0].capitalize() for role in ROLES]


def blocks(role: str, language: str = "sh") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", SECTIONS[role], re.DOTALL | re.MULTILINE)
    return [text for kind, text in found if kind == language]


def commands(role: str) -> list[list[str]]:
    lines = [line for block in blocks(role) for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("role", ROLE_NAMES)
def test_every_command_is_one(role: str) -> None:
    assert commands(role)
    for words in commands(role):
        if words[0] == "rappor":
            assert build_parser().parse_args(words[1:]).verb == words[1]


def run(words: list[str], folder: Path) -> str:
    if words[0] == "mkdir":
        (folder / words[1]).mkdir()
        return ""
    return python("-m", *words, folder=folder)


def python(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr}"
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "role", [name for name in ROLE_NAMES if name[0] not in "EO"] + ["Engineer"]
)
def test_the_first_commands_of_a_role_work(role: str, tmp_path: Path) -> None:
    for text in blocks(role, "text"):
        (tmp_path / "population.csv").write_text(text, encoding="utf-8")
    for words in commands(role):
        assert run(words, tmp_path).strip() or "--output" in words, words
    drawn = [words[words.index("--plot") + 1] for words in commands(role) if "--plot" in words]
    for program in blocks(role, "python"):
        assert python("-W", "error", "-c", program, folder=tmp_path).strip()
        drawn += re.findall(r'\.save\("(.+)"\)', program)
    assert all((tmp_path / name).stat().st_size > 1000 for name in drawn)


@pytest.mark.long
def test_the_first_commands_of_an_operator_work(tmp_path: Path) -> None:
    made, defined, served, status, link = commands("Operator")
    run(made, tmp_path)
    run(defined, tmp_path)
    ports = {"8080": "0", "8090": "0"}  # any free ones: others run tests on this machine too
    serving = [ports.get(word, word) for word in served]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *serving],
            cwd=tmp_path,
            env=environment({}),
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(lambda: "dashboard-listening" in (tmp_path / "log").read_text(), "the dashboard")
        assert "store: sound" in run(status, tmp_path)
        assert "/login?link=" in run(link, tmp_path)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


def test_the_readme_leads_here() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert "docs/start-here.md" in readme.partition("## How it works")[0]
