"""No page of the site is out of reach, and its reference and guides name what is there."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INCLUDED = "docs/README.md"  # the first page of the site is this one
PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for ending in ("md", "ipynb")
    for path in DOCS.rglob(f"*.{ending}")
    if path.relative_to(ROOT).as_posix() != INCLUDED
)


def listed(text: str, folder: str) -> set[str]:
    """The entries of a page's tables of contents, as paths in docs."""
    trees = re.findall(r"^(:::|```)\{toctree\}\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for _, tree in trees for line in tree.splitlines()]
    return {f"{folder}{line}" for line in lines if line and not line.startswith(":")}


ENTRIES = {
    entry
    for path in DOCS.rglob("*.md")
    for entry in listed(
        path.read_text(encoding="utf-8"),
        path.parent.relative_to(DOCS).as_posix().removeprefix(".") + "/" * (path.parent != DOCS),
    )
}


def test_entries_of_a_table_of_contents_are_read() -> None:
    text = "# A\n\n:::{toctree}\n:hidden:\n\none\ntwo/*\n:::\n\nthree\n"
    assert listed(text, "x/") == {"x/one", "x/two/*"}


@pytest.mark.parametrize("page", [page for page in PAGES if page != "index"])
def test_a_page_is_in_a_table_of_contents(page: str) -> None:
    assert any(fnmatch(page, entry) for entry in ENTRIES), "list it in docs/index.md"


@pytest.mark.parametrize("page", [page for page in PAGES if "/" not in page and page != "index"])
def test_a_page_is_on_the_first_page(page: str) -> None:
    first = (DOCS / "README.md").read_text(encoding="utf-8")
    assert f"({page}.md)" in first or page == "decisions", "add a row to docs/README.md"


def test_every_package_with_public_names_is_in_the_reference() -> None:
    reference = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\.\. public-names:: (\S+)$", reference, re.MULTILINE))
    package = ROOT / "src" / "rappor"
    public = {
        ".".join(path.parent.relative_to(package.parent).parts)
        for path in (package / "__init__.py", *package.glob("*/__init__.py"))
        if "__all__" in path.read_text(encoding="utf-8")
    }
    assert described == public


GUIDE = (DOCS / "extend.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:src|tests|docs|tools)/[\w./-]+\w|[A-Z]+\.md)`", GUIDE)))
# Files that the guide tells a contributor to write.
WRITTEN = re.compile(r"two_peaks|any_bit|NAME")


def test_a_file_that_the_guide_to_new_parts_names_exists() -> None:
    there = [name for name in NAMED if not WRITTEN.search(name)]
    assert len(there) > 50
    assert [name for name in there if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", ["DIALECTS", "KINDS", "ATTACKS", "PAGES", "Store", "EXPERIMENT"])
def test_the_guide_names_the_list_that_a_new_part_joins(name: str) -> None:
    assert f"`{name}`" in GUIDE
    source = "\n".join(
        (ROOT / path).read_text(encoding="utf-8")
        for path in NAMED
        if path.endswith(".py") and (ROOT / path).exists()
    ) + (ROOT / "src/rappor/experiments/template/experiment.py").read_text(encoding="utf-8")
    assert re.search(rf"^(class )?{name}\b", source, re.MULTILINE)
