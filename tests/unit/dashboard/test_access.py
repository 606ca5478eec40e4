"""Tokens, one-time links, sessions and cookies: what opens, what has ended, what is kept."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.forms import safe_next
from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.accounts import LINK_LIFE, SESSION_IDLE, SESSION_LIFE
from rappor.errors import ParamsError
from support.dashboard import Sample
from support.dashboard_context import Browser, Clock, is_in, made_context


def test_a_token_logs_in_and_goes_on_to_the_page_that_was_asked_for(context: Context) -> None:
    token = context.state.add_account("ada", Role.OPERATOR, "test")
    browser = Browser(context)
    assert browser.get("/ingest").headers["location"] == "/login?next=/ingest"
    answer = browser.post("/login", {"token": f" {token}\n", "next": "/ingest"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/ingest")
    assert is_in(browser)
    assert "Logged in as ada." in browser.get("/").text


@pytest.mark.parametrize("token", ["", "rpd_wrong", "x" * 10_000, "\ud800", "é"])
def test_a_token_that_is_none_opens_nothing(context: Context, token: str) -> None:
    context.state.add_account("ada", Role.ANALYST, "test")
    browser = Browser(context)
    csrf = browser.csrf()
    body = {"csrf": csrf, "token": token.encode("utf-8", "replace").decode()}
    answer = browser.send("POST", "/login", body)
    assert answer.status_code == 403
    assert "is not valid" in answer.text
    assert not is_in(browser)


def test_a_one_time_link_logs_in_once(context: Context) -> None:
    secret = context.state.new_link("ada", "test", Role.ANALYST)
    first, second = Browser(context), Browser(context)
    assert "as an analyst. It works once." in first.get(f"/login?link={secret}").text
    assert "It works once" in second.get(f"/login?link={secret}").text  # looking does not use it
    assert first.post("/login", {"link": secret}).status_code == 303
    answer = second.post("/login", {"link": secret})
    assert (answer.status_code, "was used already" in answer.text) == (403, True)
    assert (is_in(first), is_in(second)) == (True, False)
    assert "was used already" in second.get(f"/login?link={secret}").text


def test_a_one_time_link_is_good_for_15_minutes(context: Context, clock: Clock) -> None:
    secret = context.state.new_link("ada", "test", Role.ANALYST)
    clock.go(seconds=LINK_LIFE.total_seconds() - 1)
    assert context.state.look_link(secret) == ("ada", Role.ANALYST)
    clock.go(seconds=1)
    assert context.state.look_link(secret) is None
    assert Browser(context).post("/login", {"link": secret}).status_code == 403


def test_a_session_ends_when_it_is_not_used(context: Context, clock: Clock) -> None:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    for _ in range(3):
        clock.go(seconds=SESSION_IDLE.total_seconds() - 1)
        assert is_in(browser)
    clock.go(seconds=SESSION_IDLE.total_seconds())
    assert not is_in(browser)


def test_a_session_ends_after_a_week_however_much_it_is_used(
    context: Context, clock: Clock
) -> None:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    hours = int(SESSION_LIFE.total_seconds() / 3600)
    for _ in range(hours // 6 - 1):
        clock.go(hours=6)
        assert is_in(browser)
    clock.go(hours=6)
    assert not is_in(browser)


def test_revoking_ends_token_links_and_sessions_at_once(context: Context) -> None:
    token = context.state.add_account("ada", Role.ANALYST, "test")
    link = context.state.new_link("ada", "test")
    browser = Browser(context)
    browser.post("/login", {"token": str(token)})
    assert is_in(browser)
    context.state.revoke("ada", "test")
    assert not is_in(browser)
    assert Browser(context).post("/login", {"token": str(token)}).status_code == 403
    assert Browser(context).post("/login", {"link": link}).status_code == 403
    with pytest.raises(ParamsError, match="names are not used again"):
        context.state.add_account("ada", Role.ANALYST, "test")
    with pytest.raises(ParamsError, match="no account"):
        context.state.revoke("ada", "test")


def test_logging_out_ends_the_session_and_not_only_the_cookie(context: Context) -> None:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    kept = dict(browser.cookies)
    assert browser.post("/logout", {}).headers["location"] == "/login"
    assert not is_in(browser)
    browser.cookies = kept
    assert not is_in(browser)


def test_a_login_makes_a_new_session_and_ends_the_one_before(context: Context) -> None:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    before = dict(browser.cookies)
    browser.log_in(Role.ANALYST)
    assert "analyst" in browser.get("/").text
    browser.cookies = before
    assert not is_in(browser)


def test_cookies_are_for_our_pages_and_no_script(context: Context) -> None:
    browser = Browser(context)
    answers = [browser.get("/login"), browser.log_in(Role.VIEWER)]
    made = [cookie.lower() for answer in answers for cookie in answer.cookies]
    assert len(made) >= 2
    for cookie in made:
        assert "httponly" in cookie
        assert "samesite=strict" in cookie


def test_behind_https_cookies_are_for_this_host_and_for_https_only(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    sample.data.mkdir()
    with made_context(tmp_path, sample=sample, url="https://stats.example.org") as context:
        cookies = Browser(context).log_in(Role.VIEWER).cookies
    session = next(each for each in cookies if each.startswith("__Host-rappor-session="))
    assert "secure" in session.lower()
    assert "domain" not in session.lower()


def test_nothing_secret_is_kept_and_the_file_is_its_owners(context: Context) -> None:
    token = context.state.add_account("ada", Role.ANALYST, "test")
    link = context.state.new_link("ada", "test")
    session = context.state.log_in(token=str(token))
    folder = context.settings.data
    kept = b"".join(file.read_bytes() for file in folder.glob("dashboard.sqlite*"))
    for secret in (token, link, session):
        assert str(secret).encode() not in kept
    mode = stat.S_IMODE(os.stat(context.settings.state_file).st_mode)
    assert mode == 0o600


def test_what_was_done_to_accounts_is_in_the_audit_log(context: Context) -> None:
    context.state.add_account("ada", Role.ANALYST, "operator grace")
    context.state.revoke("ada", "operator grace")
    entries = [tuple(each)[1:] for each in context.state.audit_log()]
    assert entries == [
        ("operator grace", "access-new", "ada: analyst"),
        ("operator grace", "access-revoke", "ada"),
    ]


@pytest.mark.parametrize("name", ["", "Ada", "a" * 64, "a b", "../x", "<script>", "1a"])
def test_a_name_that_is_none_is_refused(context: Context, name: str) -> None:
    with pytest.raises(ParamsError, match="name of an account must match"):
        context.state.add_account(name, Role.VIEWER, "test")


def test_a_link_for_an_account_of_another_role_is_refused(context: Context) -> None:
    context.state.add_account("ada", Role.VIEWER, "test")
    with pytest.raises(ParamsError, match="ada is a viewer, not an operator"):
        context.state.new_link("ada", "test", Role.OPERATOR)
    with pytest.raises(ParamsError, match="there is no account 'eve'"):
        context.state.new_link("eve", "test")


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "", "x", "/\nx"],
)
def test_a_login_never_leads_elsewhere(context: Context, wanted: str) -> None:
    assert safe_next(wanted) == "/"
    token = context.state.add_account("ada", Role.VIEWER, "test")
    answer = Browser(context).post("/login", {"token": str(token), "next": wanted})
    assert answer.headers["location"] == "/"


def test_light_dark_and_keys_are_remembered(context: Context) -> None:
    browser = Browser(context)
    browser.log_in(Role.VIEWER)
    assert "data-theme" not in browser.get("/").text
    browser.post("/taste", {"theme": "dark", "next": "/"})
    browser.post("/taste", {"keys": "off", "next": "/"})
    assert '<html lang="en" data-theme="dark" data-keys="off">' in browser.get("/").text
    browser.post("/taste", {"theme": "auto", "next": "/"})
    browser.post("/taste", {"keys": "on", "next": "/"})
    assert '<html lang="en">' in browser.get("/").text
    browser.cookies["rappor-theme"] = '"><script>'
    assert '<html lang="en">' in browser.get("/").text


def test_a_state_file_of_another_program_is_refused(tmp_path: Path) -> None:
    from rappor.errors import StoreError

    path = tmp_path / "dashboard.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreError, match="not a file of the dashboard"):
        DashboardState(path)
    path.write_bytes(b"x" * 5000)
    with pytest.raises(StoreError, match=r"dashboard\.sqlite: "):
        DashboardState(path)


def test_a_state_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    from rappor.errors import StoreError

    path = tmp_path / "dashboard.sqlite"
    DashboardState(path).close()
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version=99")
    file.close()
    with pytest.raises(StoreError, match="written by a newer rappor"):
        DashboardState(path)
