"""Small parts: CSV cells, embedded JSON, the theme as CSS, words."""

import gzip
import json
from pathlib import Path

import pytest

from rappor.charts.theme import TOKENS
from rappor.dashboard.assets import Assets, tokens_css
from rappor.dashboard.settings import Settings
from rappor.dashboard.tables import csv_response, json_response, paged
from rappor.dashboard.templating import embedded
from rappor.errors import ParamsError


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_no_cell_begins_like_a_formula(text: str) -> None:
    body = bytes(csv_response(("a",), [(text,)], "x.csv").body).decode()
    assert body.split("\n", 1)[1].lstrip('"').startswith("'")


def test_numbers_keep_their_sign_and_precision() -> None:
    body = bytes(csv_response(("a", "b"), [(-1.5, 0.1 + 0.2)], "x.csv").body).decode()
    assert body == "a,b\n-1.5,0.30000000000000004\n"


def test_a_file_name_cannot_break_its_header() -> None:
    answer = csv_response(("a",), [], 'x"\r\nset-cookie: y.csv')
    assert answer.headers["content-disposition"] == 'attachment; filename="x___set-cookie__y.csv"'


def test_json_has_no_numbers_that_json_lacks() -> None:
    body = bytes(json_response({"a": float("inf"), "b": [float("nan"), -float("inf")]}).body)
    assert json.loads(body) == {"a": "inf", "b": [None, "-inf"]}


@pytest.mark.parametrize("text", ["</script>", "<!--", "<script>", "&lt;", "\u2028"])
def test_embedded_json_cannot_leave_its_element(text: str) -> None:
    made = str(embedded({"x": text}))
    assert "<" not in made
    assert json.loads(made) == {"x": text}


def test_embedded_json_refuses_what_is_no_number() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded({"x": float("nan")})


def test_every_token_of_the_theme_is_in_the_stylesheet_light_and_dark() -> None:
    css = tokens_css()
    for name, (light, dark) in TOKENS.items():
        assert f"--{name}: {light};" in css
        assert css.count(f"--{name}: {dark};") >= 2


def test_the_stylesheet_and_scripts_stay_within_their_budget(tmp_path: Path) -> None:
    assets = Assets(tmp_path)
    sizes = {
        name: len(gzip.compress(each.body))
        for name in assets.names
        if name != "vega.js" and (each := assets.get(name)) is not None
    }
    assert sum(size for name, size in sizes.items() if name.endswith(".css")) < 12_000
    assert sum(size for name, size in sizes.items() if name.endswith(".js")) < 20_000


def test_vega_is_made_once_and_cached(tmp_path: Path) -> None:
    first = Assets(tmp_path / "cache").get("vega.js")
    assert first is not None
    assert len(first.packed) < 320_000
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(b"// from the cache")
    second = Assets(tmp_path / "cache").get("vega.js")
    assert second is not None
    assert second.body == b"// from the cache"


def test_nothing_third_party_is_in_the_package() -> None:
    import rappor.dashboard

    folder = Path(rappor.dashboard.__file__).parent
    for file in [*folder.glob("static/*"), *folder.glob("templates/*")]:
        text = file.read_text(encoding="utf-8")
        assert len(text) < 40_000
        assert "https://" not in text
        assert not ("http://" in text and file.suffix != ".svg")


def test_templates_have_no_inline_script_or_style() -> None:
    import re

    import rappor.dashboard

    folder = Path(rappor.dashboard.__file__).parent / "templates"
    for file in folder.glob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|javascript:", text), file.name
        assert not re.search(r"<script(?![^>]*(src=|application/json))", text), file.name
        assert "|safe" not in text, file.name


def test_pages_of_long_tables_are_within_bounds() -> None:
    assert paged(list(range(5)), "-3", 2).page == 1
    assert paged(list(range(5)), "99999999999", 2).page == 1
    assert paged(list(range(5)), 3, 2).rows == [4]


@pytest.mark.parametrize("field", [{"port": 70000}, {"url": "ftp://x"}, {"collector": "nonsense"}])
def test_settings_that_are_none_name_their_field(field: dict) -> None:
    with pytest.raises(ParamsError, match=next(iter(field))):
        Settings(Path(), **field)


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("127.0.0.1:1", True),
        ("localhost", True),
        ("[::1]:8766", True),
        ("", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("[", False),
    ],
)
def test_only_names_of_this_machine_are_taken(header: str, known: bool) -> None:
    assert Settings(Path()).knows_host(header) is known
