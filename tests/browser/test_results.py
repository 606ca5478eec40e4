"""The Results page in a real browser: every control, state, export and look."""

import csv
import zipfile
from dataclasses import replace
from io import BytesIO, StringIO
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from rappor.collection import Collection
from rappor.dashboard.access.roles import Role
from support.dashboard import (
    HIJACKER,
    NEXT_YEAR,
    PAGES,
    RARE,
    STRINGS,
    Sample,
    serving,
    week,
)
from support.payloads import FORMULAS, PAYLOADS, WATCHED

HOME = "/collections/homepage"


def ready(tab, path=HOME, charts=2):
    """Open a view and wait until it is decoded and drawn."""
    tab.goto(path)
    return until(tab, "ready", charts)


def until(tab, state, charts=0):
    tab.page.wait_for_selector(f"#state[data-state='{state}']", state="attached", timeout=30_000)
    if charts:
        tab.drawn(charts)
    return tab.page


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


def test_every_kind_is_shown_in_every_look(open_as, look):
    word, options = look
    tab = open_as(Role.ANALYST, **options)
    for name, (path, charts) in VIEWS.items():
        ready(tab, path, charts)
        tab.screenshot(f"results-{name}-{word}")
        assert tab.sideways() == 0
        if word == "light" and name in ("strings", "compare", "ordinals"):
            assert tab.violations() == []


def test_charts_take_the_place_that_was_kept_for_them(analyst):
    held = {}
    for name, (path, charts) in VIEWS.items():
        page = ready(analyst, path, charts)
        source = analyst.context.request.get(page.url).text()
        for figure in page.query_selector_all("figure[data-chart]"):
            number = figure.get_attribute("id")
            kept = int(source.split(f'id="{number}"')[1].split('<svg height="')[1].split('"')[0])
            drawn = figure.query_selector(".plot svg").bounding_box()["height"]
            held[name, number] = (kept, round(drawn))
    assert {key: pair for key, pair in held.items() if abs(pair[0] - pair[1]) > 8} == {}


# Controls.


def test_the_hijacker_is_found_with_its_interval(analyst):
    page = ready(analyst)
    row = page.locator(f"tbody tr[data-string='{HIJACKER}']")
    assert "● detected" in row.inner_text()
    assert "of 41 candidates detected in" in page.locator("#summary").inner_text()
    assert "On average at most 5\u00a0%" in page.locator("#summary").inner_text()
    assert page.get_by_text("unlisted mass: not on the list").count() >= 1


def test_periods_are_chosen_by_select_preset_and_key(analyst):
    page = ready(analyst)
    assert query(page) == {}
    page.select_option("#to", week(2))  # the period from which the other end is one
    page.wait_for_url("**/homepage?*to=*")
    until(analyst, "ready")
    assert query(page)["to"] == week(2)
    page.get_by_role("link", name="Last 4").click()
    until(analyst, "ready")
    assert query(page) == {"from": week(3)}
    assert "4 periods summed, intervals widened for repeated reports." in page.content()
    page.keyboard.press("[")
    page.wait_for_url(f"**from={week(4)}&to={week(1)}")
    until(analyst, "ready")
    page.keyboard.press("]")
    page.wait_for_url(f"**from={week(3)}")
    page.get_by_role("link", name="All", exact=True).click()
    until(analyst, "ready")
    assert query(page) == {"from": week(7)}


def test_a_country_is_chosen_and_compared_with_another(analyst):
    page = ready(analyst)
    assert "Country: sent in clear, outside ε." in page.content()
    page.get_by_label("Country").select_option("NZ")
    page.wait_for_url("**country=NZ")
    until(analyst, "ready")
    page.get_by_label("Compare with").select_option("country=DE")
    page.wait_for_url("**vs=country*")
    until(analyst, "ready", 2)
    assert query(page) == {"country": "NZ", "vs": "country=DE"}
    assert page.locator("thead").inner_text().count("interval") == 3
    row = page.locator(f"tbody tr[data-string='{HIJACKER}']").inner_text()
    assert "points" in row
    assert page.locator("#summary").inner_text().startswith("No candidates differ between ")
    said = page.locator("section[aria-label='Table of results'] > .note").inner_text()
    assert said.startswith("● Differs: too far apart to be noise, after correcting for all 41")
    assert said.endswith("An estimate below 0 is noise around none at all; intervals end at 0.")
    assert any(
        text.startswith("−") for text in page.locator("tbody td:nth-child(4)").all_inner_texts()
    )
    analyst.goto(f"{HOME}?vs={week(1)}")
    until(analyst, "ready", 2)
    summary = page.locator("#summary").inner_text()
    assert summary.startswith("1 of 41 candidates differs between ")
    analyst.goto(f"{HOME}?q=google.com")  # one row, far above 0
    until(analyst, "ready")
    said = page.locator("section[aria-label='Table of results'] > .note").inner_text()
    assert said.startswith("● Detected: too large to be noise, after correcting for all 41")
    assert "below 0" not in said


def test_decoding_is_changed_by_correction_alpha_method_and_list(analyst):
    page = ready(analyst)
    page.get_by_text("Decoding: FDR").click()
    page.get_by_label("Correction").select_option("holm")
    page.wait_for_url("**correction=holm")
    until(analyst, "ready")
    assert "The chance of any false find is at most 5\u00a0%" in page.content()
    page.get_by_label("Error rate").fill("0.01")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**alpha=0.01")
    until(analyst, "ready")
    assert "at most 1\u00a0%" in page.locator("#summary").inner_text()
    page.get_by_label("Method").select_option("lasso")
    page.wait_for_url("**method=lasso")
    until(analyst, "ready")
    assert query(page) == {"correction": "holm", "alpha": "0.01", "method": "lasso"}
    assert page.locator("#candidates").input_value() == "1"


def test_unit_and_scale_are_switched(analyst):
    page = ready(analyst)
    page.get_by_role("link", name="Count", exact=True).click()
    page.wait_for_url("**unit=count")
    analyst.drawn(2)
    assert "Reports, with 95 % interval" in page.locator("#chart-results svg").inner_html()
    page.get_by_role("link", name="Log", exact=True).click()
    page.wait_for_url("**unit=count&scale=log")
    analyst.drawn(2)
    assert "reaches 0" in page.locator("#summary").inner_text()


def test_search_finds_while_typing_and_keeps_the_place(analyst):
    page = ready(analyst)
    page.keyboard.press("/")
    page.keyboard.type("hijack")
    page.wait_for_url("**q=hijack")
    assert strings(page) == [HIJACKER]
    assert page.evaluate("document.activeElement.id") == "q"
    page.fill("#q", "nothing like it")
    page.wait_for_url("**q=nothing*")
    assert page.get_by_text("Nothing matches").is_visible()


def test_headers_sort_on_the_server_and_all_rows_can_be_shown(analyst):
    page = ready(analyst)
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
        "tbody tr", "rows => rows.map((row) => Number(row.querySelectorAll('data')[7].value))"
    )
    assert shown == sorted(shown)


def test_a_view_is_shared_by_its_address(analyst, open_as):
    page = ready(analyst, f"{HOME}?to={week(1)}&country=DE&unit=count&sort=string")
    other = open_as(Role.VIEWER)
    other.goto(urlsplit(page.url).path + "?" + urlsplit(page.url).query)
    assert strings(other.page) == strings(page)
    assert other.page.locator("#country, #dimension-1").input_value() == "DE"


def test_an_address_that_makes_no_sense_is_explained(analyst):
    for wrong in ("from=yesterday", "alpha=2", "vs=planet%3DMars", "sort=colour", "candidates=9"):
        answer = analyst.goto(f"{HOME}?{wrong}")
        assert answer.status == 400
        assert analyst.page.get_by_role("heading", name="This address cannot be read").count()


def test_the_page_works_without_scripts(open_as, analyst):
    ready(analyst)
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
    assert query(page)["country"] == "NZ"


# States.


def test_empty_says_what_is_missing_and_how_to_send_a_report(analyst):
    analyst.goto("/collections/search-engine")
    page = until(analyst, "empty")
    assert page.get_by_role("heading", name="No reports yet").is_visible()
    page.get_by_text("Send a test report").click()
    assert "client.report('search-engine'" in page.content().replace("&#39;", "'")
    analyst.screenshot("results-state-empty")
    assert analyst.violations() == []


def test_too_few_says_how_many_are_needed_and_shows_them_on_request(analyst):
    analyst.goto("/collections/extensions")
    page = until(analyst, "too few")
    title = page.locator(".box h2").inner_text()
    assert title.startswith("400 so far; 1\u00a0% needs about ")
    assert "These show only strings above" in page.locator(".box").inner_text()
    analyst.screenshot("results-state-too-few")
    page.get_by_role("link", name="Show anyway").click()
    until(analyst, "ready")
    assert "candidates detected in 400 reports" in page.locator("#summary").inner_text()


def test_a_viewer_is_told_who_may_decode(viewer):
    viewer.goto(f"{HOME}?alpha=0.003")
    page = until(viewer, "no permission")
    assert "Analysts can do this; you are a viewer" in page.locator(".box").inner_text()
    assert "Ask Browser team." in page.locator(".box").inner_text()
    viewer.screenshot("results-state-no-permission")


# Exports.


def fetched(tab, ending, question=""):
    answer = tab.context.request.get(f"{tab.dashboard.url}{HOME}{ending}{question}")
    assert answer.ok, answer.text()
    return answer


def test_every_export_is_offered_and_whole(analyst):
    page = ready(analyst)
    nav = page.get_by_role("navigation", name="Save")
    names = ["CSV", "JSON", "Parquet", "google/rappor", "SVG", "PNG"]
    assert all(name in nav.inner_text() for name in names)
    links = nav.get_by_role("link").evaluate_all("links => links.map((link) => link.href)")
    for link in links:
        answer = analyst.context.request.get(link)
        assert answer.ok, link
        assert len(answer.body()) > 100
    rows = fetched(analyst, ".csv").text().splitlines()
    assert rows[0].startswith("string,estimate,std_error,proportion")
    assert len(rows) == 1 + 41
    packed = zipfile.ZipFile(BytesIO(fetched(analyst, ".google.zip").body()))
    assert sorted(packed.namelist()) == ["counts.csv", "map.csv", "params.csv"]
    svg = fetched(analyst, "/charts/results.svg").text()
    assert svg.startswith("<svg")
    assert HIJACKER in svg
    assert fetched(analyst, "/charts/unlisted.png").body().startswith(b"\x89PNG")
    pq = pytest.importorskip("pyarrow.parquet")
    assert pq.read_table(BytesIO(fetched(analyst, ".parquet").body())).num_rows == 41


def test_exports_keep_the_view(analyst):
    ready(analyst, f"{HOME}?q=shop0&sort=string")
    rows = fetched(analyst, ".csv", "?q=shop0&sort=string").text().splitlines()[1:]
    names = [line.split(",")[0] for line in rows]
    assert names == [name for name in sorted(RARE) if "shop0" in name]
    found = fetched(analyst, ".json", "?q=shop0").json()
    assert all("shop0" in row["string"] for row in found["rows"])


def test_python_is_copied(open_as):
    tab = open_as(Role.ANALYST, permissions=["clipboard-read", "clipboard-write"])
    page = ready(tab)
    page.get_by_text("Copy as Python").click()
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == fetched(tab, ".py").text()
    assert copied.startswith("from pathlib import Path")


# Texts that attack.


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Payloads as candidates that are detected and as categories; odd values of dimensions."""
    sample = Sample(tmp_path_factory.mktemp("hostile-results"))
    odd = ("javascript:fire(1)", "a/../b", "1+1")
    strings = Collection("strings", 1, STRINGS, dimensions={"from": odd, "q": ("x",)})
    params = replace(STRINGS, k=64, h=1, m=1)
    listed = tuple(PAYLOADS)
    groups = Collection("groups", 1, params, kind="category", categories=listed)
    for collection in (strings, groups):
        collection = replace(collection, period="week", owner="<b>owner", expires=NEXT_YEAR)
        sample.define(collection)
        pairs = [("from", odd[0]), ("q", "x")] if collection.dimensions else []
        weights = dict.fromkeys(PAYLOADS, 0.1) | dict.fromkeys(PAYLOADS[:6], 3.0)
        for back in (0, 1):
            sample.add(collection, week(back), weights, 300_000, pairs, seed=5 + back)
    sample.store()
    with serving(sample) as running:
        running.state.save_candidates("strings", PAYLOADS, "test")
        yield running


def test_payloads_as_candidates_categories_and_dimensions_do_nothing(open_as, hostile):
    tab = open_as(Role.ANALYST, at=hostile)
    tab.page.add_init_script(WATCHED)
    paths = (
        "/collections/strings?show=all",
        "/collections/strings?scale=log&unit=count",
        f"/collections/strings?vs={week(1)}",
        "/collections/strings?dim.from=javascript%3Afire(1)&dim.q=x",
        "/collections/groups",
    )
    for path in paths:
        page = ready(tab, path, 1)
        assert page.evaluate("window.fired") == []
        assert page.locator("main h1").count() == 1
        page.locator("[id^=chart-]:not(#chart-unlisted) path[role=graphics-symbol]").first.hover()
        page.wait_for_selector("#vg-tooltip-element.visible")
        page.locator("tbody tr").first.hover()
    ready(tab, "/collections/strings?show=all", 1)
    assert set(PAYLOADS) == set(strings(tab.page))
    tab.screenshot("results-hostile")
    assert tab.page.evaluate("window.fired") == []
    for text in PAYLOADS[::5]:
        asked = urlencode({"q": text, "vs": text, "sort": text})
        tab.goto(f"/collections/strings?{asked}")
        tab.goto(f"/collections/strings?{urlencode({'q': text})}")
        assert strings(tab.page) == [text]
        assert tab.page.evaluate("window.fired") == []


def test_payloads_in_files_of_results_do_nothing(open_as, hostile):
    tab = open_as(Role.ANALYST, at=hostile)
    ready(tab, "/collections/strings", 1)
    asked = tab.context.request
    text = asked.get(f"{hostile.url}/collections/strings.csv").text()
    cells = [row[0] for row in csv.reader(StringIO(text, newline=""))]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {f"'{text}" for text in FORMULAS} <= set(cells)
    picture = asked.get(f"{hostile.url}/collections/strings/charts/results.svg")
    assert "<script" not in picture.text()
    assert "onerror=fire(4)>" not in picture.text()
    code = asked.get(f"{hostile.url}/collections/strings.py?dim.from=javascript%3Afire(1)")
    compile(code.text(), "view.py", "exec")
