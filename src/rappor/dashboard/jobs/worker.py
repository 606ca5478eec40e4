"""The worker process: takes one task after the other, tells how far it is, sends the result back.

It holds nothing of its own, so that killing it is how work is cancelled. It ends with the process
that started it. Importing this file loads neither numpy nor scipy: the number of their threads is
set first.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import traceback
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from rappor.dashboard.limits import no_core_dumps
from rappor.errors import RapporError

_THREAD_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_MOST_THREADS = 4
_NICENESS = 5  # pages come first where cores are few
_FIRST_TO_GO = "500"  # where memory runs out, the kernel ends the worker and not the pages
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:]+/)+")

# What is sent back: ("progress", text, share), ("done", meta, table) or ("failed", reason, trace).
Message = tuple[str, Any, Any]


def threads(cores: int | None) -> int:
    """Threads for linear algebra: one core is left to the pages, and more than four bring little.

    >>> threads(1), threads(2), threads(16)
    (1, 1, 4)
    """
    return max(1, min(_MOST_THREADS, (cores or 1) - 1))


def main(connection: Connection) -> None:
    """Serve tasks until the other end closes."""
    no_core_dumps()
    for name in _THREAD_LIMITS:
        os.environ.setdefault(name, str(threads(os.cpu_count())))
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts means the dashboard as a whole
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            kind, arguments = connection.recv()
            connection.send(_run(kind, arguments, connection))


def _run(kind: str, arguments: dict[str, Any], connection: Connection) -> Message:
    """One task; whatever goes wrong in it becomes a message."""

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
    """A text with the names of files, but not where they are: everybody reads a job's error.

    >>> without_folders("/srv/data/store.sqlite: damaged")
    'store.sqlite: damaged'
    """
    return _FOLDERS.sub("", text)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
