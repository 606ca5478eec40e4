"""Candidates in a real browser: paste, upload, see what it explains, save; hostile strings too."""

import json

import pytest

from rappor.dashboard.access.roles import Role
from rappor.dashboard.analysis.draft import MOST_STRINGS
from support.dashboard import HIJACKER, PAGES, RARE, Sample, collections, serving, truth, week

PAGE = "/collections/homepage/candidates"

# Script, markup, expressions, formulas, addresses, and text that breaks pages.
PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<iframe src=javascript:alert(1)>",
    "<body onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    '<math><mi//xlink:href="data:x,<script>alert(1)</script>">',
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<link rel=stylesheet href=http://example.invalid/x.css>",
    "<base href=http://example.invalid/>",
    "<meta http-equiv=refresh content=0;url=http://example.invalid/>",
    "<form action=http://example.invalid/><button>x",
    "<style>@import 'http://example.invalid/x.css';</style>",
    "<img src=http://example.invalid/x.png>",
    "{{7*7}}",
    "{{ self.__init__.__globals__ }}",
    "{% for x in (1,2) %}x{% endfor %}",
    "${alert(1)}",
    "#{7*7}",
    "<%= 7*7 %>",
    "`${alert(1)}`",
    "');alert(1);//",
    '\\");alert(1);//',
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "<!--<script>alert(1)</script>",
    "]]><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</option></datalist><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "datum.constructor.constructor('alert(1)')()",
    "['constructor']['constructor']('alert(1)')()",
    "__proto__",
    "constructor",
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(1+1)",
    '=HYPERLINK("http://example.invalid/","x")',
    "\t=1+1",
    "' OR 1=1 --",
    "\u202egnp.exe",
    "\u2028alert(1)\u2029",
    "../../../etc/passwd",
]


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A dashboard of its own: tests here save lists."""
    sample = Sample(tmp_path_factory.mktemp("candidates"))
    made = collections()[0]
    sample.define(made)
    weights = truth(7) | {"elsewhere.example": 0.5, PAYLOADS[0]: 0.6, PAYLOADS[6]: 0.4}
    sample.add(made, week(0), weights, 60_000, [("country", "DE")], seed=9)
    sample.store()
    sample.candidates("homepage", [*PAGES, *RARE])
    with serving(sample) as running:
        yield running


def ready(tab):
    tab.page.wait_for_selector("#state[data-state=ready]", state="attached", timeout=60_000)


def check(tab, text, how="add"):
    tab.goto(PAGE)
    tab.page.get_by_label("Strings, one on each line").fill(text)
    tab.page.get_by_label("And then").select_option(how)
    tab.page.get_by_role("button", name="Check").click()
    tab.page.wait_for_selector("#read")


def test_a_pasted_list_shows_what_it_would_explain_before_it_is_saved(open_as, other):
    tab = open_as(Role.ANALYST, at=other)
    check(tab, f"{HIJACKER}\nelsewhere.example\n{HIJACKER}\n\n{PAGES[0]}\n")
    read = tab.page.locator("#read").inner_text()
    assert "4 read · 1 duplicate merged" in read
    assert "2 added, 0 removed since v1" in read
    ready(tab)
    values = [
        float(each.get_attribute("value")) for each in tab.page.locator("#explained data").all()
    ]
    assert len(values) == 2
    assert values[1] > values[0] + 0.1
    assert "elsewhere.example" in tab.page.locator(".groups.new").inner_text()
    tab.screenshot("candidates-draft")
    assert tab.violations() == []
    tab.page.get_by_role("button", name="Save as v2").click()
    tab.page.wait_for_selector("tr[data-version='2']")
    row = tab.page.locator("tr[data-version='2']").inner_text()
    assert "analyst" in row
    document = json.loads(tab.page.request.get(f"{other.url}{PAGE}.json").body())
    newest = document["versions"][0]
    assert (newest["version"], newest["added"], newest["removed"]) == (2, 2, 0)
    assert newest["some_added"] == ["elsewhere.example", HIJACKER]


def test_the_numbers_are_those_of_decoding(open_as, other):
    from rappor.dashboard.catalogue import Catalogue
    from rappor.decoding.decode import decode

    tab = open_as(Role.ANALYST, at=other)
    check(tab, f"{HIJACKER}\n{PAGES[0]}", "replace")
    ready(tab)
    counts = Catalogue(other.sample.data).counts("homepage", 1, [week(0)])
    expected = 1 - decode(counts, [HIJACKER, PAGES[0]]).unlisted.proportion
    after = tab.page.locator("#explained b data")
    assert float(after.get_attribute("value")) == expected


def test_saving_can_decode_at_once(open_as, other):
    tab = open_as(Role.ANALYST, at=other)
    check(tab, "one-more.example")
    ready(tab)
    tab.page.get_by_role("button", name="Save and decode again").click()
    tab.page.wait_for_url("**/collections/homepage*")
    assert "/candidates" not in tab.page.url


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


def test_limits_are_said(open_as, other, tmp_path):
    tab = open_as(Role.ANALYST, at=other)
    many = tmp_path / "many.txt"
    many.write_text("".join(f"{number:x}\n" for number in range(MOST_STRINGS + 1)))
    large = tmp_path / "large.txt"
    large.write_bytes(b"x" * 33_000_000)
    for file, words in (
        (many, "A list may have 1,000,000 strings; this one has 1,000,001."),
        (large, "A list may have 32 MB; this one has 33.0 MB."),
    ):
        tab.goto(PAGE)
        tab.page.get_by_label("Or a file").set_input_files(file)
        tab.page.get_by_role("button", name="Check").click()
        tab.page.wait_for_selector(".box.bad", timeout=60_000)
        assert words in tab.page.locator(".box.bad").inner_text()
    tab.screenshot("candidates-error")
    tab.goto(PAGE)
    tab.page.get_by_role("button", name="Check").click()
    assert "a list has at least one string" in tab.page.locator(".box.bad").inner_text().lower()


@pytest.mark.parametrize("way", ["pasted", "uploaded"])
def test_hostile_strings_stay_strings(open_as, other, tmp_path, way):
    """D2: no script runs, nothing leaves the machine, and every string comes back as it went in."""
    tab = open_as(Role.ANALYST, at=other)
    tab.goto(PAGE)
    assert len(PAYLOADS) == 60
    if way == "pasted":
        tab.page.get_by_label("Strings, one on each line").fill("\n".join(PAYLOADS))
    else:
        file = tmp_path / "list.txt"
        file.write_text("\n".join(PAYLOADS), encoding="utf-8")
        tab.page.get_by_label("Or a file").set_input_files(file)
    tab.page.get_by_label("And then").select_option("replace")
    tab.page.get_by_role("button", name="Check").click()
    tab.page.wait_for_selector("#read")
    ready(tab)
    said = tab.page.locator("#read").inner_text()
    assert "60 read · 60 candidates" in said
    if "0 added, 0 removed" not in said:  # else the other way has saved the very list
        assert PAYLOADS[0] in tab.page.locator(".groups.new").inner_text()
    assert tab.page.get_by_label("Strings, one on each line").input_value() == "\n".join(
        sorted(PAYLOADS)
    )
    tab.page.get_by_role("button", name="Save as").click()
    tab.page.wait_for_selector("tr[data-version]")
    for details in tab.page.locator("tr details").all():
        details.click()
    for path in ("trends", "diagnostics"):
        tab.goto(f"/collections/homepage/{path}")
        ready(tab)
        tab.drawn(1)
        assert PAYLOADS[0] in tab.page.locator("main").inner_text()
    tab.page.locator("a[data-light]").first.click()
    tab.page.wait_for_timeout(200)
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


def test_a_decode_can_be_cancelled_and_started_again(open_as, other, tmp_path):
    file = tmp_path / "long.txt"
    file.write_text("".join(f"site{number}.example\n" for number in range(400_000)))
    tab = open_as(Role.ANALYST, at=other)
    tab.goto(PAGE)
    tab.page.get_by_label("Or a file").set_input_files(file)
    tab.page.get_by_role("button", name="Check").click()
    tab.page.wait_for_selector("#state[data-state=loading]", timeout=60_000)
    tab.screenshot("candidates-loading")
    tab.page.get_by_role("button", name="Cancel").click()
    tab.page.wait_for_selector("#state[data-state=cancelled]")
    assert "Cancelled" in tab.page.locator("#state").inner_text()
    tab.screenshot("candidates-cancelled")
    tab.page.get_by_role("button", name="Start again").click()
    tab.page.wait_for_selector("#state[data-state=loading]")
    tab.page.get_by_role("button", name="Cancel").click()
    tab.page.wait_for_selector("#state[data-state=cancelled]")
