"""The frame of every page: logging in and out, colours, keys, menus; and what no page may do."""

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.routes import PAGES


@pytest.mark.long
def test_a_one_time_link_opens_with_one_click_and_works_once(open_as, dashboard) -> None:
    link = dashboard.link(Role.ANALYST)
    first, second = open_as(None), open_as(None)
    first.page.goto(link)
    first.page.get_by_role("button", name="Log in as analyst").click()
    first.page.wait_for_url(f"{dashboard.url}/")
    second.page.goto(link)
    assert "was used already" in second.page.content()


def test_a_token_opens_and_logging_out_closes(open_as, dashboard) -> None:
    token = dashboard.state.add_account("token-user", Role.VIEWER, "test")
    tab = open_as(None)
    tab.goto("/ingest")
    tab.page.get_by_label("Token").fill(str(token))
    tab.page.get_by_role("button", name="Log in").click()
    tab.page.get_by_text(
        "you are a viewer"
    ).first.wait_for()  # the page that was asked for, refused
    tab.goto("/")
    tab.page.locator("details.who summary").click()
    tab.page.get_by_role("button", name="Log out").click()
    tab.page.wait_for_url(f"{dashboard.url}/login")
    tab.goto("/")
    assert tab.page.url.endswith("/login")


def test_plain_pages_look_right(open_as, look) -> None:
    kind, options = look
    for role, pages in (
        (None, {"login": "/login"}),
        (Role.VIEWER, {"refused": "/ingest", "missing": "/nowhere"}),
    ):
        tab = open_as(role, **options)
        for name, path in pages.items():
            tab.goto(path)
            assert tab.sideways() == 0
            tab.screenshot(f"{name}-{kind}")
            if name != "missing" or kind != "light":  # it looks as the one before
                assert tab.violations() == []


@pytest.mark.long
def test_colours_follow_the_system_until_they_are_chosen(open_as) -> None:
    tab = open_as(Role.VIEWER, color_scheme="dark")
    tab.goto("/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert tab.page.evaluate(ground) == "rgb(17, 22, 28)"
    tab.page.locator("details.who summary").click()
    tab.page.get_by_role("button", name="Light").click()
    tab.page.wait_for_function(f"{ground} === 'rgb(255, 255, 255)'")
    tab.page.emulate_media(color_scheme="light")
    tab.page.locator("details.who summary").click()
    tab.page.get_by_role("button", name="Dark").click()
    tab.page.wait_for_function(f"{ground} === 'rgb(17, 22, 28)'")


@pytest.mark.long
def test_keys_search_help_and_leave(viewer) -> None:
    page = viewer.page
    viewer.goto("/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("?")  # in a field it is a letter
    assert page.locator("#q").input_value() == "?"
    page.wait_for_url("**/?q=%3F")  # the search went off by itself
    assert page.evaluate("document.activeElement.id") == "q"  # and kept the field
    page.get_by_role("heading", name="Collections").click()
    page.keyboard.press("?")
    page.locator("#help").wait_for()
    page.keyboard.press("Escape")
    page.locator("#help").wait_for(state="hidden")


@pytest.mark.long
def test_keys_can_be_turned_off(viewer) -> None:
    page = viewer.page
    viewer.goto("/")
    page.locator("details.who summary").click()
    page.get_by_role("button", name="Off").click()
    page.wait_for_selector("html[data-keys=off]")
    page.keyboard.press("?")
    assert not page.locator("#help").is_visible()


@pytest.mark.long
def test_everything_in_the_bar_is_reached_by_keyboard(operator) -> None:
    page = operator.page
    operator.goto("/")
    seen = []
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
    assert seen[:5] == ["To the content", "rappor", "Collections", "Ingest", "operator"]


@pytest.mark.long
def test_on_a_phone_the_menu_folds(open_as) -> None:
    tab = open_as(
        Role.OPERATOR, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True
    )
    page = tab.page
    tab.goto("/")
    assert not page.get_by_role("link", name="Ingest").is_visible()
    page.locator("details.menu summary").tap()
    page.get_by_role("link", name="Ingest").tap()
    page.wait_for_url("**/ingest")
    page.locator("details.who summary").tap()
    tab.screenshot("menu-phone")
    assert tab.sideways() == 0


def test_pages_work_without_scripts(open_as) -> None:
    tab = open_as(Role.OPERATOR, java_script_enabled=False)
    tab.goto("/")
    tab.page.get_by_label("Search").fill("homepage")
    tab.page.get_by_role("button", name="Show").click()
    tab.page.wait_for_url("**/?q=homepage*")
    assert tab.page.locator("tbody tr").count() == 1
    tab.goto("/ingest")
    assert tab.page.get_by_role("heading", name="Audit log").is_visible()


def test_an_inline_script_would_be_refused_and_seen(open_as) -> None:
    """The guard of all these tests works: a violation of the policy is noticed."""
    tab = open_as(None)
    tab.goto("/login")
    tab.page.evaluate(
        "() => { const it = document.createElement('script'); it.textContent = 'window.ran = 1';"
        " document.body.append(it); }"
    )
    assert tab.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in each for each in tab.problems)
    tab.problems.clear()


def test_a_problem_of_a_shared_tab_fails_one_test_only(read) -> None:
    tab = read("/")
    tab.problems.append("planted")
    assert tab.take_problems() == ["planted"]
    assert tab.take_problems() == []


@pytest.mark.parametrize(
    "role",
    [
        role if role is Role.OPERATOR else pytest.param(role, marks=pytest.mark.long)
        for role in Role
    ],
)
def test_no_page_that_a_role_can_open_has_a_problem(open_as, role) -> None:
    """Whatever has no parameter but a collection's name is opened, and the tab's guard watches."""
    tab = open_as(role)
    for page in PAGES:
        if page.methods != ("GET",) or role not in page.roles or "{number}" in page.path:
            continue
        path = page.path.replace("{name}", "homepage")
        if "{" in path or path.endswith(
            (".csv", ".parquet", ".zip", ".svg", ".png", ".json", ".py")
        ):
            continue
        answer = tab.goto(path)
        assert answer is not None
        if path.endswith("/associations"):  # of tuples only: tests/browser/test_associations.py
            assert answer.status == 404
            tab.problems.clear()
            continue
        assert answer.status == 200, path
        tab.settle()
        assert tab.sideways() == 0, path
