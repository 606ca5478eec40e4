"""A collection that is ended early: its file keeps its comments, and says the end."""

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from rappor.collection import Collection
from rappor.collection.retirement import retired, retired_text
from rappor.collection.template import commented, draft
from rappor.errors import ParamsError

TODAY = datetime.date(2026, 11, 16)


def rewritten(text: str, on_expiry: str | None = None) -> str:
    before = Collection.from_toml(text)
    return retired_text(text, Path(), before, retired(before, TODAY, on_expiry))


def test_only_the_end_of_a_commented_file_changes() -> None:
    text = commented(draft("homepage", today=TODAY, dimensions={"os": ("mac",)}))
    changed = rewritten(text)
    old, new = text.splitlines(), changed.splitlines()
    differing = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    assert differing == [("expires = 2027-11-16", "expires = 2026-11-16")]


def test_what_happens_to_counts_is_added_before_the_tables() -> None:
    text = commented(draft("homepage", today=TODAY, dimensions={"os": ("mac",)}))
    made = Collection.from_toml(rewritten(text, "keep-counts"))
    assert (made.expires, made.on_expiry) == (TODAY, "keep-counts")
    assert rewritten(rewritten(text, "keep-counts")) == rewritten(text, "keep-counts")
    assert Collection.from_toml(rewritten(rewritten(text, "keep-counts"), "delete")).on_expiry == (
        "delete"
    )


def test_a_comment_behind_the_day_stays_and_a_missing_day_is_added() -> None:
    text = (
        'name = "a"\nversion = 1\nkind = "boolean"\n{}'
        "params = {{ k = 1, h = 1, m = 1, f = 0.5, p = 0.5, q = 0.75 }}\n"
    )
    with_comment = rewritten(text.format("expires = 2030-01-01  # by the review\n"))
    assert "expires = 2026-11-16  # by the review\n" in with_comment
    assert Collection.from_toml(rewritten(text.format(""))).expires == TODAY


def test_a_collection_that_has_ended_keeps_its_day() -> None:
    before = replace(draft("homepage", today=TODAY), expires=datetime.date(2026, 1, 1))
    assert retired(before, TODAY) == before


def test_a_text_that_would_be_read_otherwise_is_refused_with_what_to_write() -> None:
    text = (
        'description = """\nexpires = 2031-01-01\n"""\nname = "a"\nversion = 1\nkind = "boolean"\n'
        "params = { k = 1, h = 1, m = 1, f = 0.5, p = 0.5, q = 0.75 }\n"
    )
    with pytest.raises(ParamsError, match=r"write expires = 2026-11-16 and on_expiry = \"delete\""):
        rewritten(text)
