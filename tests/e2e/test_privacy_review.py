"""docs/privacy-review.md: its commands work, and say what the page says they do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.command import rappor

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "privacy-review.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(?:sh|text)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [shlex.split(line, comments=True)[1:] for line in BLOCKS[0].splitlines()]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command of the page prints about a new collection."""
    file = tmp_path_factory.mktemp("review") / "homepage.toml"
    assert rappor("collection", "new", "homepage", "--output", file).returncode == 0
    made = {}
    for words in COMMANDS:
        done = rappor(*[str(file) if word == "homepage.toml" else word for word in words])
        assert (done.returncode, done.stderr) == (0, ""), words
        made[" ".join(words[:2]) if words[0] == "collection" else words[0]] = done.stdout
    return made


def test_show_says_what_leaves_and_what_is_kept(answers: dict[str, str]) -> None:
    shown = answers["collection show"]
    for words in (
        "What leaves the client",
        "Never the value, its filter, the secret, an id, an address or a time of day.",
        "What is kept",
        "Everything is deleted on ",
        "all reports together: the client stops here",
    ):
        assert words in shown


def test_the_epsilons_of_the_page_are_those_of_the_command(answers: dict[str, str]) -> None:
    printed = {" ".join(line.split()[:-1]) for line in answers["privacy"].splitlines()}
    for line in BLOCKS[1].splitlines():
        assert " ".join(line.split()) in printed
    assert "What homepage v1 lets a client spend, rounded up:" in answers["privacy"]
    assert "rappor collection show" in answers["privacy"]


def test_the_attacks_of_the_collector_are_there(answers: dict[str, str]) -> None:
    unlimited = answers["attack"].partition("\nunlimited: ")[2].partition("\n\n\n")[0]
    assert re.search(r"accuracy +0\.843[789]", unlimited)
    for name in re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE):
        assert f"\n{name}: " in answers["attack"]


def test_links_lead_to_headings() -> None:
    for file, anchor in re.findall(r"\]\(([a-z./A-Z-]+\.md)(?:#([^)]+))?\)", PAGE):
        text = (DOCS / file).resolve().read_text(encoding="utf-8")
        headings = {
            re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
            for line in text.splitlines()
            if line.startswith("#")
        }
        assert not anchor or anchor in headings, (file, anchor)
