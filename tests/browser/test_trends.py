"""Trends in a real browser: what is drawn is what decoding gives, in every look and state."""

import csv
import io
import json

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.state import DashboardState
from rappor.decoding.decode import decode
from support.dashboard import HIJACKER, PAGES, RARE, WEEKS, collections, week

pytestmark = pytest.mark.long

TRENDS = "/collections/homepage/trends"


def test_trends_look_right(open_as, look):
    name, options = look
    tab = open_as(Role.ANALYST, **options)
    tab.ready(TRENDS, charts=3)
    tab.screenshot(f"trends-{name}")
    assert tab.sideways() == 0
    assert tab.violations() == []
    multiples = tab.page.locator("#shares .mark-group.role-scope.cell > g")
    assert multiples.count() == 12
    lefts = tab.page.evaluate(
        "[...document.querySelectorAll('#shares .mark-group.role-scope.cell > g')]"
        ".map((each) => Math.round(each.getBoundingClientRect().left))"
    )
    assert len(set(lefts)) == (2 if name == "phone" else 4)


def test_the_rise_of_the_hijacker_is_the_headline(read):
    text = read(TRENDS).page.locator("#summary").inner_text()
    assert text.startswith(f"{HIJACKER} rose from not detected to ")
    assert text.endswith(f"since {week(WEEKS - 1)}.")


def test_every_number_is_the_one_that_decoding_a_period_gives(read, dashboard):
    page = read(TRENDS).page
    catalogue = Catalogue(dashboard.sample.data)
    counts = catalogue.counts("homepage", 1, [week(0)])
    decoded = decode(counts, [*PAGES, HIJACKER, *RARE])
    document = page.evaluate(f"fetch('{TRENDS}.json').then((answer) => answer.json())")
    last = document["periods"][-1]
    assert (last["period"], last["reports"]) == (week(0), decoded.reports)
    assert last["undetected_mass"]["share"] == decoded.undetected_mass.proportion
    assert HIJACKER in document["strings"]
    for row in last["rows"]:
        expected = decoded.row(row["string"])
        assert row["share"] == expected.proportion
        low = None if expected.presence_only else expected.prop_low_95
        assert (row["low"], row["high"]) == (low, expected.prop_high_95)
        line = page.locator(f"tr[data-string='{row['string']}'][data-period='{week(0)}']")
        if expected.detected and not expected.presence_only:
            cell = line.locator("data").first
            assert float(cell.get_attribute("value")) == expected.proportion
        else:  # no size, and no number that a spreadsheet would take for one
            assert line.locator("data").count() == 0
            assert "at most " in line.inner_text()


def test_csv_holds_a_row_for_each_period_and_string(read):
    text = read(TRENDS).page.evaluate(f"fetch('{TRENDS}.csv').then((answer) => answer.text())")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == WEEKS * 12
    assert {row["period"] for row in rows} == {week(back) for back in range(WEEKS)}
    for row in rows:  # the lower end is empty where a string's presence is all that is known
        assert row["prop_low_95"] or row["detected"] == "true"
        assert float(row["prop_low_95"] or 0) <= float(row["prop_high_95"])


def test_pictures_are_files(read):
    tab = read(TRENDS)
    for chart in ("shares", "reports", "undetected_mass"):
        for ending, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
            answer = tab.page.request.get(f"{tab.dashboard.url}{TRENDS}.{ending}?chart={chart}")
            assert answer.ok
            assert answer.body().startswith(start)


def test_periods_and_countries_can_be_chosen_without_scripts(open_as):
    tab = open_as(Role.ANALYST, java_script_enabled=False)
    tab.goto(f"{TRENDS}?from={week(3)}&to={week(1)}&country=NZ")
    tab.until("ready")  # such a page refreshes itself
    periods = tab.page.locator("section[aria-label='Periods as a table'] tbody tr")
    assert periods.count() == 3
    assert tab.page.locator("img[src*='trends.svg']").count() == 3


def test_search_shows_the_strings_that_hold_it(analyst):
    analyst.ready(f"{TRENDS}?q=hijack")
    assert analyst.page.locator("#shares .mark-group.role-scope.cell > g").count() <= 1
    strings = {
        each.get_attribute("data-string") for each in analyst.page.locator("tr[data-string]").all()
    }
    assert strings == {HIJACKER}
    analyst.goto(f"{TRENDS}?q=nothing-like-it")
    assert "Nothing matches" in analyst.page.locator("main").inner_text()


def test_a_new_period_costs_one_decode(dashboard, analyst):
    """What is known is taken over: asking for one more period decodes that one only."""
    analyst.ready(f"{TRENDS}?from={week(3)}&to={week(2)}&correction=holm")
    analyst.ready(f"{TRENDS}?from={week(3)}&to={week(1)}&correction=holm")
    state = DashboardState(dashboard.sample.data / "dashboard.sqlite")
    try:
        newest = state.latest_result("homepage", "trend")
    finally:
        state.close()
    assert newest is not None
    assert newest.meta["decoded"] == 1
    assert len(newest.meta["periods"]) == 3


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("search-engine", "empty", "No reports yet"),
        ("extensions", "too few", "so far; 1\u00a0% needs at most about"),
    ],
    ids=["empty", "too few"],
)
def test_states_without_a_result(analyst, name, state, words):
    analyst.goto(f"/collections/{name}/trends")
    assert analyst.page.locator("#state").get_attribute("data-state") == state
    assert words in analyst.page.locator("#state").inner_text()
    analyst.screenshot(f"trends-{state.replace(' ', '-')}")
    assert analyst.violations() == []


def test_categories_and_numbers_have_trends_too(analyst):
    analyst.ready("/collections/browser/trends", charts=3)
    analyst.screenshot("trends-categories")
    analyst.ready("/collections/start-time/trends", charts=2)
    analyst.screenshot("trends-ordinal")
    strings = [
        each.get_attribute("data-string") for each in analyst.page.locator("tr[data-string]").all()
    ]
    labels = [*dict.fromkeys(strings)]
    assert len(labels) >= 7
    assert labels == [label for label in collections()[2].ranges.labels if label in labels]


def test_a_viewer_sees_what_is_there_and_is_told_who_can_decode(viewer):
    viewer.goto(f"{TRENDS}?method=lasso")
    box = viewer.page.locator("#state")
    assert box.get_attribute("data-state") == "no permission"
    assert "Analysts can do this; you are a viewer" in box.inner_text()
    assert viewer.page.locator("form[method=post] button.primary").count() == 0


def test_an_address_that_cannot_be_read_says_why(analyst):
    answer = analyst.goto(f"{TRENDS}?alpha=7")
    assert answer.status == 400
    said = analyst.page.locator("main").inner_text()
    assert "Alpha must be a number from 1e-09 on and below 1, got '7'" in said
    document = analyst.page.request.get(f"{analyst.dashboard.url}{TRENDS}.json?alpha=7")
    assert json.loads(document.body())["error"] == "This address cannot be read"
