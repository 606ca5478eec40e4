"""Forms: how large one may be, of which kind, and what happens when its sender leaves."""

import pytest

from rappor.dashboard.context import Context
from rappor.dashboard.forms import FORM_BYTES
from rappor.dashboard.page_access import Page
from rappor.dashboard.routes import PAGES
from support.dashboard_context import Browser, entered, is_in

FORBIDDEN = 403
TOO_LARGE = 413
BAD = 400


@pytest.mark.parametrize("page", [page for page in PAGES if "POST" in page.methods])
def test_only_a_list_of_candidates_may_be_large(context: Context, page: Page) -> None:
    if page.name == "candidates-check":
        assert page.max_bytes > 32 * 10**6
        return
    assert page.max_bytes == FORM_BYTES <= 2**16
    browser = Browser(context)
    if page.roles:
        browser.log_in(sorted(page.roles)[0])
    answer = browser.post(page.path.replace("{name}", "x"), {"token": "a" * FORM_BYTES})
    assert answer.status_code == TOO_LARGE


@pytest.mark.parametrize(
    "size", ["0" * 12 + str(10**9), "0" * 5000 + "1", "1" * 5000, "-1", "1e3", "٣", "+5"]
)
def test_no_way_of_writing_a_length_gets_past_the_limit(context: Context, size: str) -> None:
    browser = Browser(context)
    answer = browser.send("POST", "/login", {"token": "x"}, {"content-length": size})
    assert answer.status_code == TOO_LARGE


def test_a_form_with_very_many_fields_or_of_another_kind_is_refused(context: Context) -> None:
    browser = entered(context)
    token = browser.csrf()
    many = {"csrf": token} | {f"f{number}": "" for number in range(300)}
    assert browser.send("POST", "/logout", many).status_code == BAD
    for kind in ("application/json", "text/plain", "multipart/form-data", ""):
        answer = browser.send("POST", "/logout", {"csrf": token}, {"content-type": kind})
        assert answer.status_code in (BAD, FORBIDDEN)
    assert is_in(browser)


def test_a_browser_that_leaves_while_it_sends_is_no_fault(context: Context, caplog) -> None:
    browser = Browser(context)
    browser.app = _leaving(browser.app)
    assert browser.send("POST", "/login", {"token": "x"}).status_code == BAD
    assert not caplog.records


def _leaving(app):
    async def gone():
        return {"type": "http.disconnect"}

    async def cut(scope, _receive, send):
        await app(scope, gone, send)

    return cut
