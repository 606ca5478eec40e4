"""The crowd: processes that each play many clients, and the code that starts and watches them.

`python -m rappor.demo.crowd` reads one JSON line (`Task`) from standard input, encodes and sends
the reports, and writes JSON lines: how many reports were stored and, at the end, what they held.
When the parent ends, standard input closes, and the process ends too.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from rappor.client.clock import SystemClock
from rappor.client.transport import HttpTransport
from rappor.collection import Collection
from rappor.demo import DemoError
from rappor.demo.definitions import HOMEPAGE, INSTALL, START, THEME
from rappor.demo.population import DAYS, DemoPopulation, Person, named, pair_named
from rappor.demo.truth import HeldValue, Truth
from rappor.errors import RapporError
from rappor.host import die_with_parent
from rappor.mechanism import new_secret
from rappor.mechanism.report import Report
from rappor.wire import PROBLEMS, Batch, encode_batch
from rappor.wire.protocol import TOKEN_BYTES

PATIENCE_SECONDS = 60.0  # for a server that starts again, or has too much to do
_TIMEOUT, _PAUSE = 10.0, 0.1
_NO_USE = ("store-full",)  # nobody is there to make room: waiting does not help
_TICK_SECONDS = 0.2
_READ = 2**16
Tell = Callable[[dict[str, object]], None]
ReportsByCell = dict[tuple[str, int, str], tuple[list[Report], list[str]]]


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one process.

    Attributes:
        people: the number of people in all processes together.
        seed: the seed of the population.
        first: the first chunk of this process.
        step: the distance to its next chunk.
        url: the collector's address.
        definitions: the collections as TOML: homepage, theme, start time, install.
        periods: one for each day.
        gateway_key: the key that allows batches of many people.
    """

    people: int
    seed: int
    first: int
    step: int
    url: str
    definitions: tuple[str, ...]
    periods: tuple[str, ...]
    gateway_key: str

    def to_json(self) -> str:
        """The task as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Task:
        """The task that `to_json` wrote."""
        return cls(**json.loads(line))


# What a process of the crowd does


def work(task: Task, tell: Tell) -> None:
    """Draw, encode and send every chunk of this task."""
    population = DemoPopulation(task.people, task.seed)
    collections = {
        collection.name: collection
        for collection in (Collection.from_toml(text) for text in task.definitions)
    }
    sender, truth = BatchSender(task.url, task.gateway_key), Truth()
    for number in range(task.first, population.chunks, task.step):
        cells = encode(population.chunk(number), collections)
        for (name, day, country), (reports, values) in cells.items():
            period = task.periods[day]
            sender.send(reports, collections[name], period, {"country": country})
            for value in values:
                label = named(value) if name == HOMEPAGE else value
                truth.add(HeldValue(name, period, country, label))
            tell({"stored": len(reports)})
    tell({"truth": truth.to_lists()})


def encode(people: Iterable[Person], collections: dict[str, Collection]) -> ReportsByCell:
    """The reports of some people by collection, day and country, with the values in them.

    Each person has a secret from the operating system and uses it as a real client does: one
    permanent response B' for each value, and a fresh report each day. On the last day each person
    also sends one report on homepage and channel together.
    """
    cells: ReportsByCell = {}
    ranges = collections[START].ranges
    labels = () if ranges is None else ranges.labels
    for person in people:
        secret = new_secret()
        homepage = collections[HOMEPAGE].encoder(secret)
        for day in range(DAYS):
            value = person.homepage_on(day)
            _put(cells, (HOMEPAGE, day, person.country), homepage.encode(value), value)
        install = collections[INSTALL].encoder(secret)
        together = install.encode({"homepage": value, "channel": person.channel})
        label = pair_named(value, person.channel)
        _put(cells, (INSTALL, DAYS - 1, person.country), together, label)
        if person.theme is not None:
            theme = collections[THEME].encoder(secret)
            for day in range(DAYS):
                report = theme.encode(person.theme)
                _put(cells, (THEME, day, person.country), report, person.theme)
        if person.start is not None and ranges is not None:
            start, label = collections[START].encoder(secret), labels[ranges.range_of(person.start)]
            for day in range(DAYS):
                _put(cells, (START, day, person.country), start.encode(person.start), label)
    return cells


def _put(cells: ReportsByCell, key: tuple[str, int, str], report: Report, value: str) -> None:
    reports, values = cells.setdefault(key, ([], []))
    reports.append(report)
    values.append(value)


class BatchSender:
    """Sends batches with the client's own transport, again and again until they are stored.

    The server counts each batch once, however often it is sent.
    """

    def __init__(
        self,
        url: str,
        gateway_key: str | None = None,
        patience: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the collector's address and a key that allows batches larger than a client's."""
        self._clock = SystemClock()
        self._transport = HttpTransport(url, clock=self._clock, ingest_key=gateway_key)
        self._patience, self._sleep = patience, sleep

    def send(
        self,
        reports: Sequence[Report],
        collection: Collection,
        period: str,
        dimensions: dict[str, str],
    ) -> None:
        """Send one batch; it is durably stored when this returns.

        Reports are sorted, because their order would show which ones come from one person.

        Raises:
            DemoError: the batch was not stored in time.
        """
        batch = Batch.of(
            sorted(reports),
            token=os.urandom(TOKEN_BYTES),
            collection=collection.name,
            version=collection.version,
            period=period,
            dimensions=collection.cell(dimensions),
            k=collection.params.k,
        )
        self.post(encode_batch(batch))

    def post(self, body: bytes) -> None:
        """Send a batch that is already encoded."""
        until = self._clock.monotonic() + self._patience
        while True:
            try:
                answer = self._transport.post(body, _TIMEOUT)
            except OSError as error:
                problem, final = f"no answer from the server: {error.strerror or error}", False
                wait = _PAUSE
            else:
                if answer.stored:
                    return
                problem = f"the server answered {answer.status}"
                if answer.code is not None:
                    problem += f" {answer.code}: {PROBLEMS[answer.code].title}"
                final = answer.permanent or answer.code in _NO_USE
                wait = max(_PAUSE, answer.retry_after or 0.0)
            if final or self._clock.monotonic() + wait > until:
                raise DemoError(problem)
            self._sleep(wait)


def main() -> int:
    """Do the task given on standard input."""
    line = sys.stdin.readline()
    if not line:  # the parent has ended already
        return 1
    task = Task.from_json(line)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(message: dict[str, object]) -> None:
        print(json.dumps(message), flush=True)

    try:
        work(task, tell)
    except (RapporError, OSError) as error:
        tell({"error": str(error)})
        return 1
    return 0


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


# What the demo does with these processes


class CrowdWorkers:
    """The running processes of the crowd; a context that ends them."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        """Start one process for each task."""
        self._running: list[subprocess.Popen[bytes]] = []
        try:
            for task in tasks:
                self._start(task)
        except BaseException:
            self.end()
            raise

    def listen(self, truth: Truth, stored: Callable[[int], None], idle: Callable[[], None]) -> None:
        """Return when all processes are done.

        Args:
            truth: receives the values that stored reports held.
            stored: called with the number of reports of each stored batch.
            idle: called several times a second.

        Raises:
            DemoError: a process failed; the message says why.
        """

        def read(line: bytes) -> None:
            message: dict[str, Any] = json.loads(line)
            if "error" in message:
                raise DemoError(message["error"])
            truth.add_lists(message.get("truth", ()))
            stored(message.get("stored", 0))

        with selectors.DefaultSelector() as ready:
            for process in self._running:
                if process.stdout is not None:
                    ready.register(process.stdout, selectors.EVENT_READ, process)
            halves = {process.pid: b"" for process in self._running}
            while ready.get_map():
                for key, _ in ready.select(_TICK_SECONDS):
                    process = key.data
                    piece = os.read(key.fd, _READ)
                    *lines, halves[process.pid] = (halves[process.pid] + piece).split(b"\n")
                    for line in lines:
                        read(line)
                    if not piece:
                        ready.unregister(key.fileobj)
                        _check_end(process)
                idle()

    def end(self) -> None:
        """Kill all processes."""
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def __enter__(self) -> CrowdWorkers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def _start(self, task: Task) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "rappor.demo.crowd"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            preexec_fn=die_with_parent,
            process_group=0,  # Ctrl-C goes to the demo, which then ends its crowd
        )
        self._running.append(process)
        try:
            if process.stdin is not None:
                process.stdin.write(f"{task.to_json()}\n".encode())
        except BrokenPipeError:
            raise DemoError("a process of the crowd did not start") from None


def _check_end(process: subprocess.Popen[bytes]) -> None:
    if code := process.wait():
        how = f"with code {code}" if code > 0 else f"by {signal.Signals(-code).name}"
        raise DemoError(f"a process of the crowd ended {how}")


if __name__ == "__main__":
    sys.exit(main())
