"""Starts named processes, restarts those that fail, and stops them together.

A collector ends itself when its disk fails, because a failed fsync must not be tried again in the
same process. This module, or systemd, restarts it.
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

FIRST_PAUSE, MAX_PAUSE = 0.2, 30.0
STEADY_SECONDS = 60.0  # a process that ran this long is restarted after the shortest pause
STOP_SECONDS = 12.0
_HOPELESS = (2, 3)  # usage and invalid input: a restart would fail too
_TICK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Child:
    """A process to keep running: its name in the log and its command."""

    name: str
    command: tuple[str, ...]


@dataclass(slots=True)
class _ChildState:
    child: Child
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = 0.0
    done: bool = field(default=False)


class Supervisor:
    """Keeps processes running until it is stopped, or until one of them cannot run at all."""

    def __init__(
        self, children: Sequence[Child], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Supervise these; `run` starts them."""
        self._all = [_ChildState(child) for child in children]
        self._clock = clock
        self._stopping = False
        self._reload = False
        self._code = 0

    def run(self) -> int:
        """Supervise; return 0 after an orderly stop, or the exit code that ended it."""
        handled = {
            signal.SIGTERM: self._stop,
            signal.SIGINT: self._stop,
            signal.SIGHUP: self._pass_on,
        }
        before = {number: signal.signal(number, action) for number, action in handled.items()}
        try:
            while not self._stopping and not all(state.done for state in self._all):
                self._turn()
                time.sleep(_TICK_SECONDS)
            return self._end()
        finally:
            for number, action in before.items():
                signal.signal(number, action)

    def _turn(self) -> None:
        now = self._clock()
        reload, self._reload = self._reload, False  # a later signal is for the next turn
        for state in self._all:
            if state.done:
                continue
            if state.process is None:
                if now >= state.due:
                    self._start(state, now)
            elif (code := state.process.poll()) is not None:
                self._ended(state, code, now)
            elif reload:
                state.process.send_signal(signal.SIGHUP)

    def _start(self, state: _ChildState, now: float) -> None:
        # S603: no shell reads the command; it consists of our words and the operator's options.
        state.process = subprocess.Popen(state.child.command, preexec_fn=die_with_parent)  # noqa: S603
        state.started = now
        log.event("started", child=state.child.name, pid=state.process.pid)

    def _ended(self, state: _ChildState, code: int, now: float) -> None:
        state.process = None
        log.event(
            "ended", logging.INFO if code == 0 else logging.ERROR, child=state.child.name, code=code
        )
        if code == 0:
            state.done = True
        elif code in _HOPELESS:
            state.done = True
            self._code = code
            self._stopping = True
        else:
            if now - state.started >= STEADY_SECONDS:
                state.pause = FIRST_PAUSE
            state.due = now + state.pause
            state.pause = min(2 * state.pause, MAX_PAUSE)

    def _end(self) -> int:
        """Stop all children: SIGTERM, then SIGKILL for those that do not stop."""
        processes = [state.process for state in self._all if state.process is not None]
        for process in processes:
            process.terminate()
        deadline = self._clock() + STOP_SECONDS
        for process in processes:
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
