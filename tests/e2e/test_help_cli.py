"""`rappor --help` lists every verb under the role that uses it first."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from rappor.cli.main import build_parser
from rappor.cli.roles import ROLES

START = (Path(__file__).parents[2] / "docs" / "start-here.md").read_text(encoding="utf-8")


def verbs() -> list[str]:
    """Every verb of the command."""
    (subparsers,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return list(subparsers.choices)


def test_every_verb_has_one_role() -> None:
    grouped = Counter(name for names in ROLES.values() for name in names)
    assert grouped == Counter(verbs()), "add a new verb to rappor.cli.roles"


def test_help_shows_the_verbs_of_a_role_together_and_no_others() -> None:
    shown = build_parser().format_help()
    assert "others:" not in shown
    for role, names in ROLES.items():
        section = shown.split(f"\n{role}:\n")[1].split("\n\n")[0]
        assert re.findall(r"^  ([a-z]+) ", section, re.MULTILINE) == list(names)


def test_a_verb_without_a_role_is_still_shown() -> None:
    parser = build_parser()
    (subparsers,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    subparsers.add_parser("novel", help="a verb that nobody gave a role")
    assert "others:\n  novel " in parser.format_help()


def test_start_here_has_a_section_for_every_role() -> None:
    headings = re.findall(r"^## (.*)$", START, re.MULTILINE)
    roles = [role.partition(",")[0].capitalize() for role in ROLES]
    assert [heading for heading in headings if heading in roles] == roles
