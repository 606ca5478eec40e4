"""Templates: JSON that cannot leave its element, and no script or style within a page."""

import json
from pathlib import Path

import pytest

from rappor.dashboard.templating import embedded


@pytest.mark.parametrize("text", ["</script>", "<!--", "<script>", "&lt;", "\u2028"])
def test_embedded_json_cannot_leave_its_element(text: str) -> None:
    made = str(embedded({"x": text}))
    assert "<" not in made
    assert json.loads(made) == {"x": text}


def test_embedded_json_refuses_what_is_no_number() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded({"x": float("nan")})


def test_templates_have_no_inline_script_or_style() -> None:
    import re

    import rappor.dashboard

    folder = Path(rappor.dashboard.__file__).parent / "templates"
    for file in folder.glob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|javascript:", text), file.name
        assert not re.search(r"<script(?![^>]*(src=|application/json))", text), file.name
        assert "|safe" not in text, file.name
