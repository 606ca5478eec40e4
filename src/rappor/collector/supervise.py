"""A parent of named processes: starts them, restarts those that fail, stops them together.

A collector ends itself when its disk fails, because an fsync must not be tried again in the same
process (SECURITY: ack). What restarts it is this, or systemd.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rappor.collector import log
from rappor.host import die_with_parent

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
STEADY_SECONDS = 60.0  # a process that ran this long is started again without delay
STOP_SECONDS = 12.0
_HOPELESS = (2, 3)  # usage and invalid input: starting again would fail again
_TICK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Child:
    """A process to keep running: a name for the log, and its command."""

    name: str
    command: tuple[str, ...]


@dataclass(slots=True)
class _Running:
    child: Child
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = 0.0
    done: bool = field(default=False)


class Supervisor:
    """Keeps children running until it is told to stop, or until one cannot run at all."""

    def __init__(
        self, children: Sequence[Child], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Supervise these; nothing is started before `run`."""
        self._all = [_Running(child) for child in children]
        self._clock = clock
        self._stopping = False
        self._reload = False
        self._code = 0

    def run(self) -> int:
        """Supervise; 0 after a stop that every child took well, or the code that ended it."""
        handled = {
            signal.SIGTERM: self._stop,
            signal.SIGINT: self._stop,
            signal.SIGHUP: self._pass_on,
        }
        before = {number: signal.signal(number, action) for number, action in handled.items()}
        try:
            while not self._stopping and not all(each.done for each in self._all):
                self._turn()
                time.sleep(_TICK_SECONDS)
            return self._end()
        finally:
            for number, action in before.items():
                signal.signal(number, action)

    def _turn(self) -> None:
        now = self._clock()
        reload, self._reload = (
            self._reload,
            False,
        )  # a signal from now on is for the next turn
        for each in self._all:
            if each.done:
                continue
            if each.process is None:
                if now >= each.due:
                    self._start(each, now)
            elif (code := each.process.poll()) is not None:
                self._ended(each, code, now)
            elif reload:
                each.process.send_signal(signal.SIGHUP)

    def _start(self, each: _Running, now: float) -> None:
        # S603: no shell reads the command, and all of it is ours or the operator's own options.
        each.process = subprocess.Popen(each.child.command, preexec_fn=die_with_parent)  # noqa: S603
        each.started = now
        log.event("started", child=each.child.name, pid=each.process.pid)

    def _ended(self, each: _Running, code: int, now: float) -> None:
        each.process = None
        log.event(
            "ended", logging.INFO if code == 0 else logging.ERROR, child=each.child.name, code=code
        )
        if code == 0:
            each.done = True
        elif code in _HOPELESS:
            each.done = True
            self._code = code
            self._stopping = True
        else:
            if now - each.started >= STEADY_SECONDS:
                each.pause = FIRST_PAUSE
            each.due = now + each.pause
            each.pause = min(2 * each.pause, LONGEST_PAUSE)

    def _end(self) -> int:
        """Stop all children: SIGTERM, then SIGKILL for those that do not listen."""
        running = [each.process for each in self._all if each.process is not None]
        for process in running:
            process.terminate()
        deadline = self._clock() + STOP_SECONDS
        for process in running:
            try:
                code = process.wait(max(0.0, deadline - self._clock()))
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            if code != 0 and self._code == 0:
                self._code = 1
        return self._code

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _pass_on(self, *_: object) -> None:
        self._reload = True
