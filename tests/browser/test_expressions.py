"""Strings that are expressions of the chart library: drawn as strings, in a real browser."""

import pytest

from rappor.collection import Collection
from rappor.dashboard.access.roles import Role
from support.dashboard import NEXT_YEAR, STRINGS, Sample, serving, week

EXPRESSIONS = [
    "datum.value",
    "datum.label",
    "datum['value']",
    'datum.value"] + datum.label + ["',
    "a.b[0]",
    "a\\.b",
    "\\u0022",
    "constructor",
    "toString",
    "__proto__",
]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A collection in which all of them are found."""
    sample = Sample(tmp_path_factory.mktemp("expressions"))
    collection = Collection("strings", 1, STRINGS, period="week", expires=NEXT_YEAR)
    sample.define(collection)
    for back in range(3):
        sample.add(collection, week(back), dict.fromkeys(EXPRESSIONS, 1.0), 60_000, seed=back + 1)
    sample.store()
    with serving(sample) as running:
        running.state.save_candidates("strings", EXPRESSIONS, "test")
        yield running


@pytest.mark.parametrize("page", ["", "/trends"])
def test_a_string_that_is_an_expression_is_drawn_as_it_is(open_as, named, page) -> None:
    tab = open_as(Role.ANALYST, at=named)
    tab.goto(f"/collections/strings{page}")
    tab.page.wait_for_selector("figure[data-chart]", timeout=60_000)
    tab.drawn()
    charts = tab.page.locator("figure[data-chart] svg text").all_text_contents()
    table = tab.page.locator("main").inner_text()
    for text in EXPRESSIONS:
        assert text in table
        assert any(each.startswith(text) for each in charts), text
