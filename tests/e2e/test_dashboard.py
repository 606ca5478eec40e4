"""The dashboard as a process: verbs, both processes of `rappor serve`, and speed."""

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rappor.dashboard.access.roles import Role
from support.collecting import Client, batch, wait_for, write_collections
from support.command import COMMAND, environment, rappor
from support.dashboard import Sample, Visit, large_folder, sample_folder, serving


def test_a_token_made_by_the_command_logs_in_until_it_is_revoked(tmp_path: Path) -> None:
    sample = sample_folder(tmp_path)
    data = str(sample.data)
    with serving(sample) as dashboard:
        made = rappor("access", "new", "ada", "--role", "analyst", "--data", data)
        assert (made.returncode, made.stdout[:4]) == (0, "rpd_")
        visit = dashboard.browser()
        assert visit.post("/login", {"token": made.stdout.strip()}).status == 303
        assert visit.get("/").status == 200

        listed = json.loads(rappor("access", "list", "--data", data, "--json").stdout)
        (ada,) = listed["accounts"]
        assert (ada["name"], ada["role"], ada["sessions"], ada["revoked"]) == (
            "ada",
            "analyst",
            1,
            None,
        )
        assert "ada" in rappor("access", "list", "--data", data).stdout

        assert rappor("access", "revoke", "ada", "--data", data).returncode == 0
        assert visit.get("/").status == 303
        assert visit.post("/login", {"token": made.stdout.strip()}).status == 403


def test_a_link_made_by_the_command_leads_to_the_running_dashboard_once(tmp_path: Path) -> None:
    sample = sample_folder(tmp_path)
    with serving(sample) as dashboard:
        made = rappor("access", "link", "eve", "--role", "viewer", "--data", str(sample.data))
        assert made.stdout.startswith(f"{dashboard.url}/login?link=")
        first, second = dashboard.browser(), dashboard.browser()
        assert first.log_in(made.stdout.strip()).status == 303
        assert first.get("/").status == 200
        second.log_in(made.stdout.strip())
        assert second.get("/").status == 303
        assert dashboard.process.end() == 0


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["access"], 2, "say what to do"),
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
        (["dashboard", "--data", "{data}/no"], 3, "no such data folder"),
        (["dashboard", "--data", "{data}", "--collections", "{data}/no"], 3, "no such folder"),
        (["dashboard", "--data", "{data}", "--url", "nonsense"], 3, "url must be an http"),
        (["dashboard", "--data", "{data}", "--port", "99999"], 2, "not a port"),
    ],
)
def test_what_cannot_work_is_one_line(
    tmp_path: Path, options: list[str], code: int, said: str
) -> None:
    done = rappor(*[each.replace("{data}", str(tmp_path)) for each in options])
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = rappor("dashboard", "--data", str(tmp_path), "--port", port)
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr


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
        return [each["pid"] for each in self.log if each.get("child") == name and "pid" in each][-1]

    def close(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()


def until(attempt: Callable[[], bool], seconds: float = 30) -> None:
    def quiet() -> bool:
        try:
            return attempt()
        except OSError:
            return False

    wait_for(quiet, seconds)


def test_serve_runs_collector_and_dashboard_and_says_how_to_log_in(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    try:
        assert serving.said["log in"].startswith("rappor access link NAME --role operator --data ")
        collector = Visit(serving.port("collector"))
        until(lambda: collector.get("/healthz").status == 200)
        visit = Visit(serving.port("dashboard"))
        until(lambda: visit.get("/login").status == 200)
        done = rappor(
            "access", "link", "ops", "--role", "operator", "--data", str(tmp_path / "data")
        )
        link = done.stdout.strip()
        assert link.startswith(serving.said["dashboard"])
        visit.log_in(link)

        client = Client(serving.port("collector"))
        assert client.send(batch()).status == 204
        assert client.send(b"nonsense").status == 400
        until(lambda: '<data value="1">1</data>' in visit.get("/").text)  # one report, in the list

        def figures() -> dict:
            return json.loads(visit.get("/ingest.json").body)

        until(lambda: figures()["health"] == "Healthy")
        until(lambda: figures()["reports_per_second"] is not None)

        os.kill(serving.pid("dashboard"), signal.SIGKILL)  # the collector does not notice
        assert client.send(batch()).status == 204
        until(lambda: visit.get("/").status == 200)
        assert [each["child"] for each in serving.log if each["event"] == "ended"] == ["dashboard"]
        client.close()
    finally:
        code = serving.close()
    assert code == 0


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return large_folder(tmp_path_factory.mktemp("large"))


MOST_SECONDS = 0.2
TIMES = 20


def pages_of(visit: Visit) -> list[str]:
    """The list in three ways, Ingest, and each page of one collection."""
    links = re.findall(r'href="(/collections/collection-000[^"]*)"', visit.get("/").text)
    one = f"/collections/{urlsplit(links[0]).path.split('/')[2]}"
    fixed = ["/", "/?sort=-reports&q=9", "/collections.json", "/ingest", one]
    return [*fixed, *(f"{one}/{page}" for page in ("trends", "diagnostics", "candidates"))]


def check_seconds(visit: Visit, paths: list[str]) -> None:
    """Half of the answers, and the slowest, are there in 200 ms.

    Others may be at work on this machine: what an answer without any content takes at its worst,
    asked for in turns with the pages, is allowed to the slowest on top.
    """
    for path in paths:
        taken, bare = [], []
        for _ in range(TIMES):
            assert visit.get("/static/none").status == 404
            bare.append(visit.seconds)
            assert visit.get(path).status == 200, path
            taken.append(visit.seconds)
            time.sleep(0.02)
        assert statistics.median(taken) < MOST_SECONDS, (path, taken)
        assert max(taken) < MOST_SECONDS + max(bare), (path, taken, bare)


def test_pages_answer_within_200_ms_with_100_collections_of_365_periods(large: Sample) -> None:
    with serving(large) as dashboard:
        visit = dashboard.browser(Role.OPERATOR)
        check_seconds(visit, pages_of(visit))


def reports_of(visit: Visit, name: str) -> int:
    listed = json.loads(visit.get("/collections.json").body)["collections"]
    return next(each["reports"] for each in listed if each["collection"] == name)


def test_pages_answer_within_200_ms_and_go_on_while_reports_are_written(large: Sample) -> None:
    """The writer is a process of its own, as a collector is, and commits 50 times a second."""
    name = next(iter(large.collections.values())).name
    with serving(large) as dashboard:
        visit = dashboard.browser(Role.OPERATOR)
        paths, before = pages_of(visit), reports_of(visit, name)
        with writing(large, name):
            until(lambda: reports_of(visit, name) > before)
            seen = reports_of(visit, name)
            check_seconds(visit, paths)
            assert reports_of(visit, name) > seen


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
        process.wait(20)
