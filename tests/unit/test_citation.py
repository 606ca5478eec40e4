"""CITATION.cff: this version, and the paper. test_project_files.py checks it by its schema."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from rappor import __version__

ROOT = Path(__file__).parents[2]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
# Those keys of a reference that this file uses; the format has more.
REFERENCE = {
    *("type", "title", "authors", "collection-title", "conference", "year", "start", "end"),
    *("doi", "url"),
}
PERSON, ENTITY = {"family-names", "given-names"}, {"name"}
DOI = re.compile(r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-.()\[\]\\]+")


def test_the_version_and_the_licence_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert str(CITATION["version"]) == __version__
    assert CITATION["license"] == project["license"]
    assert CITATION["authors"] == project["authors"]


def test_the_paper_is_cited_too() -> None:
    (paper,) = CITATION["references"]
    assert {"type", "title", "authors"} <= set(paper) <= REFERENCE
    assert paper["type"] == "conference-paper"
    assert [author["family-names"] for author in paper["authors"]] == [
        *("Erlingsson", "Pihur", "Korolova"),
    ]
    assert all(set(author) == PERSON for author in paper["authors"])
    assert set(paper["conference"]) == ENTITY
    assert DOI.fullmatch(paper["doi"])
    assert (paper["year"], paper["start"] < paper["end"]) == (2014, True)


def test_the_readme_says_how_to_cite() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## Cite it")[2].partition("\n## ")[0]
    assert "CITATION.cff" in section
    assert CITATION["references"][0]["doi"] in section
    assert CITATION["references"][0]["title"] in " ".join(section.split())
