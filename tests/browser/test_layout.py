"""What a page may take: bytes, and the width of a window or of paper; and that nothing moves."""

import contextlib
import gzip

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from rappor.dashboard.auth.roles import Role
from support.dashboard import week

pytestmark = pytest.mark.long

HOME = "/collections/homepage"
PATHS = ["/", HOME, f"{HOME}/trends", f"{HOME}/diagnostics", f"{HOME}/candidates"]
INSTALLS = "/collections/install/associations"  # of another dashboard
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

LOOKED_AT = [
    *MOVING,
    f"{HOME}?scale=log",
    f"{HOME}?unit=count",
    f"{HOME}?from={week(3)}",
    f"{HOME}?country=NZ&vs={week(1)}",
    f"{HOME}?country=NZ&vs=country%3DDE",
    f"/collections/browser?vs={week(1)}",
    f"{HOME}?to=soon",  # an address that cannot be read
    "/collections/browser/trends",
    "/collections/start-time/trends",
    "/collections/browser/diagnostics",
    "/ingest",
]
# Texts of charts that cover each other, leave their chart, or repeat next to each other on an axis;
# texts of the page that are cut. Tilted texts have boxes that overlap long before they do.
FAULTS = """() => {
  const faults = [];
  const said = (node) => node.textContent.trim();
  const seen = (node) => said(node) && getComputedStyle(node).opacity !== "0"
    && !/rotate/.test(node.getAttribute("transform") || "");
  for (const svg of document.querySelectorAll("figure svg")) {
    const room = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(seen)
      .map((node) => [said(node), node.getBoundingClientRect()]).filter((each) => each[1].width);
    texts.forEach(([text, box], place) => {
      if (box.left < room.left - 1 || box.right > room.right + 1
        || box.top < room.top - 1 || box.bottom > room.bottom + 1) faults.push(`cut: ${text}`);
      for (const [other, its] of texts.slice(place + 1)) {
        const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (across > 1 && down > 3) faults.push(`${text} over ${other}`);
      }
    });
    for (const axis of svg.querySelectorAll(".role-axis-label")) {
      const labels = [...axis.querySelectorAll("text")].filter(seen).map(said);
      labels.forEach((label, place) => {
        if (place && label === labels[place - 1]) faults.push(`repeated: ${label}`);
      });
    }
  }
  const cut = "h1, h2, p, li, dt, dd, .button, button, .tabs a, .pill, label, summary";
  for (const node of document.querySelectorAll(`main :is(${cut}):not(.hidden-text)`)) {
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth
      && getComputedStyle(node).display !== "inline") faults.push(`cut: ${said(node)}`);
  }
  for (const table of document.querySelectorAll("table")) {
    for (const head of table.querySelectorAll("thead th:not(:has(.hidden-text))")) {
      const width = head.getBoundingClientRect().width;
      if (width && width < 24 && said(head)) faults.push(`narrow column: ${said(head)}`);
    }
  }
  const fields = [...document.querySelectorAll("main .controls > .field, .together > .field")]
    .filter((node) => node.checkVisibility()).map((node) => node.getBoundingClientRect());
  for (const box of fields) {
    const alone = !fields.some((each) => each !== box && Math.abs(each.top - box.top) < 30);
    if (alone && fields.length > 1 && box.width < 0.6 * innerWidth) {
      faults.push(`a control alone on its row, ${box.width} px wide, at ${box.top}`);
    }
  }
  return faults;
}"""


@contextlib.contextmanager
def listening(page, answers):
    """Every response of a page, in a list."""

    def note(answer):
        answers.append(answer)

    page.on("response", note)
    yield
    page.remove_listener("response", note)


@pytest.mark.parametrize("paths", [[HOME], PATHS], ids=["results", "all"])
def test_pages_keep_to_their_bytes(analyst, read, paths):
    compressed = {}
    for path in paths:
        read(path)  # decoded by now: nothing is loaded twice below
        keeps_to_its_bytes(analyst, path, compressed)


def test_associations_keep_to_their_bytes(open_as, installs):
    tab = open_as(Role.ANALYST, at=installs)
    tab.whole(INSTALLS)
    keeps_to_its_bytes(open_as(Role.ANALYST, at=installs), INSTALLS, {})


def keeps_to_its_bytes(tab, path, compressed):
    """Open a page and add up what it loads; `compressed` has the sizes known by now."""
    sizes = dict.fromkeys(KILOBYTES, 0.0)
    answers = []
    with listening(tab.page, answers):
        tab.whole(path)
    for answer in answers:
        kind = "vega" if "vega" in answer.url else answer.request.resource_type
        if kind in sizes and answer.ok:
            if answer.url not in compressed:
                compressed[answer.url] = len(gzip.compress(answer.body(), 6)) / 1000
            sizes[kind] += compressed[answer.url]
    over = {kind: size for kind, size in sizes.items() if size > KILOBYTES[kind]}
    assert over == {}, path
    assert sizes["document"] > 0, path


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_while_a_page_loads(open_as, read, width):
    across, down = WIDTHS[width]
    tab = open_as(Role.ANALYST, viewport={"width": across, "height": down})
    for path in MOVING:
        read(path)  # decoded by now
    stays_in_place(tab, MOVING)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_while_associations_load(open_as, installs, width):
    across, down = WIDTHS[width]
    open_as(Role.ANALYST, at=installs).whole(INSTALLS)
    size = {"width": across, "height": down}
    stays_in_place(open_as(Role.ANALYST, at=installs, viewport=size), [INSTALLS])


def stays_in_place(tab, paths):
    """Load pages as on a busy machine, painted in between: nothing may move."""
    tab.page.add_init_script(SHIFTS)
    slow = tab.page.context.new_cdp_session(tab.page)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    for path in paths:
        tab.whole(path)
        tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
        assert tab.page.evaluate("window.shifted") < 0.001, path
        assert tab.sideways() == 0, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["wide", "phone"])
def test_no_label_covers_another_and_nothing_is_cut(open_as, read, width, scheme):
    across, down = WIDTHS[width]
    tabs = {
        role: open_as(role, viewport={"width": across, "height": down}, color_scheme=scheme)
        for role in (Role.ANALYST, Role.OPERATOR)
    }
    found = {}
    for path in LOOKED_AT:
        tab = tabs[Role.OPERATOR if path == "/ingest" else Role.ANALYST]
        tab.whole(path)
        faults = tab.page.evaluate(FAULTS) + (["sideways"] if tab.sideways() else [])
        found |= {path: faults} if faults else {}
    assert found == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["wide", "phone"])
def test_no_label_of_associations_covers_another(open_as, installs, width, scheme):
    across, down = WIDTHS[width]
    size = {"width": across, "height": down}
    tab = open_as(Role.ANALYST, at=installs, viewport=size, color_scheme=scheme)
    found = {}
    for path in (INSTALLS, f"{INSTALLS}?fields=channel%2Chomepage", f"{INSTALLS}?sort=string"):
        tab.whole(path)
        faults = tab.page.evaluate(FAULTS) + (["sideways"] if tab.sideways() else [])
        found |= {path: faults} if faults else {}
    assert found == {}


def test_the_check_for_labels_sees_what_it_looks_for(analyst):
    """A chart whose labels were moved onto each other, and out of it, fails."""
    page = analyst.whole(HOME)
    assert page.evaluate(FAULTS) == []
    page.evaluate(
        """() => {
          const labels = document.querySelectorAll("#chart-results .role-axis-label text");
          const [one, two, three] = labels;
          one.setAttribute("transform", two.getAttribute("transform"));
          three.setAttribute("transform", "translate(-500, 0)");
        }"""
    )
    faults = page.evaluate(FAULTS)
    assert any(" over " in fault for fault in faults)
    assert any(fault.startswith("cut: ") for fault in faults)


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
        *(path for path in (MOVING[2], *MOVING[4:])),
    ],
)
def test_on_paper_nothing_is_cut_and_no_controls_are_shown(analyst, path):
    fits_on_paper(analyst, path)


def test_associations_fit_on_paper(open_as, installs):
    fits_on_paper(open_as(Role.ANALYST, at=installs), INSTALLS)


def fits_on_paper(tab, path):
    """Draw a page for the screen, then print it."""
    page = tab.whole(path)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 673, "height": 1000})  # A4 without its margins
    with contextlib.suppress(PlaywrightTimeout):  # charts and the map are drawn again, for paper
        page.wait_for_function(f"() => ({BEYOND})().length === 0")
    assert page.evaluate(BEYOND) == []
    for hidden in (".bar", ".tabs", ".controls"):
        assert not any(each.is_visible() for each in page.locator(hidden).all()), hidden
