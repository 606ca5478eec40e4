"""What a client is given in tests: a crashing disk, a jumping clock, a collector, patience."""

import contextlib
import datetime
import http.server
import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rappor.client import Client, consent, processes, recorder, sender, workers
from rappor.client import client as client_module
from rappor.client.charging import Caps
from rappor.client.outbox import Outbox
from rappor.client.recorder import Recorder
from rappor.client.sender import Sender
from rappor.client.transport import Answer
from rappor.collection import Collection
from rappor.params import Params
from rappor.wire import Batch, decode_batch
from support.command import environment

WINDOWS = Params.preset("windows")
ECHO = Params(k=64, h=2, m=4, f=0.5, p=0.0, q=1.0)  # a report is B' itself
MONDAY = datetime.date(2026, 11, 16)
LIMIT = 300.0  # seconds; it only ends a test that hangs


def be_patient(put: Callable[[object, str, object], None] = setattr) -> None:
    """Have this process's clients wait for minutes where a host waits for seconds.

    Two seconds for the end of a process and ten for a lock are the host's comfort. Here they would
    make an outcome depend on how busy the machine is.

    Args:
        put: sets an attribute; `monkeypatch.setattr` puts it back after the test.
    """
    for module in (processes, consent, client_module):
        put(module, "AT_EXIT", LIMIT)
    put(Client.close, "__defaults__", (LIMIT,))
    put(recorder, "_WAIT", LIMIT)
    put(sender, "TIMEOUT", LIMIT)
    put(workers, "_SEND_FOR", LIMIT)


START = """
import json, os, signal, sys, threading, time
from rappor.client import Client, consent, processes
from support.client import *
from support.waiting import wait_for
be_patient()
"""


def start(code: str, *arguments: object) -> "subprocess.Popen[str]":
    """Run code in a new interpreter, with what `START` imports."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", START + textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment({"PYTHONPATH": str(Path(__file__).parents[1])}),
    )


def together() -> None:
    """In a process of `start`: wait for the others, up to `go`."""
    print("ready", flush=True)
    sys.stdin.readline()


def go(started: "list[subprocess.Popen[str]]") -> None:
    """Let the processes that call `together` go on, once all of them have come to it."""
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()


def finish(process: "subprocess.Popen[str]") -> Any:
    """The JSON that a process printed; it ended well and said nothing else."""
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, err) == (0, "")
    return json.loads(out) if out else None


def homepage(**changes: Any) -> Collection:
    """An ordinary collection of strings, one report a day."""
    settings: dict[str, Any] = {"name": "homepage", "version": 1, "params": WINDOWS}
    return Collection(**(settings | {"max_values": 3} | changes))


class Crash(BaseException):
    """The process is gone at this very moment."""


class MemoryDisk:
    """A disk without files. With `crash_in = n` the n-th write from now on is a crash."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.crash_in: int | None = None
        self.crash_how = "before"
        self.writes = 0

    @contextlib.contextmanager
    def _write(self, name: str, data: bytes = b"") -> Iterator[bool]:
        self.writes += 1
        crashes = False
        if self.crash_in is not None:
            self.crash_in -= 1
            crashes = self.crash_in <= 0
        if crashes and self.crash_how != "after":
            self.crash_in = None
            if self.crash_how == "torn":  # half a file lies beside the place, none in it
                folder, slash, _ = name.rpartition("/")
                self.files[f"{folder}{slash}.new-{self.writes}"] = data[: len(data) // 2]
            raise Crash
        yield crashes
        if crashes:
            self.crash_in = None
            raise Crash

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def exists(self, name: str) -> bool:
        return name in self.files

    def create(self, name: str, data: bytes) -> None:
        with self._write(name, data):
            if name in self.files:
                raise FileExistsError(name)
            self.files[name] = data

    def replace(self, name: str, data: bytes) -> None:
        with self._write(name, data):
            self.files[name] = data

    def move(self, old: str, new: str) -> None:
        with self._write(new):
            if old not in self.files:
                raise FileNotFoundError(old)
            self.files[new] = self.files.pop(old)

    def remove(self, name: str) -> None:
        with self._write(name):
            self.files.pop(name, None)

    def names(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        return sorted(
            name
            for name in self.files
            if name.startswith(prefix) and not name.startswith(f"{prefix}.new-")
        )

    @contextlib.contextmanager
    def lock(self, name: str, wait: float) -> Iterator[None]:
        yield


class FakeClock:
    """A clock that tests set; its monotonic side is the real one."""

    def __init__(self, day: datetime.date = MONDAY, hour: float = 12.0) -> None:
        self.set(day, hour)

    def set(self, day: datetime.date, hour: float = 12.0) -> None:
        self.now = (day - datetime.date(1970, 1, 1)).days * 86_400.0 + hour * 3600.0

    def forward(self, days: float) -> None:
        self.now += days * 86_400.0

    @property
    def day(self) -> datetime.date:
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(self.now // 86_400))

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass
class FakeTransport:
    """A collector in memory. `answers` are given in turn, then 204; an exception is raised."""

    answers: list[Answer | Exception] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    open: bool = True

    def post(self, body: bytes, timeout: float) -> Answer:
        if not self.open:
            raise ConnectionAbortedError
        self.bodies.append(body)
        answer = self.answers.pop(0) if self.answers else Answer(204)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def abort(self) -> None:
        self.open = False

    def resume(self) -> None:
        self.open = True

    @property
    def batches(self) -> list[Batch]:
        return [decode_batch(body) for body in self.bodies]


def recorder_on(
    disk: Any,
    clock: Any,
    *collections: Collection,
    caps: Caps | None = None,
    account_secret: bytes | None = None,
    dimensions: Mapping[str, object] | None = None,
    kind: Callable[..., Recorder] = Recorder,
) -> Recorder:
    """A recorder as `Client.open` makes it."""
    return kind(
        disk,
        clock,
        {each.name: each for each in collections},
        outbox=Outbox(disk),
        dimensions=dimensions or {},
        account_secret=account_secret,
        caps=caps or Caps(),
    )


def batch(token: int = 0, period: str = "2026-11-16", collection: str = "homepage") -> Batch:
    """A batch of one report."""
    return Batch(bytes([token]) * 16, collection, 1, period, (), 8, b"\1\0", b"\5")


class Setting:
    """A sender over a disk in memory."""

    def __init__(self, *answers: Answer | Exception, jitter: float = 0.0) -> None:
        self.disk, self.clock = MemoryDisk(), FakeClock()
        self.outbox = Outbox(self.disk)
        self.transport = FakeTransport(list(answers))
        self.sender = Sender(self.disk, self.clock, self.outbox, self.transport, jitter)

    def send(self, now: bool = True) -> bool:
        """Send what waits."""
        return self.sender.send(until=self.clock.monotonic() + LIMIT, now=now)


class Collector:
    """A real HTTP server that takes batches, and can be told to behave badly."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.headers: list[dict[str, str]] = []
        self.status = 204
        self.answer_headers: dict[str, str] = {}
        self.body = b""
        self.release = threading.Event()
        self.release.set()
        self.arrived = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.arrived.set()
                outer.release.wait(LIMIT)
                try:
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                    if outer.status == 204:
                        outer.batches.append(decode_batch(body))
                    outer.headers.append(dict(self.headers))
                    self.send_response(outer.status)
                    for name, value in outer.answer_headers.items():
                        self.send_header(name, value)
                    if outer.status != 204:
                        self.send_header("Content-Length", str(len(outer.body)))
                    self.end_headers()
                    self.wfile.write(b"" if outer.status == 204 else outer.body)
                except (OSError, ValueError):
                    pass  # the client has cut the connection

            def log_message(self, *_: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def used(directory: Path, clock: FakeClock, *collections: Any) -> FakeTransport:
    """A directory from which one report was sent."""
    collector = FakeTransport()
    given = collections or (homepage(),)
    with Client.open(directory, given, consent=True, clock=clock, transport=collector) as client:
        client.report(given[0].name, "a.org")
        assert client.flush(LIMIT)
    return collector
