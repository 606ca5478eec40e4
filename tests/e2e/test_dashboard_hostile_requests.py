"""A real dashboard process over a socket: requests that no browser sends, and files that vanish."""

import hashlib
import http.client
import json
import os
import socket
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.routes import PAGES
from rappor.dashboard.timeouts import MAX_CONNECTIONS
from support.command import rappor
from support.dashboard import Dashboard, Sample, Visit, sample_folder, serving
from support.waiting import wait_for

MARK = "unmistakable-7f3a"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with serving(sample_folder(tmp_path_factory.mktemp("attacked"))) as dashboard:
        yield dashboard
        assert dashboard.process.end(seconds=300) == 0
        assert not [line for line in dashboard.process.text if "trace" in line]


def raw(port: int, *lines: str, body: bytes = b"") -> bytes:
    """What is answered to exactly these bytes."""
    sent = "\r\n".join((*lines, "Connection: close", "", "")).encode("latin-1") + body
    with socket.create_connection(("127.0.0.1", port), timeout=300) as line:
        line.sendall(sent)
        found = b""
        while more := line.recv(65536):
            found += more
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def memory(process: int) -> int:
    """Bytes that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def digests(folder: Path) -> dict[str, str]:
    """The store's files as they are."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.glob("store.sqlite")
    }


def test_it_listens_on_this_machine_only(running: Dashboard) -> None:
    said = next(line for line in running.process.log if line["event"] == "dashboard-listening")
    assert said["host"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("GET /ingest/ HTTP/1.1", "Host: evil.example"), 421),
        (("GET /login HTTP/1.1", "Host: evil.example"), 421),
        (("GET /login HTTP/1.1", "Host: 127.0.0.1", "Host: evil.example"), 421),
        (("GET /login HTTP/1.1", "Host: 127.0.0.1@evil.example"), 421),
        (("GET /login HTTP/1.0",), 421),
        (("GET http://evil.example/login HTTP/1.1", "Host: evil.example"), 421),
        (("GET /\xff HTTP/1.1", "Host: 127.0.0.1"), 400),
        (("GET /login HTTP/1.1", "Host: 127.0.0.1", "X-Forwarded-Host: evil.example"), 200),
    ],
)
def test_no_other_name_is_answered_or_sent_back(
    running: Dashboard, lines: tuple[str, ...], expected: int
) -> None:
    answer = raw(running.process.port, *lines)
    assert status(answer) == expected
    assert b"evil.example" not in answer


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "/\\evil.example", "/%0d%0aset-cookie:%20a=b"]
)
def test_a_login_that_is_asked_for_leads_to_no_other_place(running: Dashboard, path: str) -> None:
    answer = raw(running.process.port, f"GET {path} HTTP/1.1", "Host: 127.0.0.1")
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert b"\r\nlocation: /login?next=" in head
    assert b"\r\nset-cookie" not in head


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd"],
)
def test_no_file_but_ours_is_served(running: Dashboard, path: str) -> None:
    answer = raw(running.process.port, f"GET {path} HTTP/1.1", "Host: 127.0.0.1")
    assert status(answer) in (303, 404)
    assert b"import" not in answer.partition(b"\r\n\r\n")[2]


def test_whoever_is_not_logged_in_cannot_fill_the_memory(running: Dashboard) -> None:
    before = memory(running.process.process.pid)
    lines = []
    try:
        for _ in range(8):
            line = socket.create_connection(("127.0.0.1", running.process.port), timeout=300)
            lines.append(line)
            head = (
                "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000000\r\n"
                "Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken="
            )
            line.sendall(head.encode())
            try:
                for _ in range(50):
                    line.sendall(b"a" * 10**6)
            except OSError:
                continue  # it has heard enough
        for line in lines:
            try:
                assert line.recv(100).startswith(b"HTTP/1.1 413")
            except ConnectionResetError:
                continue
    finally:
        for line in lines:
            line.close()
    assert memory(running.process.process.pid) - before < 60e6


def test_more_connections_than_there_may_be_are_answered_so_and_are_forgotten(
    running: Dashboard,
) -> None:
    """Whoever holds that many keeps others out only for as long as they are let: headers end it."""
    port = running.process.port
    hello = ("GET /login HTTP/1.1", "Host: 127.0.0.1")

    def is_full() -> bool:
        lines = []
        try:
            for _ in range(MAX_CONNECTIONS):
                lines.append(socket.create_connection(("127.0.0.1", port), timeout=300))
            return status(raw(port, *hello)) == 503
        finally:
            for line in lines:
                line.close()

    wait_for(is_full)  # at once, unless the first were cut off before the last came
    wait_for(lambda: status(raw(port, *hello)) == 200)


def test_a_browser_that_leaves_is_not_in_the_log(running: Dashboard) -> None:
    seen = len(running.process.text)
    with socket.create_connection(("127.0.0.1", running.process.port), timeout=300) as line:
        line.sendall(
            b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken=x"
        )
    assert running.browser().get("/login").status == 200
    assert not [line for line in running.process.text[seen:] if "trace" in line]
    # What is logged later than this answer is seen where the dashboard of these tests ends.


def test_nothing_about_a_visitor_is_kept(running: Dashboard) -> None:
    visit = running.browser(Role.OPERATOR)
    visit.cookies["more"] = MARK
    about = {"user_agent": MARK, "x_forwarded_for": MARK, "referer": f"http://{MARK}.example/"}
    paths = [
        "/",
        "/ingest",
        f"/{MARK}",
        f"/collections/{MARK}",
        f"/?q={MARK}",
        f"/login?link={MARK}",
    ]
    for path in paths:
        assert visit.get(path, **about).status < 500
    assert visit.post("/login", {"token": MARK}, **about).status == 403
    assert visit.post("/ingest/accounts", {"name": MARK.upper(), "role": "x"}).status == 400
    secret = visit.cookies[f"rappor-session-{running.process.port}"]
    link = running.link(Role.VIEWER).partition("link=")[2]
    running.browser().get(f"/login?link={link}")
    kept = b"".join(file.read_bytes() for file in running.sample.data.glob("dashboard.sqlite*"))
    log = "".join(running.process.text)
    for text in (MARK, MARK.upper(), secret, link):
        assert text.encode() not in kept
        assert text not in log


@pytest.mark.parametrize("role", Role)
def test_no_page_writes_to_the_store(running: Dashboard, role: Role) -> None:
    before = digests(running.sample.data)
    visit = running.browser(role)
    for page in PAGES:
        path = page.path.replace("{name}", "browser").replace("{file}", "bars.svg")
        for method in page.methods:
            if page.name == "logout":
                continue
            fields = {"csrf": visit.csrf(), "next": "/"} if method == "POST" else None
            answer = visit.send(method, path.replace("{number}", "x"), fields)
            assert answer.status < 500 or answer.status == 503, (page.name, answer.text)
    assert digests(running.sample.data) == before


def test_a_viewer_changes_nothing(running: Dashboard) -> None:
    tables = ("accounts", "links", "candidates")
    visit = running.browser(Role.VIEWER)
    for page in PAGES:
        visit.get(page.path.replace("{name}", "browser").replace("{file}", "x.svg"))

    def rows() -> dict[str, list[tuple[object, ...]]]:
        file = sqlite3.connect(running.sample.data / "dashboard.sqlite")
        try:
            return {name: file.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
        finally:
            file.close()

    running.state.add_account("bystander", Role.ANALYST, "test")
    for name in ("homepage", "extensions", "search-engine"):
        running.state.candidates(name)  # lists beside definitions are taken up by whoever looks
    before = rows()
    for page in PAGES:
        path = page.path.replace("{name}", "homepage").replace("{number}", "x")
        for method in page.methods:
            if method == "POST" and page.name not in ("logout", "log_in"):
                visit.post(path, {"name": "bystander", "role": "operator", "text": "a"})
            elif method == "GET":
                visit.get(f"{path}?alpha=0.0123&anyway=1")
    assert rows() == before
    file = sqlite3.connect(running.sample.data / "dashboard.sqlite")
    jobs = file.execute("SELECT status, document FROM jobs").fetchall()  # an analyst's too
    file.close()
    assert all("viewer" not in json.loads(data)["actor"] for _, data in jobs)
    assert all(state != "cancelled" for state, _ in jobs)


def test_all_files_of_the_state_are_their_owners(running: Dashboard) -> None:
    running.state.audit("test", "test", "test")
    found = [*running.sample.data.glob("dashboard.sqlite*")]
    assert len(found) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in found} == {0o600}


@pytest.mark.long
def test_a_state_file_that_is_deleted_or_damaged_ends_access_and_not_the_process(
    tmp_path: Path,
) -> None:
    sample = Sample(tmp_path)
    sample.data.mkdir()
    sample.definitions.mkdir()
    with serving(sample) as dashboard:
        visit = dashboard.browser(Role.OPERATOR)
        assert visit.get("/ingest").status == 200
        for file in sample.data.glob("dashboard.sqlite*"):
            file.unlink()
        assert visit.get("/ingest").status == 303, "its account is gone"
        made = rappor("access", "link", "eve", "--role", "viewer", "--data", str(sample.data))
        assert made.stdout.startswith(f"{dashboard.url}/login?link=")
        newcomer = Visit(dashboard.process.port)
        assert newcomer.log_in(made.stdout.strip()).status == 303
        assert newcomer.get("/").status == 200

        file = sample.data / "dashboard.sqlite"
        (sample.data / "other").write_bytes(b"\xff" * 65536)
        os.replace(sample.data / "other", file)
        for ending in ("-wal", "-shm"):
            file.with_name(file.name + ending).unlink(missing_ok=True)
        for path in ("/", "/ingest.json", "/nowhere"):
            answer = newcomer.get(path)
            assert (answer.status, str(tmp_path) in answer.text) == (503, False)
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert newcomer.get("/static/app.css").status in (200, 503)
        file.unlink()
        wait_for(lambda: newcomer.get("/").status == 303)
        assert dashboard.process.end(seconds=300) == 0


def test_a_form_of_another_kind_is_refused(running: Dashboard) -> None:
    visit = running.browser(Role.OPERATOR)
    token = visit.csrf()
    line = http.client.HTTPConnection("127.0.0.1", running.process.port, timeout=300)
    cookie = "; ".join(f"{name}={value}" for name, value in visit.cookies.items())
    for kind, body in (
        ("application/json", f'{{"csrf": "{token}", "name": "x"}}'),
        ("text/plain", f"csrf={token}"),
        ("multipart/form-data", "no boundary"),
        ("multipart/form-data; boundary=x", f"--x\r\n\r\n{token}\r\n--x--"),
    ):
        headers = {"content-type": kind, "cookie": cookie}
        line.request("POST", "/logout", body, headers)
        answer = line.getresponse()
        answer.read()
        assert answer.status in (400, 403), kind
    line.close()
    assert visit.get("/").status == 200


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="limits are read from /proc")
def test_neither_the_pages_nor_the_worker_leave_core_dumps(running: Dashboard) -> None:
    analyst = running.browser(Role.ANALYST)
    analyst.get("/collections/browser")  # has the worker started
    pages = running.process.process.pid
    children = Path(f"/proc/{pages}/task/{pages}/children")
    wait_for(lambda: any("spawn_main" in _words(each) for each in _threads_children(pages)))
    assert children.exists()
    for process in (pages, *_threads_children(pages)):
        if process == pages or "spawn_main" in _words(process):
            wait_for(lambda process=process: _core_limit(process) == ["0", "0"])


def _threads_children(process: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        found += [int(each) for each in file.read_text().split()]
    return found


def _words(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def _core_limit(process: int) -> list[str]:
    lines = Path(f"/proc/{process}/limits").read_text().splitlines()
    return next(line for line in lines if line.startswith("Max core")).split()[4:6]
