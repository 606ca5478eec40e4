"""Every route against every role: the matrix comes from the router, so none can be forgotten."""

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from starlette.routing import Route, compile_path

from rappor.dashboard.app import build
from rappor.dashboard.auth.roles import EVERYONE, PUBLIC, Role
from rappor.dashboard.context import Context
from rappor.dashboard.page_access import Page, lookup
from rappor.dashboard.routes import NAMED, PAGES
from rappor.errors import ParamsError
from support.dashboard import week
from support.dashboard_context import Browser, entered, made_context
from support.waiting import wait_for

NAME = "homepage"
REDIRECT, FORBIDDEN = 303, 403
ENDING = ("log_in", "logout")  # pages that end the session they are opened with


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    with made_context(tmp_path_factory.mktemp("routes")) as context:
        yield context


@pytest.fixture(scope="module")
def sessions(context: Context) -> dict[Role, Browser]:
    """A browser for each role, logged in once: hundreds of tests take a copy."""
    return {role: entered(context, role) for role in Role}


def path_of(page: Page) -> str:
    """An address that the route takes."""
    return page.path.replace("{name}", NAME).replace("{file}", "app.css").replace("{number}", "x")


def cases() -> list[tuple[Page, str, Role | None]]:
    return [
        (page, method, role) for page in PAGES for method in page.methods for role in (None, *Role)
    ]


def test_the_router_has_the_listed_pages_and_no_others(context: Context) -> None:
    app = build(context)
    found = [
        (route.path, method)
        for route in app.routes  # type: ignore[attr-defined]
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    ]
    listed = [(page.path, method) for page in PAGES for method in page.methods]
    assert sorted(found) == sorted(listed)
    assert len(app.routes) == len(PAGES)  # type: ignore[attr-defined]


def test_a_route_without_a_rule_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="roles"):
        Page(path="/x", endpoint=lambda *_: None, name="x")  # type: ignore[call-arg, arg-type, return-value]
    with pytest.raises(ParamsError, match="name the roles"):
        Page(path="/x", endpoint=lambda *_: None, name="x", roles=frozenset())  # type: ignore[arg-type, return-value]


def test_a_route_that_is_there_twice_is_refused() -> None:
    page = PAGES[0]
    with pytest.raises(ParamsError, match="twice"):
        lookup((page, replace(page, name="another")))
    with pytest.raises(ParamsError, match="twice"):
        lookup((page, replace(page, path="/another")))


def test_only_the_login_page_and_static_files_need_no_login() -> None:
    public = {page.name for page in PAGES if page.roles is PUBLIC}
    assert public == {"login", "log_in", "static"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "method", "role"),
    cases(),
    ids=lambda each: each.name if isinstance(each, Page) else str(each or "nobody"),
)
def test_each_route_opens_for_its_roles_and_for_no_others(
    context: Context, sessions: dict[Role, Browser], page: Page, method: str, role: Role | None
) -> None:
    if role is None:
        browser = Browser(context)
    elif page.name in ENDING:
        browser = entered(context, role)
    else:
        browser = copy(sessions[role])
        browser.cookies = dict(browser.cookies)
    path = path_of(page)
    answer = browser.get(path) if method == "GET" else browser.post(path, {})
    if page.roles is PUBLIC:
        assert answer.status_code < 500
        assert not answer.headers.get("location", "").startswith("/login?next")
    elif role is None:
        assert answer.status_code == 401 or (
            answer.status_code == REDIRECT and answer.headers["location"].startswith("/login")
        )
    elif role in page.roles:
        assert answer.status_code not in (401, FORBIDDEN), answer.text
        assert answer.status_code < 500, answer.text
    else:
        assert answer.status_code == FORBIDDEN
        assert "can do this; you are" in answer.text


@pytest.mark.parametrize("page", [page for page in PAGES if "POST" in page.methods])
def test_no_form_acts_without_its_token(context: Context, page: Page) -> None:
    browser = Browser(context)
    browser.log_in(sorted(page.roles or EVERYONE)[0])
    for fields in ({"csrf": ""}, {"csrf": "0" * 64}, {}):
        answer = browser.send("POST", path_of(page), fields)
        assert answer.status_code == FORBIDDEN
        assert "not accepted" in answer.text


def test_a_token_of_another_session_is_refused(context: Context) -> None:
    one, other = Browser(context), Browser(context)
    one.log_in(Role.OPERATOR)
    other.log_in(Role.OPERATOR)
    answer = one.send("POST", "/logout", {"csrf": other.csrf()})
    assert answer.status_code == FORBIDDEN
    assert one.get("/").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ],
)
def test_a_form_from_another_site_is_refused_even_with_the_token(
    context: Context, headers: dict[str, str]
) -> None:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    answer = browser.send("POST", "/logout", {"csrf": browser.csrf()}, headers)
    assert answer.status_code == FORBIDDEN


def test_another_name_for_our_address_is_refused(context: Context) -> None:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    for path in ("/", "/login", "/nowhere"):
        answer = browser.send("GET", path, headers={"host": "attacker.example"})
        assert answer.status_code == 421


def test_unknown_pages_say_so_to_visitors_and_nothing_to_others(context: Context) -> None:
    assert Browser(context).get("/nowhere").headers["location"] == "/login?next=/nowhere"
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    answer = browser.get("/nowhere")
    assert (answer.status_code, "There is no such page" in answer.text) == (404, True)
    assert browser.send("DELETE", "/").status_code == 405
    assert browser.get("/collections/nothing-like-it").status_code == 404


class Targets(HTMLParser):
    """The method and path of every link, form and button of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given["href"].startswith("/"):
            self.found.add(("GET", urlsplit(given["href"]).path))
        elif tag == "form" and given.get("method") != "dialog":
            self.found.add((given["method"].upper(), urlsplit(given["action"]).path))
        assert "formaction" not in given, "this test does not follow it"


def allowed(method: str, path: str) -> frozenset[Role]:
    """The roles that may open an address, by the first route that matches."""
    for page in PAGES:
        if method in page.methods and compile_path(page.path)[0].match(path):
            return page.roles
    raise AssertionError(f"no route: {method} {path}")


@pytest.fixture(scope="module")
def decoded(context: Context, sessions: dict[Role, Browser]) -> tuple[str, ...]:
    """Every page of three kinds of collections, with its results."""
    paths = [
        f"/collections/{name}{end}{query}"
        for name in (NAME, "browser", "start-time")
        for end in ("", "/trends", "/diagnostics")
        for query in ("", "?country=NZ")
    ]
    paths += [f"/collections/{NAME}/candidates", f"/collections/{NAME}?vs={week(1)}"]
    for path in paths:
        sessions[Role.ANALYST].get(path)
    wait_for(lambda: all(job.over for job in context.jobs.all()))
    return (*paths, "/collections/extensions", "/collections/search-engine", "/", "/ingest")


@pytest.mark.slow
@pytest.mark.parametrize("role", Role)
def test_links_and_buttons_that_a_role_may_not_use_are_absent(
    decoded: tuple[str, ...], sessions: dict[Role, Browser], role: Role
) -> None:
    browser, seen = sessions[role], set()
    for path in decoded:
        if role not in allowed("GET", urlsplit(path).path):
            continue
        answer = browser.get(path)
        assert answer.status_code == 200, path
        targets = Targets(answer.text).found
        assert ("GET", "/ingest") in targets or role not in NAMED["ingest"].roles
        for method, target in targets:
            assert role in allowed(method, target) or allowed(method, target) is PUBLIC, (
                path,
                method,
                target,
            )
        seen |= targets
    saves = ("POST", f"/collections/{NAME}/candidates") in seen
    zips = ("GET", f"/collections/{NAME}.google.zip") in seen
    assert (saves, zips) == (role is Role.ANALYST,) * 2
    for href in browser.links("/"):
        assert browser.get(href).status_code == 200, href


@pytest.mark.slow
def test_addresses_with_the_former_name_of_undetected_mass_still_work(
    decoded: tuple[str, ...], sessions: dict[Role, Browser]
) -> None:
    browser, home = sessions[Role.VIEWER], f"/collections/{NAME}"
    assert decoded
    for before, now in (
        ("/?sort=-unlisted", "/?sort=-undetected_mass"),
        (f"{home}/trends.svg?chart=unlisted", f"{home}/trends.svg?chart=undetected_mass"),
        (f"{home}/charts/unlisted.svg", f"{home}/charts/undetected_mass.svg"),
    ):
        answers = [browser.get(path) for path in (before, now)]
        assert [answer.status_code for answer in answers] == [200, 200]
        sorted_by = [re.findall(r'aria-sort="\w+"><a href="([^"]+)', each.text) for each in answers]
        assert sorted_by[0] == sorted_by[1]
        if before.endswith(".svg") or "chart=" in before:
            assert answers[0].text == answers[1].text


@pytest.mark.parametrize(
    "path", ["/", "/login", "/nowhere", "/static/app.css", "/collections.json"]
)
def test_every_answer_carries_the_safe_headers(context: Context, path: str) -> None:
    headers = Browser(context).get(path).headers
    policy = headers["content-security-policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert "frame-ancestors 'none'" in policy
    assert not any("unsafe" in each or "*" in each or "data:" in each for each in policy)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_a_body_beyond_all_bounds_is_refused(context: Context) -> None:
    browser = Browser(context)
    browser.log_in(Role.OPERATOR)
    answer = browser.send("POST", "/logout", {}, {"content-length": str(10**9)})
    assert answer.status_code == 413


def test_a_fault_in_a_page_is_a_page_without_a_trace(context: Context) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    page = Page(path="/broken", endpoint=broken, roles=EVERYONE, name="broken")  # type: ignore[arg-type]
    browser = Browser(context, (*PAGES, page))
    browser.log_in(Role.VIEWER)
    answer = browser.get("/broken")
    assert answer.status_code == 500
    assert "Something went wrong here" in answer.text
    assert "secret detail" not in answer.text


def test_the_application_is_built_with_its_headers_outermost(context: Context) -> None:
    app = build(context)
    assert type(app.build_middleware_stack()).__name__ == "SafeHeaders"  # type: ignore[attr-defined]
    assert not app.router.redirect_slashes  # type: ignore[attr-defined]
