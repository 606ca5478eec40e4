"""The page Collections: what it lists, in which order, and as which files."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from rappor.charts.numbers import show_epsilon
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.collections.overview import spark_of
from rappor.dashboard.context import Context
from rappor.privacy import add_up
from support.collecting import today
from support.dashboard import STRINGS, Sample, sample_folder, week
from support.dashboard_context import Browser, made_context


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    with made_context(tmp_path_factory.mktemp("collections")) as context:
        mass = {"proportion": 0.4471, "prop_low_95": 0.4202, "prop_high_95": 0.4753}
        facts = {"version": 1, "periods": [week(0)], "dimensions": [], "undetected_mass": mass}
        context.state.save_result(
            "k", "decode", facts | {"collection": "homepage", "detected": 28}, None
        )
        yield context


@pytest.fixture(scope="module")
def viewer(context: Context) -> Browser:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    return browser


def names(text: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/collections/([^"]+)"', text)


def test_it_says_how_many_and_what_all_cost_together(context: Context, viewer: Browser) -> None:
    active = [
        entry.collection.epsilon_infinity
        for entry in context.catalogue.collections()
        if entry.standing == "Active"
    ]
    total = add_up((each, 1) for each in active)
    text = re.sub(r"<[^>]+>", "", viewer.get("/").text)
    assert "6 collections, 5 active. A client that answers all active ones: at most ε" in text
    shown = [Decimal(show_epsilon(each)) for each in active]
    assert f"at most ε {sum(shown)} (sum of ε∞, one value each)." in text  # as shown in the rows
    assert float(sum(shown)) >= total
    assert json.loads(viewer.get("/collections.json").body)["epsilon_of_all_active"] == total


def test_a_row_has_its_numbers_with_their_interval(viewer: Browser) -> None:
    row = re.search(
        r"<tr>\s*<th scope=\"row\"><a href=\"/collections/homepage\".*?</tr>",
        viewer.get("/").text,
        re.S,
    )
    assert row is not None
    cells = re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", row[0]))
    # What was found and when it ends come first: a phone shows those columns.
    assert "homepage strings 28 31 Dec 2027 counts are deleted 103,200 " in cells
    assert " 44.7\xa0% 42.0 – 47.5 Active 1.832 / 7.784 Browser team " in cells
    assert '<data value="0.4471">' in row[0]
    assert '<polyline points="' in row[0]


def test_too_few_reports_stand_under_detected_with_what_they_lack(viewer: Browser) -> None:
    row = re.search(r"/collections/extensions\".*?</tr>", viewer.get("/").text, re.DOTALL)
    assert row is not None
    assert re.search(r'title="400 so far; 1\xa0% needs at most about [0-9,]+">too few', row[0])


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("", "browser", "start-time"),
        ("?sort=-name", "start-time", "browser"),
        ("?sort=-reports", "homepage", "search-engine"),
        ("?sort=-detected", "homepage", "start-time"),
        ("?sort=expires", "old-survey", "start-time"),
        ("?sort=nonsense&page=99", "browser", "start-time"),
    ],
)
def test_headers_sort_on_the_server(viewer: Browser, query: str, first: str, last: str) -> None:
    found = names(viewer.get(f"/{query}").text)
    assert (found[0], found[-1], len(found)) == (first, last, 6)


def test_the_sorted_column_says_so_and_turns_around(viewer: Browser) -> None:
    text = viewer.get("/?sort=-reports").text
    assert 'aria-sort="descending"><a href="/?sort=reports">' in text
    assert text.count("aria-sort") == 1


def test_search_and_state_narrow_the_list_and_stay_in_its_links(viewer: Browser) -> None:
    text = viewer.get("/?q=STRINGS&state=Active").text
    assert names(text) == ["extensions", "homepage", "search-engine"]
    assert 'href="/collections.csv?q=STRINGS&amp;state=Active"' in text
    assert 'value="STRINGS"' in text
    assert names(viewer.get("/?q=networks").text) == ["old-survey"]
    assert "Nothing found" in viewer.get("/?q=zzz").text


def test_files_hold_what_the_page_shows(viewer: Browser) -> None:
    document = json.loads(viewer.get("/collections.json?q=homepage").body)
    (row,) = document["collections"]
    assert (row["detected"], row["undetected_mass"], row["state"]) == (28, 0.4471, "Active")
    answer = viewer.get("/collections.csv?q=homepage")
    (line,) = csv.DictReader(io.StringIO(answer.text))
    assert float(line["undetected_mass_low_95"]) == 0.4202
    assert answer.headers["content-disposition"] == 'attachment; filename="collections.csv"'


def test_nothing_yet_says_what_to_do(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    sample.data.mkdir()
    sample.definitions.mkdir()
    (sample.definitions / "bad.toml").write_text("name = '<script>x</script>'", encoding="utf-8")
    with made_context(tmp_path, sample=sample) as context:
        browser = Browser(context)
        browser.log_in(Role.VIEWER)
        text = browser.get("/").text
        assert "No collections yet" in text
        assert "bad.toml cannot be read" in text
        assert "<script>x" not in text
        assert str(tmp_path) not in text  # where the folder lies is nobody's business
        assert browser.get("/collections.csv").text == "collection\n"
        assert json.loads(browser.get("/collections.json").body)["collections"] == []


def test_an_infinite_epsilon_is_shown_as_no_limit(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    expires = today() + timedelta(days=9)
    sample.define(Collection("daily", 1, STRINGS, budget=True, max_epsilon=20.0, expires=expires))
    sample.store()
    with made_context(tmp_path, sample=sample) as context:
        browser = Browser(context)
        browser.log_in(Role.VIEWER)
        assert '<data value="inf">∞ (no limit)</data>' in browser.get("/").text
        row = json.loads(browser.get("/collections.json").body)["collections"][0]
        assert row["epsilon_infinity"] == "inf"


def test_a_sparkline_begins_at_0_and_ends_at_the_right() -> None:
    line = spark_of([100, 50, 0])
    assert line.points == "2.5,2.5 36,10 69.5,17.5"
    assert spark_of([7]).points == "69.5,2.5"
    assert spark_of([0, 0]).y == 17.5


def test_a_damaged_store_is_a_page_that_says_so_without_its_place(tmp_path: Path) -> None:
    sample = sample_folder(tmp_path)
    file = sample.data / "store.sqlite"
    good = file.read_bytes()
    file.write_bytes(good[:100] + b"\xff" * 4000 + good[4100:])
    with made_context(tmp_path, sample=sample) as context:
        browser = Browser(context)
        browser.log_in(Role.VIEWER)
        answer = browser.get("/")
        assert answer.status_code == 503
        assert "The store cannot be read" in answer.text
        assert "damaged" in answer.text
        assert str(tmp_path) not in answer.text


def test_an_end_that_is_near_is_announced_with_what_happens_to_the_data(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    soon = today() + timedelta(days=5)
    for name, end in (("brief", soon), ("long", soon + timedelta(days=30))):
        sample.define(Collection(name, 1, STRINGS, owner="x", expires=end))
    sample.store()
    with made_context(tmp_path, sample=sample) as context:
        browser = Browser(context)
        browser.log_in(Role.VIEWER)
        text = browser.get("/").text
    assert "Ends soon" in text
    assert f"brief v1 expires on {soon}, in 5 days: from then on no report is accepted" in text
    assert "long v1 expires" not in text
