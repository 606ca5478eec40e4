"""The documentation site as `make docs` builds it, opened from the disk without a network."""

import argparse
import html
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rappor
from rappor.cli.main import build_parser

pytestmark = pytest.mark.long

SITE = Path(__file__).parents[2] / "build" / "docs"
PHONE = {"width": 390, "height": 844}
WIDE = {"width": 1280, "height": 900}
REFERENCE = SITE / "reference"


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    found = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
    assert found, "there is no site: run make docs"
    return found


@pytest.fixture(scope="module", params=[(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"])
def page(request, browser) -> Iterator:
    """A tab without a network, wide and light or small and dark."""
    size, scheme = request.param
    context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
    context.set_default_timeout(120_000)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("epsilon_infinity", "Python"),
        ("detected", "Decoding: counts to strings"),
        ("quota", "Threat model"),
    ],
)
def test_the_search_finds_words_without_a_network(
    pages: list[Path], page, words: str, expected: str
) -> None:
    page.goto(f"{(SITE / 'search.html').as_uri()}?q={words}")
    page.get_by_text("Search finished").wait_for()  # results arrive one by one until then
    titles = page.locator("#search-results ul.search li a").all_inner_texts()
    assert any(expected.replace("’", "'") in title.replace("’", "'") for title in titles)


def test_every_public_name_is_in_the_reference(pages: list[Path]) -> None:
    text = (REFERENCE / "api.html").read_text(encoding="utf-8")
    modules = re.findall(
        r"^\.\. public-names:: (\S+)$",
        (SITE.parents[1] / "docs/reference/api.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    packages = {
        f"rappor.{path.parent.name}"
        for path in Path(rappor.__file__).parent.glob("*/__init__.py")
        if "__all__" in path.read_text(encoding="utf-8")
    }
    assert packages | {"rappor"} == set(modules)
    for module in modules:
        for name in importlib.import_module(module).__all__:
            full = f"{module}.{name}"
            assert f'id="{full}"' in text or f">{full}<" in text, full


def commands(parser: argparse.ArgumentParser, above: str = "") -> Iterator[tuple[str, str]]:
    """Each command with each of its options."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from commands(child, f"{above} {name}".strip())
        elif action.help != argparse.SUPPRESS:
            yield from ((above, option) for option in action.option_strings)


def test_no_sentence_about_a_property_is_taken_for_its_type(pages: list[Path]) -> None:
    text = (REFERENCE / "api.html").read_text(encoding="utf-8")
    assert 'Type<span class="colon">' not in text  # "Words: more words" in the first line


def test_an_example_of_a_command_is_literal_text(pages: list[Path]) -> None:
    text = (REFERENCE / "commands.html").read_text(encoding="utf-8")
    assert "Examples: rappor" not in text
    assert "Example: rappor" not in text


def test_every_command_and_option_is_in_the_reference(pages: list[Path]) -> None:
    text = (REFERENCE / "commands.html").read_text(encoding="utf-8")
    listed = set(re.findall(r'id="(?:rappor-)?([\w-]+)"', text))
    missing = [
        f"{command} {option}"
        for command, option in commands(build_parser())
        if option not in ("-h", "--help") and html.escape(option) not in text
    ]
    assert missing == []
    verbs = {command.replace(" ", "-") for command, _ in commands(build_parser()) if command}
    assert {verb for verb in verbs if not any(verb in name for name in listed)} == set()


def test_no_link_within_the_site_is_dead(pages: list[Path]) -> None:
    ids = {path: set(re.findall(r'\bid="([^"]+)"', path.read_text("utf-8"))) for path in pages}
    dead = []
    for path in pages:
        for link in re.findall(r'href="([^"]+)"', path.read_text(encoding="utf-8")):
            target, _, anchor = html.unescape(link).partition("#")
            target = target.partition("?")[0]  # a digest of the file, against old caches
            if re.match(r"[a-z]+:", target):
                continue
            file = (path.parent / target).resolve() if target else path
            known = ids.get(file)
            if not file.exists() or (anchor and known is not None and anchor not in known):
                dead.append(f"{path.relative_to(SITE)}: {link}")
    assert dead == []


def test_no_page_needs_a_network(pages: list[Path]) -> None:
    loaded = r'<(?:script[^>]*\bsrc|img[^>]*\bsrc|link[^>]*stylesheet[^>]*\bhref)="(https?:[^"]+)'
    for path in pages:
        assert re.findall(loaded, path.read_text(encoding="utf-8")) == [], path.name


LOOKED_AT = ("index", "client", "decode", "paper-map", "theory/epsilon-one", "reference/api",
             "reference/commands", "reference/http", "project/overview")  # fmt: skip


# Code that does not end within its box: on paper nobody can scroll to the rest.
CUT = """() => [...document.querySelectorAll("pre")]
  .filter((code) => code.scrollWidth > code.clientWidth + 1)
  .map((code) => code.textContent.slice(0, 60))"""


@pytest.mark.parametrize("name", LOOKED_AT)
def test_pages_fit_the_screen_and_the_paper_and_are_accessible(
    pages: list[Path], page, name: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.goto((SITE / f"{name}.html").as_uri())
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wider) == 0
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    page.emulate_media(media="print")
    assert page.evaluate(wider) == 0
    assert page.locator("aside.sidebar-drawer").is_hidden()
    assert page.evaluate(CUT) == []
    page.emulate_media(media="screen")
