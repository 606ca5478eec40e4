"""The worker process as its parent sees it: what is sent, what comes back, and why it ended."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from rappor.dashboard.jobs import worker


class Worker:
    """One worker process and the line to it."""

    def __init__(self) -> None:
        """Start it."""
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self.process = context.Process(target=worker.main, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.process.is_alive()

    @property
    def reason(self) -> str:
        """Why it ended, in words."""
        self.process.join(5)
        code = self.process.exitcode
        if code == -9:
            return "it was killed, perhaps because memory ran out"
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def run(self, kind: str, arguments: dict[str, Any]) -> Iterable[worker.Message]:
        """What the worker says about one task; ends early where the worker does."""
        with suppress(EOFError, OSError):
            self._line.send((kind, arguments))
            while True:
                said: worker.Message = _receive(self._line)
                yield said
                if said[0] != "progress":
                    return

    def kill(self) -> None:
        """End it, whatever it does."""
        self.process.kill()


def _receive(line: Connection) -> worker.Message:
    found: worker.Message = line.recv()
    return found
