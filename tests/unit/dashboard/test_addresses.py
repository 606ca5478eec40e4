"""Addresses: a foreign host and a slash too many lead nowhere; opening one changes nothing."""

import pytest

from rappor.dashboard.auth.roles import EVERYONE, Role
from rappor.dashboard.context import Context
from rappor.dashboard.page_access import Page
from rappor.dashboard.routes import PAGES
from support.dashboard_context import Browser, entered, is_in


@pytest.mark.parametrize("path", ["/ingest/", "/collections.json/", "/login/", "/static/app.css/"])
def test_a_slash_too_many_leads_nowhere_and_tells_nothing(context: Context, path: str) -> None:
    foreign = Browser(context).send("GET", path, headers={"host": "evil.example"})
    assert (foreign.status_code, "location" in foreign.headers) == (421, False)
    known, unknown = Browser(context).get(path), Browser(context).get("/no-such-page/")
    assert known.headers["location"] == f"/login?next={path}"
    assert unknown.headers["location"] == "/login?next=/no-such-page/"
    assert entered(context, Role.OPERATOR).get(path).status_code == 404


def test_two_hosts_are_none(context: Context) -> None:
    browser = Browser(context)
    browser.app = _with_header(browser.app, (b"host", b"evil.example"))
    assert browser.get("/login").status_code == 421


def _with_header(app, header):
    async def more(scope, receive, send):
        await app({**scope, "headers": [*scope["headers"], header]}, receive, send)

    return more


@pytest.mark.parametrize("page", [page for page in PAGES if page.methods == ("POST",)])
def test_what_changes_something_cannot_be_done_by_opening_an_address(
    context: Context, page: Page
) -> None:
    browser = Browser(context)
    browser.log_in(sorted(page.roles or EVERYONE)[0])
    before = context.state.audit_log()
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        path = page.path.replace("{name}", "x").replace("{number}", "x")
        assert browser.send(method, path).status_code != 500
    assert context.state.audit_log() == before
    assert is_in(browser)
