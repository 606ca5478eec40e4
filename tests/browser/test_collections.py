"""The page Collections in a real browser."""

import pytest

from rappor.dashboard.auth.roles import Role
from support.dashboard import Sample, serving, week

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def decoded(dashboard):
    """A result of a decode, so that the list has something to say."""
    mass = {"proportion": 0.4471, "prop_low_95": 0.4202, "prop_high_95": 0.4753}
    facts = {"version": 1, "periods": [week(0)], "dimensions": [], "undetected_mass": mass}
    meta = facts | {"collection": "homepage", "detected": 28}
    dashboard.state.save_result("test-collections", "decode", meta, None)


def test_screenshots_of_the_list(open_as, decoded, look) -> None:
    kind, options = look
    tab = open_as(Role.ANALYST, **options)
    tab.goto("/")
    assert tab.page.get_by_role("heading", name="Collections").is_visible()
    assert tab.sideways() == 0
    assert tab.violations() == []
    tab.screenshot(f"collections-{kind}")


def test_typing_searches_and_keeps_the_field(viewer) -> None:
    page = viewer.page
    viewer.goto("/")
    page.get_by_label("Search").focus()
    page.keyboard.insert_text("browser t")  # at once: a pause of 250 ms would send a part of it
    page.wait_for_url("**/?q=browser+t")
    assert page.evaluate("document.activeElement.id") == "q"
    assert page.locator("tbody tr").count() == 5
    page.get_by_label("State").select_option("Expired")
    page.wait_for_url("**/?q=browser+t&state=Expired")
    assert page.get_by_role("heading", name="Nothing found").is_visible()
    viewer.screenshot("collections-nothing-found")


def test_a_header_sorts_and_turns_around(viewer) -> None:
    page = viewer.page
    viewer.goto("/")
    for order in ("descending", "ascending"):
        page.get_by_role("link", name="Reports this period").click()
        header = page.locator("th[aria-sort]")
        header.and_(page.locator(f"[aria-sort={order}]")).wait_for()
    first = page.locator("tbody tr").first.inner_text()
    assert "No reports yet" in first


def test_a_missing_number_says_why(viewer) -> None:
    viewer.goto("/")
    row = viewer.page.locator("tbody tr").filter(has_text="search-engine")
    assert row.get_by_title("no reports yet").count() == 2


def test_the_empty_state_says_what_to_do(open_as, tmp_path) -> None:
    sample = Sample(tmp_path)
    sample.data.mkdir()
    sample.definitions.mkdir()
    (sample.definitions / "broken.toml").write_text("name = 3", encoding="utf-8")
    with serving(sample, "--simulated") as empty:
        tab = open_as(Role.VIEWER, at=empty)
        tab.goto("/")
        assert tab.page.get_by_role("heading", name="No collections yet").is_visible()
        assert "broken.toml cannot be read" in tab.page.content()
        assert tab.page.get_by_text("Simulated data").is_visible()
        assert tab.violations() == []
        tab.screenshot("collections-empty")
