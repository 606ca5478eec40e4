"""Candidates in a real browser: paste, upload, see what it explains, save; hostile strings too."""

import json

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.candidates.candidate_upload import MAX_STRINGS
from support.dashboard import HIJACKER, PAGES, RARE, week
from support.payloads import LISTED

pytestmark = pytest.mark.long

PAGE = "/collections/homepage/candidates"


def listed(other):
    """The list of `homepage` as all tests here begin with it; its version."""
    return other.state.save_candidates("homepage", [*PAGES, *RARE], "test")


def check(tab, text, how="add"):
    tab.goto(PAGE)
    tab.page.get_by_label("Strings, one on each line").fill(text)
    tab.page.get_by_label("And then").select_option(how)
    tab.page.get_by_role("button", name="Check").click()
    tab.page.wait_for_selector("#read")


def test_a_pasted_list_shows_what_it_would_explain_before_it_is_saved(open_as, other):
    version = listed(other)
    tab = open_as(Role.ANALYST, at=other)
    check(tab, f"{HIJACKER}\nelsewhere.example\n{HIJACKER}\n\n{PAGES[0]}\n")
    read = tab.page.locator("#read").inner_text()
    assert "4 read · 1 duplicate merged" in read
    assert f"2 added, 0 removed since v{version}" in read
    tab.until("ready")
    values = [
        float(each.get_attribute("value")) for each in tab.page.locator("#explained data").all()
    ]
    assert len(values) == 2
    assert values[1] > values[0] + 0.1
    assert "elsewhere.example" in tab.page.locator(".groups.new").inner_text()
    tab.screenshot("candidates-draft")
    assert tab.violations() == []
    tab.page.get_by_role("button", name=f"Save as v{version + 1}").click()
    row = tab.page.locator(f"tr[data-version='{version + 1}']")
    assert "analyst" in row.inner_text()
    document = json.loads(tab.page.request.get(f"{other.url}{PAGE}.json").body())
    newest = document["versions"][0]
    assert (newest["version"], newest["added"], newest["removed"]) == (version + 1, 2, 0)
    assert newest["some_added"] == ["elsewhere.example", HIJACKER]


def test_the_numbers_are_those_of_decoding(open_as, other):
    from rappor.dashboard.catalogue import Catalogue
    from rappor.decoding.decode import decode

    tab = open_as(Role.ANALYST, at=other)
    check(tab, f"{HIJACKER}\n{PAGES[0]}", "replace")
    tab.until("ready")
    counts = Catalogue(other.sample.data).counts("homepage", 1, [week(0)])
    expected = 1 - decode(counts, [HIJACKER, PAGES[0]]).undetected_mass.proportion
    after = tab.page.locator("#explained b data")
    assert float(after.get_attribute("value")) == expected


@pytest.mark.long
def test_saving_can_decode_at_once(open_as, other):
    tab = open_as(Role.ANALYST, at=other)
    check(tab, "one-more.example")
    tab.until("ready")
    tab.page.get_by_role("button", name="Save and decode again").click()
    tab.page.wait_for_url("**/collections/homepage")
    tab.until("ready")


@pytest.mark.long
def test_a_file_is_read_and_lines_that_are_no_text_are_reported(open_as, other, tmp_path):
    file = tmp_path / "list.txt"
    file.write_bytes(b"good.example\n\xff\xfe broken\nalso-good.example\n" + b"x" * 5000 + b"\n")
    tab = open_as(Role.ANALYST, at=other)
    tab.goto(PAGE)
    tab.page.get_by_label("Or a file").set_input_files(file)
    tab.page.get_by_role("button", name="Check").click()
    tab.page.wait_for_selector("#read")
    assert "2 read · 2 unreadable lines" in tab.page.locator("#read").inner_text()
    text = tab.page.locator("main").inner_text()
    assert "Line 2: not UTF-8 text" in text
    assert "Line 4: longer than 4,096 characters" in text


@pytest.mark.long
def test_limits_are_said(open_as, other, tmp_path):
    tab = open_as(Role.ANALYST, at=other)
    many = tmp_path / "many.txt"
    many.write_text("".join(f"{number:x}\n" for number in range(MAX_STRINGS + 1)))
    large = tmp_path / "large.txt"
    large.write_bytes(b"x" * 33_000_000)
    for file, words in (
        (many, "A list may have 1,000,000 strings; this one has 1,000,001."),
        (large, "A list may have 32 MB; this one has 33.0 MB."),
    ):
        tab.goto(PAGE)
        tab.page.get_by_label("Or a file").set_input_files(file)
        tab.page.get_by_role("button", name="Check").click()
        tab.page.wait_for_selector(".box.bad")
        assert words in tab.page.locator(".box.bad").inner_text()
    tab.screenshot("candidates-error")
    tab.goto(PAGE)
    tab.page.get_by_role("button", name="Check").click()
    assert "a list has at least one string" in tab.page.locator(".box.bad").inner_text().lower()


@pytest.mark.long
@pytest.mark.parametrize("way", ["pasted", "uploaded"])
def test_hostile_strings_stay_strings(open_as, other, tmp_path, way):
    """No script runs, nothing leaves the machine, and every string comes back as it went in."""
    version = listed(other)
    tab = open_as(Role.ANALYST, at=other)
    tab.goto(PAGE)
    assert len(LISTED) == 60
    if way == "pasted":
        tab.page.get_by_label("Strings, one on each line").fill("\n".join(LISTED))
    else:
        file = tmp_path / "list.txt"
        file.write_text("\n".join(LISTED), encoding="utf-8")
        tab.page.get_by_label("Or a file").set_input_files(file)
    tab.page.get_by_label("And then").select_option("replace")
    tab.page.get_by_role("button", name="Check").click()
    tab.page.wait_for_selector("#read")
    tab.until("ready")
    assert "60 read · 60 candidates" in tab.page.locator("#read").inner_text()
    assert LISTED[0] in tab.page.locator(".groups.new").inner_text()
    assert tab.page.get_by_label("Strings, one on each line").input_value() == "\n".join(
        sorted(LISTED)
    )
    tab.page.get_by_role("button", name="Save as").click()
    tab.page.wait_for_selector(f"tr[data-version='{version + 1}']")
    for details in tab.page.locator("tr details").all():
        details.click()
    for path in ("trends", "diagnostics"):
        tab.ready(f"/collections/homepage/{path}", charts=1)
        assert LISTED[0] in tab.page.locator("main").inner_text()
    link = tab.page.locator("a[data-light]").first
    link.click()
    tab.page.wait_for_function(
        "string => document.querySelector('#heat').dataset.light === string",
        arg=link.get_attribute("data-light"),
    )
    table = tab.page.request.get(f"{other.url}{PAGE}.csv").body().decode()
    assert not any(line.startswith(("=", "+", "-", "@", "\t")) for line in table.splitlines())
    assert tab.page.evaluate("window.name") == ""


def test_candidates_look_right(open_as, look):
    name, options = look
    tab = open_as(Role.ANALYST, **options)
    tab.goto(PAGE)
    tab.screenshot(f"candidates-{name}")
    assert tab.sideways() == 0
    assert tab.violations() == []


def test_a_viewer_reads_lists_and_cannot_save(viewer):
    viewer.goto(PAGE)
    assert viewer.page.locator("textarea").count() == 0
    assert "Analysts can do this; you are a viewer" in viewer.page.locator("main").inner_text()
    assert viewer.page.locator("tr[data-version='1']").count() == 1
    csrf = viewer.page.locator("input[name=csrf]").first.get_attribute("value")
    answer = viewer.page.request.post(
        f"{viewer.dashboard.url}{PAGE}", form={"csrf": csrf, "text": "a", "how": "add"}
    )
    assert answer.status == 403


@pytest.mark.long
def test_a_decode_can_be_cancelled_and_started_again(open_as, other):
    listed(other)
    tab = open_as(Role.ANALYST, at=other)
    tab.stop_worker("/collections/homepage?alpha=0.013")
    check(tab, "site.example")
    tab.until("loading")
    tab.screenshot("candidates-loading")
    tab.page.get_by_role("button", name="Cancel").click()
    tab.until("cancelled")
    assert "Cancelled" in tab.page.locator("#state").inner_text()
    tab.screenshot("candidates-cancelled")
    tab.page.get_by_role("button", name="Start again").click()
    tab.until("ready")
