"""Collectors with a planted bug or a sick disk, as processes; and a quick way to start many.

    python planted_collector.py BUG DATA COLLECTIONS PORT [forks]

With `forks`, one process imports everything and forks a collector for each line that it reads: a
start then takes milliseconds, and a fork killed with -9 is as dead as any other process.
"""

import contextlib
import math
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from rappor.collector import http_protocol, log, process, writer
from rappor.collector.http_protocol import GuardedProtocol
from rappor.collector.settings import CollectorSettings
from rappor.collector.writer import QueuedBatch, Writer
from rappor.errors import StoreBroken, StoreFull
from rappor.host import bound, die_with_parent
from rappor.store import Fold, Store, open_store
from rappor.store.sqlite import recent_tokens
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.recent_tokens import RecentTokens

HONEST = "127.0.9.1"  # a client that an impatient collector never cuts off
Folding = Callable[[Sequence[int]], Iterable[Fold]]


class AckFirst(Writer):
    """Acknowledges what it is about to store."""

    def _commit(self, group: list[QueuedBatch]) -> None:
        self._call(self._say_stored, group)
        super()._commit(group)

    def _say_stored(self, group: list[QueuedBatch]) -> None:
        for waiting in group:
            waiting.done(None)


class DyingThread(Writer):
    """Its thread ends without a word at the third group, as a bug in it would do."""

    groups = 0

    def _commit(self, group: list[QueuedBatch]) -> None:
        self.groups += 1
        if self.groups == 3:
            raise SystemExit
        super()._commit(group)


class Wrapped:
    """A store that passes everything on."""

    def __init__(self, where: str | Path) -> None:
        self.where = Path(where)
        self.store = open_store(where)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class _Look(Exception):
    pass


class TwoTransactions(Wrapped):
    """Counts in one transaction, their tokens in the next."""

    def add(self, tokens: Sequence[bytes], fold: Folding, day: date) -> list[bool]:
        found: list[int] = []

        def look(indices: Sequence[int]) -> Iterable[Fold]:
            found.extend(indices)
            raise _Look

        try:
            return self.store.add(tokens, look, day)
        except _Look:
            pass
        self.store.add([os.urandom(16) for _ in found], lambda _: fold(found), day)
        return self.store.add(tokens, lambda _: [], day)


class SickDisk(Wrapped):
    """Full or broken while files named `full` or `broken` are next to the data folder."""

    def add(self, tokens: Sequence[bytes], fold: Folding, day: date) -> list[bool]:
        if (self.where.parent / "full").exists():
            raise StoreFull("no room")
        if (self.where.parent / "broken").exists():
            (self.where.parent / "broken").unlink()  # the restarted one finds a sound disk
            raise StoreBroken("input/output error")
        return self.store.add(tokens, fold, day)


class SlowDisk(Wrapped):
    """Needs 50 ms for each commit."""

    def add(self, tokens: Sequence[bytes], fold: Folding, day: date) -> list[bool]:
        time.sleep(0.05)
        return self.store.add(tokens, fold, day)


class GatedDisk(Wrapped):
    """No commit ends while a file named `gate` is next to the data folder."""

    def add(self, tokens: Sequence[bytes], fold: Folding, day: date) -> list[bool]:
        while (self.where.parent / "gate").exists():
            time.sleep(0.005)
        return self.store.add(tokens, fold, day)


class PoisonedCell(Wrapped):
    """Cannot fold reports of cohort 3, as a bug or a damaged cell would have it."""

    def add(self, tokens: Sequence[bytes], fold: Folding, day: date) -> list[bool]:
        def checked(indices: Sequence[int]) -> Iterable[Fold]:
            for each in fold(indices):
                if each.cohort == 3:
                    raise ValueError("cohort 3")
                yield each

        return self.store.add(tokens, checked, day)


def small_fresh(where: str | Path) -> Store:
    """No bug: what takes tens of thousands of tokens happens after a few, with each commit."""
    recent_tokens.FULL, recent_tokens.BLOCK, recent_tokens.MAX_TOKENS = 4, 4, 8
    return open_store(where)


def moves_in_two(where: str | Path) -> Store:
    """Takes tokens out of the fresh ones in one transaction, and puts them away in the next."""

    def follow(self: RecentTokens, connection: Connection, wanted: int) -> None:
        rows, self._neighbours = self._neighbours, []
        for row in rows:
            connection.execute("DELETE FROM fresh_tokens WHERE id=?", (row.id,))
        connection.execute("COMMIT")
        time.sleep(0.002)
        connection.execute("BEGIN IMMEDIATE")
        for row in rows:
            recent_tokens._move(connection, row.day, row.data)
            self.tokens.difference_update(recent_tokens.split(row.data))

    RecentTokens._move_some = follow  # type: ignore[method-assign]
    return small_fresh(where)


BUGS: dict[str, dict[str, Any]] = {
    "none": {},
    "small-fresh": {"opened": small_fresh},
    "moves-in-two": {"opened": moves_in_two},
    "ack-first": {"writer": AckFirst},
    "two-transactions": {"opened": TwoTransactions},
    "dying-thread": {"writer": DyingThread},
    "sick-disk": {"opened": SickDisk},
    "narrow-disk": {"opened": SlowDisk},
    "gated-disk": {"opened": GatedDisk},
    "poisoned-cell": {"opened": PoisonedCell},
    "impatient": {},
    "impatient-while-read": {},
    "short-drain": {},
    "clock-ahead": {},
    "clock-weeks-ahead": {},
    "clock-weeks-behind": {},
    "clock-behind": {},
}
DAYS_OFF = {
    "clock-ahead": 2,
    "clock-behind": -2,
    "clock-weeks-ahead": 20,
    "clock-weeks-behind": -20,
}
# No bugs: the times that a collector keeps, so short or so long that no test waits for them.
TIMES: dict[str, dict[tuple[ModuleType, str], object]] = {
    "impatient": {
        (http_protocol, "_SECONDS"): {
            **http_protocol._SECONDS,
            http_protocol.IN_HEADERS: 0.3,
            http_protocol.IN_BODY: 0.6,
        },
        (http_protocol, "ANSWER_SECONDS"): 0.5,
        (process, "HANDSHAKE_SECONDS"): 0.3,
    },
    "impatient-while-read": {(http_protocol, "ANSWER_SECONDS"): 0.5},
    "poisoned-cell": {(log, "WINDOW_SECONDS"): math.inf},
    "short-drain": {(process, "DRAIN_SECONDS"): 1.0},
    "gated-disk": {(process, "DRAIN_SECONDS"): 300.0, (writer, "_MAX_WAIT_SECONDS"): math.inf},
}


def small_buffers(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """The system's own buffers hold next to nothing of an answer that is not read."""
    made = bound(host, port, shared=shared)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # its connections inherit it
    return made


def spare_the_honest() -> None:
    """Check no time of HONEST, who may be slow because the machine is busy."""
    check_time = GuardedProtocol.check_time

    def check(self: GuardedProtocol, now: float) -> None:
        if self.client is None or self.client[0] != HONEST:
            check_time(self, now)

    GuardedProtocol.check_time = check  # type: ignore[method-assign]


def run(bug: str, data: str, collections: str, port: str) -> int:
    for (module, name), seconds in TIMES.get(bug, {}).items():
        assert hasattr(module, name)
        setattr(module, name, seconds)
    first = date.fromisoformat(Path(data).with_name("today").read_text())
    today = first + timedelta(days=DAYS_OFF.get(bug, 0))
    group = 4 if bug == "narrow-disk" else 1024  # four batches each 50 ms: 80 a second
    more: dict[str, Any] = {}
    if bug.startswith("impatient"):
        more = {"max_connections": 64, "max_prefix_connections": 16}
        vars(process)["bound"] = small_buffers
        spare_the_honest()
    tls = Path(data).with_name("tls.pem")  # certificate and key, where the test put one
    if tls.exists():
        more |= {"tls_cert": tls, "tls_key": tls}
    settings = CollectorSettings(
        data=data, collections=collections, port=int(port), group_batches=group, **more
    )
    return process.run(settings, today=lambda: today, **BUGS[bug])


def run_forks(*arguments: str) -> None:
    """Fork a collector for each line of standard input; say its number and when it ended."""
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                die_with_parent()
                os._exit(run(*arguments))
            os._exit(99)
        os.write(2, f"pid {pid}\n".encode())  # in one piece: its child writes there too
        os.waitpid(pid, 0)
        os.write(2, b"gone\n")


if __name__ == "__main__":
    given = sys.argv[1:5]
    if sys.argv[5:] == ["forks"]:
        run_forks(*given)
    else:
        code = run(*given)
        sys.stderr.flush()
        os._exit(code)
