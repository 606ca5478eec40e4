"""The pictures of README and the site: there, shown, and of the product as it is now."""

import re
import runpy
from pathlib import Path

import pytest

from rappor.experiments import NAMES as EXPERIMENTS

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "tools" / "pictures.py"))
PICTURES = ROOT / "docs" / "pictures"
TEXTS = {
    path: path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}


def test_the_pictures_are_those_that_the_script_makes() -> None:
    made = {file for name in SCRIPT["NAMES"] for file in SCRIPT["files"](name)}
    assert {path.name for path in PICTURES.glob("*")} == made | {"made-from.json"}
    assert all((PICTURES / name).stat().st_size < 300_000 for name in made)


@pytest.mark.parametrize("name", SCRIPT["NAMES"])
def test_a_picture_shows_the_product_as_it_is_now(name: str) -> None:
    assert SCRIPT["known"]().get(name) == SCRIPT["digest"](name), "it has changed: make pictures"


@pytest.mark.slow
def test_the_flow_is_what_the_code_makes_of_a_value_today(tmp_path: Path) -> None:
    SCRIPT["draw_flow"](tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (PICTURES / path.name).read_bytes(), "make pictures"


@pytest.mark.slow
def test_the_flow_shows_no_lower_end_where_only_the_presence_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = runpy.run_path(str(ROOT / "tools" / "flow.py"))["draw"]
    monkeypatch.setitem(draw.__globals__, "REPORTS", 4_000)
    picture = draw("light")
    assert "present, at most 21\u00a0%" in picture
    assert "(0.0 –" not in picture


@pytest.mark.parametrize(
    ("name", "source", "other"),
    [
        ("results", "dashboard/results/page.py", "dashboard/trends/page.py"),
        ("chrome", "experiments/chrome/figures.py", "experiments/fdr/experiment.py"),
        ("fdr", "attack/fdr.py", "attack/linkage.py"),
        ("demo", "cli/demo_output.py", "cli/demo.py"),
    ],
)
def test_a_picture_grows_old_when_a_file_that_it_shows_changes(
    name: str, source: str, other: str
) -> None:
    sources = SCRIPT["_sources"](name)
    named = {path.relative_to(SCRIPT["PACKAGE"]).as_posix() for path in sources}
    assert source in named
    assert other not in named


def test_each_experiment_of_the_paper_has_a_figure() -> None:
    assert tuple(SCRIPT["FIGURES"]) == EXPERIMENTS


def test_every_picture_is_shown_with_words_for_those_who_cannot_see_it() -> None:
    shown: dict[str, str] = {}
    for path, text in TEXTS.items():
        for words, link in re.findall(r"!\[([^\]]*)\]\(([^)]*pictures/[^)]*)\)", text):
            file = (path.parent / link).resolve()
            assert file.exists(), link
            shown[file.name.rpartition("-")[0]] = words
    assert set(shown) == set(SCRIPT["NAMES"]) - {"demo"}
    assert all(len(words.split()) >= 5 for words in shown.values())


def test_the_block_of_the_demo_is_replaced_and_nothing_else() -> None:
    page = "# Demo\n\n```text\nold\n```\n\nWords.\n\n```text\nother\n```\n"
    assert SCRIPT["with_output"](page, "new\n  table\n\n") == page.replace("old", "new\n  table")
