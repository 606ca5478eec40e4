"""An uploaded list, read in a process of its own that may use so much memory and time, and no more.

What a file says about its own size is not to be believed: a Parquet file of 20 kB can state a
footer that makes a reader take gigabytes, and 32 MB of line breaks are a gigabyte of Python
objects. A small text is read at once.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from rappor.dashboard.candidates.candidate_upload import PARQUET, Draft, read_draft
from rappor.dashboard.limits import limit, no_core_dumps
from rappor.errors import ParamsError, RapporError

MOST_MEMORY = 2**30  # bytes beyond what the process has when it begins to read
MOST_SECONDS = 60
AT_ONCE = 2
_SMALL = 2**20  # bytes of text: not worth a process
_reading = threading.BoundedSemaphore(AT_ONCE)

TOO_MUCH = (
    "this file cannot be read within the limits of {memory} MB of memory and {seconds} seconds: it "
    "is damaged, or unpacks to far more than a list may have"
)


def read_upload(
    data: bytes, form: str = "lines", *, memory: int = MOST_MEMORY, seconds: int = MOST_SECONDS
) -> Draft:
    """The candidates in pasted or uploaded bytes; see `read_draft`.

    Args:
        data: what was uploaded.
        form: how texts are to be read.
        memory: bytes that reading may take.
        seconds: of computing, and twice as many by the clock.

    Raises:
        ParamsError: what `read_draft` raises, or beyond these limits.
    """
    if len(data) <= _SMALL and not data.startswith(PARQUET):
        return read_draft(data, form)
    if not _reading.acquire(blocking=False):  # a thread that waits is one that pages need
        raise ParamsError(f"{AT_ONCE} lists are being read: try again later")
    try:
        return _read_elsewhere(data, form, memory, seconds)
    finally:
        _reading.release()


def _read_elsewhere(data: bytes, form: str, memory: int, seconds: int) -> Draft:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(theirs, memory, seconds), daemon=True)
    process.start()
    theirs.close()
    answer: Any = None
    try:
        with suppress(EOFError, OSError):  # it is gone: killed, or out of memory
            ours.send((data, form))
            if ours.poll(2 * seconds):
                answer = ours.recv()
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()
    if isinstance(answer, Draft):
        return answer
    limits = TOO_MUCH.format(memory=memory // 2**20, seconds=seconds)
    raise ParamsError(answer if isinstance(answer, str) else limits)


def _main(line: Connection, memory: int, seconds: int) -> None:
    """Read one list, and send it or a reason; nothing where the limits end it."""
    no_core_dumps()
    # Before Arrow is loaded: its other allocators reserve a gigabyte to begin with.
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    import pyarrow as pa
    import pyarrow.compute  # loaded before memory is measured
    import pyarrow.parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    data, form = line.recv()
    limit(memory, seconds)
    answer: Draft | str | None = None
    try:
        answer = read_draft(data, form)
    except RapporError as error:
        answer = str(error)
    except MemoryError:
        pass
    line.send(answer)
