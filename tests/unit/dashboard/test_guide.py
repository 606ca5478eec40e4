"""The pages about the dashboard name every option, role, event and table; none can be forgotten."""

import argparse
import re
from pathlib import Path

import pytest

from rappor.cli import access, dashboard
from rappor.dashboard.state.database import MIGRATIONS

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "dashboard.md").read_text(encoding="utf-8")
OPERATOR = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
MODEL = (ROOT / "docs" / "data-model.md").read_text(encoding="utf-8")
OWN = MODEL.partition("## The dashboard's own file")[2].partition("\n## ")[0]
SCHEMA = "\n".join(statement for migration in MIGRATIONS for statement in migration)
SOURCES = "\n".join(
    file.read_text(encoding="utf-8") for file in (ROOT / "src/rappor/dashboard").glob("*.py")
)


def options() -> list[str]:
    verb = dashboard.register(argparse.ArgumentParser().add_subparsers())
    found = [option for action in verb._actions for option in action.option_strings]
    return [option for option in found if option not in ("-h", "--help")]


@pytest.mark.parametrize("option", options())
def test_every_option_is_in_the_guide(option: str) -> None:
    assert f"`{option} " in GUIDE or f"`{option}`" in GUIDE


@pytest.mark.parametrize("role", access.ROLES)
def test_every_role_is_in_the_guide(role: str) -> None:
    assert f"\n| {role.replace('-', ' ')} |" in GUIDE


@pytest.mark.parametrize("table", re.findall(r"CREATE TABLE (\w+)", SCHEMA))
def test_every_table_is_narrated(table: str) -> None:
    assert f"\n### `{table}`\n" in OWN


def test_the_number_of_the_schema_is_the_one_in_use() -> None:
    assert f"(now {len(MIGRATIONS)})" in OWN


def test_the_event_of_a_dashboard_that_listens_is_in_the_operators_guide() -> None:
    named = set(re.findall(r'_LOG\.\w+\(\s*"([a-z]+-[a-z-]+)"', SOURCES))
    assert "dashboard-listening" in named
    assert [name for name in sorted(named) if f"`{name}`" not in OPERATOR] == []
