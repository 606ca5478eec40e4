"""Interleavings by hand: every step of a client on disk and network is one turn, drawn by a seed.

Each activity (a call of the host, a turn of a background thread) runs in a thread of its own, but
only one at a time: it stops before each operation on the disk and before each phase of an upload
until it is drawn again. Nothing waits for real time, and the same seed gives the same run.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rappor.client.folder import Busy
from rappor.client.transport import Aborted, Answer
from support.client import Crash, MemoryDisk


class Activity:
    """Something that happens in one process, step by step."""

    def __init__(self, process: int, name: str, action: Callable[[], Any]) -> None:
        self.process = process
        self.name = name
        self.action = action
        self.turn = threading.Semaphore(0)
        self.over = False
        self.killed = False
        self.result: Any = None
        self.error: BaseException | None = None


class Schedule:
    """Runs activities in turns."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.activities: list[Activity] = []
        self.current: Activity | None = None
        self.now = 0  # turns so far
        self._back = threading.Semaphore(0)

    def begin(self, process: int, name: str, action: Callable[[], Any]) -> Activity:
        """Start an activity; it does nothing before its first turn."""
        made = Activity(process, name, action)

        def run() -> None:
            made.turn.acquire()
            try:
                if not made.killed:
                    made.result = made.action()
            except Crash:
                pass
            except BaseException as error:
                made.error = error
            made.over = True
            self._back.release()

        threading.Thread(target=run, daemon=True).start()
        self.activities.append(made)
        return made

    def step(self, activity: Activity) -> None:
        """Give an activity one turn."""
        self.now += 1
        self.current = activity
        activity.turn.release()
        self._back.acquire()
        self.current = None
        if activity.over:
            self.activities.remove(activity)
            if activity.error is not None:
                raise activity.error

    def pause(self) -> None:
        """In an activity: let others have their turns."""
        here = self.current
        if here is None:
            return
        if not here.killed:
            self._back.release()
            here.turn.acquire()
        if here.killed:
            raise Crash

    def kill(self, process: int) -> None:
        """End all activities of a process where they are, as kill -9 does."""
        for activity in [each for each in self.activities if each.process == process]:
            activity.killed = True
            while not activity.over:
                self.step(activity)

    def finish(self) -> None:
        """Run what has begun to its end."""
        while self.activities:
            self.step(self.draw.choice(self.activities))


class SteppedDisk(MemoryDisk):
    """A disk in memory that several activities use, with locks that exclude each other."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule
        self._holders: dict[str, Activity | None] = {}
        self.held_since: dict[str, int] = {}  # the turn in which a lock was last taken
        self.written: Callable[[str, bytes], None] = lambda _name, _data: None

    def read(self, name: str) -> bytes | None:
        self._schedule.pause()
        return super().read(name)

    def exists(self, name: str) -> bool:
        self._schedule.pause()
        return super().exists(name)

    def create(self, name: str, data: bytes) -> None:
        self._schedule.pause()
        super().create(name, data)
        self.written(name, data)

    def replace(self, name: str, data: bytes) -> None:
        self._schedule.pause()
        super().replace(name, data)
        self.written(name, data)

    def move(self, old: str, new: str) -> None:
        self._schedule.pause()
        super().move(old, new)

    def remove(self, name: str) -> None:
        self._schedule.pause()
        super().remove(name)

    def names(self, folder: str) -> list[str]:
        self._schedule.pause()
        return super().names(folder)

    @contextlib.contextmanager
    def lock(self, name: str, wait: float) -> Iterator[None]:
        self._schedule.pause()
        while name in self._holders:
            if wait <= 0 or self._schedule.draw.random() < 0.03:  # waited for long enough
                raise Busy(11, "another process holds the lock")
            self._schedule.pause()
        self._holders[name] = self._schedule.current
        self.held_since[name] = self._schedule.now
        try:
            yield
        finally:
            del self._holders[name]

    def sweep(self, older_than: float = 3600) -> None:
        """Nothing is left unfinished."""


class SteppedTransport:
    """A network on which each phase of an upload is a step, like `HttpTransport`."""

    def __init__(self, schedule: Schedule, left: Callable[[bytes], None]) -> None:
        self.schedule = schedule
        self.left = left  # told of the bytes at the moment at which they leave
        self.open = True
        self.aborts = 0

    def post(self, body: bytes, timeout: float) -> Answer:
        return self.connect(timeout).send(body)

    def connect(self, timeout: float) -> SteppedConnection:
        made = SteppedConnection(self)
        for failure in (0.05, 0.05):  # the connection, the handshake
            self.wait(made)
            if self.schedule.draw.random() < failure:
                raise ConnectionRefusedError
        return made

    def wait(self, connection: SteppedConnection) -> None:
        """One turn or many: a slow network lets others do much meanwhile."""
        for _ in range(self.schedule.draw.choice([1, 1, 40])):
            connection.check()
            self.schedule.pause()
        connection.check()

    def abort(self) -> None:
        self.open = False
        self.aborts += 1

    def resume(self) -> None:
        self.open = True


class SteppedConnection:
    """One upload."""

    def __init__(self, transport: SteppedTransport) -> None:
        self._transport = transport
        self._aborts = transport.aborts

    def check(self) -> None:
        """Aborted if sending was stopped since this began."""
        if not self._transport.open or self._transport.aborts != self._aborts:
            raise Aborted("sending was stopped")

    def send(self, body: bytes) -> Answer:
        schedule = self._transport.schedule
        self._transport.wait(self)  # the bytes cannot leave on a connection that was cut
        self._transport.left(body)
        schedule.pause()
        self.check()
        schedule.pause()
        drawn = schedule.draw.random()
        if drawn < 0.1:
            raise TimeoutError
        return Answer(204 if drawn < 0.8 else 503 if drawn < 0.9 else 400)

    def close(self) -> None:
        pass
