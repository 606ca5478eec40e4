"""The processes that are the crowd: started, listened to, and ended together."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from rappor.demo.crowd import Task
from rappor.demo.errors import DemoError
from rappor.demo.truth import Truth
from rappor.host import die_with_parent

_TICK_SECONDS = 0.2
_READ = 2**16


class CrowdWorkers:
    """Some crowds at work; a context that ends them."""

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
        """Return when all are done; what they stored is in `truth` then.

        Args:
            truth: what stored reports held is added here.
            stored: called with the number of reports of each stored batch.
            idle: called several times a second.

        Raises:
            DemoError: one of them failed; the message says why.
        """

        def heard(line: bytes) -> None:
            said: dict[str, Any] = json.loads(line)
            if "error" in said:
                raise DemoError(said["error"])
            truth.add_lists(said.get("truth", ()))
            stored(said.get("stored", 0))

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
                        heard(line)
                    if not piece:
                        ready.unregister(key.fileobj)
                        _check_end(process)
                idle()

    def end(self) -> None:
        """End them, whatever they are doing."""
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
            process_group=0,  # Ctrl-C is for the demo, which then ends its crowd
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
