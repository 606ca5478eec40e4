"""docs/collections.md tells every field and every code, and no others."""

import dataclasses
import re
from pathlib import Path

from rappor.collection import Collection
from rappor.collection.change import FREE, REVIEW, RULES, VERSION

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "collections.md").read_text(encoding="utf-8")
SOURCES = [
    *(ROOT / "src/rappor/collection").glob("*.py"),
    *(ROOT / "src/rappor/cli").glob("collection*.py"),
]


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_every_field_is_told_in_the_table_and_no_other() -> None:
    told = [row[0].strip("`") for row in rows("Fields")]
    assert sorted(told) == sorted(field.name for field in dataclasses.fields(Collection))
    assert all(len(row) == 3 and len(row[2]) > 15 for row in rows("Fields"))


def test_every_code_of_lint_is_told_with_its_severity_and_section() -> None:
    pattern = re.compile(
        r"(?:say|about\(collection\)|Finding)\(\s*\"([a-z-]+)\",\s*(.*?),\s*\"(§[\d.]+|)\"",
        re.DOTALL,
    )
    found = {}
    for source in SOURCES:
        for code, severity, section in pattern.findall(source.read_text(encoding="utf-8")):
            found[code] = (set(re.findall(r"error|warning", severity)), section or "-")
    told = {
        row[0].strip("`"): (set(re.findall(r"error|warning", row[1])), row[2])
        for row in rows("Lint")
    }
    assert len(found) > 25
    assert told == found


def test_every_changed_field_is_told_with_what_it_needs() -> None:
    told = {row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in rows("Changes")}
    always = {FREE: set(), REVIEW: set(), VERSION: set()}
    for name, rule in RULES.items():
        words = {"sensitivity": ("low", "high"), "on_expiry": ("delete", "keep-counts")}
        for pair in (words[name],) if name in words else ((1, 2), (2, 1)):
            always[rule(*pair)[0]].add(name)
    assert told["a new version, refused without"] == always[VERSION]
    assert told["a review"] >= always[REVIEW] - {"sensitivity"}
    assert set().union(*told.values()) >= set(RULES)
