"""The documentation is true: its examples run, its links resolve, every proof has numbers."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ALL_PAGES = sorted(DOCS.rglob("*.md"))
THEORY_PAGES = sorted((DOCS / "theory").glob("*.md"))
PAGES_WITH_EXAMPLES = THEORY_PAGES + sorted(DOCS.glob("*.md"))

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*(\w*)")
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")


def _name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def _split(text: str) -> tuple[str, str]:
    """The page with only its python blocks, and with only its prose; line numbers are kept."""
    code: list[str] = []
    prose: list[str] = []
    fence = language = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        opens, closes = mark and not fence, mark and fence and mark[1].startswith(fence)
        code.append(line if fence and not closes and language == "python" else "")
        prose.append("" if fence or mark else line)
        if mark and opens:
            fence, language = mark[1], mark[2]
        elif closes:
            fence = language = ""
    assert not fence, "a fenced block is not closed"
    return "\n".join(code) + "\n", "\n".join(prose) + "\n"


def _examples(page: Path) -> doctest.DocTest:
    code, _ = _split(page.read_text(encoding="utf-8"))
    return doctest.DocTestParser().get_doctest(code, {}, _name(page), str(page), 0)


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    _, prose = _split(page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#{1,6} +(.*?) *$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_there_are_pages_to_check() -> None:
    assert DOCS / "theory" / "README.md" in THEORY_PAGES
    assert DOCS / "threat-model.md" in PAGES_WITH_EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=_name)
def test_examples_of_a_page_give_what_it_prints(page: Path) -> None:
    report: list[str] = []
    failed, _ = doctest.DocTestRunner().run(_examples(page), out=report.append)
    assert not failed, "".join(report)


@pytest.mark.parametrize("page", THEORY_PAGES, ids=_name)
def test_a_theory_page_has_examples(page: Path) -> None:
    assert _examples(page).examples


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=_name)
def test_no_example_stands_where_it_is_not_run(page: Path) -> None:
    prompts = re.findall(r"^\s*>>> ", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(prompts) == len(_examples(page).examples)


@pytest.mark.parametrize("page", ALL_PAGES, ids=_name)
def test_relative_links_of_a_page_resolve(page: Path) -> None:
    _, prose = _split(page.read_text(encoding="utf-8"))
    broken = []
    for link in _LINK.findall(re.sub(r"`[^`]*`", "", prose)):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in _anchors(target)
        ):
            broken.append(link)
    assert not broken


def test_a_wrong_example_is_noticed() -> None:
    code, prose = _split("# A page\n```python\n>>> 1 + 1\n3\n```\n>>> in prose\n")
    wrong = doctest.DocTestParser().get_doctest(code, {}, "page", "page", 0)
    assert [example.lineno for example in wrong.examples] == [2]
    assert doctest.DocTestRunner().run(wrong, out=lambda text: None).failed == 1
    assert prose == "# A page\n\n\n\n\n>>> in prose\n"
