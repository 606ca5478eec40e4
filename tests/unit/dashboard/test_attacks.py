"""Attacks on the dashboard that worked once, or would: none may work again (SECURITY: pages)."""

import html
import io
import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from rappor.charts.render import to_svg
from rappor.charts.trends import Line, Point, trends
from rappor.dashboard.access.roles import EVERYONE, Role
from rappor.dashboard.analysis.draft import MOST_STRINGS, read_draft
from rappor.dashboard.app import build
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.desk import Desk
from rappor.dashboard.forms import FORM_BYTES
from rappor.dashboard.problems import without_paths
from rappor.dashboard.routes import PAGES
from rappor.dashboard.routing import Page
from rappor.dashboard.settings import Settings
from rappor.dashboard.state import State
from rappor.dashboard.state.accounts import LINK_LIFE, SESSION_IDLE, SESSION_LIFE
from rappor.errors import ParamsError, StoreError, StoreFull
from support.dashboard import Sample
from support.dashboard_desk import Browser, Clock, made_desk

FORBIDDEN, TOO_LARGE, BAD, BROKEN = 403, 413, 400, 503


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[Desk]:
    sample = Sample(tmp_path)
    sample.data.mkdir()
    sample.definitions.mkdir()
    with made_desk(tmp_path, sample=sample, now=clock) as desk:
        yield desk


def is_in(browser: Browser) -> bool:
    return browser.get("/").status_code == 200


def entered(desk: Desk, role: Role = Role.VIEWER) -> Browser:
    browser = Browser(desk)
    browser.log_in(role)
    return browser


# Names of this machine, and where answers lead.


@pytest.mark.parametrize("path", ["/ingest/", "/collections.json/", "/login/", "/static/app.css/"])
def test_a_slash_too_many_leads_nowhere_and_tells_nothing(desk: Desk, path: str) -> None:
    foreign = Browser(desk).send("GET", path, headers={"host": "evil.example"})
    assert (foreign.status_code, "location" in foreign.headers) == (421, False)
    known, unknown = Browser(desk).get(path), Browser(desk).get("/no-such-page/")
    assert known.headers["location"] == f"/login?next={path}"
    assert unknown.headers["location"] == "/login?next=/no-such-page/"
    assert entered(desk, Role.OPERATOR).get(path).status_code == 404


@pytest.mark.parametrize(
    "header",
    [
        "127.0.0.1/evil",
        "127.0.0.1?x",
        "127.0.0.1#x",
        "user@127.0.0.1",
        "127.0.0.1\\@evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1:x",
        "127.0.0.1 evil.example",
        "[::1",
        "::1",
        "",
    ],
)
def test_a_host_that_is_no_host_is_refused(header: str) -> None:
    assert not Settings(Path("data")).knows_host(header)


def test_two_hosts_are_none(desk: Desk) -> None:
    browser = Browser(desk)
    browser.app = _with_header(browser.app, (b"host", b"evil.example"))
    assert browser.get("/login").status_code == 421


def _with_header(app, header):
    async def more(scope, receive, send):
        await app({**scope, "headers": [*scope["headers"], header]}, receive, send)

    return more


def test_https_in_capitals_is_https() -> None:
    shouted = Settings(Path("data"), url="HTTPS://stats.example.org/")
    assert shouted.secure
    assert shouted.address == "https://stats.example.org"


@pytest.mark.parametrize(
    "url",
    [
        "https://stats.example.org/below",
        "https://stats.example.org/?x=1",
        "https://stats.example.org/#x",
        "https://ada:secret@stats.example.org",
        "https://stats.example.org:port",
    ],
)
def test_an_address_that_pages_cannot_have_is_refused(url: str) -> None:
    with pytest.raises(ParamsError, match="url must be"):
        Settings(Path("data"), url=url)


# Forms.


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


@pytest.mark.parametrize("page", [page for page in PAGES if page.methods == ("POST",)])
def test_what_changes_something_cannot_be_done_by_opening_an_address(
    desk: Desk, page: Page
) -> None:
    browser = Browser(desk)
    browser.log_in(sorted(page.roles or EVERYONE)[0])
    before = desk.state.audit_log()
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        path = page.path.replace("{name}", "x").replace("{number}", "x")
        assert browser.send(method, path).status_code != 500
    assert desk.state.audit_log() == before
    assert is_in(browser)


# Sessions, links and clocks.


def test_a_clock_that_was_ahead_leaves_no_session_that_lasts(desk: Desk, clock: Clock) -> None:
    clock.go(days=3650)
    browser = entered(desk)
    clock.go(days=-3650)
    assert not is_in(browser)
    entered(desk)  # whoever logs in next clears up
    clock.go(days=3650)
    assert not is_in(browser)


def test_a_clock_that_was_ahead_leaves_no_link_that_lasts(desk: Desk, clock: Clock) -> None:
    clock.go(days=3650)
    secret = desk.state.new_link("eve", "test", Role.OPERATOR)
    clock.go(days=-3650)
    assert desk.state.look_link(secret) is None
    assert desk.state.log_in(link=secret) is None


def test_a_clock_that_is_set_right_by_a_minute_logs_nobody_out(desk: Desk, clock: Clock) -> None:
    browser = entered(desk)
    secret = desk.state.new_link("eve", "test", Role.VIEWER)
    clock.go(minutes=-1)
    assert is_in(browser)
    assert desk.state.look_link(secret) is not None


def test_a_clock_that_goes_back_bit_by_bit_lengthens_no_session(desk: Desk, clock: Clock) -> None:
    browser = entered(desk)
    clock.go(seconds=SESSION_IDLE.total_seconds() - 1)
    assert is_in(browser)
    clock.go(seconds=-SESSION_IDLE.total_seconds() / 2)
    assert not is_in(browser)
    assert timedelta(0) < LINK_LIFE < SESSION_IDLE < SESSION_LIFE


def test_of_many_who_use_a_link_at_once_one_gets_in(desk: Desk) -> None:
    secret = desk.state.new_link("eve", "test", Role.VIEWER)
    other = State(desk.settings.state_file, now=desk.state._now)
    found: list[str | None] = []
    ready = threading.Barrier(8)

    def use(state: State) -> None:
        ready.wait()
        found.append(state.log_in(link=secret))

    racers = [threading.Thread(target=use, args=(each,)) for each in [desk.state, other] * 4]
    for each in racers:
        each.start()
    for each in racers:
        each.join()
    other.close()
    assert len([each for each in found if each is not None]) == 1


def test_looking_at_a_link_does_not_use_it(desk: Desk) -> None:
    secret = desk.state.new_link("eve", "test", Role.VIEWER)
    for method in ("GET", "HEAD", "GET"):
        assert Browser(desk).send(method, f"/login?link={secret}").status_code == 200
    assert desk.state.look_link(secret) == ("eve", Role.VIEWER)


def test_a_session_that_somebody_else_chose_is_not_taken_over(desk: Desk) -> None:
    browser = Browser(desk)
    browser.cookies = {"rappor-session-8766": "chosen", "rappor-visit-8766": "chosen"}
    browser.log_in(Role.VIEWER)
    assert "chosen" not in browser.cookies.values()
    assert desk.state.session("chosen") is None


# The state file: damaged, gone, copied about, on a full disk.


def test_state_that_cannot_be_read_is_a_page_that_says_so(desk: Desk, monkeypatch) -> None:
    browser = entered(desk)

    def broken(_secret: str) -> None:
        raise StoreError(f"{desk.settings.state_file}: database disk image is malformed")

    monkeypatch.setattr(desk.state, "session", broken)
    for path in ("/", "/collections.json", "/nowhere", "/ingest"):
        answer = browser.get(path)
        assert answer.status_code == BROKEN
        assert str(desk.settings.data) not in answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_a_fault_outside_of_pages_has_the_safe_headers_too(desk: Desk, monkeypatch) -> None:
    browser = entered(desk)

    def broken(_secret: str) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(desk.state, "session", broken)
    for path in ("/", "/nowhere"):
        answer = browser.get(path)
        assert (answer.status_code, "secret detail" in answer.text) == (500, False)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("error", [StoreFull("no room"), StoreError("database is locked")])
def test_on_a_full_or_locked_disk_pages_can_still_be_read(
    desk: Desk, clock: Clock, monkeypatch, error: StoreError
) -> None:
    browser = entered(desk)
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


def test_who_holds_the_state_file_does_not_hold_up_the_pages(desk: Desk, clock: Clock) -> None:
    browser = entered(desk)
    clock.go(minutes=5)
    other = sqlite3.connect(desk.settings.state_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = threading.Event()
    reader = threading.Thread(target=lambda: is_in(browser) and done.set())
    reader.start()
    assert done.wait(5)
    other.execute("ROLLBACK")
    other.close()
    reader.join()


def test_deleting_the_state_file_ends_every_session_at_once(desk: Desk) -> None:
    browser = entered(desk, Role.OPERATOR)
    for file in desk.settings.data.glob("dashboard.sqlite*"):
        file.unlink()
    assert not is_in(browser)
    assert desk.state.accounts() == []
    made = stat.S_IMODE(desk.settings.state_file.stat().st_mode)
    assert made == 0o600
    assert is_in(entered(desk))


def test_accounts_of_a_new_state_file_count_at_once(desk: Desk) -> None:
    """Whoever deletes the file and makes an account by the command is let in, nobody else."""
    desk.state.address = "http://127.0.0.1:1"
    browser = entered(desk, Role.OPERATOR)
    for file in desk.settings.data.glob("dashboard.sqlite*"):
        file.unlink()
    command = State(desk.settings.state_file, now=desk.state._now)
    token = command.add_account("new", Role.VIEWER, "test")
    assert not is_in(browser)
    assert command.address == "http://127.0.0.1:1"
    assert Browser(desk).post("/login", {"token": str(token)}).status_code == 303
    command.revoke("new", "test")
    assert desk.state.log_in(token=str(token)) is None
    command.close()


def test_a_data_folder_that_is_gone_is_not_made_anew(desk: Desk) -> None:
    browser = entered(desk)
    shutil.move(desk.settings.data, desk.settings.data.with_name("moved"))
    assert browser.get("/").status_code == BROKEN
    assert not desk.settings.data.exists()
    shutil.move(desk.settings.data.with_name("moved"), desk.settings.data)
    assert is_in(browser)


def test_a_state_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "dashboard.sqlite"
    State(file).close()
    file.chmod(0o664)
    state = State(file)
    state.add_account("ada", Role.VIEWER, "test")
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    state.close()
    assert set(modes.values()) == {0o600}, modes


# What is said to whom.


def test_no_error_tells_where_the_folders_are(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for data in (tmp_path / "data", Path("data")):
        settings = Settings(data, tmp_path / "collections")
        for text in (
            f"{data}/store.sqlite: damaged",
            f"{tmp_path}/data/store.sqlite: damaged",
            f"file {tmp_path}/collections/x.toml is none",
        ):
            said = without_paths(text, settings)
            assert str(tmp_path) not in said
            assert said.endswith(("store.sqlite: damaged", "x.toml is none"))
            assert not said.startswith(("/", "data"))


def test_a_definition_that_breaks_its_reader_breaks_no_page(tmp_path: Path) -> None:
    (tmp_path / "collections").mkdir()
    (tmp_path / "collections" / "deep.toml").write_text("a = " + "[" * 50_000)
    (tmp_path / "collections" / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    catalogue = Catalogue(tmp_path, tmp_path / "collections")
    assert catalogue.collections() == []
    assert [each.file for each in catalogue.unreadable()] == ["bytes.toml", "deep.toml"]


def test_a_log_that_vanishes_while_its_size_is_asked_is_no_fault(desk: Desk, monkeypatch) -> None:
    real = Path.stat

    def vanished(self: Path, **more: bool) -> os.stat_result:
        if self.name.endswith("-wal"):
            raise FileNotFoundError(2, "No such file", str(self))
        return real(self, **more)

    browser = entered(desk, Role.OPERATOR)
    monkeypatch.setattr(Path, "stat", vanished)
    assert browser.get("/ingest.json").status_code == 200


# Charts.


@pytest.mark.parametrize(
    "name",
    [
        "datum.value",
        "datum.label",
        'datum.value"] + datum.label + ["',
        "datum['value']",
        "parent.line",
        "\\",
        "\\u0022",
        "__proto__",
        "constructor",
        "a.b[0]",
    ],
)
def test_a_string_that_is_an_expression_stays_a_string_above_its_multiple(name: str) -> None:
    points = [Point("2026-W27", 0.1, 0.05, 0.15), Point("2026-W28", 0.1, 0.0, 0.2)]
    svg = to_svg(trends([Line(name, points), Line("other", points)]))
    assert f">{name}<" in html.unescape(svg)


# Lists of candidates.


def test_a_small_file_that_unpacks_to_a_very_long_list_is_refused() -> None:
    packed = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(
        pa.array([0] * (MOST_STRINGS + 1), pa.int32()), pa.array(["a.example"])
    )
    parquet.write_table(pa.table({"string": column}), packed)
    assert len(packed.getvalue()) < 10_000
    with pytest.raises(ParamsError, match="1,000,000 strings"):
        read_draft(packed.getvalue())


def test_a_small_file_that_unpacks_to_much_text_is_refused() -> None:
    packed = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(
        pa.array([0] * 100_000, pa.int32()), pa.array(["a" * 4000])
    )
    parquet.write_table(pa.table({"string": column}), packed, compression="zstd")
    assert len(packed.getvalue()) < 100_000
    with pytest.raises(ParamsError, match="32 MB"):
        read_draft(packed.getvalue())


def test_drafts_do_not_fill_the_disk(tmp_path: Path) -> None:
    state = State(tmp_path / "dashboard.sqlite")
    for number in range(40):
        for kind in ("draft", "google", "decode"):
            state.save_result(f"{kind}-{number}", kind, {"collection": "homepage"}, b"x")
    kept = {
        kind: sum(state.result(f"{kind}-{number}") is not None for number in range(40))
        for kind in ("draft", "google", "decode")
    }
    state.close()
    assert kept == {"draft": 5, "google": 2, "decode": 40}


def test_the_application_is_built_with_its_headers_outermost(desk: Desk) -> None:
    app = build(desk)
    assert type(app.build_middleware_stack()).__name__ == "SafeHeaders"  # type: ignore[attr-defined]
    assert not app.router.redirect_slashes  # type: ignore[attr-defined]
