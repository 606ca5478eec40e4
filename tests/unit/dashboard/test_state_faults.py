"""The state file damaged, deleted, copied, locked or on a full disk: what pages do then."""

import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.state import _TOUCH_PATIENCE
from rappor.errors import StoreError, StoreFull
from support.dashboard_context import Browser, Clock, entered, is_in

BROKEN = 503


def test_state_that_cannot_be_read_is_a_page_that_says_so(context: Context, monkeypatch) -> None:
    browser = entered(context)

    def broken(_secret: str) -> None:
        raise StoreError(f"{context.settings.state_file}: database disk image is malformed")

    monkeypatch.setattr(context.state, "session", broken)
    for path in ("/", "/collections.json", "/nowhere", "/ingest"):
        answer = browser.get(path)
        assert answer.status_code == BROKEN
        assert str(context.settings.data) not in answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_a_fault_outside_of_pages_has_the_safe_headers_too(context: Context, monkeypatch) -> None:
    browser = entered(context)

    def broken(_secret: str) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(context.state, "session", broken)
    for path in ("/", "/nowhere"):
        answer = browser.get(path)
        assert (answer.status_code, "secret detail" in answer.text) == (500, False)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("error", [StoreFull("no room"), StoreError("database is locked")])
def test_on_a_full_or_locked_disk_pages_can_still_be_read(
    context: Context, clock: Clock, monkeypatch, error: StoreError
) -> None:
    browser = entered(context)
    tried = []

    def full(*_: object) -> None:
        tried.append(1)
        raise error

    monkeypatch.setattr("rappor.dashboard.state.accounts.touch", full)
    clock.go(minutes=5)
    assert is_in(browser)
    assert is_in(browser)
    assert len(tried) == 1, "not tried again with each request"
    clock.go(minutes=5)
    assert is_in(browser)
    assert len(tried) == 2


@pytest.mark.slow
def test_who_holds_the_state_file_does_not_hold_up_the_pages(
    context: Context, clock: Clock
) -> None:
    """The page is answered while another process writes: it waits a moment, not as writers do."""
    browser = entered(context)
    clock.go(minutes=5)
    other = sqlite3.connect(context.settings.state_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    said: list[str] = []
    context.state._file._connection.set_trace_callback(said.append)
    assert is_in(browser)
    context.state._file._connection.set_trace_callback(None)
    other.execute("ROLLBACK")
    other.close()
    begun = said.index("BEGIN IMMEDIATE")
    short, usual = (f"PRAGMA busy_timeout={int(1000 * each)}" for each in (_TOUCH_PATIENCE, 10))
    assert said[begun - 1] == short
    assert usual in said[begun:]  # for what is written on purpose
    assert said.count("BEGIN IMMEDIATE") == 1
    assert _TOUCH_PATIENCE <= 0.2


def test_deleting_the_state_file_ends_every_session_at_once(context: Context) -> None:
    browser = entered(context, Role.OPERATOR)
    for file in context.settings.data.glob("dashboard.sqlite*"):
        file.unlink()
    assert not is_in(browser)
    assert context.state.accounts() == []
    made = stat.S_IMODE(context.settings.state_file.stat().st_mode)
    assert made == 0o600
    assert is_in(entered(context))


def test_accounts_of_a_new_state_file_count_at_once(context: Context) -> None:
    """Whoever deletes the file and makes an account by the command is let in, nobody else."""
    context.state.address = "http://127.0.0.1:1"
    browser = entered(context, Role.OPERATOR)
    for file in context.settings.data.glob("dashboard.sqlite*"):
        file.unlink()
    command = DashboardState(context.settings.state_file, now=context.state._now)
    token = command.add_account("new", Role.VIEWER, "test")
    assert not is_in(browser)
    assert command.address == "http://127.0.0.1:1"
    assert Browser(context).post("/login", {"token": str(token)}).status_code == 303
    command.revoke("new", "test")
    assert context.state.log_in(token=str(token)) is None
    command.close()


def test_a_data_folder_that_is_gone_is_not_made_anew(context: Context) -> None:
    browser = entered(context)
    shutil.move(context.settings.data, context.settings.data.with_name("moved"))
    assert browser.get("/").status_code == BROKEN
    assert not context.settings.data.exists()
    shutil.move(context.settings.data.with_name("moved"), context.settings.data)
    assert is_in(browser)


def test_a_state_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "dashboard.sqlite"
    DashboardState(file).close()
    file.chmod(0o664)
    state = DashboardState(file)
    state.add_account("ada", Role.VIEWER, "test")
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    state.close()
    assert set(modes.values()) == {0o600}, modes
