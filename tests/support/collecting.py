"""A real collector process, and a client of it that is as plain as can be."""

import contextlib
import datetime
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rappor import Params, Report
from rappor.collection import Collection
from rappor.store import open_store
from rappor.wire import BINARY, Batch, encode_batch
from support.command import COMMAND, environment

SUPPORT = Path(__file__).parent
PARAMS = Params(k=16, h=2, m=4, f=0.5, p=0.5, q=0.75)


def today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def day(offset: int = 0) -> str:
    return (today() + datetime.timedelta(days=offset)).isoformat()


def write_collections(folder: Path, *collections: Collection) -> Path:
    """A folder of collections: one named `homepage` where none is given."""
    place = folder / "collections"
    place.mkdir(parents=True, exist_ok=True)
    for each in collections or (Collection("homepage", 1, PARAMS),):
        file = place / f"{each.name}-{each.version}.toml"
        file.write_text(each.to_toml(), encoding="utf-8")
    return place


def batch(
    reports: Sequence[Report] = (Report(1, 5),), *, token: bytes | None = None, **changed: Any
) -> Batch:
    """A batch that `homepage` accepts, but for what is changed."""
    fields: dict[str, Any] = {
        "collection": "homepage",
        "version": 1,
        "period": day(),
        "k": PARAMS.k,
    }
    return Batch.of(reports, token=token or os.urandom(16), **(fields | changed))


class Answer:
    """What a collector said."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The code of the problem, or None."""
        if self.headers.get("content-type") != "application/problem+json":
            return None
        return str(self.json["code"])


class Client:
    """One kept-alive connection."""

    def __init__(self, port: int, timeout: float = 15) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def send(
        self,
        body: bytes | Batch | None = None,
        path: str = "/v1/reports",
        method: str = "POST",
        content_type: str = BINARY,
        **headers: str,
    ) -> Answer:
        data = encode_batch(body) if isinstance(body, Batch) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            named = {"content-type": content_type} | named
        self.connection.request(method, path, data, named)
        return Answer(self.connection.getresponse())

    def get(self, path: str) -> Answer:
        return self.send(None, path, "GET")

    def close(self) -> None:
        self.connection.close()


class Process:
    """A process that logs JSON lines, among them where it listens."""

    LISTENING = "listening"  # the event that says so

    def __init__(self, command: Sequence[str | Path], env: dict[str, str] | None = None) -> None:
        self.log: list[dict[str, Any]] = []
        self.text: list[str] = []
        self._listening = threading.Event()
        self.port = 0
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(env),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for raw in self.process.stderr or ():
            line = raw.decode(errors="replace")
            self.text.append(line)
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                self.log.append(said)
                if said["event"] == self.LISTENING:
                    self.port = said["port"]
                    self._listening.set()
        self._listening.set()

    def wait_until_listening(self, seconds: float = 20) -> None:
        if not self._listening.wait(seconds) or not self.port:
            raise AssertionError(f"no collector: {self.process.poll()} {''.join(self.text)}")

    def listens_again(self) -> None:
        """Forget that it listens, before something that makes it start anew."""
        self._listening.clear()

    def events(self) -> list[str]:
        return [each["event"] for each in self.log]

    def end(self, number: int = signal.SIGTERM, seconds: float = 15) -> int:
        """Signal it, and return its exit code when all it said is read."""
        self.process.send_signal(number)
        return self.wait(seconds)

    def wait(self, seconds: float = 15) -> int:
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code

    def memory(self) -> int:
        """Its resident memory in bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        for stream in (self.process.stdin, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def collect_command(folder: Path, *options: str, verb: str = "collect") -> list[str | Path]:
    place = folder / "collections"
    if not place.exists():
        write_collections(folder)
    fixed = ["--data", folder / "data", "--collections", place, "--port", "0"]
    alone = ["--no-dashboard"] if verb == "serve" else []
    return [*COMMAND, verb, *fixed, *alone, *options]


def planted_command(bug: str, folder: Path, port: int = 0, *more: str) -> list[str | Path]:
    """A collector that is built wrong on purpose (see planted_collector.py)."""
    if not (folder / "collections").exists():
        write_collections(folder)
    script = SUPPORT / "planted_collector.py"
    return [sys.executable, script, bug, folder / "data", folder / "collections", str(port), *more]


@contextlib.contextmanager
def running(command: Sequence[str | Path]) -> Iterator[Process]:
    """A process that listens, and is gone afterwards whatever happens."""
    process = Process(command)
    try:
        process.wait_until_listening()
        yield process
    finally:
        process.close()


@contextlib.contextmanager
def collector(folder: Path, *options: str) -> Iterator[Process]:
    """`rappor collect` on a free port."""
    with running(collect_command(folder, *options)) as process:
        yield process


@contextlib.contextmanager
def client_of(process: Process) -> Iterator[Client]:
    client = Client(process.port)
    try:
        yield client
    finally:
        client.close()


def stored(folder: Path, collection: str = "homepage") -> dict[tuple[str, str], int]:
    """Reports in the store, by period and dimensions."""
    store = open_store(folder / "data", read_only=True)
    try:
        return {
            (each.cell.period, each.cell.dimensions): each.reports
            for each in store.counts(collection)
        }
    finally:
        store.close()


def wait_for(condition: Any, seconds: float = 10) -> None:
    """Wait until a condition holds, or fail."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.02)
