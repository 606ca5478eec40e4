"""Forms: how large one may be, of which kind, and what happens when its sender leaves."""

import pytest

from rappor.dashboard.context import Desk
from rappor.dashboard.forms import FORM_BYTES
from rappor.dashboard.routes import PAGES
from rappor.dashboard.routing import Page
from support.dashboard_desk import Browser, entered, is_in

FORBIDDEN = 403
TOO_LARGE = 413
BAD = 400


@pytest.mark.parametrize("page", [page for page in PAGES if "POST" in page.methods])
def test_only_a_list_of_candidates_may_be_large(desk: Desk, page: Page) -> None:
    if page.name == "candidates-check":
        assert page.most_bytes > 32 * 10**6
        return
    assert page.most_bytes == FORM_BYTES <= 2**16
    browser = Browser(desk)
    if page.roles:
        browser.log_in(sorted(page.roles)[0])
    answer = browser.post(page.path.replace("{name}", "x"), {"token": "a" * FORM_BYTES})
    assert answer.status_code == TOO_LARGE


@pytest.mark.parametrize(
    "size", ["0" * 12 + str(10**9), "0" * 5000 + "1", "1" * 5000, "-1", "1e3", "٣", "+5"]
)
def test_no_way_of_writing_a_length_gets_past_the_limit(desk: Desk, size: str) -> None:
    browser = Browser(desk)
    answer = browser.send("POST", "/login", {"token": "x"}, {"content-length": size})
    assert answer.status_code == TOO_LARGE


def test_a_form_with_very_many_fields_or_of_another_kind_is_refused(desk: Desk) -> None:
    browser = entered(desk)
    token = browser.csrf()
    many = {"csrf": token} | {f"f{number}": "" for number in range(300)}
    assert browser.send("POST", "/logout", many).status_code == BAD
    for kind in ("application/json", "text/plain", "multipart/form-data", ""):
        answer = browser.send("POST", "/logout", {"csrf": token}, {"content-type": kind})
        assert answer.status_code in (BAD, FORBIDDEN)
    assert is_in(browser)


def test_a_browser_that_leaves_while_it_sends_is_no_fault(desk: Desk, caplog) -> None:
    browser = Browser(desk)
    browser.app = _leaving(browser.app)
    assert browser.send("POST", "/login", {"token": "x"}).status_code == BAD
    assert not caplog.records


def _leaving(app):
    async def gone():
        return {"type": "http.disconnect"}

    async def cut(scope, _receive, send):
        await app(scope, gone, send)

    return cut
