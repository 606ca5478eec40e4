"""Diagnostics in a real browser: verdicts, the heat map by eye, by key and as a table."""

import csv
import io

import numpy as np
import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.catalogue import Catalogue
from rappor.decoding.decode import decode
from rappor.decoding.diagnosis import bit_table
from rappor.mechanism import bloom_positions
from support.dashboard import HIJACKER, PAGES, RARE, STRINGS, week

pytestmark = pytest.mark.long

PAGE = "/collections/homepage/diagnostics"


def drawn(tab, mode="residuals"):
    tab.page.wait_for_selector(f"#heat[data-drawn={mode}]")


@pytest.fixture(scope="module")
def expected(sample):
    counts = Catalogue(sample.data).counts("homepage", 1, [week(0)])
    decoded = decode(counts, [*PAGES, HIJACKER, *RARE])
    return decoded, counts


def test_diagnostics_look_right(open_as, look):
    name, options = look
    tab = open_as(Role.ANALYST, **options)
    tab.ready(f"{PAGE}?light=google.com", charts=2)
    drawn(tab)
    tab.screenshot(f"diagnostics-{name}")
    assert tab.sideways() == 0
    assert tab.violations() == []
    size = int(tab.page.locator("#heat").get_attribute("data-cell"))
    assert size >= 4


def test_verdicts_are_those_of_decoding(read, expected):
    checks = expected[0].checks
    shown = read(PAGE).page.locator(".verdicts li")
    assert shown.count() == len(checks)
    for number, check in enumerate(checks):
        text = shown.nth(number).inner_text()
        assert check.text in text
        assert ("OK" if check.ok else "Check") in text


def test_cells_are_those_of_decoding(read, expected):
    page = read(PAGE).page
    decoded, counts = expected
    table = bit_table(decoded, counts)
    cells = page.evaluate(f"fetch('{PAGE}/cells.json').then((answer) => answer.json())")
    assert cells["block"] == [1, 1]
    assert np.array_equal(np.array(cells["counts"]).reshape(8, 64), counts[0].ones)
    assert np.allclose(np.array(cells["residuals"]).reshape(8, 64), table.residuals, atol=0.005001)
    text = page.evaluate(f"fetch('{PAGE}.csv').then((answer) => answer.text())")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 8 * 64
    assert float(rows[77]["residual"]) == table.residuals.flat[77]
    assert float(rows[77]["fitted"]) == table.fitted.flat[77]


def colours(tab, cells):
    """The colours in the middle of some cells, as the canvas has them."""
    found = tab.page.evaluate(
        """(cells) => {
          const canvas = document.querySelector('#heat canvas');
          const size = Number(document.querySelector('#heat').dataset.cell);
          const scale = canvas.width / parseFloat(canvas.style.width);
          const copy = new OffscreenCanvas(canvas.width, canvas.height);
          const pen = copy.getContext('2d', { willReadFrequently: true });
          pen.drawImage(canvas, 0, 0);
          const all = pen.getImageData(0, 0, canvas.width, canvas.height);
          return cells.map(([cohort, bit]) => {
            const x = Math.floor((36 + bit * size + size / 2 - 1) * scale);
            const y = Math.floor((18 + cohort * size + size / 2 - 1) * scale);
            return [...all.data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3)];
          });
        }""",
        cells,
    )
    return {tuple(each) for each in found}


def test_noise_has_one_colour_and_the_modes_switch(analyst, expected):
    analyst.ready(PAGE)
    drawn(analyst)
    decoded, counts = expected
    residuals = bit_table(decoded, counts).residuals
    quiet = np.argwhere(np.abs(residuals) < 1.95).tolist()
    loud = np.argwhere(np.abs(residuals) > 2.5).tolist()
    assert colours(analyst, quiet) == {(0xF4, 0xF5, 0xF7)}
    assert (0xF4, 0xF5, 0xF7) not in colours(analyst, loud)
    analyst.page.get_by_role("link", name="Counts").click()
    drawn(analyst, "counts")
    analyst.page.wait_for_url("**map=counts*")
    assert len(colours(analyst, quiet)) > 10
    analyst.page.get_by_role("link", name="Fitted").click()
    drawn(analyst, "fitted")
    assert "most reports" in analyst.page.locator("#heat").inner_text()


def test_a_string_lights_its_bits(analyst):
    analyst.ready(PAGE)
    drawn(analyst)
    analyst.page.locator("a[data-light='google.com']").click()
    analyst.page.wait_for_selector("#heat[data-light='google.com']")
    assert "Boxed: the bits of google.com." in analyst.page.locator("#heat").inner_text()
    analyst.page.wait_for_url("**light=google.com*")
    found = analyst.page.evaluate(
        f"fetch('{PAGE}/bits.json?light=google.com').then((answer) => answer.json())"
    )
    expected = {
        (cohort, bit)
        for cohort in range(STRINGS.m)
        for bit in bloom_positions("google.com", cohort, STRINGS)
    }
    assert {tuple(cell) for cell in found["cells"]} == expected
    analyst.page.get_by_label("Light up").fill("any <b>string</b> at all")
    analyst.page.get_by_role("button", name="Light up").click()
    analyst.page.wait_for_selector("#heat[data-light='any <b>string</b> at all']")


def test_arrow_keys_read_cells(analyst):
    analyst.ready(PAGE)
    drawn(analyst)
    frame = analyst.page.locator(".heat-frame")
    frame.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        frame.press(key)
    said = analyst.page.locator(".heat-readout", has_text="Cohort 1, bit 1: counted ")
    text = said.inner_text()
    assert text.startswith("Cohort 1, bit 1: counted ")
    assert "standard deviations" in text


def test_cells_that_stand_out_are_a_table_and_the_map_a_picture_without_scripts(open_as):
    tab = open_as(Role.ANALYST, java_script_enabled=False)
    tab.goto(f"{PAGE}?light=google.com")
    tab.until("ready")  # such a page refreshes itself
    tab.page.get_by_text("Cells that stand out, as a table").click()
    rows = tab.page.locator("section[aria-label='Heat map'] tbody tr")
    assert rows.count() == 40
    assert tab.page.locator("img[src*='map.png']").count() == 1
    answer = tab.page.request.get(f"{tab.dashboard.url}{PAGE}/map.png")
    assert answer.body().startswith(b"\x89PNG")


def test_states_without_a_result(analyst):
    for name, state in (("search-engine", "empty"), ("extensions", "too few")):
        analyst.goto(f"/collections/{name}/diagnostics")
        assert analyst.page.locator("#state").get_attribute("data-state") == state
        analyst.screenshot(f"diagnostics-{state.replace(' ', '-')}")
        assert analyst.violations() == []
    answer = analyst.page.request.get(
        f"{analyst.dashboard.url}/collections/extensions/diagnostics.csv"
    )
    assert answer.status == 409


def test_a_category_collection_has_counts_and_nothing_to_choose_or_to_balance(analyst):
    analyst.ready("/collections/browser/diagnostics")
    drawn(analyst, "counts")
    assert analyst.page.locator("[data-heat-mode]").count() == 0
    assert analyst.page.get_by_role("heading", name="Cohort balance").count() == 0  # of one cohort
    assert analyst.page.locator(".verdicts li").count() == 5


def test_planted_faults_are_named_and_many_cells_are_drawn_as_means(open_as, other):
    """A cohort lost a third, and a frequent string is not on the list."""
    tab = open_as(Role.ANALYST, at=other)
    tab.ready("/collections/wide/diagnostics?anyway=1")
    drawn(tab)
    tab.drawn(2)
    checks = {
        each.get_attribute("data-check"): each.inner_text()
        for each in tab.page.locator(".verdicts li.look").all()
    }
    assert "Cohorts are uneven" in checks["balance"]
    assert "is probably missing from the list" in checks["missing"]
    assert "Each square is the mean of 1 × 2 cells" in tab.page.locator("#heat").inner_text()
    tab.screenshot("diagnostics-faults")
    assert tab.violations() == []
