"""What a client is given in tests: a disk that crashes, a clock that jumps, a collector."""

import contextlib
import datetime
import http.server
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rappor.client.charging import Caps
from rappor.client.outbox import Outbox
from rappor.client.recorder import Recorder
from rappor.client.transport import Answer
from rappor.collection import Collection
from rappor.params import Params
from rappor.wire import Batch, decode_batch

WINDOWS = Params.preset("windows")
ECHO = Params(k=64, h=2, m=4, f=0.5, p=0.0, q=1.0)  # a report is B' itself
MONDAY = datetime.date(2026, 11, 16)


def homepage(**changes: Any) -> Collection:
    """An ordinary collection of strings, one report a day."""
    settings: dict[str, Any] = {"name": "homepage", "version": 1, "params": WINDOWS}
    return Collection(**(settings | {"most_values": 3} | changes))


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
                outer.release.wait(20)
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
