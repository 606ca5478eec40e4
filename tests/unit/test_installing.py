"""Install lines of the documents are pinned by hash, and nothing is installed that nobody uses."""

import re
import tomllib
from pathlib import Path

import pytest

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
        if not re.search(r"--require-hashes -r constraints[a-z-]*\.txt", line)
        and not re.search(r"--no-deps --no-build-isolation (-e )?\.(\s|$)", line)
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_install_line_of_a_document_is_pinned_by_hash(path: Path) -> None:
    assert unpinned(path.read_text("utf-8")) == []


def test_a_line_without_hashes_is_found() -> None:
    for line in ("pip install rappor", "`pip install '.[analysis]'`", "uv pip install x==1"):
        assert unpinned(line) != []


def test_every_dependency_of_an_extra_is_imported_somewhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = {
        re.split(r"[^A-Za-z0-9_.-]", each, maxsplit=1)[0]
        for extra, requirements in extras.items()
        if extra != "dev"
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
