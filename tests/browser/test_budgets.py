"""What DASHBOARD.md allows a page: bytes, shifts of the layout; and one address for each view."""

import contextlib
import gzip
from urllib.parse import urlsplit

import pytest

from rappor.dashboard.access.roles import Role
from support.dashboard import week

HOME = "/collections/homepage"
PATHS = ["/", HOME, f"{HOME}/trends", f"{HOME}/diagnostics", f"{HOME}/candidates"]
MOVING = [*PATHS, "/collections/browser", "/collections/start-time"]
DECODED: set[str] = set()  # of these, by this process's dashboard
KILOBYTES = {"document": 60, "stylesheet": 12, "script": 20, "vega": 310}
SHIFTS = """
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) if (!each.hadRecentInput) window.shifted += each.value;
  }).observe({ type: "layout-shift", buffered: true });
"""
WIDTHS = {"wide": (1280, 900), "tablet": (800, 1000), "phone": (390, 844)}
DRAWN = """() => [...document.querySelectorAll("figure[data-chart], figure[data-cells]")]
  .every((figure) => figure.dataset.drawn)"""


def opened(tab, path):
    tab.goto(path)
    if tab.page.locator("#state[data-state]").count() and not path.endswith("candidates"):
        tab.page.wait_for_selector("#state[data-state=ready]", state="attached", timeout=30_000)
    tab.page.wait_for_function(DRAWN)


@contextlib.contextmanager
def listening(page, answers):
    """Every response of a page, in a list."""

    def note(answer):
        answers.append(answer)

    page.on("response", note)
    yield
    page.remove_listener("response", note)


def test_pages_keep_to_their_bytes(analyst):
    for path in PATHS:
        sizes = dict.fromkeys(KILOBYTES, 0.0)
        answers = []
        opened(analyst, path)  # decoded by now: nothing is loaded twice below
        with listening(analyst.page, answers):
            opened(analyst, path)
        for answer in answers:
            kind = "vega" if "vega" in answer.url else answer.request.resource_type
            if kind in sizes and answer.ok:
                sizes[kind] += len(gzip.compress(answer.body(), 6)) / 1000
        over = {kind: size for kind, size in sizes.items() if size > KILOBYTES[kind]}
        assert over == {}, path


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_while_a_page_loads(open_as, width):
    across, down = WIDTHS[width]
    tab = open_as(Role.ANALYST, viewport={"width": across, "height": down})
    for path in MOVING:
        if path not in DECODED:
            opened(tab, path)
            DECODED.add(path)
    tab.page.add_init_script(SHIFTS)
    slow = tab.page.context.new_cdp_session(tab.page)  # as on a busy machine: painted in between
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    for path in MOVING:
        opened(tab, path)
        tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
        assert tab.page.evaluate("window.shifted") < 0.001, path
        assert tab.sideways() == 0, path


def test_tabs_carry_period_country_and_decoding(analyst):
    view = f"to={week(1)}&country=NZ&correction=holm"
    opened(analyst, f"{HOME}?{view}&unit=count&sort=string&q=shop")
    page = analyst.page
    for word, end in (("Diagnostics", "/diagnostics"), ("Candidates", "/candidates")):
        page.locator(".tabs").get_by_role("link", name=word).click()
        page.wait_for_url(f"**{end}?{view}")
        if word == "Diagnostics":
            page.wait_for_selector("#state[data-state=ready]", state="attached")
    page.locator(".tabs").get_by_role("link", name="Trends").click()
    page.wait_for_url(f"**/trends?{view}")
    page.wait_for_selector("#state[data-state=ready]", state="attached")
    assert page.locator("#to").input_value() == week(1)
    page.locator(".tabs").get_by_role("link", name="Results").click()
    page.wait_for_url(f"**/homepage?{view}")  # one period again, not all that the trend shows
    assert page.locator("#from").input_value() == week(1)


def test_other_kinds_have_a_tab_for_diagnostics_but_none_for_candidates(analyst):
    analyst.goto("/collections/browser")
    words = analyst.page.locator(".tabs a").all_inner_texts()
    assert words == ["Results", "Trends", "Diagnostics"]


def test_an_address_has_one_order_and_leaves_out_what_is_usual(analyst):
    page = analyst.page
    analyst.goto(f"{HOME}?q=shop&sort=string&country=NZ")
    page.locator("#to").select_option(week(1))
    page.wait_for_url("**to=*")
    expected = f"from={week(0)}&to={week(1)}"  # both ends as they were chosen
    assert urlsplit(page.url).query == f"{expected}&country=NZ&q=shop&sort=string"
    opened(analyst, f"{HOME}/trends")
    page.get_by_label("Country").select_option("DE")
    page.wait_for_url("**country=DE")
    page.wait_for_selector("#state[data-state=ready]", state="attached")
    assert urlsplit(page.url).query == "country=DE"
    page.locator("#from").select_option(week(2))
    page.wait_for_url("**from=*")
    assert urlsplit(page.url).query == f"from={week(2)}&country=DE"


def test_keys_step_through_periods_on_every_page_of_a_collection(analyst):
    page = analyst.page
    for end in ("/trends", "/diagnostics"):
        analyst.goto(f"{HOME}{end}?from={week(2)}&to={week(1)}")
        page.keyboard.press("[")
        page.wait_for_url(f"**{end}?from={week(3)}&to={week(2)}")
        page.keyboard.press("]")
        page.wait_for_url(f"**{end}?from={week(2)}&to={week(1)}")


def test_small_multiples_follow_the_width_of_the_window(analyst):
    opened(analyst, f"{HOME}/trends")
    columns = """() => new Set([...document.querySelectorAll(
      "#shares .mark-group.role-scope.cell > g")].map((each) =>
      Math.round(each.getBoundingClientRect().left))).size"""
    assert analyst.page.evaluate(columns) == 4
    for width, count in ((800, 3), (420, 2), (1280, 4)):
        analyst.page.set_viewport_size({"width": width, "height": 900})
        analyst.page.wait_for_function(f"() => ({columns})() === {count}")
        assert analyst.sideways() == 0


@pytest.mark.parametrize("path", MOVING[1:])
def test_on_paper_nothing_is_cut_and_no_controls_are_shown(analyst, path):
    opened(analyst, path)  # drawn for the screen, then printed
    page = analyst.page
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 673, "height": 1000})  # A4 without its margins
    beyond = page.evaluate(
        """() => [...document.querySelectorAll('main *')]
        .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
        .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert beyond == []
    for hidden in (".bar", ".tabs", ".controls"):
        assert not any(each.is_visible() for each in page.locator(hidden).all()), hidden
