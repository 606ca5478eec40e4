"""`rappor serve --collectors N`: several collectors on one port and one PostgreSQL database."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rappor.collection import Collection
from rappor.store import open_store
from support.collecting import (
    PARAMS,
    Client,
    Process,
    batch,
    client_of,
    collect_command,
    collector,
    day,
    write_collections,
)
from support.command import COMMAND, rappor
from support.postgres import Server, a_server, is_running
from support.waiting import wait_for

pytestmark = pytest.mark.slow
COLLECTORS = 3


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_server() as made:
        yield made


@dataclass
class Child:
    """A collector of `rappor serve`."""

    pid: int

    @property
    def arguments(self) -> list[str]:
        return Path(f"/proc/{self.pid}/cmdline").read_text().split("\0")

    @property
    def port(self) -> int:
        """The port of its own pages."""
        return int(self.arguments[self.arguments.index("--metrics-port") + 1])

    def page(self, path: str) -> str | None:
        """A page of it; None while it does not answer."""
        try:
            with closing(Client(self.port)) as client:
                return client.get(path).body.decode()
        except (OSError, ValueError):  # it is not listening, or not even that program yet
            return None

    def reports(self) -> int:
        """What it has counted since it started."""
        (found,) = re.findall(r"^rappor_reports_total (\d+)", self.page("/metrics") or "", re.M)
        return int(found)


def children(process: Process) -> list[Child]:
    """Those that run."""
    pids = [each["pid"] for each in list(process.log) if each["event"] == "started"]
    return [Child(pid) for pid in pids if is_running(pid)]


def all_ready(process: Process) -> list[Child] | None:
    found = children(process)
    ready = [child for child in found if "ready" in (child.page("/readyz") or "")]
    return found if len(ready) == COLLECTORS else None


@contextmanager
def several(server: Server, folder: Path) -> Iterator[tuple[Process, str]]:
    """Collectors with the role of production and a password in the URL; and the owner's URL."""
    definition = Collection("homepage", 1, PARAMS)
    collections = write_collections(folder, definition)
    url = server.new_store()
    with closing(open_store(url)) as store:
        store.save_definition(definition.to_toml(), actor="test")
    secret = server.as_ingest(url).replace("rappor_ingest@", "rappor_ingest:s3cret@")
    command = [*COMMAND, "serve", "--no-dashboard", "--store", secret, "--collections", collections]
    options = ["--port", "0", "--metrics-port", "0", "--collectors", str(COLLECTORS), "--rate", "0"]
    process = Process([*command, *options])
    try:
        process.wait_until_listening()
        wait_for(lambda: all_ready(process), "all collectors")
        yield process, url
    finally:
        process.close()


def send_to_all(process: Process) -> int:
    """Send batches, each on a connection of its own, until each collector has counted some."""
    before = {child.pid: child.reports() for child in children(process)}
    sent = 0

    def all_have() -> bool:
        nonlocal sent
        with client_of(process) as client:
            assert client.deliver(batch()).status == 204
        sent += 1
        return all(child.reports() > before[child.pid] for child in children(process))

    wait_for(all_have, "a report that each collector has counted")
    return sent


def test_all_collectors_answer_and_count_and_a_killed_one_comes_back(
    server: Server, tmp_path: Path
) -> None:
    with several(server, tmp_path) as (process, url):
        sent = send_to_all(process)
        first = children(process)
        assert sum(child.reports() for child in first) == sent  # each on a page of its own
        assert len({child.port for child in first}) == COLLECTORS
        for child in first:
            assert "s3cret" not in " ".join(child.arguments)
        with client_of(process) as client:  # the page of whichever the kernel chooses
            assert client.get("/metrics").status == 404
            assert client.get("/healthz").status == 200
        killed = first[-1]
        port = killed.port
        os.kill(killed.pid, signal.SIGKILL)
        wait_for(lambda: process.events().count("started") == COLLECTORS + 1, "another start")
        after = wait_for(lambda: all_ready(process), "all collectors again")
        assert {child.port for child in after} == {child.port for child in first[:-1]} | {port}
        sent += send_to_all(process)
        process.process.send_signal(signal.SIGHUP)
        process.wait_for_event("reloaded", COLLECTORS)
        assert process.end() == 0
        assert not any(is_running(child.pid) for child in (*first, *after))
        assert process.events().count("stopping") == COLLECTORS
        assert "s3cret" not in "".join(process.text)
    with closing(open_store(url, read_only=True)) as store:
        assert {each.cell.period: each.reports for each in store.counts("homepage")} == {
            day(): sent
        }
        assert store.check() == []


def test_a_collector_alone_may_have_its_pages_on_a_port_of_its_own(tmp_path: Path) -> None:
    """The dashboard next to it asks there; docs/operate.md, "Health and metrics"."""
    process = Process(collect_command(tmp_path, "--metrics-port", "0", verb="serve"))
    try:
        process.wait_until_listening()
        (child,) = children(process)
        assert "rappor_healthy 1" in (child.page("/metrics") or "")
        assert process.port != child.port
        assert process.end() == 0
    finally:
        process.close()
    with collector(tmp_path) as alone, client_of(alone) as client:
        assert client.get("/metrics").status == 200  # without the option it is as before


def test_a_port_of_pages_that_nobody_would_know_is_refused(tmp_path: Path) -> None:
    done = rappor(*collect_command(tmp_path, "--metrics-port", "0")[len(COMMAND) :])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    several_ports = ("--metrics-port", "65534", "--collectors", "3", "--store", "postgresql://x/y")
    done = rappor(*collect_command(tmp_path, *several_ports, verb="serve")[len(COMMAND) :])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "65534" in done.stderr
    assert done.stdout == ""  # nothing was started
