"""docs/paper-map.md is true: every requirement has one row, and every target in it exists."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "paper-map.md"
PARTS = ("decoding", "simulator and planner", "collector and client", "dashboard")
_CODE = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    number: int
    about: str
    code: str
    tests: str
    state: str

    @property
    def later(self) -> bool:
        return self.state.startswith("later")

    @property
    def functions(self) -> list[str]:
        return _CODE.findall(self.code)

    @property
    def test_targets(self) -> list[str]:
        return _CODE.findall(self.tests)


def rows_of(text: str, letter: str = "R") -> list[Row]:
    rows = []
    for line in text.splitlines():
        if re.match(rf"\| {letter}\d+ ", line):
            number, *cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
            rows.append(Row(int(number[1:]), *cells))
    return rows


ROWS = rows_of(PAGE.read_text(encoding="utf-8"))
BUILT = [row for row in ROWS if not row.later]
REPEATS = rows_of(PAGE.read_text(encoding="utf-8"), "H")  # several reports from one client


def _name(row: Row) -> str:
    return f"R{row.number}"


def load(target: str) -> object:
    """The object that a dotted name stands for."""
    parts = target.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(target)


@cache
def functions_in(path: Path) -> frozenset[str]:
    """The test functions of a file, those of its classes included."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def missing_test(target: str) -> str | None:
    """What is wrong with a test target, or None."""
    path, _, name = target.partition("::")
    file = ROOT / path
    if not path.startswith("tests/") or not file.is_file():
        return f"no file {path}"
    if name and name.partition("[")[0] not in functions_in(file):
        return f"no test {name} in {path}"
    return None


def test_every_requirement_has_exactly_one_row_in_order() -> None:
    assert [row.number for row in ROWS] == list(range(1, 73))


def test_requirements_are_named_nowhere_else_as_rows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^\|\s*R\s*\d+", text, re.MULTILINE)) == 72


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_a_row_says_what_is_there(row: Row) -> None:
    assert row.about
    assert re.match(r"here|part|later", row.state)
    if row.state != "here":
        assert any(part in row.state for part in PARTS), f"{row.state}: which part?"


def test_rows_for_later_claim_nothing() -> None:
    assert [row.number for row in ROWS if row.later and (row.functions or row.test_targets)] == []


def test_repeated_reports_have_rows_of_their_own() -> None:
    assert [row.number for row in REPEATS] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "row", [*BUILT, *REPEATS], ids=[*map(_name, BUILT), *(f"H{row.number}" for row in REPEATS)]
)
def test_a_row_that_is_built_names_code_and_tests_that_exist(row: Row) -> None:
    assert row.test_targets, "no test"
    assert row.functions or row.number == 72, "no code"
    for target in row.functions:
        load(target)
    assert [wrong for target in row.test_targets if (wrong := missing_test(target))] == []


def test_what_this_version_promises_is_built() -> None:
    promised = {*range(1, 44), *range(46, 51)}
    assert promised <= {row.number for row in BUILT}


def test_wrong_targets_are_noticed() -> None:
    with pytest.raises(AttributeError):
        load("rappor.mechanism.no_such_function")
    with pytest.raises(ModuleNotFoundError):
        load("no_such_package.function")
    assert missing_test("tests/unit/test_paper_map.py::test_wrong_targets_are_noticed") is None
    assert missing_test("tests/unit/test_paper_map.py::test_that_is_not_there") is not None
    assert missing_test("tests/unit/test_no_such_file.py") is not None
