"""One address for each view: tabs, controls and keys lead to it, and a choice is never lost."""

import os
import signal
from urllib.parse import urlsplit

import pytest

from support.dashboard import week

pytestmark = pytest.mark.long

HOME = "/collections/homepage"


def test_tabs_carry_period_country_and_decoding(analyst):
    view = f"to={week(1)}&country=NZ&correction=holm"
    page = analyst.whole(f"{HOME}?{view}&unit=count&sort=string&q=shop")
    for word, end in (("Diagnostics", "/diagnostics"), ("Candidates", "/candidates")):
        page.locator(".tabs").get_by_role("link", name=word).click()
        page.wait_for_url(f"**{end}?{view}")
        if word == "Diagnostics":
            analyst.until("ready")
    page.locator(".tabs").get_by_role("link", name="Trends").click()
    page.wait_for_url(f"**/trends?{view}")
    analyst.until("ready")
    assert page.locator("#to").input_value() == week(1)
    page.locator(".tabs").get_by_role("link", name="Results").click()
    page.wait_for_url(f"**/homepage?{view}")  # one period again, not all that the trend shows
    assert page.locator("#from").input_value() == week(1)


@pytest.mark.long
def test_other_kinds_have_a_tab_for_diagnostics_but_none_for_candidates(analyst):
    analyst.whole("/collections/browser")
    words = analyst.page.locator(".tabs a").all_inner_texts()
    assert words == ["Results", "Trends", "Diagnostics"]


def test_an_address_has_one_order_and_leaves_out_what_is_usual(analyst):
    page = analyst.whole(f"{HOME}?q=shop&sort=string&country=NZ")
    page.locator("#to").select_option(week(1))
    page.wait_for_url("**to=*")
    expected = f"from={week(0)}&to={week(1)}"  # both ends as they were chosen
    assert urlsplit(page.url).query == f"{expected}&country=NZ&q=shop&sort=string"


@pytest.mark.long
def test_the_address_of_trends_leaves_out_what_is_usual(analyst):
    page = analyst.whole(f"{HOME}/trends")
    page.get_by_label("Country").select_option("DE")
    page.wait_for_url("**country=DE")
    analyst.until("ready")
    assert urlsplit(page.url).query == "country=DE"
    page.locator("#from").select_option(week(2))
    page.wait_for_url("**from=*")
    assert urlsplit(page.url).query == f"from={week(2)}&country=DE"


def test_a_choice_made_while_a_decode_ends_is_not_lost(analyst):
    """The page loads itself again when its job ends, unless it is being left for another one."""
    page = analyst.page
    worker = analyst.stop_worker(f"{HOME}?alpha=0.022")
    asked, left, loads = [], [], []
    page.route("**/jobs/*.json", lambda route: asked.append(route))
    page.route("**country=NZ*", lambda route: left.append(route))
    analyst.goto(f"{HOME}?alpha=0.021")
    analyst.until("loading")
    page.get_by_label("Country").select_option("NZ")
    analyst.wait_for(lambda: asked and left)
    page.on("request", lambda each: loads.append(each.url) if each.is_navigation_request() else 0)
    asked[0].fulfill(json={"state": "done"})
    analyst.wait_for(lambda: len(asked) == 2 or loads)  # the script has seen that the job ended
    assert loads == []
    left[0].continue_()
    page.wait_for_url(f"**{HOME}?country=NZ&alpha=0.021")
    page.unroute_all(behavior="ignoreErrors")
    os.kill(worker, signal.SIGCONT)


@pytest.mark.long
def test_keys_step_through_periods_on_every_page_of_a_collection(analyst):
    page = analyst.page
    for end in ("/trends", "/diagnostics"):
        analyst.whole(f"{HOME}{end}?from={week(2)}&to={week(1)}")
        page.keyboard.press("[")
        page.wait_for_url(f"**{end}?from={week(3)}&to={week(2)}")
        analyst.until("ready")
        page.keyboard.press("]")
        page.wait_for_url(f"**{end}?from={week(2)}&to={week(1)}")
