"""The tests themselves: where they lie, and that none of them bets on time."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "rappor"
IN_PROCESSES = {"cli"}  # packages whose tests are in tests/e2e
CLOCKS = {"monotonic", "perf_counter", "process_time", "time"}
FILES = sorted(TESTS.rglob("*.py"))


DOCUMENTS = [
    *TESTS.parent.glob("*.md"),
    *TESTS.parent.glob("docs/**/*.md"),
    *TESTS.parent.glob("src/rappor/**/*.py"),
]


def packages(folder: Path) -> set[str]:
    return {place.name for place in folder.iterdir() if any(place.glob("*.py"))}


def test_unit_tests_mirror_the_packages() -> None:
    assert packages(TESTS / "unit") == packages(PACKAGE) - IN_PROCESSES


def test_documents_name_tests_that_are_there() -> None:
    named = {
        (document.name, path)
        for document in DOCUMENTS
        for path in re.findall(r"`(tests/[\w/*.-]+)", document.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert [each for each in sorted(named) if not any(TESTS.parent.glob(each[1]))] == []


def reads_a_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (
        called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    ) in CLOCKS


def measurements(source: str) -> list[int]:
    """The lines that take the difference of two readings of a clock."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and reads_a_clock(node.left)
    )


@pytest.mark.parametrize(
    "code", ["assert time.monotonic() - began < 2", "took.append(perf_counter() - began)"]
)
def test_a_measured_duration_is_recognised(code: str) -> None:
    assert measurements(f"def test():\n    {code}\n") == [2]


@pytest.mark.parametrize(
    "code", ["sender.send(until=clock.monotonic() + 60)", "assert time.monotonic() < limit"]
)
def test_a_limit_is_no_measured_duration(code: str) -> None:
    assert measurements(f"def test():\n    {code}\n") == []


@pytest.mark.slow
def test_no_test_measures_how_long_something_takes() -> None:
    found = {
        str(file.relative_to(TESTS)): lines
        for file in FILES
        if (lines := measurements(file.read_text(encoding="utf-8")))
    }
    assert found == {}
