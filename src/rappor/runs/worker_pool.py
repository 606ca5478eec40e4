"""Worker processes of a run: each does one unit at a time; one that dies is replaced.

This module imports neither numpy nor scipy: `main` sets the number of their threads first.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from rappor.host import no_core_dumps
from rappor.runs import worker_pool

if TYPE_CHECKING:
    from rappor.runs.journal import UnitResult
    from rappor.runs.units import DecodeUnit, OutputOptions

_THREAD_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
MAX_TRIES = 2  # of a unit whose process died: perhaps another program took the memory


@dataclass(frozen=True, slots=True)
class UnitEnd:
    """The end of a unit.

    Attributes:
        unit: which one.
        result: what came out; None if it failed.
        error: why it failed, in one sentence.
        trace: the traceback of a fault of the program, or "".
    """

    unit: DecodeUnit
    result: UnitResult | None = None
    error: str = ""
    trace: str = field(default="", repr=False)


class _Worker:
    """One process, the pipe to it, and the unit it works on."""

    def __init__(self, options: OutputOptions) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=worker_pool.main, args=(theirs, options), daemon=True)
        self.process.start()
        theirs.close()
        self.unit: DecodeUnit | None = None

    def begin(self, unit: DecodeUnit) -> None:
        """Send a unit; a process that is gone is noticed when its pipe is read."""
        self.unit = unit
        with suppress(OSError):
            self.line.send(unit)

    def receive(self) -> UnitEnd | None:
        """What the process says at the end of its unit; None if it died."""
        try:
            result, error, trace = self.line.recv()
        except (EOFError, OSError):
            return None
        unit, self.unit = self.unit, None
        if unit is None:
            return None
        return UnitEnd(unit, result, error, trace)

    @property
    def reason(self) -> str:
        """Why it died, in words."""
        self.process.join()
        code = self.process.exitcode or 0
        if code == -signal.SIGKILL:
            return "its process was killed, perhaps because memory ran out"
        return f"its process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"

    def close(self) -> None:
        self.line.close()
        self.process.kill()
        self.process.join()


def work_all(
    units: Iterable[DecodeUnit], options: OutputOptions, processes: int
) -> Iterator[UnitEnd]:
    """Do all units in processes, and yield the end of each as it comes.

    A unit whose process dies is tried once more, in another process.
    """
    waiting = deque(units)
    tries: dict[str, int] = {}
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.unit is not None for worker in workers):
            while waiting and len(workers) < processes:
                workers.append(_Worker(options))
            for worker in workers:
                if waiting and worker.unit is None:
                    worker.begin(waiting.popleft())
            lines = {worker.line: worker for worker in workers if worker.unit is not None}
            for line in wait(list(lines)):
                worker = lines[line]  # type: ignore[index]  # only connections are waited for
                end = worker.receive()
                if end is not None:
                    yield end
                    continue
                unit, why = worker.unit, worker.reason
                workers.remove(worker)
                worker.close()
                if unit is None:
                    continue
                tries[unit.name] = tries.get(unit.name, 0) + 1
                if tries[unit.name] < MAX_TRIES:
                    waiting.append(unit)
                else:
                    yield UnitEnd(unit, error=f"{why}, {MAX_TRIES} times")
    finally:
        for worker in workers:
            worker.close()


def main(connection: Connection, options: OutputOptions) -> None:
    """Work until the other end closes the pipe."""
    no_core_dumps()
    for name in _THREAD_LIMITS:
        os.environ.setdefault(name, "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the run, which ends this
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        from rappor.runs.unit_work import UnitWorker

        worker = UnitWorker(options)
        while True:
            connection.send(_try(worker, connection.recv()))


def _try(worker: Any, unit: DecodeUnit) -> tuple[UnitResult | None, str, str]:
    """The result of a unit, or why there is none."""
    from rappor.errors import RapporError
    from rappor.runs.units import said

    try:
        return worker.work(unit), "", ""
    except (RapporError, OSError) as error:
        return None, said(error), ""
    except MemoryError:
        return None, "there is not enough memory for this", ""
    except Exception as error:
        return None, f"a fault of the program ({type(error).__name__})", traceback.format_exc()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
