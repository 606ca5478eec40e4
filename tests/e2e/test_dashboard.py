"""The dashboard as a process: its commands, its pages while reports come in, and a decode."""

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rappor import Params
from rappor.cli.main import main
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.store.released import STEP
from support.collecting import Client, batch, write_collections
from support.command import COMMAND, environment, rappor
from support.dashboard import (
    NEXT_YEAR,
    Dashboard,
    Sample,
    Visit,
    large_folder,
    sample_folder,
    serving,
    week,
)
from support.waiting import wait_for

CANDIDATES = 1_000
WRITTEN = "written"  # the collection that a process adds reports to


def until(attempt: Callable[[], Any]) -> None:
    """Wait for a condition; a server that is away for a moment is asked again."""

    def quiet() -> Any:
        try:
            return attempt()
        except OSError:
            return False

    wait_for(quiet)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The sample data, a collection that is written to, and one with a longer list."""
    made = sample_folder(tmp_path_factory.mktemp("dashboard"))
    small = Params(k=8, h=2, m=1, f=0.5, p=0.5, q=0.75)
    made.define(Collection(WRITTEN, 1, small, owner="me", expires=NEXT_YEAR))
    large = Params(k=128, h=2, m=8, f=0.5, p=0.5, q=0.75)
    listed = Collection("listed", 1, large, period="week", owner="me", expires=NEXT_YEAR)
    made.define(listed)
    weights = {f"site{number}.example": 0.9**number for number in range(30)}
    made.add(listed, week(0), weights, 200_000, seed=11)
    made.store()
    absent = (f"absent{number}.example" for number in range(CANDIDATES - len(weights)))
    made.candidates("listed", [*weights, *absent])
    return made


@pytest.fixture(scope="module")
def running(sample: Sample) -> Iterator[Dashboard]:
    with serving(sample) as dashboard:
        yield dashboard


def test_a_token_made_by_the_command_logs_in_until_it_is_revoked(running: Dashboard) -> None:
    data = str(running.sample.data)
    made = rappor("access", "new", "ada", "--role", "analyst", "--data", data)
    assert (made.returncode, made.stdout[:4]) == (0, "rpd_")
    visit = running.browser()
    assert visit.post("/login", {"token": made.stdout.strip()}).status == 303
    assert visit.get("/").status == 200

    listed = json.loads(rappor("access", "list", "--data", data, "--json").stdout)
    (ada,) = (each for each in listed["accounts"] if each["name"] == "ada")
    assert (ada["role"], ada["sessions"], ada["revoked"]) == ("analyst", 1, None)
    assert "ada" in rappor("access", "list", "--data", data).stdout

    assert rappor("access", "revoke", "ada", "--data", data).returncode == 0
    assert visit.get("/").status == 303
    assert visit.post("/login", {"token": made.stdout.strip()}).status == 403

    log = json.loads(rappor("access", "log", "--data", data, "--json").stdout)["audit"]
    did = [entry["action"] for entry in log if "ada" in f"{entry['actor']} {entry['detail']}"]
    assert did == ["access-new", "login", "access-revoke"]
    head, *lines = rappor("access", "log", "--data", data).stdout.splitlines()
    assert head.split() == ["when", "who", "did", "what"]
    assert len(lines) >= len(did)


def test_a_link_made_by_the_command_leads_to_the_running_dashboard_once(running: Dashboard) -> None:
    data = str(running.sample.data)
    made = rappor("access", "link", "eve", "--role", "viewer", "--data", data)
    assert made.stdout.startswith(f"{running.url}/login?link=")
    first, second = running.browser(), running.browser()
    assert first.log_in(made.stdout.strip()).status == 303
    assert first.get("/").status == 200
    second.log_in(made.stdout.strip())
    assert second.get("/").status == 303


def test_vega_is_served_packed_and_within_its_budget(running: Dashboard) -> None:
    visit = running.browser(Role.VIEWER)
    page = visit.get("/collections/browser").text
    address = re.search(r'"(/static/vega.js[^"]*)"', page)
    plain = visit.get(address[1] if address else "/static/vega.js")
    packed = visit.get(address[1] if address else "/static/vega.js", accept_encoding="gzip")
    assert (plain.status, packed.headers["content-encoding"]) == (200, "gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < 320_000


def test_a_decode_from_the_page_gives_the_commands_numbers(running: Dashboard) -> None:
    """Shares of what is done only go up, and other pages answer meanwhile.

    That each of them is shown is in tests/unit/dashboard/test_jobs_page.py.
    """
    sample = running.sample
    names = str(sample.definitions / "listed.candidates.txt")
    data = ("--data", str(sample.data))
    done = rappor("decode", "listed", *data, "--candidates", names, "--json", "--all")
    told = json.loads(done.stdout)
    visit = running.browser(Role.ANALYST)
    job = re.search(r'data-job="([^"]+)"', visit.get("/collections/listed").text)
    assert job is not None
    shares: list[float] = []

    def over() -> dict[str, Any] | None:
        now = json.loads(visit.get(f"/jobs/{job[1]}.json").text)
        shares.extend([] if now["share"] is None else [round(now["share"], 9)])
        assert visit.get("/").status == 200
        return None if now["state"] in ("waiting", "running") else now

    ended = wait_for(over, pause=0.05)  # leaves the processor to the worker
    assert (ended["state"], ended["share"]) == ("done", 1), ended
    assert shares == sorted(shares)
    assert 'data-state="ready"' in visit.get("/collections/listed").text
    found = json.loads(visit.get("/collections/listed.json").text)
    assert found["rows"] == told["rows"]
    assert found["candidates"] == CANDIDATES


# Pages while reports are written.


def reports_of(visit: Visit, name: str) -> int:
    listed = json.loads(visit.get("/collections.json").body)["collections"]
    return next(each["reports"] for each in listed if each["collection"] == name)


def pages_of(name: str) -> list[str]:
    """The list in three ways, Ingest, and each page of one collection."""
    one = f"/collections/{name}"
    fixed = ["/", "/?sort=-reports&q=9", "/collections.json", "/ingest", one]
    return [*fixed, *(f"{one}/{page}" for page in ("trends", "diagnostics", "candidates"))]


def check_while_written(dashboard: Dashboard, name: str) -> None:
    """Every page answers, and its numbers go on, while another process commits."""
    visit = dashboard.browser(Role.OPERATOR)
    before = reports_of(visit, name)
    with writing(dashboard.sample, name):
        until(lambda: reports_of(visit, name) > before)
        seen = reports_of(visit, name)
        for path in pages_of(name):
            assert visit.get(path).status == 200, path
        until(lambda: reports_of(visit, name) > seen)


def test_pages_answer_and_go_on_while_reports_are_written(running: Dashboard) -> None:
    check_while_written(running, WRITTEN)


@pytest.mark.long
def test_pages_answer_with_100_collections_of_365_periods_while_reports_are_written(
    tmp_path: Path,
) -> None:
    """How quickly: `make bench` (benchmarks/dashboard.py)."""
    large = large_folder(tmp_path)
    name = next(iter(large.collections.values())).name
    with serving(large) as dashboard:
        listed = json.loads(dashboard.browser(Role.VIEWER).get("/collections.json").body)
        reports = [each["reports"] for each in listed["collections"]]
        assert reports == [2_000] * 100  # of the newest period
        check_while_written(dashboard, name)


@contextlib.contextmanager
def writing(sample: Sample, name: str) -> Iterator[None]:
    """A process that adds reports to the newest period of a collection until it is ended."""
    command = [sys.executable, "-m", "support.writing", str(sample.data), name]
    process = subprocess.Popen(command, env=environment(), cwd=Path(__file__).parents[1])
    try:
        yield
        assert process.poll() is None, "the writer ended by itself"
    finally:
        process.terminate()
        process.wait(300)


# What cannot work.


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["access"], 2, "give an action"),
        (["access", "new", "ada"], 2, "--data"),
        (["access", "new", "ada", "--role", "root", "--data", "{data}"], 2, "invalid choice"),
        (
            ["access", "new", "Ada Lovelace", "--role", "viewer", "--data", "{data}"],
            3,
            "must match",
        ),
        (["access", "link", "ada", "--data", "{data}"], 3, "there is no account 'ada'"),
        (["access", "revoke", "ada", "--data", "{data}"], 3, "there is no account 'ada'"),
        (["access", "list", "--data", "{data}/no"], 3, "no such data folder"),
        (["dashboard", "--data", "{data}", "--port", "99999"], 2, "not a port"),
    ],
)
def test_what_cannot_work_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    said: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        sys.exit(main([each.replace("{data}", str(tmp_path)) for each in options]))
    assert ended.value.code == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--url", "nonsense"], "url must be an http"),
        pytest.param(
            ["--collections", "{data}/no"],
            "no such folder of collections",
            marks=pytest.mark.long,
        ),
        pytest.param(["--data", "{data}/no"], "no such data folder", marks=pytest.mark.long),
    ],
)
def test_a_dashboard_that_cannot_start_says_why_in_one_line(
    tmp_path: Path, options: list[str], said: str
) -> None:
    """In a process of its own: one that did start would never end."""
    given = [each.replace("{data}", str(tmp_path)) for each in options]
    done = rappor("dashboard", "--data", str(tmp_path), *given)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_port_that_is_taken_is_one_line(running: Dashboard) -> None:
    port = str(running.process.port)
    done = rappor("dashboard", "--data", str(running.sample.data), "--port", port)
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr


# Both processes of `rappor serve`.


class Serving:
    """`rappor serve` with both processes."""

    def __init__(self, folder: Path) -> None:
        place = write_collections(folder)
        fixed = ["--data", str(folder / "data"), "--collections", str(place)]
        self.process = subprocess.Popen(
            [*COMMAND, "serve", *fixed, "--port", "0", "--dashboard-port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self.process.stdout is not None
        self.said = dict(self.process.stdout.readline().strip().split(": ", 1) for _ in range(3))
        self.log: list[dict] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.log.append(json.loads(line))

    def port(self, name: str) -> int:
        return urlsplit(self.said[name]).port or 0

    def pid(self, name: str) -> int:
        """The process id of a child, when the log has it."""

        def found() -> list[int]:
            mine = [each for each in list(self.log) if each.get("child") == name]
            return [each["pid"] for each in mine if "pid" in each]

        until(found)
        return found()[-1]

    def close(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(300)
        finally:
            self.process.kill()
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serving]:
    """`rappor serve`, whose collector answers; it ends with 0."""
    serving = Serving(tmp_path)
    try:
        collector = Visit(serving.port("collector"))
        until(lambda: collector.get("/healthz").status == 200)
        yield serving
    finally:
        code = serving.close()
    assert code == 0


def operator_of(serving: Serving, folder: Path) -> Visit:
    """A visit that logged in as `rappor serve` says."""
    assert serving.said["log in"].startswith("rappor access link NAME --role operator --data ")
    visit = Visit(serving.port("dashboard"))
    until(lambda: visit.get("/login").status == 200)
    done = rappor("access", "link", "ops", "--role", "operator", "--data", str(folder / "data"))
    link = done.stdout.strip()
    assert link.startswith(serving.said["dashboard"])
    visit.log_in(link)
    return visit


def shows_the_first_step(visit: Visit) -> bool:
    return f'<data value="{STEP}">{STEP}</data>' in visit.get("/").text


def test_serve_runs_collector_and_dashboard_and_says_how_to_log_in(
    served: Serving, tmp_path: Path
) -> None:
    visit = operator_of(served, tmp_path)
    client = Client(served.port("collector"), timeout=300)
    for _ in range(STEP):
        assert client.send(batch()).status == 204
    assert client.send(b"nonsense").status == 400
    client.close()
    until(lambda: shows_the_first_step(visit))


@pytest.mark.long
def test_serve_watches_the_collector_and_starts_a_killed_dashboard_again(
    served: Serving, tmp_path: Path
) -> None:
    visit = operator_of(served, tmp_path)
    client = Client(served.port("collector"), timeout=300)
    assert client.send(batch()).status == 204

    def figures() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(visit.get("/ingest.json").body)
        return found

    until(lambda: figures()["health"] == "Healthy")
    until(lambda: figures()["reports_per_second"] is not None)

    os.kill(served.pid("dashboard"), signal.SIGKILL)  # the collector does not notice
    assert client.send(batch()).status == 204
    client.close()

    def ended() -> list[str]:
        return [each["child"] for each in list(served.log) if each["event"] == "ended"]

    until(ended)
    until(lambda: visit.get("/").status == 200)
    assert ended() == ["dashboard"]
