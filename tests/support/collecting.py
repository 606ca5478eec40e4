"""A real collector process, and a client of it that is as plain as can be."""

import contextlib
import datetime
import http.client
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rappor import Params, Report
from rappor.collection import Collection
from rappor.collector.keys import new_key
from rappor.store import open_store
from rappor.wire import BINARY, Batch, encode_batch
from support.command import COMMAND, environment
from support.waiting import wait_for

SUPPORT = Path(__file__).parent
PARAMS = Params(k=16, h=2, m=4, f=0.5, p=0.5, q=0.75)
PATIENCE = 120.0  # seconds: ends a test that hangs; no test is about how long something takes


def today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


# One day for the whole test process: midnight changes nothing in the middle of a test.
_FIRST_DAY = today()


def day(offset: int = 0) -> str:
    """A date as a period. From -13 to 0 a collector takes it, even if midnight passes meanwhile."""
    return (_FIRST_DAY + datetime.timedelta(days=offset)).isoformat()


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
    """One kept-alive connection, or another where it was closed between two requests."""

    def __init__(
        self, port: int, timeout: float = PATIENCE, key: str = "", source: str = "127.0.0.1"
    ) -> None:
        self.key = key
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", port, timeout=timeout, source_address=(source, 0)
        )

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
        if self.key:
            named = {"authorization": f"Bearer {self.key}"} | named
        if self._was_closed():
            self.close()  # the next request opens another
        self.connection.request(method, path, data, named)
        return Answer(self.connection.getresponse())

    def deliver(self, body: bytes | Batch, path: str = "/v1/reports", **headers: str) -> Answer:
        """Send; while the collector is overloaded, send again, as every client does."""

        def taken() -> Answer | None:
            answer = self.send(body, path, **headers)
            return None if answer.code == "overloaded" else answer

        return wait_for(taken, "a collector that is not overloaded")

    def _was_closed(self) -> bool:
        """Whether the other side has closed it meanwhile, as it does with those idle for 15 s."""
        sock = self.connection.sock
        return sock is not None and bool(select.select([sock], [], [], 0)[0])

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

    def wait_until_listening(self, seconds: float = PATIENCE) -> None:
        if not self._listening.wait(seconds) or not self.port:
            raise AssertionError(f"no collector: {self.process.poll()} {''.join(self.text)}")

    def wait_for_event(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait until an event is logged for the `count`th time; that line of the log."""
        wait_for(lambda: self.events().count(event) >= count)
        return [each for each in self.log if each["event"] == event][count - 1]

    def listens_again(self) -> None:
        """Forget that it listens, before something that makes it restart."""
        self._listening.clear()

    def events(self) -> list[str]:
        return [each["event"] for each in self.log]

    def end(self, number: int = signal.SIGTERM, seconds: float = PATIENCE) -> int:
        """Signal it, and return its exit code when all it said is read."""
        self.process.send_signal(number)
        return self.wait(seconds)

    def wait(self, seconds: float = PATIENCE) -> int:
        code = self.process.wait(seconds)
        self._reader.join(PATIENCE)
        return code

    def memory(self) -> int:
        """Its resident memory in bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def peak_memory(self) -> int:
        """The most resident memory that it ever had, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def collect_command(folder: Path, *options: str, verb: str = "collect") -> list[str | Path]:
    place = folder / "collections"
    if not place.exists():
        write_collections(folder)
    fixed: list[str | Path] = ["--data", folder / "data", "--collections", place, "--port", "0"]
    alone = ["--no-dashboard"] if verb == "serve" else []
    return [*COMMAND, verb, *fixed, *alone, *options]


def planted_command(bug: str, folder: Path, port: int = 0, *more: str) -> list[str | Path]:
    """A collector that is built wrong on purpose (planted_collector.py); its date is `day()`."""
    if not (folder / "collections").exists():
        write_collections(folder)
    (folder / "today").write_text(day())
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


def gateway(folder: Path) -> tuple[str, list[str]]:
    """A new gateway key, and the options of a collector that knows it and asks for none."""
    keys = folder / "keys.json"
    return new_key(keys, "gateway", role="gateway"), ["--keys", str(keys), "--keys-optional"]


@contextlib.contextmanager
def collector(folder: Path, *options: str) -> Iterator[Process]:
    """`rappor collect` on a free port."""
    with running(collect_command(folder, *options)) as process:
        yield process


@contextlib.contextmanager
def client_of(process: Process, key: str = "", source: str = "127.0.0.1") -> Iterator[Client]:
    client = Client(process.port, key=key, source=source)
    try:
        yield client
    finally:
        client.close()


@contextlib.contextmanager
def connected(process: Process) -> Iterator[Client]:
    """A client that has had an answer, also from a collector that is quick to cut off."""
    clients: list[Client] = []

    def is_answered() -> bool:
        clients.append(Client(process.port))
        try:
            return clients[-1].get("/healthz").status == 200
        except (OSError, http.client.HTTPException):
            return False

    try:
        wait_for(is_answered)
        yield clients[-1]
    finally:
        for client in clients:
            client.close()


def page(process: Process, path: str) -> str:
    """A page, also from a collector that is quick to cut off."""

    def body() -> str | None:
        with (
            client_of(process) as client,
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            answer = client.get(path)
            return answer.body.decode() if answer.status == 200 else None
        return None

    return wait_for(body, path)


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
