"""The worker process: its handle in the dashboard, and `main`, which runs in the worker.

This module imports neither numpy nor scipy: `main` sets the number of their threads first.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
import traceback
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from rappor.dashboard.jobs import worker_process
from rappor.dashboard.limits import no_core_dumps
from rappor.errors import RapporError

_THREAD_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_MAX_THREADS = 4
_NICENESS = 5  # pages come first if there are few cores
_FIRST_TO_GO = "500"  # if memory runs out, the kernel ends the worker and not the pages
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:]+/)+")
# Messages to the parent:
# ("progress", text, share), ("done", meta, table) or ("failed", reason, trace).
Message = tuple[str, Any, Any]


class WorkerProcess:
    """A worker process and the pipe to it."""

    def __init__(self) -> None:
        """Start the process."""
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self.process = context.Process(target=worker_process.main, args=(theirs,), daemon=True)
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

    def run(self, kind: str, arguments: dict[str, Any]) -> Iterable[worker_process.Message]:
        """The messages of one task; they end early if the worker does."""
        with suppress(EOFError, OSError):
            self._line.send((kind, arguments))
            while True:
                said: worker_process.Message = _receive(self._line)
                yield said
                if said[0] != "progress":
                    return

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()


def _receive(line: Connection) -> worker_process.Message:
    found: worker_process.Message = line.recv()
    return found


def threads(cores: int | None) -> int:
    """Threads for linear algebra: one core is left to the pages, and more than four help little.

    >>> threads(1), threads(2), threads(16)
    (1, 1, 4)
    """
    return max(1, min(_MAX_THREADS, (cores or 1) - 1))


def main(connection: Connection) -> None:
    """Run tasks until the other end closes the pipe."""
    no_core_dumps()
    for name in _THREAD_LIMITS:
        os.environ.setdefault(name, str(threads(os.cpu_count())))
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # an interrupt is for the dashboard, which ends its worker
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            kind, arguments = connection.recv()
            connection.send(_run(kind, arguments, connection))


def _run(kind: str, arguments: dict[str, Any], connection: Connection) -> Message:
    """Run one task; an error becomes a message."""

    def progress(text: str, share: float | None = None) -> None:
        connection.send(("progress", text, share))

    try:
        progress("starting")
        from rappor.dashboard.jobs.tasks import TASKS

        result = TASKS[kind](arguments, progress)
    except RapporError as error:
        said = str(error).replace(f"{arguments.get('data')}/", "")
        return "failed", without_folders(said), ""
    except MemoryError:
        return "failed", "There is not enough memory for this.", ""
    except OSError as error:
        return "failed", f"A file could not be read: {error.strerror or 'unknown reason'}.", ""
    except Exception as error:
        return "failed", f"A fault of the program ({type(error).__name__}).", traceback.format_exc()
    return "done", result.meta, result.table


def without_folders(text: str) -> str:
    """A text with the names of files but not their folders: every role reads a job's error.

    >>> without_folders("/srv/data/store.sqlite: damaged")
    'store.sqlite: damaged'
    """
    return _FOLDERS.sub("", text)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
