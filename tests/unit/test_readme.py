"""README.md and the pages that its tables moved to are true: examples, figures, links."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from rappor.cli.main import build_parser
from rappor.params import PRESETS
from rappor.planning import plan
from rappor.planning.expected_detections import ExpectedCrowd, expected
from rappor.planning.power import detector
from rappor.privacy import critical_value, epsilon_infinity, epsilon_n, epsilon_one
from rappor.privacy.rounding import up
from rappor.simulate import exponential
from support.code_blocks import blocks

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in FENCES if language == "python" and "Client" not in code]
EPSILON = (ROOT / "docs" / "epsilon.md").read_text(encoding="utf-8")
PLAN = (ROOT / "docs" / "plan.md").read_text(encoding="utf-8")
ENCODER = [
    block.code
    for block in blocks(ROOT / "docs" / "client.md")
    if block.section == "Only the encoder" and block.language == "python"
]
ROLES = ("Engineer", "Operator", "Analyst", "Privacy officer", "Researcher")
COMMANDS = [
    line for _, code in FENCES for line in code.splitlines() if re.match(r"(rappor|make) ", line)
]


def test_the_first_screen_says_what_why_when_not_for_how_many_and_how() -> None:
    first = README.partition("## How it works")[0]
    assert len(first.splitlines()) < 60
    order = [
        first.index(words)
        for words in ("without data about any user", "**Why this one.**", "**When not:**",
                      "**How many users do I need?**", "![", "\nmake demo", "\nmake test")
    ]  # fmt: skip
    assert order == sorted(order)
    assert "docs/start-here.md" in first


@pytest.mark.parametrize("role", ROLES)
def test_each_role_has_a_block_and_a_link_to_go_on(role: str) -> None:
    section = README.partition(f"\n## {role}\n")[2].partition("\n## ")[0]
    assert re.search(r"^```(sh|python)$", section, re.MULTILINE)
    assert re.search(r"Next:\s+\[", section)
    assert role in (ROOT / "docs" / "start-here.md").read_text(encoding="utf-8")


def test_long_tables_live_on_the_site() -> None:
    assert len([line for line in README.splitlines() if line.startswith("|")]) <= 6
    assert len(README.splitlines()) < 250


def test_there_are_two_short_examples() -> None:
    assert (len(PYTHON), len(ENCODER)) == (1, 1)
    assert all(len([line for line in code.splitlines() if line]) <= 10 for code in PYTHON + ENCODER)


@pytest.mark.slow
@pytest.mark.parametrize("code", PYTHON + ENCODER)
def test_the_example_runs_and_prints_what_it_says(code: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    promised = re.findall(r"^print\(.*  # (.*)$", code, re.MULTILINE)
    assert promised
    assert printed.getvalue().splitlines() == promised


@pytest.mark.parametrize("name", PRESETS)
def test_the_figures_of_a_preset_are_those_of_the_code(name: str) -> None:
    params, kind, _ = PRESETS[name]
    row = re.search(rf"^\| `{name}` \|(.*)\|$", EPSILON, re.MULTILINE)
    assert row is not None
    shown = [cell.strip() for cell in row[1].split("|")][:3]
    losses = epsilon_one(params, kind), epsilon_n(params, 10, kind), epsilon_infinity(params, kind)
    assert shown == [up(loss) for loss in losses]


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("rappor ")])
def test_a_command_of_the_readme_is_one(line: str) -> None:
    words = shlex.split(line, comments=True)
    assert build_parser().parse_args(words[1:]).verb == words[1]


def test_the_targets_of_make_exist() -> None:
    targets = re.findall(r"\bmake ([a-z]+)\b", " ".join(COMMANDS) + " make bench")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_relative_links_resolve() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    local = [link.partition("#")[0] for link in links if "://" not in link]
    assert len(local) > 5
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_the_oldest_python_named_is_the_one_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    assert "Python 3.11 or newer" in README


def test_the_limits_are_stated() -> None:
    limits = README.partition("## What it does not protect against")[2].partition("\n## ")[0]
    for word in ("panacea", "wider strategy", "Changing", "Small", "secret", "Forged", "Laplace"):
        assert word in limits, word


def test_the_strings_that_plans_detect_are_those_of_the_code() -> None:
    said = re.search(r"detects\s+(\d+)\s+strings where its h = 2\s+detects\s+(\d+)", PLAN)
    assert said is not None
    population = exponential(100, absent=100)
    ours = plan(1.0743, 4.3944, 10**6, 200, population=population, check=0).best
    assert int(said[1]) == round(ours.expected.family_wise)
    crowd = ExpectedCrowd.of(population)
    paper = PRESETS["exponential"].params
    test = crowd.around(detector(paper, 10**6, critical_value(200), "string"))
    assert abs(int(said[2]) - expected(test, crowd, 200, 0.05).family_wise) <= 1


USERS_NEEDED = re.findall(r"^\| ([a-z' ]+): ([\d.]+), ([\d.]+) \|(.*)\|$", README, re.MULTILINE)


def test_the_users_that_are_needed_are_shown_for_three_levels_of_privacy() -> None:
    assert [row[0] for row in USERS_NEEDED] == ["strict", "the paper's", "weak"]


@pytest.mark.slow
@pytest.mark.parametrize(("level", "one", "every", "cells"), USERS_NEEDED)
def test_the_users_that_are_needed_are_those_of_the_planner(
    level: str, one: str, every: str, cells: str
) -> None:
    goal = {"epsilon_one": float(one), "epsilon_infinity": float(every), "candidates": 200}
    users = (10**4, 10**5, 10**6, 10**7)
    plans = [plan(**goal, reports=reports, check=0).best for reports in users]
    shown = [cell.strip() for cell in cells.split("|")]
    assert shown == [f"{100 * best.at(0.8).frequency:.3g} %" for best in plans], level
