"""The OpenAPI document in the repository."""

import json
from pathlib import Path

from rappor.collector.openapi import document


def test_the_document_of_the_site_is_the_one_that_is_served() -> None:
    written = Path(__file__).parents[3] / "docs/reference/openapi.json"
    text = json.dumps(document(), indent=2, ensure_ascii=False) + "\n"
    assert written.read_text(encoding="utf-8") == text, "write it again: see docs/reference/http.md"
