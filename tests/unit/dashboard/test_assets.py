"""Scripts and styles: their size, where they come from, and how Vega is kept."""

import gzip
from pathlib import Path

import pytest

from rappor.charts.theme import TOKENS
from rappor.dashboard import assets as module
from rappor.dashboard.assets import Assets, tokens_css


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


def test_vega_is_made_once_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real bundle, which takes seconds to make, is in tests/e2e/test_dashboard.py."""
    made: list[int] = []

    def bundle() -> str:
        made.append(1)
        return "// Vega"

    monkeypatch.setattr(module, "_bundle", bundle)
    assets = Assets(tmp_path / "cache")
    for _ in range(2):
        first = assets.get("vega.js")
        assert first is not None
        assert (first.body, gzip.decompress(first.packed)) == (b"// Vega", b"// Vega")
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(b"// from the cache")
    second = Assets(tmp_path / "cache").get("vega.js")
    assert second is not None
    assert second.body == b"// from the cache"
    assert len(made) == 1


def test_a_cache_that_cannot_be_written_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_bundle", lambda: "// Vega")
    (tmp_path / "cache").write_text("a file where a folder should be")
    made = Assets(tmp_path / "cache").get("vega.js")
    assert made is not None
    assert made.body == b"// Vega"


def test_nothing_third_party_is_in_the_package() -> None:
    import rappor.dashboard

    folder = Path(rappor.dashboard.__file__).parent
    for file in [*folder.glob("static/*"), *folder.glob("templates/*")]:
        text = file.read_text(encoding="utf-8")
        assert len(text) < 40_000
        assert "https://" not in text
        assert not ("http://" in text and file.suffix != ".svg")
