"""Results in a real browser: every control, state, export and look; and texts that attack."""

import csv
import zipfile
from io import BytesIO, StringIO
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from rappor.csv_cells import original
from rappor.dashboard.auth.roles import Role
from support.dashboard import HIJACKER, PAGES, RARE, week
from support.payloads import FORMULAS, PAYLOADS, WATCHED

HOME = "/collections/homepage"


def query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def strings(page):
    return page.eval_on_selector_all("tbody tr", "rows => rows.map((row) => row.dataset.string)")


VIEWS = {
    "strings": (HOME, 2),
    "log": (f"{HOME}?scale=log", 2),
    "compare": (f"{HOME}?vs={week(1)}", 2),
    "categories": ("/collections/browser", 2),
    "ordinals": ("/collections/start-time", 2),
}


@pytest.mark.parametrize(
    "name",
    [
        *("strings", "categories", "ordinals"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("log", "compare")),
    ],
)
def test_every_kind_is_shown_in_every_look(open_as, look, name):
    word, options = look
    tab = open_as(Role.ANALYST, **options)
    tab.ready(*VIEWS[name])
    tab.screenshot(f"results-{name}-{word}")
    assert tab.sideways() == 0
    if word == "light" and name in ("strings", "compare"):
        assert tab.violations() == []


@pytest.mark.long
def test_numbers_are_accessible_too(analyst):
    analyst.ready(*VIEWS["ordinals"])
    assert analyst.violations() == []


@pytest.mark.long
def test_charts_take_the_place_that_was_kept_for_them(analyst):
    held = {}
    for name, (path, charts) in VIEWS.items():
        page = analyst.ready(path, charts)
        source = analyst.context.request.get(page.url).text()
        for figure in page.query_selector_all("figure[data-chart]"):
            number = figure.get_attribute("id")
            kept = int(source.split(f'id="{number}"')[1].split('<svg height="')[1].split('"')[0])
            drawn = figure.query_selector(".plot svg").bounding_box()["height"]
            held[name, number] = (kept, round(drawn))
    assert {key: pair for key, pair in held.items() if abs(pair[0] - pair[1]) > 8} == {}


# Controls.


def test_the_hijacker_is_found_with_its_interval(read):
    page = read(HOME).page
    row = page.locator(f"tbody tr[data-string='{HIJACKER}']")
    assert "● detected" in row.inner_text()
    heads = page.locator("thead").inner_text()
    assert "Made up by" in heads
    assert "Hidden by" in heads
    assert "of 41 candidates detected in" in page.locator("#summary").inner_text()
    assert "On average at most 5\u00a0%" in page.locator("#summary").inner_text()
    assert page.get_by_text("undetected mass: not on the list").count() >= 1


@pytest.mark.long
def test_periods_are_chosen_by_select_and_preset(analyst):
    page = analyst.ready(HOME, 2)
    assert query(page) == {}
    page.select_option("#to", week(2))  # the period from which the other end is one
    page.wait_for_url("**/homepage?*to=*")
    analyst.until("ready")
    assert query(page)["to"] == week(2)
    page.get_by_role("link", name="Last 4").click()
    page.wait_for_url(f"**/homepage?from={week(3)}")
    analyst.until("ready")
    assert "4 periods summed, intervals widened for repeated reports." in page.content()


@pytest.mark.long
def test_periods_are_chosen_by_key(analyst):
    page = analyst.ready(f"{HOME}?from={week(3)}")
    page.keyboard.press("[")
    page.wait_for_url(f"**from={week(4)}&to={week(1)}")
    analyst.until("ready")
    page.keyboard.press("]")
    page.wait_for_url(f"**/homepage?from={week(3)}")
    page.get_by_role("link", name="All", exact=True).click()
    page.wait_for_url(f"**/homepage?from={week(7)}")
    analyst.until("ready")


def test_a_country_is_chosen_and_compared_with_another(analyst):
    page = analyst.ready(HOME, 2)
    assert "Country: sent in clear, outside ε." in page.content()
    page.get_by_label("Country").select_option("NZ")
    page.wait_for_url("**country=NZ")
    analyst.until("ready")
    page.get_by_label("Compare with").select_option("country=DE")
    page.wait_for_url("**vs=country*")
    analyst.until("ready", 2)
    assert query(page) == {"country": "NZ", "vs": "country=DE"}
    assert page.locator("thead").inner_text().count("interval") == 3
    row = page.locator(f"tbody tr[data-string='{HIJACKER}']").inner_text()
    assert "points" in row
    assert page.locator("#summary").inner_text().startswith("No candidates differ between ")
    said = page.locator("section[aria-label='Table of results'] > .note").inner_text()
    assert said.startswith(f"Differences are {week(0)}, NZ minus {week(0)}, DE. ● Differs: too far")
    assert "apart to be noise, after correcting for all 41" in said
    assert "○ None seen: there is no difference, or one too small to see." in said
    assert said.endswith("can differ from the two shares subtracted.")
    shares = page.locator("tbody td:nth-child(7)").all_inner_texts()
    assert not any(text.startswith("−") for text in shares)  # no share is below 0
    limits = page.locator("tbody td:nth-child(8)").all_inner_texts()
    assert any(text.startswith("at most ") for text in limits)


@pytest.mark.long
def test_the_summary_and_the_note_fit_what_is_shown(analyst):
    page = analyst.ready(f"{HOME}?vs={week(1)}", 2)
    summary = page.locator("#summary").inner_text()
    assert summary.startswith("1 of 41 candidates differs between ")
    analyst.goto(f"{HOME}?q=google.com")  # one row, far above 0
    analyst.until("ready")
    said = page.locator("section[aria-label='Table of results'] > .note").inner_text()
    assert said.startswith("● Detected: too large to be noise, after correcting for all 41")
    assert "“at most” is an upper limit with 97.5 % confidence" in said
    assert "forged reports with the right bits" in said


@pytest.mark.long
def test_decoding_is_changed_by_correction_alpha_method_and_list(analyst):
    page = analyst.ready(HOME, 2)
    page.get_by_text("Decoding: Adaptive FDR").click()
    page.get_by_label("Correction").select_option("holm")
    page.wait_for_url("**correction=holm")
    analyst.until("ready")
    assert "The chance of any false find is at most 5\u00a0%" in page.content()
    page.get_by_label("Error rate").fill("0.01")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**alpha=0.01")
    analyst.until("ready")
    assert "at most 1\u00a0%" in page.locator("#summary").inner_text()
    page.get_by_label("Method").select_option("lasso")
    page.wait_for_url("**method=lasso")
    analyst.until("ready")
    assert query(page) == {"correction": "holm", "alpha": "0.01", "method": "lasso"}
    assert page.locator("#candidates").input_value() == "1"


@pytest.mark.long
def test_unit_and_scale_are_switched(analyst):
    page = analyst.ready(HOME, 2)
    page.get_by_role("link", name="Count", exact=True).click()
    page.wait_for_url("**unit=count")
    analyst.drawn(2)
    assert "Reports, with 95 % interval" in page.locator("#chart-results svg").inner_html()
    page.get_by_role("link", name="Log", exact=True).click()
    page.wait_for_url("**unit=count&scale=log")
    analyst.drawn(2)
    said = page.locator("#summary").inner_text()
    assert "Without a dot: an upper limit." in said
    assert "◂: no lower limit." in said


@pytest.mark.long
def test_search_finds_while_typing_and_keeps_the_place(analyst):
    page = analyst.ready(HOME, 2)
    page.keyboard.press("/")
    page.keyboard.insert_text("hijack")  # at once: a pause of 250 ms would send a part of it
    page.wait_for_url("**q=hijack")
    assert strings(page) == [HIJACKER]
    assert page.evaluate("document.activeElement.id") == "q"
    page.fill("#q", "nothing like it")
    page.wait_for_url("**q=nothing*")
    assert page.get_by_text("Nothing matches").is_visible()


@pytest.mark.long
def test_headers_sort_on_the_server_and_all_rows_can_be_shown(analyst):
    page = analyst.ready(HOME, 2)
    few = len(strings(page))
    page.get_by_role("link", name="show all").click()
    page.wait_for_url("**show=all")
    assert few < len(strings(page)) == len(PAGES) + 1 + len(RARE)
    page.get_by_role("link", name="String").click()
    page.wait_for_url("**sort=string*")
    assert strings(page) == sorted(strings(page))
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("String")
    page.get_by_role("link", name="p-value", exact=True).click()
    page.wait_for_url("**sort=p_value*")
    shown = page.eval_on_selector_all(
        "tbody td:nth-child(7) data", "cells => cells.map((cell) => Number(cell.value))"
    )
    assert len(shown) == len(strings(page))
    assert shown == sorted(shown)


@pytest.mark.long
def test_a_view_is_shared_by_its_address(analyst, open_as):
    page = analyst.ready(f"{HOME}?to={week(1)}&country=DE&unit=count&sort=string")
    other = open_as(Role.VIEWER)
    other.goto(urlsplit(page.url).path + "?" + urlsplit(page.url).query)
    assert strings(other.page) == strings(page)
    assert other.page.locator("#country, #dimension-1").input_value() == "DE"


@pytest.mark.long
def test_an_address_that_makes_no_sense_is_explained(analyst):
    for wrong in ("from=yesterday", "alpha=2", "vs=planet%3DMars", "sort=colour", "candidates=9"):
        answer = analyst.goto(f"{HOME}?{wrong}")
        assert answer.status == 400
        assert analyst.page.get_by_role("heading", name="This address cannot be read").count()


@pytest.mark.long
def test_the_page_works_without_scripts(open_as, read):
    read(HOME)  # decoded by now
    tab = open_as(Role.ANALYST, java_script_enabled=False)
    tab.goto(HOME)
    page = tab.page
    assert page.locator("figure img").count() == 2
    for each in page.locator("figure img").all():
        each.scroll_into_view_if_needed()
        assert each.bounding_box()["height"] > 40  # the chart, as a picture
    tab.screenshot("results-without-scripts")
    page.get_by_label("Country").select_option("NZ")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**country=NZ*")


# States.


@pytest.mark.long
def test_empty_says_what_is_missing_and_how_to_send_a_report(analyst):
    analyst.goto("/collections/search-engine")
    page = analyst.until("empty")
    assert page.get_by_role("heading", name="No reports yet").is_visible()
    page.get_by_text("Send a test report").click()
    assert "client.report('search-engine'" in page.content().replace("&#39;", "'")
    analyst.screenshot("results-state-empty")
    assert analyst.violations() == []


@pytest.mark.long
def test_too_few_says_how_many_are_needed_and_shows_them_on_request(analyst):
    analyst.goto("/collections/extensions")
    page = analyst.until("too few")
    title = page.locator(".box h2").inner_text()
    assert title.startswith("400 so far; 1\u00a0% needs at most about ")
    assert "These show only strings above" in page.locator(".box").inner_text()
    analyst.screenshot("results-state-too-few")
    page.get_by_role("link", name="Show anyway").click()
    analyst.until("ready")
    assert "candidates detected in 400 reports" in page.locator("#summary").inner_text()


def test_a_viewer_is_told_who_may_decode(viewer):
    viewer.goto(f"{HOME}?alpha=0.003")
    page = viewer.until("no permission")
    assert "Analysts can do this; you are a viewer" in page.locator(".box").inner_text()
    assert "Ask Browser team." in page.locator(".box").inner_text()
    viewer.screenshot("results-state-no-permission")


# Exports.


def fetched(tab, ending, question=""):
    answer = tab.context.request.get(f"{tab.dashboard.url}{HOME}{ending}{question}")
    assert answer.ok, answer.text()
    return answer


def test_every_export_is_offered_and_whole(read):
    tab = read(HOME)
    nav = tab.page.get_by_role("navigation", name="Save")
    names = ["CSV", "JSON", "Parquet", "google/rappor", "SVG", "PNG"]
    assert all(name in nav.inner_text() for name in names)
    links = nav.get_by_role("link").evaluate_all("links => links.map((link) => link.href)")
    for link in links:
        answer = tab.context.request.get(link)
        assert answer.ok, link
        assert len(answer.body()) > 100
    rows = fetched(tab, ".csv").text().splitlines()
    assert rows[0].startswith("string,estimate,std_error,proportion")
    assert len(rows) == 1 + 41
    packed = zipfile.ZipFile(BytesIO(fetched(tab, ".google.zip").body()))
    assert sorted(packed.namelist()) == ["counts.csv", "map.csv", "params.csv"]
    svg = fetched(tab, "/charts/results.svg").text()
    assert svg.startswith("<svg")
    assert HIJACKER in svg
    assert fetched(tab, "/charts/undetected_mass.png").body().startswith(b"\x89PNG")
    pq = pytest.importorskip("pyarrow.parquet")
    assert pq.read_table(BytesIO(fetched(tab, ".parquet").body())).num_rows == 41


def test_exports_keep_the_view(read):
    tab = read(HOME)
    rows = fetched(tab, ".csv", "?q=shop0&sort=string").text().splitlines()[1:]
    names = [row[0] for row in csv.reader(rows)]
    assert names == [name for name in sorted(RARE) if "shop0" in name]
    found = fetched(tab, ".json", "?q=shop0").json()
    assert all("shop0" in row["string"] for row in found["rows"])


@pytest.mark.long
def test_python_is_copied(open_as):
    tab = open_as(Role.ANALYST, permissions=["clipboard-read", "clipboard-write"])
    page = tab.ready(HOME)
    page.get_by_text("Copy as Python").click()
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == fetched(tab, ".py").text()
    assert copied.startswith("import rappor\n")


# Texts that attack.


HOSTILE = "/collections/strings"


@pytest.mark.parametrize(
    "path",
    [
        f"{HOSTILE}?show=all",
        *(
            pytest.param(path, marks=pytest.mark.long)
            for path in (
                f"{HOSTILE}?scale=log&unit=count",
                f"{HOSTILE}?vs={week(1)}",
                f"{HOSTILE}?dim.from=javascript%3Afire(1)&dim.q=x",
                "/collections/groups",
            )
        ),
    ],
    ids=["candidates", "counts", "compared", "dimensions", "categories"],
)
def test_payloads_as_candidates_categories_and_dimensions_do_nothing(open_as, other, path):
    tab = open_as(Role.ANALYST, at=other)
    tab.page.add_init_script(WATCHED)
    page = tab.ready(path, 1)
    assert page.evaluate("window.fired") == []
    assert page.locator("main h1").count() == 1
    if "show=all" in path:
        assert set(PAYLOADS) == set(strings(page))
        tab.screenshot("results-hostile")
    page.locator(
        "[id^=chart-]:not(#chart-undetected_mass) path[role=graphics-symbol]"
    ).first.hover()
    page.wait_for_selector("#vg-tooltip-element.visible")
    page.locator("tbody tr").first.hover()
    assert page.evaluate("window.fired") == []


@pytest.mark.long
def test_payloads_in_addresses_of_results_do_nothing(open_as, other):
    tab = open_as(Role.ANALYST, at=other)
    tab.ready(HOSTILE, 1)
    tab.page.add_init_script(WATCHED)
    for text in PAYLOADS[::5]:
        asked = urlencode({"q": text, "vs": text, "sort": text})
        tab.goto(f"{HOSTILE}?{asked}")
        assert tab.page.evaluate("window.fired") == []
        tab.goto(f"{HOSTILE}?{urlencode({'q': text})}")
        assert strings(tab.page) == [text]
        assert tab.page.evaluate("window.fired") == []


@pytest.mark.long
def test_payloads_in_files_of_results_do_nothing(open_as, other):
    tab = open_as(Role.ANALYST, at=other)
    tab.ready(HOSTILE, 1)
    asked = tab.context.request
    text = asked.get(f"{other.url}/collections/strings.csv").text()
    cells = [row[0] for row in csv.reader(StringIO(text, newline=""))]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert set(FORMULAS) <= {original(cell) for cell in cells} - set(cells)
    picture = asked.get(f"{other.url}/collections/strings/charts/results.svg")
    assert "<script" not in picture.text()
    assert "onerror=fire(4)>" not in picture.text()
    code = asked.get(f"{other.url}/collections/strings.py?dim.from=javascript%3Afire(1)")
    compile(code.text(), "view.py", "exec")
