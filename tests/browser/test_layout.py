"""What a page may take: bytes, and the width of a window or of paper; and that nothing moves."""

import contextlib
import gzip

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from rappor.dashboard.auth.roles import Role

HOME = "/collections/homepage"
PATHS = ["/", HOME, f"{HOME}/trends", f"{HOME}/diagnostics", f"{HOME}/candidates"]
MOVING = [*PATHS, "/collections/browser", "/collections/start-time"]
KILOBYTES = {"document": 60, "stylesheet": 12, "script": 20, "vega": 310}
SHIFTS = """
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) if (!each.hadRecentInput) window.shifted += each.value;
  }).observe({ type: "layout-shift", buffered: true });
"""
WIDTHS = {"wide": (1280, 900), "tablet": (800, 1000), "phone": (390, 844)}
BEYOND = """() => [...document.querySelectorAll("main *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))"""


@contextlib.contextmanager
def listening(page, answers):
    """Every response of a page, in a list."""

    def note(answer):
        answers.append(answer)

    page.on("response", note)
    yield
    page.remove_listener("response", note)


@pytest.mark.parametrize(
    "paths", [[HOME], pytest.param(PATHS, marks=pytest.mark.long)], ids=["results", "all"]
)
def test_pages_keep_to_their_bytes(analyst, read, paths):
    compressed = {}
    for path in paths:
        sizes = dict.fromkeys(KILOBYTES, 0.0)
        answers = []
        read(path)  # decoded by now: nothing is loaded twice below
        with listening(analyst.page, answers):
            analyst.whole(path)
        for answer in answers:
            kind = "vega" if "vega" in answer.url else answer.request.resource_type
            if kind in sizes and answer.ok:
                if answer.url not in compressed:
                    compressed[answer.url] = len(gzip.compress(answer.body(), 6)) / 1000
                sizes[kind] += compressed[answer.url]
        over = {kind: size for kind, size in sizes.items() if size > KILOBYTES[kind]}
        assert over == {}, path
        assert sizes["document"] > 0, path


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_while_a_page_loads(open_as, read, width):
    across, down = WIDTHS[width]
    tab = open_as(Role.ANALYST, viewport={"width": across, "height": down})
    for path in MOVING:
        read(path)  # decoded by now
    tab.page.add_init_script(SHIFTS)
    slow = tab.page.context.new_cdp_session(tab.page)  # as on a busy machine: painted in between
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    for path in MOVING:
        tab.whole(path)
        tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
        assert tab.page.evaluate("window.shifted") < 0.001, path
        assert tab.sideways() == 0, path


@pytest.mark.long
def test_small_multiples_follow_the_width_of_the_window(analyst):
    analyst.whole(f"{HOME}/trends")
    columns = """() => new Set([...document.querySelectorAll(
      "#shares .mark-group.role-scope.cell > g")].map((each) =>
      Math.round(each.getBoundingClientRect().left))).size"""
    assert analyst.page.evaluate(columns) == 4
    for width, count in ((800, 3), (420, 2), (1280, 4)):
        analyst.page.set_viewport_size({"width": width, "height": 900})
        analyst.page.wait_for_function(f"() => ({columns})() === {count}")
        assert analyst.sideways() == 0


@pytest.mark.parametrize(
    "path",
    [
        *(HOME, f"{HOME}/diagnostics"),
        *(pytest.param(path, marks=pytest.mark.long) for path in (MOVING[2], *MOVING[4:])),
    ],
)
def test_on_paper_nothing_is_cut_and_no_controls_are_shown(analyst, path):
    page = analyst.whole(path)  # drawn for the screen, then printed
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 673, "height": 1000})  # A4 without its margins
    with contextlib.suppress(PlaywrightTimeout):  # charts and the map are drawn again, for paper
        page.wait_for_function(f"() => ({BEYOND})().length === 0")
    assert page.evaluate(BEYOND) == []
    for hidden in (".bar", ".tabs", ".controls"):
        assert not any(each.is_visible() for each in page.locator(hidden).all()), hidden
