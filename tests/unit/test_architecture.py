"""docs/architecture.md names files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rappor"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", PAGE)))


def defined(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """The functions and classes of a body, each with what it contains."""
    return {
        node.name: node.body
        for node in body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }


def has(file: Path, name: str) -> bool:
    """Whether a file defines a name, which may be a method of a class."""
    body: list[ast.stmt] | None = ast.parse(file.read_text(encoding="utf-8")).body
    for part in name.split(".") if name else ():
        body = defined(body).get(part) if body is not None else None
    return body is not None


def test_the_page_names_many_files() -> None:
    assert len(NAMED) > 50


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_file_and_a_name_on_the_page_exist(path: str, name: str) -> None:
    if path.startswith("tests/"):
        assert (ROOT / path).exists()
        return
    assert has(PACKAGE / path, name), f"{path}:{name}"


def test_every_package_is_on_the_page() -> None:
    packages = {place.name for place in PACKAGE.iterdir() if (place / "__init__.py").exists()}
    assert {name for name in packages if f"`{name}/`" not in PAGE} == set()


def test_a_name_that_is_gone_is_noticed() -> None:
    assert has(PACKAGE / "params.py", "Params.preset")
    assert not has(PACKAGE / "params.py", "Params.presets")
