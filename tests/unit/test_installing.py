"""Install lines of the documents are pinned by hash, and nothing is installed that nobody uses."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from rappor import __version__

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# What an extra names is imported under another name, or used by a library that is.
IMPORTED_AS = {"scikit-learn": "sklearn", "vl-convert-python": "vl_convert"}
USED_BY = {"python-multipart": "starlette", "uvloop": "uvicorn", "httptools": "uvicorn"}


def unpinned(text: str) -> list[str]:
    """Install lines that fetch what no hash in this repository names."""
    lines = re.findall(r"\b(?:pip3?|pipx|uv pip|uv|npm|conda) (?:install|add)\b[^\n]*", text)
    return [
        line
        for line in lines
        if not re.search(r"--require-hashes -r (dist/)?constraints[a-z-]*\.txt", line)
        and not re.search(r"--no-index dist/rappor-[0-9.]+-py3-none-any\.whl", line)
        and not re.search(r"--no-deps --no-build-isolation (-e )?\.(\s|$)", line)
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_install_line_of_a_document_is_pinned_by_hash(path: Path) -> None:
    assert unpinned(path.read_text("utf-8")) == []


def test_the_wheel_of_an_install_line_is_the_one_that_is_built() -> None:
    built = f"rappor-{__version__}-py3-none-any.whl"
    named = [
        re.findall(r"rappor-[0-9][\w.]*-py3-none-any\.whl", path.read_text("utf-8"))
        for path in DOCUMENTS
    ]
    assert {name for names in named for name in names} == {built}


def test_a_line_without_hashes_is_found() -> None:
    for line in ("pip install rappor", "`pip install '.[analysis]'`", "uv pip install x==1"):
        assert unpinned(line) != []


def test_every_dependency_of_an_extra_is_imported_somewhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = {
        re.split(r"[^A-Za-z0-9_.-]", each, maxsplit=1)[0]
        for requirements in extras.values()
        for each in requirements
    } - {"rappor"}
    assert names
    for name in sorted(names):
        module = IMPORTED_AS.get(name, USED_BY.get(name, name.replace("-", "_")))
        written = rf"^\s*(import|from) {module}\b|\(\"{module}\""
        assert re.search(written, source, re.MULTILINE), name


def test_constraints_have_no_address_and_a_hash_for_each_release() -> None:
    for path in ROOT.glob("constraints*.txt"):
        text = path.read_text("utf-8")
        assert "://" not in text
        assert len(re.findall(r"^[a-z0-9]", text, re.MULTILINE)) <= text.count("--hash=sha256:")


def test_the_lock_of_the_javascript_client_is_whole_and_names_no_address() -> None:
    """`npm ci` refuses a lock that lacks a platform's package, on every platform."""
    lock = json.loads((ROOT / "clients/js/package-lock.json").read_text("utf-8"))["packages"]
    installed = {path: package for path, package in lock.items() if path}
    for path, package in lock.items():
        named = package.get("dependencies", {}) | package.get("optionalDependencies", {})
        missing = {name for name in named if f"node_modules/{name}" not in installed}
        assert missing == set(), path
    assert all(package["integrity"].startswith("sha512-") for package in installed.values())
    assert not any("resolved" in package for package in installed.values())
