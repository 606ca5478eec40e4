"""Strings that are expressions of the chart library: drawn as strings, in a real browser."""

import pytest

from rappor.dashboard.auth.roles import Role
from support.payloads import EXPRESSIONS

pytestmark = pytest.mark.long


@pytest.mark.parametrize("page", ["", "/trends"])
def test_a_string_that_is_an_expression_is_drawn_as_it_is(open_as, other, page) -> None:
    tab = open_as(Role.ANALYST, at=other)
    tab.goto(f"/collections/expressions{page}")
    tab.page.wait_for_selector("figure[data-chart]")
    tab.drawn()
    charts = tab.page.locator("figure[data-chart] svg text").all_text_contents()
    table = tab.page.locator("main").inner_text()
    for text in EXPRESSIONS:
        assert text in table
        assert any(each.startswith(text) for each in charts), text
