"""The closed list of errors: stable, documented, and enough for a client to decide."""

import ast
import json
import re
from http import HTTPStatus
from pathlib import Path

import pytest

from rappor.errors import ParamsError
from rappor.wire import PROBLEMS, problem_json, protocol

PROTOCOL = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text(encoding="utf-8")


def documented() -> dict[str, tuple[int, str]]:
    """Code -> (status, what a client does), from the table of docs/protocol.md."""
    rows = re.findall(r"^\| `([a-z-]+)` \| ([0-9]{3}) \| (drop|retry) \|", PROTOCOL, re.MULTILINE)
    return {code: (int(status), action) for code, status, action in rows}


def test_every_code_is_documented_with_its_status_and_what_to_do() -> None:
    assert documented() == {
        code: (problem.status, "retry" if problem.retry else "drop")
        for code, problem in PROBLEMS.items()
    }


@pytest.mark.parametrize("code", PROBLEMS)
def test_a_problem_is_a_document_of_rfc_9457(code: str) -> None:
    problem = PROBLEMS[code]
    assert problem.code == code
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
    assert HTTPStatus(problem.status) >= 400
    assert problem.title.endswith(".")
    found = json.loads(problem_json(code, "more"))
    assert found == {
        "type": f"urn:rappor:problem:{code}",
        "title": problem.title,
        "status": problem.status,
        "code": code,
        "retry": problem.retry,
        "detail": "more",
    }
    assert "detail" not in json.loads(problem_json(code))


def test_what_may_succeed_later_and_what_never_will_are_told_apart_by_status_too() -> None:
    """A client that knows the status only decides as one that knows the code."""
    retried = {problem.status for problem in PROBLEMS.values() if problem.retry}
    dropped = {problem.status for problem in PROBLEMS.values() if not problem.retry}
    assert retried == {401, 403, 404, 408, 429, 500, 503, 507}
    assert not retried & dropped
    assert all(400 <= status < 500 for status in dropped)


def test_a_code_that_is_not_listed_cannot_be_sent() -> None:
    with pytest.raises(ParamsError, match="code must be one of the listed problems"):
        problem_json("whatever")


@pytest.fixture(scope="module")
def written() -> dict[str, set[str]]:
    """The words of each module: strings of one word, so without docstrings."""
    package = Path(protocol.__file__).parents[1]
    return {
        file.relative_to(package).as_posix(): {
            node.value
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if "\n" not in node.value and " " not in node.value
        }
        for file in package.rglob("*.py")
    }


@pytest.mark.parametrize("fact", ["/v1/reports", "vnd.rappor.batch", "problem+json"])
def test_a_fact_of_the_protocol_is_written_down_in_one_module(
    fact: str, written: dict[str, set[str]]
) -> None:
    """Elsewhere only in text for people: docstrings and comments."""
    homes = {module for module, words in written.items() if any(fact in word for word in words)}
    assert homes == {"wire/protocol.py"}
